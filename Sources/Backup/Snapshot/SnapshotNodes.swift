internal import ATProtocol
internal import Archive
internal import IPLD

/// The blocks of a snapshot for somebody who needs few of them, and does not know how many.
///
/// The first are read one by one from the archive. That takes a pack of 1 MiB for a block of 300 bytes, again and again where the blocks
/// stand in no order, so from a number on everything a tree consists of is laid out once, by a ``BlockCensus``.
final class SnapshotNodes {
  /// How many blocks are read one by one.
  private static let maximumReads = 256
  /// The longest block of a repository that is read.
  private static let maximumBlock = 16 << 20

  private let archived: ArchivedSnapshot
  private var readCount = 0
  private var census: BlockCensus?

  init(_ archived: ArchivedSnapshot) { self.archived = archived }

  /// The body of a block; nil if it is not there.
  ///
  /// - Throws: `ArchiveError` if it is damaged; ``BackupError`` if there is no room for a temporary file.
  func body(of cid: CID) throws -> [UInt8]? {
    readCount += 1
    if readCount > Self.maximumReads, let body = try laidOut(cid) { return body }
    return try archived.reader.body(of: cid, limit: Self.maximumBlock)
  }

  /// The body of a block that is laid out; nil for one that is not there, or was not of interest.
  private func laidOut(_ cid: CID) throws -> [UInt8]? {
    let census = try self.census ?? BlockCensus(archived.reader, except: [], observer: { _ in })
    self.census = census
    return census.withBytes { bytes in
      guard let index = census.index(of: cid, in: bytes), census.kind(index) == .kept else {
        return nil
      }
      return bytes.array(census.body(index, in: bytes))
    }
  }
}
