/// What a server keeps for an account's owner alone, and what is in no repository, one kind at a
/// time.
///
/// The answer is what the lexicon of its ``Kind`` says: JSON, page by page where ``Kind/isPaged``,
/// or lines of JSON.
package struct OwnerData: XRPCStream {
  /// What is asked for; the raw value is the name of the method.
  package enum Kind: String, CaseIterable, Sendable {
    /// Settings of the app: feeds, content filters, saved searches.
    case preferences = "app.bsky.actor.getPreferences"
    /// Accounts that are muted.
    case mutedAccounts = "app.bsky.graph.getMutes"
    /// Lists that are muted.
    case mutedLists = "app.bsky.graph.getListMutes"
    /// Lists whose accounts are blocked.
    case blockedLists = "app.bsky.graph.getListBlocks"
    /// Posts that are bookmarked.
    case bookmarks = "app.bsky.bookmark.getBookmarks"
    /// Posts that are not published yet.
    case drafts = "app.bsky.draft.getDrafts"
    /// What there are notifications of.
    case notificationPreferences = "app.bsky.notification.getPreferences"
    /// Accounts of whose posts there are notifications.
    case activitySubscriptions = "app.bsky.notification.listActivitySubscriptions"
    /// Conversations, a line of JSON for each event.
    case chat = "chat.bsky.actor.exportAccountData"

    /// Whether it comes in pages, each with a cursor for the next.
    package var isPaged: Bool {
      switch self {
      case .mutedAccounts, .mutedLists, .blockedLists, .bookmarks, .drafts, .activitySubscriptions:
        true
      case .preferences, .notificationPreferences, .chat: false
      }
    }

    /// Whether an answer is one JSON object; otherwise it is lines of them, and may be long.
    package var isObject: Bool { self != .chat }

    /// The service that the server is asked to pass the call on to; nil if it knows by the method.
    var service: String? { self == .chat ? "did:web:api.bsky.chat#bsky_chat" : nil }
  }

  /// How many entries a page may have, at most, by the lexicons.
  private static let pageLength = 100
  /// The server may have to ask another.
  package static let isPrepared = true
  /// The app's server answers most of it, and another the conversations.
  package static let isForwarded = true

  /// What is asked for.
  package var kind: Kind
  /// Where to go on; nil for the beginning.
  package var cursor: String?

  /// Asks for a page, or for everything.
  package init(_ kind: Kind, cursor: String? = nil) {
    self.kind = kind
    self.cursor = cursor
  }

  /// Its name.
  package var nsid: String { kind.rawValue }

  /// The query.
  package var parameters: [(name: String, value: String)] {
    guard kind.isPaged else { return [] }
    var parameters = [(name: "limit", value: "\(Self.pageLength)")]
    if let cursor { parameters.append(("cursor", cursor)) }
    return parameters
  }

  /// The service behind the server, where it has to be named (<https://atproto.com/specs/xrpc>,
  /// service proxying).
  package var fields: [(name: String, value: String)] {
    kind.service.map { [("atproto-proxy", $0)] } ?? []
  }
}
