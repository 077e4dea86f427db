package import Snapshots

/// What one server said of a blob that it did not give out.
public struct ServerAnswer: Equatable, Sendable {
  /// The server.
  package let server: String
  /// Why it did not come from there.
  package let reason: BlobLedger.Reason
  /// The HTTP status.
  package let status: Int?
  /// Whether the server may give it to the account's owner, and was not asked as its owner.
  package let wantsLogin: Bool
  /// The only server at which this run is logged in; nil if it is at none.
  package let loggedInAt: String?
  /// What exactly happened, such as how much had come; nil if nothing more is known.
  package let explanation: String?

  /// What a person reads, without the server.
  package var sentence: String {
    let status = status.map { " (HTTP \($0))" } ?? ""
    guard wantsLogin else {
      return reason.sentence + status + (explanation.map { ": \($0)" } ?? "")
    }
    return loggedInAt.map { "could not be asked as the owner\(status): logged in only at \($0)" }
      ?? "gives it out only to the owner, logged in\(status)"
  }
}
