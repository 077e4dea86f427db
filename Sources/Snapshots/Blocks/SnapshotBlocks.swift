package import ATProtocol
package import Archive
package import Files
package import IPLD
package import Repository

/// The blocks of a snapshot's repository, by their CIDs.
///
/// The first few are read one by one. That decompresses a pack of 1 MiB for a block of 300 bytes,
/// again and again where the blocks stand in another order than they are asked for. So from a
/// number on, and for a walk through the whole tree, a ``BlockCensus`` lays all of them out: read
/// once, in the order of the archive, and hashed.
///
/// Of a snapshot that is damaged they are what is left: every block of the archive that still
/// hashes to its CID.
package final class SnapshotBlocks {
  /// What a walk through the tree came to.
  package struct Contents {
    /// The tree.
    package let tree: SharedTrees.Tree
    /// The blobs that records refer to.
    package let blobs: BlobTable
    /// Why the repository is not as it was; nil if it is.
    package let flaw: String?
  }

  /// A record that the walk came to.
  package struct Record {
    /// Its key in the tree, `collection/rkey`.
    package let key: [UInt8]
    /// Its block.
    package let cid: CID
    /// How long its block is; nil if that is not there.
    package let length: UInt64?
  }

  /// How many blocks are read one by one.
  private static let maximumReads = 256
  /// The longest block that is read so.
  private static let maximumBlock = 16 << 20

  package let archived: ArchivedSnapshot
  private let keepsRecords: Bool
  private let observer: Progress.Observer
  private var readCount = 0
  private var laidOut: (census: BlockCensus, flaw: String?)?

  /// The blocks of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - keepsRecords: whether the bytes of every record are wanted.
  ///   - observer: is told how reading all of them gets on, if that has to be.
  package init(
    _ archived: ArchivedSnapshot, keepsRecords: Bool = false,
    observer: @escaping Progress.Observer = { _ in }
  ) {
    (self.archived, self.keepsRecords, self.observer) = (archived, keepsRecords, observer)
  }

  /// The body of a block; nil if it is not there.
  ///
  /// - Throws: `ArchiveError` if it is damaged; ``BackupError`` if there is no room for a temporary
  ///   file.
  package func body(of cid: CID) throws -> [UInt8]? {
    readCount += 1
    if readCount > Self.maximumReads {
      let census = try layOut().census
      let body = census.withBytes { bytes -> [UInt8]? in
        guard let index = census.index(of: cid, in: bytes), census.kind(index) == .kept else {
          return nil
        }
        return bytes.array(census.body(index, in: bytes))
      }
      if let body { return body }
    }
    return try archived.reader.body(of: cid, limit: Self.maximumBlock)
  }

  /// Whether a block is known to be a record that refers to no blob.
  package func isPlainRecord(_ cid: CID) -> Bool {
    guard let census = laidOut?.census else { return false }
    return census.withBytes { census.index(of: cid, in: $0) }.map(census.kind) == .plainRecord
  }

  /// Walks the tree from end to end.
  ///
  /// - Parameter visit: receives every record in the order of the tree, and its bytes, if they were
  ///   kept.
  /// - Throws: `ArchiveError` or `CARError` if not even the beginning can be read; ``BackupError``
  ///   if there is no room for a temporary file, or the CAR is longer than
  ///   ``RestoredRepository/maximumLength(in:)``; what `visit` throws.
  package func contents(_ visit: (Record, Span<UInt8>) throws -> Void = { _, _ in }) throws
    -> Contents
  {
    try RestoredRepository.checkLength(of: archived)
    let (census, flaw) = try layOut()
    let header = archived.snapshot.car.header
    let root = try CARHeader(header.span).roots.first
    var trees = SharedTrees(census)
    var failure: (any Error)?
    let tree = census.withBytes { bytes in
      trees.list(from: root, in: bytes) { key, cid, index in
        guard failure == nil else { return }
        do {
          var (length, body): (UInt64?, Range<Int>) = (nil, 0..<0)
          if let index {
            length = census.bodyLength(index, in: bytes)
            body = census.body(index, in: bytes)
          }
          try visit(Record(key: key, cid: cid, length: length), bytes.extracting(body))
        } catch {
          failure = error
        }
      }
    }
    if let failure { throw failure }
    return Contents(tree: tree, blobs: trees.blobs, flaw: flaw)
  }

  /// All of them, laid out.
  package func allLaidOut() throws -> BlockCensus { try layOut().census }

  private func layOut() throws -> (census: BlockCensus, flaw: String?) {
    if let laidOut { return laidOut }
    var found: (census: BlockCensus, flaw: String?)
    do {
      found = (try exactly(), nil)
    } catch let error as BackupError {
      guard case .carNotExact(let flaw) = error else { throw error }
      found = (try whatIsLeft(), flaw)
    } catch {
      found = (try whatIsLeft(), "\(error)")
    }
    laidOut = found
    return found
  }

  /// The sections that the manifest names.
  private func exactly() throws -> BlockCensus {
    guard archived.cid != nil else { throw SnapshotError.noSnapshot }
    let runs = try archived.order().runs
    var intake = try CensusIntake(isHashing: true, keepsRecords: keepsRecords)
    for run in BlockOrder.union(of: runs) {
      try intake.read(run, archived.reader, total: archived.snapshot.car.byteCount, observer)
    }
    if let failure = intake.failure { throw failure }
    let census = try BlockCensus(intake)
    let car = archived.snapshot.car
    try census.checkAmount(
      of: runs, count: car.sectionCount, byteCount: car.byteCount, headerLength: car.header.count)
    return census
  }

  private func whatIsLeft() throws -> BlockCensus {
    var intake = try CensusIntake(isHashing: true, keepsRecords: keepsRecords)
    try intake.read(archived.reader.ordinals, archived.reader, total: 0, observer)
    return try BlockCensus(intake)
  }
}

extension ArchivedSnapshot {
  /// What can be said about the repository of an archive that has lost its manifest.
  ///
  /// - Throws: `ArchiveError` or `RepositoryError` if not even the CAR header and the commit are
  ///   left.
  package static func salvaged(from reader: ArchiveReader) throws -> ArchivedSnapshot {
    let header = try reader.carHeader
    guard let root = try CARHeader(header.span).roots.first else { throw RepositoryError.noRoot }
    var intake = try CensusIntake(isHashing: true)
    try intake.read(reader.ordinals, reader)
    let census = try BlockCensus(intake)
    var records: Set<CID> = []
    var trees = SharedTrees(census)
    let (tree, blockCount) = census.withBytes { bytes in
      let tree = trees.list(from: root, in: bytes) { _, cid, _ in records.insert(cid) }
      return (tree, (0..<census.count).count { census.cid($0, in: bytes).codec == .dagCBOR })
    }
    if let error = tree.commitError { throw error }
    guard let commit = tree.commit else { throw SnapshotError.noSnapshot }
    let nothing = SHA256.digest(of: Array("".utf8).span)
    var snapshot = Snapshot(did: commit.did, commit: root)
    snapshot.rev = commit.rev
    snapshot.car = Snapshot.CARDescription(header: header, sha256: nothing)
    snapshot.counts = Snapshot.Counts(
      records: tree.recordCount, nodes: tree.nodeCount, blocks: blockCount,
      recordBlocks: records.count)
    return ArchivedSnapshot(found: snapshot, in: reader)
  }
}
