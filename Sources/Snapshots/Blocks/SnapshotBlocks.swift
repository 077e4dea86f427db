package import ATProtocol
package import Archive
package import Files
package import IPLD
package import Repository

/// The blocks of a snapshot's repository, by their CIDs.
///
/// The first few are read one by one. That decompresses a pack of 1 MiB for a block of 300 bytes,
/// again and again where the blocks stand in another order than they are asked for. So from a
/// number on, and for a walk through the whole tree, all of them are laid out: read once, in the
/// order of the archive, and hashed.
///
/// A block that the archive holds is there for every snapshot that reaches it, whichever snapshot
/// brought it. For a damaged snapshot, the blocks are what is left: every block of the archive that
/// still hashes to its CID.
package final class SnapshotBlocks {
  /// A record that the walk came to: its key in the tree, `collection/rkey`, its block, and how
  /// long that is; nil if it is missing.
  package typealias Record = (key: [UInt8], cid: CID, length: UInt64?)

  /// How many blocks are read one by one.
  private static let maximumReads = 256

  package let archived: ArchivedSnapshot
  private let keepsRecords: Bool
  private let observer: Progress.Observer
  private var readCount = 0
  private var laidOut: (blocks: LaidOutBlocks, flaw: String?)?

  /// The blocks of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - keepsRecords: whether the bytes of every record are wanted.
  ///   - observer: called with the progress, if all of them have to be read.
  package init(
    _ archived: ArchivedSnapshot, keepsRecords: Bool = false,
    observer: @escaping Progress.Observer = { _ in }
  ) {
    (self.archived, self.keepsRecords, self.observer) = (archived, keepsRecords, observer)
  }

  /// The body of a block; nil if it is missing.
  ///
  /// - Throws: `ArchiveError` if it is damaged, or longer than a block of a repository may be;
  ///   ``BackupError`` if there is no room for a temporary file.
  package func body(of cid: CID) throws -> [UInt8]? {
    readCount += 1
    if readCount > Self.maximumReads {
      let blocks = try layOut().blocks
      if let number = blocks.number(of: cid), blocks.kind(number) == .kept {
        return blocks.withBody(number) { $0.array }
      }
    }
    return try archived.reader.body(of: cid)
  }

  /// Calls `use` with the body of a block, however long that is; nil if it is missing.
  ///
  /// One that is not read into memory is looked at where all of them are laid out.
  ///
  /// - Throws: `ArchiveError` if it is damaged; ``BackupError`` if there is no room for a temporary
  ///   file; what `use` throws.
  package func withBody<Value>(of cid: CID, _ use: (Span<UInt8>) throws -> Value) throws -> Value? {
    let body: [UInt8]?
    do {
      body = try self.body(of: cid)
    } catch let error as ArchiveError where error.faultKind == .limit {
      let blocks = try layOut().blocks
      return try blocks.number(of: cid).map { try blocks.withBody($0, use) }
    }
    return try body.map { try use($0.span) }
  }

  /// Whether a block is known to be a record that refers to no blob.
  package func isPlainRecord(_ cid: CID) -> Bool {
    guard let blocks = laidOut?.blocks else { return false }
    return blocks.number(of: cid).map(blocks.kind) == .plainRecord
  }

  /// Compares the trees of two snapshots, of one archive or of two.
  ///
  /// - Throws: `MSTDiffError`, ``SnapshotError``, `ArchiveError`; what `each` throws.
  package static func compare(
    _ old: SnapshotBlocks, _ new: SnapshotBlocks, each: (MSTDiff.Change) throws -> Void
  ) throws {
    // For a remote archive, one block after the other would be one request after the other.
    for blocks in [old, new] where blocks.archived.reader.liesElsewhere { _ = try blocks.layOut() }
    try MSTDiff.compare(old: try old.archived.treeRoot, new: try new.archived.treeRoot) {
      try ($1 == .old ? old : new).body(of: $0)
    } each: {
      try each($0)
    }
  }

  /// Walks the tree from end to end.
  ///
  /// - Parameter visit: receives every record in the order of the tree, and its bytes, if they were
  ///   kept.
  /// - Throws: `ArchiveError` if not even the beginning can be read; ``BackupError`` if there is no
  ///   room for a temporary file, or the CAR is longer than
  ///   ``RestoredRepository/maximumLength(in:)``; what `visit` throws.
  package func contents(_ visit: (Record, Span<UInt8>) throws -> Void = { _, _ in }) throws
    -> LaidOutRepository
  {
    try RestoredRepository.checkLength(of: archived)
    let (blocks, flaw) = try layOut()
    var failure: (any Error)?
    let tree = RepositoryInspection(from: archived.snapshot.commit, in: blocks) { record in
      guard failure == nil else { return }
      do {
        let length = record.number.map(blocks.bodyLength)
        let found: Record = (record.key, record.cid, length)
        guard let number = record.number else { return try visit(found, [UInt8]().span) }
        try blocks.withBody(number) { body in try visit(found, body) }
      } catch {
        failure = error
      }
    }
    if let failure { throw failure }
    return LaidOutRepository(
      archived: archived, tree: tree, flaw: flaw ?? tree.whyRecordsAreLost, blocks: blocks)
  }

  /// All of them, laid out.
  package func allLaidOut() throws -> LaidOutBlocks { try layOut().blocks }

  private func layOut() throws -> (blocks: LaidOutBlocks, flaw: String?) {
    if let laidOut { return laidOut }
    let found: (blocks: LaidOutBlocks, flaw: String?)
    do {
      let blocks = try archived.layOut(keepsRecords: keepsRecords, reachesBeyond: true, observer)
      found = (blocks, nil)
    } catch {
      guard let flaw = error.flawOfCAR else { throw error }
      // For a damaged snapshot, it is what is left of the archive.
      let blocks = try LaidOutBlocks(
        archived.reader, isHashing: true, keepsRecords: keepsRecords, observer: observer)
      found = (blocks, flaw)
    }
    laidOut = found
    return found
  }
}

