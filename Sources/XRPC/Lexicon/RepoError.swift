/// The errors that methods about a repository declare.
package enum RepoError: String, Sendable, CaseIterable {
  /// There is no such account here.
  case notFound = "RepoNotFound"
  /// The server's operator has taken the account down.
  case takendown = "RepoTakendown"
  /// The account is suspended.
  case suspended = "RepoSuspended"
  /// The account's owner has deactivated it; with the owner's session it can be read.
  case deactivated = "RepoDeactivated"

  /// The sentence for people.
  package var sentence: String {
    switch self {
    case .notFound: "there is no such account"
    case .takendown: "the server's operator has taken it down"
    case .suspended: "it is suspended"
    case .deactivated: "its owner has deactivated it"
    }
  }
}
