internal import ATProtocol
package import Archive
package import Files
internal import IPLD
package import Repository

/// A snapshot's CAR, reassembled in a temporary file.
///
/// From an intact archive it is the CAR as it was received, bit for bit, and ``isExact`` says so;
/// of a snapshot that was assembled from changes, and so was never received as a CAR, it is one in
/// canonical order, if that is requested. A damaged snapshot has none.
package final class RestoredRepository: Sendable {
  /// Whether it is the CAR as it was received.
  package var isExact: Bool { flaw == nil }
  /// Why it is not; nil if it is.
  package let flaw: String?
  /// The CAR, in a file.
  package let mapped: MappedFile

  /// How many times the length of the archive's CAR stream a CAR may have: blocks may occur in it
  /// more than once.
  private static let maximumRepetition: UInt64 = 16
  /// How many times the length of the file the CAR stream is believed to have; a footer may say
  /// anything.
  private static let maximumExpansion: UInt64 = 1024
  /// How many bytes a CAR may have in any case.
  private static let minimumLimit: UInt64 = 64 << 20

  /// How many bytes a CAR may have that is put together from an archive, unless
  /// ``ArchiveLimits/allowsLarge`` is set.
  ///
  /// The order of a CAR's blocks may name each block as often as it likes, so an archive of 1 kB
  /// could fill any disk.
  package static func maximumLength(in reader: ArchiveReader) -> UInt64 {
    let expanded = reader.fileSize.multipliedSaturated(by: maximumExpansion)
    let stream = min(reader.generation.streamLength, expanded)
    return stream.multipliedSaturated(by: maximumRepetition).addingSaturated(minimumLimit)
  }

  /// Refuses a CAR that is longer than ``maximumLength(in:)``, unless that is allowed.
  ///
  /// - Throws: ``BackupError/tooLarge(_:limit:)``.
  package static func checkLength(of archived: ArchivedSnapshot) throws(BackupError) {
    let limit = maximumLength(in: archived.reader)
    let length = archived.snapshot.car.byteCount
    guard archived.reader.limits.allowsLarge || length <= limit else {
      throw .tooLarge(length, limit: limit)
    }
  }

  /// Reassembles a snapshot's CAR.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - exporting: whether blocks come as in an export: as the archive says if that is the order
  ///     of a CAR that came in, else the commit, then the tree in pre-order, each record after the
  ///     entry that names it; otherwise as the archive says.
  ///   - observer: called with the progress.
  /// - Throws: `ArchiveError` if the archive cannot be read at all; ``BackupError`` if there is no
  ///   room for the CAR, or it is longer than ``maximumLength(in:)``.
  package init(
    _ archived: ArchivedSnapshot, exporting: Bool = false,
    observer: @escaping Progress.Observer = { _ in }
  ) throws {
    let spool = try TemporaryFile()
    var flaw: String?
    do {
      try archived.writeCAR(exporting: exporting, observer) { content in
        try spool.truncate(to: 0)
        try content { try spool.write($0) }
      }
    } catch BackupError.carNotExact(let why) {
      flaw = why
      try spool.truncate(to: 0)
    }
    (self.flaw, mapped) = (flaw, try spool.map())
  }

  /// Calls `body` with the CAR's bytes.
  package func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try mapped.withBytes(body)
  }

  /// Releases the CAR's pages; they are read again when needed.
  package func releasePages() { mapped.releasePages() }
}

extension ArchivedSnapshot {
  /// Whether the repository was assembled from changes: its CAR was never received, and is exported
  /// in canonical order.
  fileprivate var isOfChanges: Bool { snapshot.fetched?.since != nil }

