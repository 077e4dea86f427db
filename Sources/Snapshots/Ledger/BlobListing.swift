package import IPLD

/// The blobs that a server says it has of an account, all pages of them.
///
/// Servers differ in how they end a list (protocol observations of four of them): with an empty
/// page, with a page without a cursor, or by forgetting that there was one. So the list ends when a
/// page is empty, when it brings nothing that was not there before, or when it has no cursor; if a
/// page without a cursor is as long as it may be, it is asked once more for what comes after its
/// last CID.
package struct BlobListing: Sendable {
  /// The blobs, each once.
  package var list: CIDList { known.list }
  /// The same in an array.
  package var cids: [CID] { Array(known.list) }
  /// Entries that are no CIDs.
  package var malformedCount = 0
  /// Whether the list may have gone on.
  package var isDoubtful = false
  /// Why it is not whole: what went wrong after the blobs that are here had come.
  package var fault: Fault?

  /// What went wrong with a list.
  package struct Fault {
    /// What the ledger says of it.
    package let kind: ListFault
    /// What a person reads.
    package let text: String
    /// What was thrown; nil if the list came, and was not what it should be.
    package var error: (any Error)?

    package init(kind: ListFault, text: String, error: (any Error)? = nil) {
      (self.kind, self.text, self.error) = (kind, text, error)
    }
  }

  package var known: IndexedCIDs

  /// A list of these blobs.
  package init(_ cids: CIDList = [], fault: Fault? = nil) {
    known = IndexedCIDs(cids)
    self.fault = fault
  }
}
