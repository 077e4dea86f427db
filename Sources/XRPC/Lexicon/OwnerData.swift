/// The kinds of data that a server keeps for an account's owner alone and that are in no
/// repository; the raw value is the name of the method.
///
/// The answer is what the method's lexicon says: JSON, page by page where ``isPaged``, or lines of
/// JSON.
package enum OwnerData: String, CaseIterable, Sendable {
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
  /// The settings of notifications.
  case notificationPreferences = "app.bsky.notification.getPreferences"
  /// Accounts whose posts cause notifications.
  case activitySubscriptions = "app.bsky.notification.listActivitySubscriptions"
  /// What the server recommends for the account's DID, with its rotation keys, which show later
  /// which of the account's keys were the server's.
  case credentials = "com.atproto.identity.getRecommendedDidCredentials"
  /// Conversations, a line of JSON for each event.
  case chat = "chat.bsky.actor.exportAccountData"

  /// Whether it comes in pages, each with a cursor for the next.
  package var isPaged: Bool {
    switch self {
    case .mutedAccounts, .mutedLists, .blockedLists, .bookmarks, .drafts, .activitySubscriptions:
      true
    case .preferences, .notificationPreferences, .credentials, .chat: false
    }
  }

  /// Whether an answer is one JSON object; otherwise it is lines of them, and may be long.
  package var isObject: Bool { self != .chat }
}

extension XRPCCall {
  /// How many entries a page may have, at most, by the lexicons.
  private static let pageLength = 100

  /// A page of such data, or all of it.
  ///
  /// The app's server answers most of it, and another the conversations, which has to be named
  /// (<https://atproto.com/specs/xrpc>, service proxying).
  package static func ownerData(_ kind: OwnerData, cursor: String? = nil) -> XRPCCall {
    XRPCCall(
      get: kind.rawValue, kind.isPaged ? [("limit", "\(pageLength)"), ("cursor", cursor)] : []
    ).with {
      $0.isPrepared = true
      $0.isForwarded = kind != .credentials
      if kind == .chat { $0.fields = [("atproto-proxy", "did:web:api.bsky.chat#bsky_chat")] }
    }
  }

  /// `app.bsky.actor.putPreferences`: replaces all settings of the app on the server.
  ///
  /// - Parameter json: an object with the list `preferences`, as `getPreferences` returns it.
  package static func putPreferences(_ json: [UInt8]) -> XRPCCall {
    XRPCCall(post: "app.bsky.actor.putPreferences", isRepeatable: true, json)
  }
}
