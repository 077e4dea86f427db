internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots

/// Adds blobs from files to an archive.
///
/// A file is taken for the blob that its name says if the name is a CID, and for what its content
/// hashes to otherwise. Its content is hashed when it is appended in any case, so that a name that
/// lies is found out.
struct BlobPacking {
  /// Files that could not be taken, and why.
  private(set) var refused: [(path: String, why: String)] = []
  /// How many files no record refers to and were left out.
  private(set) var leftOutCount = 0

  private let table: BlobTable
  private let keepsExtras: Bool
  private var reconciliation: BlobReconciliation
  /// Those that the CAR carries itself or that were taken from files: a further file under their
  /// names is examined.
  private var given: Set<CID> = []

  /// A packing of the blobs that a repository refers to; those that its CAR carries itself, and
  /// those in the archive, are held already.
  init(
    _ repository: CheckedRepository, archive: ArchiveReader?, base: ArchivedSnapshot?,
    keepsExtras: Bool
  ) throws {
    let table = repository.inspection.blobs
    (self.table, self.keepsExtras) = (table, keepsExtras)
    var given: Set<CID> = []
    reconciliation = try BlobReconciliation(
      table,
      inCAR: { cid in
        let length = repository.lengthOfBlock(cid)
        if length != nil, table.contains(cid) { given.insert(cid) }
        return length
      }, listing: nil, archive: archive, base: base, schedule: nil)
    self.given = given
  }

  /// The figures, and what is missing.
  var ledger: BlobLedger { reconciliation.ledger() }

  /// Whether a file with this content goes into the archive: if no record refers to it, as a rule
  /// only what was lost.
  private func takes(_ cid: CID) -> Bool {
    table.contains(cid) || keepsExtras || reconciliation.isLost(cid)
  }

  /// Takes what is wanted of the files.
  mutating func pack(
    _ files: [String], into writer: inout ArchiveWriter, _ observer: Progress.Observer
  ) throws {
    for (index, path) in files.enumerated() {
      observer(Progress(stage: "blobs", done: UInt64(index), total: UInt64(files.count)))
      let claimed = BlobFolder.claimedCID(path)
      if let claimed, reconciliation.isHeld(claimed), !given.contains(claimed) { continue }
      if let claimed, !takes(claimed) {
        leftOutCount += 1
        continue
      }
      let file: InputFile
      do {
        file = try InputFile(path)
      } catch let error as BackupError {
        // One file that cannot be read does not keep the others from being packed.
        refused.append((path, "\(error)"))
        continue
      }
      try file.withBytes { bytes throws in
        let cid = claimed ?? CID(codec: .raw, hashing: bytes)
        try pack(path, cid, bytes, into: &writer)
      }
    }
  }

  private mutating func pack(
    _ path: String, _ cid: CID, _ bytes: Span<UInt8>, into writer: inout ArchiveWriter
  ) throws {
    guard takes(cid) else {
      leftOutCount += 1
      return
    }
    guard !reconciliation.isHeld(cid) else {
      // A held blob stays held; a further file with a false name is reported anyway.
      if case .mismatch = cid.verify(bytes) {
        refused.append((path, "its content does not hash to the CID in its name"))
      }
      return
    }
    guard cid.multihash.sha256 != nil else {
      refused.append((path, "its name is a CID that cannot be verified"))
      return
    }
    do {
      try writer.append(cid, bytes)
    } catch let error as ArchiveError {
      guard case .contentMismatch = error.reason else { throw error }
      refused.append((path, "its content does not hash to the CID in its name"))
      if table.contains(cid) { reconciliation.mismatched(cid) }
      return
    }
    given.insert(cid)
    reconciliation.took(cid, length: UInt64(bytes.count))
  }
}
