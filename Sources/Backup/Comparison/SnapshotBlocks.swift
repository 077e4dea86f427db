internal import ATProtocol
internal import Archive
internal import IPLD

/// The blocks of a snapshot for somebody who does not know how many he will need.
///
/// The first are read one by one from the archive. That may take a pack of 1 MiB for a block of 300 bytes, again and again where the blocks of the CAR
/// stood in no order, so from a number on the whole CAR is put together in a temporary file, and the rest read from there.
final class SnapshotBlocks {
  /// How many blocks are read one by one, of a CAR of any length.
  private static let leastReads = 1000
  /// For how many bytes of the CAR one more is.
  private static let bytesPerRead: UInt64 = 1 << 18
  /// The longest block of a repository that is read.
  private static let maximumBlock = 16 << 20

  let archived: ArchivedSnapshot
  private let observer: Progress.Observer
  private var whole: Whole?
  private var readCount = 0
  private let maximumReads: Int

  /// The CAR in one piece, and what is in it.
  struct Whole {
    let restored: RestoredRepository
    let inspection: RepositoryInspection
  }

  init(_ archived: ArchivedSnapshot, observer: @escaping Progress.Observer) {
    self.archived = archived
    self.observer = observer
    maximumReads =
      Self.leastReads + Int(clamping: archived.snapshot.car.byteCount / Self.bytesPerRead)
  }

  /// The body of a block; nil if it is not there.
  ///
  /// - Throws: `ArchiveError` if it is damaged; ``BackupError`` if there is no room for a temporary file.
  func body(of cid: CID) throws -> [UInt8]? {
    readCount += 1
    // What cannot be given back exactly has damage in it, of which only the archive can say where.
    if readCount > maximumReads, try inspected().restored.isExact {
      let whole = try inspected()
      return whole.restored.withBytes { bytes in
        whole.inspection.blocks.place(of: cid, in: bytes).map {
          bytes.array(whole.inspection.blocks.body($0, in: bytes))
        }
      }
    }
    return try archived.reader.body(of: cid, limit: Self.maximumBlock)
  }

  /// All of it at once.
  ///
  /// - Throws: `ArchiveError` or `CARError` if not even the beginning can be read; ``BackupError`` if there is no room for a temporary file.
  func inspected() throws -> Whole {
    if let whole { return whole }
    let restored = try RestoredRepository(archived, observer: observer)
    let inspection = try restored.withBytes { bytes throws(CARError) in
      try RepositoryInspector.inspect(bytes, verifying: false)
    }
    let found = Whole(restored: restored, inspection: inspection)
    whole = found
    return found
  }
}