  /// Writes the CAR to where only a whole one stays, such as a file without a name.
  ///
  /// What was written is the CAR only if nothing is thrown: what it is shows at its end.
  ///
  /// - Parameters:
  ///   - exporting: in which order its blocks come, as ``RestoredRepository`` has it.
  ///   - observer: called with the progress.
  ///   - write: writes what its argument passes on, piece by piece, in place of what it wrote
  ///     before: called a second time if the order had to be recovered.
  /// - Throws: ``BackupError/carNotExact(_:)`` if it cannot be reproduced; as
  ///   ``readCAR(_:to:)`` does of other things; what `write` throws.
  package func writeCAR(
    exporting: Bool, _ observer: @escaping Progress.Observer = { _ in },
    _ write: (((Span<UInt8>) throws -> Void) throws -> Void) throws -> Void
  ) throws {
    var flaw: String?
    func noting<Value>(_ read: () throws -> Value) throws -> Value {
      do {
        return try read()
      } catch {
        flaw = error.flawOfCAR
        throw error
      }
    }
    do {
      if exporting, isOfChanges {
        let (header, blocks, order) = try noting { try exported(observer) }
        try write { sink in
          try noting {
            try sink(header.span)
            for number in order { try blocks.withSection(number, sink) }
          }
        }
      } else {
        try write { sink in try noting { try readCAR(observer, to: sink) } }
      }
    } catch {
      // What `write` itself could not do is no flaw.
      guard let why = flaw else { throw error }
      guard let order = try recoveredOrder() else { throw BackupError.carNotExact(why) }
      try write { sink in
        try sink(snapshot.car.header.span)
        try reader.copyCAR(order.runs, to: sink)
      }
    }
  }

  /// Passes on the CAR as the archive describes it, piece by piece.
  ///
  /// - Throws: ``BackupError/carNotExact(_:)`` after the last piece if it was not the one that came
  ///   in, ``BackupError`` also if it is longer than ``RestoredRepository/maximumLength(in:)``;
  ///   `ArchiveError` and ``SnapshotError`` if the archive is damaged; what `sink` throws.
  package func readCAR(
    _ observer: Progress.Observer = { _ in }, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    let runs = try runsOfCAR()
    var digest = try CARDigest(of: snapshot.car)
    try sink(snapshot.car.header.span)
    try reader.copyCAR(runs) { progress in
      try checkRead(progress.done, observer)
    } to: { bytes in
      try digest.take(bytes)
      try sink(bytes)
      try checkRead(digest.count, observer)
    }
    try digest.finish()
  }

  /// The order of the CAR's blocks in a damaged archive, if it can be recovered; nil if not.
  ///
  /// - Throws: as ``recoveredOrder(in:_:)`` does.
  private func recoveredOrder() throws -> BlockOrder? {
    guard cid != nil else { return nil }
    return try recoveredOrder(in: LaidOutBlocks(reader), unlessDamaged(order))
  }

  /// The sections of the CAR, in its order.
  private func runsOfCAR() throws -> [Range<UInt64>] {
    guard cid != nil else { throw SnapshotError.noSnapshot }
    try RestoredRepository.checkLength(of: self)
    return try order().runs
  }

  /// Whatever the order says, it is not more than the manifest says; and who stops the reading is
  /// heard here, so that nothing has to end the process in the middle of a file.
  private func checkRead(_ done: UInt64, _ observer: Progress.Observer) throws {
    try Stopping.check()
    guard done <= snapshot.car.byteCount else { throw SnapshotError.malformedOrder }
    observer(Progress(stage: "reading", done: done, total: snapshot.car.byteCount))
  }

  /// The blocks of a CAR as it is exported, laid out whole.
  ///
  /// What is read of the archive is read once, in its order.
  ///
  /// - Returns: the header of the CAR, the blocks, and the numbers of these in its order: as the
  ///   archive says if that is the order of a CAR that came in, else the commit, then the tree in
  ///   pre-order, each record after the entry that names it, which lets a reader follow a stream
  ///   with little memory.
  /// - Throws: as ``readCAR(_:to:)`` does; ``BackupError`` also if there is no room for a temporary
  ///   file; `RepositoryError` if there is no commit to begin with.
  package func exported(_ observer: Progress.Observer = { _ in }) throws -> (
    header: [UInt8], blocks: LaidOutBlocks, order: [Int]
  ) {
    let runs = try runsOfCAR()
    var digest = try CARDigest(of: snapshot.car)
    let blocks = try LaidOutBlocks(runs, of: reader) { try checkRead($0.done, observer) }
    for run in runs { try blocks.copy(run) { try digest.take($0) } }
    try digest.finish()
    guard isOfChanges else {
      var order: [Int] = []
      blocks.forEach(in: runs) { order.append($1) }
      return (snapshot.car.header, blocks, order)
    }
    let root = try CARHeader(snapshot.car.header.span).roots.first
    _ = try blocks.commit(root)
    return (
      CARHeader(roots: root.map { [$0] } ?? []).bytes, blocks,
      blocks.blocksInOrderOfTree(from: root)
    )
  }
}
