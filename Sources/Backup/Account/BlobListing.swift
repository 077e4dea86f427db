internal import ATProtocol
internal import IPLD
internal import XRPC

/// The blobs that a server says it has of an account, all pages of them.
///
/// Servers differ in how they end a list (protocol observations of four of them): with an empty page, with a page without a cursor, or by forgetting
/// that there was one. So the list ends when a page is empty, when it brings nothing that was not there before, or when it has no cursor; if a
/// page without a cursor is as long as it may be, it is asked once more for what comes after its last CID.
struct BlobListing: Sendable {
  /// The blobs, each once.
  private(set) var cids: [CID] = []
  /// Entries that are no CIDs.
  private(set) var malformedCount = 0
  /// Whether the list may have gone on.
  private(set) var isDoubtful = false

  /// The longest page that the lexicon allows.
  static let pageLength = 1000
  /// How many blobs are listed at most beside twice as many as records refer to.
  ///
  /// A server lists references, and perhaps uploads that no record has taken up. A list that goes on is one that has no end, and each of
  /// its blobs would be asked for.
  static let maximumSurplus = 10_000

  /// Asks for all pages.
  ///
  /// - Parameters:
  ///   - referenced: how many blobs records refer to; nil if that is not known.
  ///   - page: is told how many blobs there are so far.
  /// - Throws: what the client throws.
  static func fetch(
    of did: DID, from client: XRPCClient, referenced: Int?, page: @Sendable (Int) -> Void
  ) async throws -> BlobListing {
    var listing = BlobListing()
    var known: Set<CID> = []
    var cursor: String?
    let maximumCount = referenced.map { 2 * $0 + maximumSurplus } ?? 20_000_000
    while true {
      let output = try await client.call(
        ListBlobs(did: did, limit: pageLength, cursor: cursor))
      let countBefore = listing.cids.count
      for cid in output.cids where known.insert(cid).inserted { listing.cids.append(cid) }
      listing.malformedCount += output.malformed.count
      page(listing.cids.count)
      guard listing.cids.count > countBefore else {
        // Some lists end with their last entry once more; one that begins again is of a server that does not know how to go on.
        listing.isDoubtful = output.cids.contains { "\($0)" != cursor }
        return listing
      }
      guard listing.cids.count < maximumCount else {
        listing.isDoubtful = true
        return listing
      }
      if let next = output.cursor, !next.isEmpty {
        cursor = next
      } else {
        guard output.cids.count >= pageLength, let last = output.cids.last else { return listing }
        // The reference server's cursor is the last CID, and others that forget to name one may still know it.
        cursor = "\(last)"
      }
    }
  }
}
