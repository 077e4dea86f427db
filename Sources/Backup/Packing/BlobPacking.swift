internal import ATProtocol
internal import Archive
internal import IPLD

/// Takes blobs from files into an archive, and keeps the ledger.
///
/// A file is taken for the blob that its name says if the name is a CID, and for what its content hashes to otherwise. Its content is hashed when it is
/// appended in any case, so that a name that lies is found out.
struct BlobPacking {
  /// What is written about the blobs.
  struct Ledger {
    var counts: Snapshot.BlobCounts
    var missing: [BlobLedger.Missing]
  }

  private let table: BlobTable
  private let keepsExtras: Bool
  private var held: [CID: UInt64] = [:]
  /// Those that were in the archive before, whose files need not be read again.
  private var heldBefore: Set<CID> = []
  private var mismatched: Set<CID> = []
  private var extrasBytes: UInt64 = 0
  /// The blobs that are held though no record refers to them: those of the snapshot before, and those taken now.
  private(set) var extras: [CID] = []
  /// What was missing in the snapshot before, and why, and what is damaged now.
  private var missingBefore: [BlobLedger.Missing] = []
  /// The blobs that are damaged though no record refers to them, and are taken if they are given.
  private var damagedExtras: Set<CID> = []
  /// Why the list of blobs of the snapshot before is not whole: files say nothing of that.
  private var listFault: ListFault?
  /// Files that could not be taken, and why.
  private(set) var refused: [(path: String, why: String)] = []
  /// How many files no record refers to and were left out.
  private(set) var leftOutCount = 0

  /// A packing of the blobs that a repository refers to; those that its CAR carries itself, and those in the archive, are held
  /// already.
  init(
    _ inspection: RepositoryInspection, car: MappedFile, archive: ArchiveReader?,
    base: ArchivedSnapshot?, keepsExtras: Bool
  ) throws {
    table = inspection.blobs
    self.keepsExtras = keepsExtras
    car.withBytes { bytes in
      for entry in table.entries {
        guard let place = inspection.blocks.place(of: entry.cid, in: bytes) else { continue }
        held[entry.cid] = UInt64(inspection.blocks.body(place, in: bytes).count)
      }
    }
    guard let archive else { return }
    let entries = table.entries
    let states = try archive.states(entries.count, isChecking: true) { entries[$0].cid }
    for (entry, state) in zip(entries, states) {
      switch state {
      case .held(_, let length):
        held[entry.cid] = held[entry.cid] ?? length
        heldBefore.insert(entry.cid)
      case .damaged:
        missingBefore.append(BlobLedger.Missing(cid: entry.cid, reason: .lost, size: entry.size))
      case .missing: break
      }
    }
    guard let base else { return }
    listFault = base.snapshot.blobs.listFault
    let (earlier, missing) = try base.readableLists()
    try lookUp(extras: earlier.filter { !table.contains($0) }, in: archive)
    for (entry, state) in zip(missing, try archive.states(missing.count) { missing[$0].cid }) {
      if case .missing = state { missingBefore.append(entry) }
    }
  }

  /// Looks for the blobs that no record refers to.
  private mutating func lookUp(extras earlier: [CID], in archive: ArchiveReader) throws {
    let states = try archive.states(earlier.count, isChecking: true) { earlier[$0] }
    for (cid, state) in zip(earlier, states) {
      if let length = state.bodyLength {
        extras.append(cid)
        extrasBytes += length
        held[cid] = length
        heldBefore.insert(cid)
      } else {
        var entry = BlobLedger.Missing(cid: cid, reason: .lost, size: nil)
        entry.isReferenced = false
        missingBefore.append(entry)
        damagedExtras.insert(cid)
      }
    }
  }

  /// Whether a file with this content goes into the archive.
  private func takes(_ cid: CID) -> Bool {
    table.contains(cid) || keepsExtras || damagedExtras.contains(cid)
  }

  /// Takes what is wanted of the files.
  mutating func pack(
    _ files: [String], into writer: inout ArchiveWriter, _ observer: Progress.Observer
  ) throws {
    for (index, path) in files.enumerated() {
      observer(Progress(stage: "blobs", done: UInt64(index), total: UInt64(files.count)))
      let claimed = BlobFolder.claimedCID(path)
      if let claimed, heldBefore.contains(claimed) { continue }
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
    guard held[cid] == nil else {
      // What is there is there; a further file that lies is named all the same.
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
      mismatched.insert(cid)
      return
    }
    held[cid] = UInt64(bytes.count)
    if !table.contains(cid) {
      extras.append(cid)
      extrasBytes += UInt64(bytes.count)
    }
  }

  /// The figures, and what is missing.
  func ledger() -> Ledger {
    var counts = Snapshot.BlobCounts()
    var missing: [BlobLedger.Missing] = []
    // Each takes some two hundred bytes, so there is to be no room for more.
    missing.reserveCapacity(max(0, table.entries.count - held.count))
    let before = Dictionary(
      missingBefore.map { ($0.cid, $0) }, uniquingKeysWith: { first, _ in first })
    for entry in table.entries {
      counts.referenced += 1
      if let length = held[entry.cid] {
        counts.held += 1
        counts.heldBytes += length
      } else if let earlier = before[entry.cid],
        earlier.accepted != nil || !mismatched.contains(entry.cid)
      {
        missing.append(earlier)
      } else {
        let reason: BlobLedger.Reason = mismatched.contains(entry.cid) ? .mismatch : .notProvided
        missing.append(BlobLedger.Missing(cid: entry.cid, reason: reason, size: entry.size))
      }
    }
    // What a server listed and did not give is missing still.
    for entry in missingBefore
    where !entry.isReferenced && held[entry.cid] == nil && !table.contains(entry.cid) {
      counts.listedMissing += 1
      missing.append(entry)
    }
    counts.accepted = missing.count { $0.accepted != nil }
    counts.listFault = listFault
    counts.extras = extras.count
    counts.extrasBytes = extrasBytes
    return Ledger(counts: counts, missing: missing)
  }
}
