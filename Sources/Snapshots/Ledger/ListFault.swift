/// Why a server's list of an account's blobs is not whole.
///
/// A snapshot with one may lack blobs that no record refers to, and nobody knows which. The next
/// backup asks for the list again.
package struct ListFault: Equatable, Sendable {
  /// Why, in the ledger's words.
  package var reason: BlobLedger.Reason
  /// The HTTP status that the server answered with last.
  package var status: Int?
  /// Whether asking again later may help.
  package var isTransient: Bool

  /// A fault of these parts.
  package init(reason: BlobLedger.Reason, status: Int?, isTransient: Bool) {
    self.reason = reason
    self.status = status
    self.isTransient = isTransient
  }

  /// What a person reads.
  package var sentence: String {
    let status = status.map { " (HTTP \($0))" } ?? ""
    let why =
      switch reason {
      case .notFound: "the server does not know it"
      case .malformed: "the server's answer is not a list of blobs"
      default: reason.sentence
      }
    return "the server's list of blobs is not whole: \(why)\(status)"
  }
}
