/// What is requested from an app view in addition to a backup: who the people are, and what the
/// posts say, that the account's records point to.
public struct ContextOptions: Sendable {
  /// What is kept.
  package enum Kind: String, CaseIterable, Sendable {
    /// People only: handle, display name, description.
    case names
    /// People and posts, with thumbnails.
    case posts
    /// The same, and for each post the proof that its author wrote it.
    case signed
  }

  /// The network's public app view.
  package static let publicAppView = "https://public.api.bsky.app"
  /// How many items there are by default.
  package static let usualItems = 20_000

  /// The highest limit for the items of a context.
  package static let maximumItems = 200_000

  package var kind: Kind
  /// The app view, by its URL.
  package var appView = Self.publicAppView
  /// How many items a context has at most.
  package var items = Self.usualItems
  /// How many bytes it has at most, thumbnails included.
  package var bytes: UInt64 = 200_000_000
  /// How many proofs are requested from one server at most.
  package var proofsOfHost = 1000
  /// How long all of it may take.
  package var time: Duration = .seconds(2400)

  /// Options for a kind.
  package init(_ kind: Kind) { self.kind = kind }
}

/// The result of asking an app view.
package struct ContextOutcome: Sendable, Equatable {
  /// How many people and posts came that are new, or have changed.
  package internal(set) var people = 0
  package internal(set) var posts = 0
  /// How many thumbnails came, how many did not, and for how many there was no room.
  package internal(set) var thumbnails = 0
  package internal(set) var thumbnailsMissing = 0
  package internal(set) var thumbnailsLeftOut = 0
  /// How many valid proofs arrived, for how many posts there is none, and how many were not
  /// requested because of the limits for their servers.
  package internal(set) var proofs = 0
  package internal(set) var unproven = 0
  package internal(set) var proofsLeftOut = 0
  /// How many people and posts were not asked for because there are more than the limit.
  package internal(set) var leftOut = 0
  /// What could not be fetched, a sentence each.
  package private(set) var failures: [String] = []

  /// How many failures are reported.
  private static let maximumFailures = 20

  /// Notes what did not come, each sentence once.
  mutating func fail(_ why: String) {
    guard failures.count < Self.maximumFailures, !failures.contains(why) else { return }
    failures.append(why)
  }
}
