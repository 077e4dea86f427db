package import Archive
package import Files
internal import IPLD
package import Repository

/// A snapshot's CAR, put together again in a temporary file.
///
/// From an archive that is in order it is the CAR that came in, bit for bit, and ``isExact`` says
/// so; of a snapshot that was put together from changes, which never was a CAR that came in, it is
/// one in canonical order, if that is asked for. Of a damaged one there is none.
package final class RestoredRepository: Sendable {
  /// Whether it is the CAR that came in.
  package var isExact: Bool { flaw == nil }
  /// Why it is not; nil if it is.
  package let flaw: String?
  /// The CAR, in a file.
  package let mapped: MappedFile

  /// In which order blocks come.
  package enum Order: Sendable {
    /// As the archive says.
    case stored
    /// As in an export: as the archive says if that is the order of a CAR that came in, else the
    /// commit, then the tree in pre-order, each record after the entry that names it.
    case exported
  }

  /// How many times the length of the archive's CAR stream a CAR may have: blocks may occur in it
  /// more than once.
  private static let maximumRepetition: UInt64 = 16
  /// How many times the length of the file the CAR stream is believed to have; a footer may say
  /// anything.
  private static let maximumExpansion: UInt64 = 1024
  /// How many bytes a CAR may have in any case.
  private static let minimumLimit: UInt64 = 64 << 20

  /// How many bytes a CAR may have that is put together from an archive, unless
  /// ``ArchivedSnapshot/allowsLarge`` is set.
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
    guard archived.allowsLarge || length <= limit else { throw .tooLarge(length, limit: limit) }
  }

  /// Puts a snapshot's CAR together.
  ///
  /// - Throws: `ArchiveError` if the archive cannot be read at all; ``BackupError`` if there is no
  ///   room for the CAR, or it is longer than ``maximumLength(in:)``.
  package init(
    _ archived: ArchivedSnapshot, order: Order = .stored,
    observer: Progress.Observer = { _ in }
  ) throws {
    let spool = try TemporaryFile()
    var flaw: String?
    do {
      guard archived.cid != nil else { throw SnapshotError.noSnapshot }
      try Self.checkLength(of: archived)
      let digest = try Self.copy(archived, to: spool, observer)
      let car = archived.snapshot.car
      if UInt64(spool.count) != car.byteCount || digest != car.sha256 {
        flaw = "its SHA-256 is not the one in the manifest"
      }
    } catch let error as BackupError {
      throw error
    } catch {
      flaw = "\(error)"
      try spool.truncate(to: 0)
    }
    var mapped = try spool.map()
    if flaw == nil, order == .exported, archived.snapshot.fetched?.since != nil {
      mapped = try CARFile(mapped, verifying: false).inOrderOfTree()
    }
    (self.flaw, self.mapped) = (flaw, mapped)
  }

  /// Calls `body` with the CAR's bytes.
  package func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    try mapped.withBytes(body)
  }

  /// Lets go of the CAR's pages, which are brought in again when they are wanted.
  package func releasePages() { mapped.releasePages() }

  /// Copies the sections that the manifest names; answers their digest, if the manifest has one.
  private static func copy(
    _ archived: ArchivedSnapshot, to spool: TemporaryFile, _ observer: Progress.Observer
  ) throws -> SHA256Digest? {
    let car = archived.snapshot.car
    let runs = try archived.order().runs
    // Whatever the order says, it is not more than the manifest says.
    func check(_ done: UInt64) throws {
      guard done <= car.byteCount else { throw SnapshotError.malformedOrder }
      observer(Progress(stage: "reading", done: done, total: car.byteCount))
    }
    var hash = SHA256()
    hash.update(car.header.span)
    try spool.write(car.header.span)
    try archived.reader.copyCAR(runs) { progress in
      try check(progress.done)
    } to: { bytes in
      if car.sha256 != nil { hash.update(bytes) }
      try spool.write(bytes)
      try check(UInt64(spool.count))
    }
    return car.sha256 == nil ? nil : hash.finish()
  }
}

extension CARFile {
  /// A CAR of the blocks that the commit reaches, in canonical order.
  ///
  /// It is the order that lets a reader follow a stream with little memory.
  ///
  /// - Throws: `RepositoryError` if there is no commit; ``BackupError`` if there is no room for it.
  package func inOrderOfTree() throws -> MappedFile {
    let root = header.roots.first
    _ = try commit(root)
    let spool = try TemporaryFile()
    try spool.write(CARHeader(roots: root.map { [$0] } ?? []).bytes.span)
    for number in blocksInOrderOfTree(from: root) {
      try withSection(at: start(of: number)) { bytes, section throws in
        try spool.write(bytes.extracting(section.start..<section.end))
      }
    }
    return try spool.map()
  }
}