extension Error {
  /// What it says is wrong with the CAR of a snapshot; nil if it is about something else, like a
  /// disk that is full.
  var flawOfCAR: String? {
    switch self as any Error {
    case BackupError.carNotExact(let why): why
    case is BackupError: nil
    case let error where error.faultKind == .system || error.faultKind == .limit: nil
    default: "\(self)"
    }
  }
}

extension ArchivedSnapshot {
  /// Lays out the sections that the manifest names.
  ///
  /// - Parameters:
  ///   - others: further sections of the archive.
  ///   - keepsRecords: whether the bytes of every record are wanted.
  ///   - reachesBeyond: whether what the archive holds and the tree reaches besides is laid out,
  ///     too.
  ///   - observer: called with the progress.
  /// - Throws: ``BackupError/carNotExact(_:)`` if the sections are not as many and as long as the
  ///   manifest says; `ArchiveError` for one that is damaged; ``SnapshotError`` for an order that
  ///   cannot be read; ``BackupError`` if there is no room for a temporary file.
  package func layOut(
    with others: [Range<UInt64>] = [], keepsRecords: Bool = false, reachesBeyond: Bool = false,
    _ observer: Progress.Observer = { _ in }
  ) throws -> LaidOutBlocks {
    guard cid != nil else { throw SnapshotError.noSnapshot }
    let (car, runs) = (snapshot.car, try order().runs)
    var intake = try BlockIntake(isHashing: true, keepsRecords: keepsRecords)
    let united = (runs + others).united
    for (number, run) in united.enumerated() {
      reader.willReadPacks(of: united[number...])
      try intake.read(run, reader, total: car.byteCount, observer)
    }
    if let failure = intake.failure { throw failure }
    var blocks = try LaidOutBlocks(intake)
    try blocks.checkAmount(
      of: runs, count: car.sectionCount, byteCount: car.byteCount, headerLength: car.header.count)
    while reachesBeyond, !snapshot.isComplete {
      let missing = blocks.missing(from: snapshot.commit)
      let ordinals = try reader.ordinals(missing.count) { missing[$0] }.filter { $0 != .max }
      for ordinal in ordinals.sorted() { try intake.read(ordinal..<ordinal + 1, reader) }
      let count = blocks.count
      blocks = try LaidOutBlocks(intake)
      if blocks.count == count { break }
    }
    return blocks
  }

  /// The CAR header of an archive, and the commit that it names; where it is lost, one that names
  /// the newest commit there is.
  private static func beginning(of reader: ArchiveReader, _ blocks: LaidOutBlocks) throws
    -> (header: [UInt8], root: CID)
  {
    do {
      let header = try reader.carHeader
      guard let root = try CARHeader(header.span).roots.first else { throw RepositoryError.noRoot }
      return (header, root)
    } catch let failure as ArchiveError where failure.faultKind != .system {
      var newest: (rev: String, cid: CID)?
      for number in blocks.numbers where blocks.cid(number).codec == .dagCBOR {
        // What is not a commit has another form.
        let commit = blocks.withBody(number) { bytes in try? Commit(bytes) }
        guard let commit, newest.map({ $0.rev <= commit.rev?.text ?? "" }) ?? true else { continue }
        newest = (commit.rev?.text ?? "", blocks.cid(number))
      }
      guard let newest else { throw failure }
      var header: [UInt8] = []
      CARWriter.appendHeader(roots: [newest.cid], to: &header)
      return (header, newest.cid)
    }
  }

  /// What can be said about the repository of an archive that has lost its manifest.
  ///
  /// - Throws: `ArchiveError` or `RepositoryError` if no commit is left.
  package static func salvaged(from reader: ArchiveReader) throws -> ArchivedSnapshot {
    let blocks = try LaidOutBlocks(reader, isHashing: true)
    let (header, root) = try beginning(of: reader, blocks)
    let blockCount = blocks.numbers.count { blocks.cid($0).codec == .dagCBOR }
    let tree = RepositoryInspection(from: root, in: blocks)
    if let error = tree.commitError { throw error }
    guard let commit = tree.commit else { throw SnapshotError.noSnapshot }
    let nothing = SHA256.digest(of: Array("".utf8).span)
    let counts = Snapshot.Counts(
      records: tree.recordCount, nodes: tree.nodeCount, blocks: blockCount,
      recordBlocks: tree.distinctRecordCount)
    var snapshot = Snapshot(
      commit, at: root, counts, UnreadableRecords(), isComplete: false, blobCount: 0)
    (snapshot.car.header, snapshot.car.sha256) = (header, nothing)
    return ArchivedSnapshot(found: snapshot, in: reader)
  }
}
