internal import ATProtocol
internal import Archive
internal import IPLD
internal import Repository
internal import Snapshots

/// A repository that is known by how it differs from the snapshot that an archive has.
///
/// Only what is new is read: the blocks that a server sent, the nodes of the old tree that the new
/// one does not have, and the records that changed. The rest is what it was in that snapshot, which
/// was checked when it was made.
///
/// Invariants:
/// 1. The new tree keeps the rules, every block of it that the snapshot does not have is in the
///    archive or was sent, and each hashes to its CID.
/// 2. Every figure is exact, and the CAR has each block that the commit leads to, and no other.
///    Where what changed does not tell that, there are no changes to be had (``find(in:after:)``).
struct RepositoryChanges: Sendable {
  /// What there is now.
  let facts: RepositoryFacts
  /// The blobs to which records refer now, and did not before.
  ///
  /// None of them is in the archive, or known to be missing.
  private let newBlobs: BlobTable
  /// What the server sent beside the changes, if that is much.
  let leftOut: Snapshot.LeftOut?
  /// How many bytes the server sent.
  var byteCount: Int { sent.file.count }

  private let sent: CARFile
  private let base: ArchivedSnapshot
  /// What the snapshot lacks.
  private let missing: BlobLedger.MissingList
  /// Where the sections begin, in what was sent, that go into the archive.
  private let new: [Int]
  /// The sections of the archive that the snapshot does not have, and the new tree does.
  private let reused: [UInt64]
  /// The sections that the snapshot has, and the new tree does not.
  private let removed: [UInt64]
  /// How many bytes the CAR of all blocks has, without its header.
  private let carByteCount: UInt64

  /// Finds out how a repository differs from a snapshot.
  ///
  /// - Parameters:
  ///   - sent: what the server sent, each block of which hashes to its CID.
  ///   - base: the snapshot.
  /// - Returns: nil if the two do not make a repository, or not all that a manifest says follows
  ///   from what changed: a blob that is held already, or is not referred to by a record any more,
  ///   may be referred to by others that did not change.
  static func find(in sent: CARFile, after base: ArchivedSnapshot) throws
    -> RepositoryChanges?
  {
    do {
      var finding = try Finding(sent, base)
      return try finding?.run()
    } catch let error
      where error.isDamage || error is MSTDiffError || error is RepositoryError
    {
      return nil
    } catch is Finding.Undecided {
      return nil
    }
  }

  /// The changes that were found; nil if they take away more than the manifest says there was.
  fileprivate init?(_ finding: Finding, blobs: BlobTable, places: Finding.Places) {
    let before = finding.base.snapshot
    (sent, base, missing) = (finding.sent, finding.base, finding.missing)
    var counts = before.counts
    counts.records += finding.recordDifference
    counts.nodes += finding.created.count - finding.deleted.count
    counts.recordBlocks = before.counts.recordBlocks.map {
      $0 + places.createdRecordCount - places.removedRecordCount
    }
    counts.blocks += places.new.count + places.reused.count - places.removed.count
    let carBefore = before.car.byteCount + places.addedBytes
    let gone = UInt64(before.car.header.count) + places.removedBytes
    guard carBefore >= gone, counts.records >= 0, counts.nodes >= 0, counts.blocks > 0,
      counts.recordBlocks ?? 0 >= 0, finding.unreadable.count >= 0,
      finding.unreadable.partlySearchedCount >= 0
    else { return nil }
    carByteCount = carBefore - gone
    // It makes a whole of what was whole.
    facts = RepositoryFacts(
      commit: finding.commit, root: finding.root, counts: counts, unreadable: finding.unreadable,
      isComplete: true, blobCount: before.blobs.referenced + blobs.entries.count)
    newBlobs = blobs
    (new, reused, removed) = (places.new.sorted(), places.reused, places.removed.sorted())
    leftOut = LeftOutBlocks.of(
      sent, used: places.new.count, bytes: Int(places.newBytes),
      own: counts.blocks * LeftOutBlocks.overhead + Int(clamping: carByteCount))
  }

  /// The header of the CAR, with its length in front.
  var header: [UInt8] { CARHeader(roots: [facts.root]).bytes }

  /// Sets the blobs that are new against what a server lists and the archive holds.
  func reconcile(_ listing: BlobListing?, _ archive: ArchiveReader, _ schedule: RetrySchedule)
    throws -> BlobReconciliation
  {
    try BlobReconciliation(
      adding: newBlobs, to: missing, of: base, listing: listing, archive: archive,
      schedule: schedule)
  }

  /// Appends the blocks that are new, in the order in which they were sent, and the order if it is
  /// too long for a manifest.
  ///
  /// - Returns: What the manifest says of the CAR, which nobody has put together: it has no digest.
  func pack(into writer: inout ArchiveWriter) throws -> Snapshot.CARDescription {
    var order = BlockOrder()
    try sent.file.withBytes { bytes throws in
      for start in new {
        let body = bytes.extracting(CARSection.body(at: start, in: bytes))
        order.append(try writer.append(verified: CARSection.cid(at: start, in: bytes), body))
      }
    }
    for ordinal in reused { order.append(ordinal) }
    order.append(try base.order(), except: removed)
    let written = try order.written(after: try OrderBasis(base))
    for page in written.pages { try writer.append(page.cid, page.bytes.span) }
    let header = header
    return Snapshot.CARDescription(
      header: header, byteCount: carByteCount + UInt64(header.count), sha256: nil,
      sectionCount: order.count, order: written.order, base: written.base)
  }
}

/// Finding out how a repository differs from a snapshot.
private struct Finding {
  /// That what changed does not tell everything.
  struct Undecided: Error {}

  /// Where the blocks lie that came or went.
  struct Places {
    var new: [Int] = []
    var newBytes: UInt64 = 0
    var reused: [UInt64] = []
    var removed: [UInt64] = []
    var addedBytes: UInt64 = 0
    var removedBytes: UInt64 = 0
    var createdRecordCount = 0
    var removedRecordCount = 0
  }

  let sent: CARFile
  let base: ArchivedSnapshot
  let root: CID
  let commit: Commit
  /// What the snapshot lacks, by its own ledger.
  let missing: BlobLedger.MissingList
  private(set) var created: [CID] = []
  private(set) var deleted: [CID] = []
  private(set) var recordDifference = 0
  private(set) var unreadable: UnreadableRecords
  /// The records that changed.
  private var records: [MSTDiff.RecordChange] = []
  private let blocks: SnapshotBlocks
  private var scanner = RecordScanner()

  init?(_ sent: CARFile, _ base: ArchivedSnapshot) throws {
    let snapshot = base.snapshot
    // A CAR with repeated blocks, with blocks beside its tree, or without some of them, is not what
    // its tree leads to.
    guard snapshot.isComplete,
      snapshot.car.sectionCount == UInt64(snapshot.counts.blocks),
      let recordBlocks = snapshot.counts.recordBlocks,
      snapshot.counts.blocks == 1 + snapshot.counts.nodes + recordBlocks,
      let root = sent.header.roots.first, let missing = try base.exhaustiveLedger(),
      // Blobs that have come otherwise are counted with all of the repository at hand.
      try base.reader.states(missing.count, cid: { missing.cids[$0] }).allSatisfy({
        if case .missing = $0 { true } else { false }
      }),
      let commit = try sent.body(of: root).map({ (body) throws in try Commit(body.span) })
    else { return nil }
    (self.sent, self.base, self.root, self.commit) = (sent, base, root, commit)
    self.missing = missing
    unreadable = snapshot.unreadable
    blocks = SnapshotBlocks(base)
  }

  mutating func run() throws -> RepositoryChanges? {
    let block = try base.block(base.snapshot.commit)
    let before = try Commit(block.bytes.span)
    try MSTDiff.compare(old: before.data, new: commit.data, verifying: true) {
      [sent, blocks] cid, _ in
      try sent.body(of: cid) ?? blocks.body(of: cid)
    } each: { change in
      switch change {
      case .createdNode(let cid): created.append(cid)
      case .deletedNode(let cid): deleted.append(cid)
      case .record(let record): records.append(record)
      }
    }
    for record in records {
      if record.old == nil { recordDifference += 1 }
      if record.new == nil { recordDifference -= 1 }
    }
    let places = try locate()
    let blobs = try readRecords()
    return RepositoryChanges(self, blobs: blobs, places: places)
  }

  /// The bytes of a block, from what was sent or from the archive.
  private func load(_ cid: CID) throws -> [UInt8]? {
    try sent.body(of: cid) ?? blocks.body(of: cid)
  }

  // MARK: Blocks

  /// Finds out where the blocks are that came, and where those that went.
  private mutating func locate() throws -> Places {
    var places = Places()
    let createdRecords = Set(records.compactMap(\.new))
    let removedRecords = Set(records.compactMap(\.old)).subtracting(createdRecords)
    // One of them might be what another key leads to, too.
    if !removedRecords.isEmpty, base.snapshot.counts.recordBlocks != base.snapshot.counts.records {
      throw Undecided()
    }
    let order = try base.order().runs.sorted { $0.lowerBound < $1.lowerBound }
    let wanted = [root] + created + createdRecords
    let reader = base.reader
    let states = try reader.states(wanted.count) { wanted[$0] }
    let firstRecord = 1 + created.count
    for (index, cid) in wanted.enumerated() {
      if case .held(let ordinal, let length) = states[index] {
        if order.has(ordinal) {
          // The only blocks that both trees may have are records under other keys.
          guard index >= firstRecord else { throw Undecided() }
          continue
        }
        places.reused.append(ordinal)
        places.addedBytes += Self.sectionLength(cid, length)
      } else {
        guard let number = sent.number(of: cid), let length = sent.length(of: cid)
        else { throw Undecided() }
        places.new.append(sent.start(of: number))
        places.newBytes += Self.sectionLength(cid, length)
      }
      if index >= firstRecord { places.createdRecordCount += 1 }
    }
    places.addedBytes += places.newBytes
    let gone = [base.snapshot.commit] + deleted + removedRecords
    for (cid, state) in zip(gone, try reader.states(gone.count) { gone[$0] }) {
      guard case .held(let ordinal, let length) = state, order.has(ordinal) else {
        throw Undecided()
      }
      places.removed.append(ordinal)
      places.removedBytes += Self.sectionLength(cid, length)
    }
    places.removedRecordCount = removedRecords.count
    return places
  }

  private static func sectionLength(_ cid: CID, _ bodyLength: UInt64) -> UInt64 {
    let total = UInt64(cid.bytes.count) + bodyLength
    return total + UInt64(Varint.length(of: total))
  }

  // MARK: Records

  /// Reads the records that changed; answers the blobs to which some refer now and none did before.
  private mutating func readRecords() throws -> BlobTable {
    var after = BlobTable()
    var before = BlobTable()
    for record in records {
      guard let cid = record.new else { continue }
      guard let body = try load(cid) else { throw Undecided() }
      scan(body, of: record, sign: 1, &after)
    }
    // In the order of the archive, so that no frame is decompressed for each of them.
    let gone = records.compactMap { record in record.old.map { (record: record, cid: $0) } }
    let ordinals = try base.reader.ordinals(gone.count) { gone[$0].cid }
    for index in gone.indices.sorted(by: { (ordinals[$0], $0) < (ordinals[$1], $1) }) {
      guard let body = try blocks.body(of: gone[index].cid) else { throw Undecided() }
      scan(body, of: gone[index].record, sign: -1, &before)
    }
    guard before.entries.allSatisfy({ after.contains($0.cid) }) else { throw Undecided() }
    var new = BlobTable()
    let candidates = after.entries.filter { !before.contains($0.cid) }
    let noted = IndexedCIDs(missing.cids)
    let reader = base.reader
    let states = try reader.states(candidates.count) { candidates[$0].cid }
    for (entry, state) in zip(candidates, states) {
      guard case .missing = state, noted.place(of: entry.cid) == nil,
        sent.number(of: entry.cid) == nil
      else { throw Undecided() }
      new.insert(
        BlobRef(
          cid: entry.cid, mimeType: entry.mimeType, size: entry.size, isLegacy: entry.isLegacy),
        from: Array(entry.firstRecord.utf8))
    }
    return new
  }

  private mutating func scan(
    _ body: [UInt8], of record: MSTDiff.RecordChange, sign: Int, _ blobs: inout BlobTable
  ) {
    let oddities = scanner.scan(body.span) { blobs.insert($0, from: record.key) }
    var found = UnreadableRecords()
    found.count(oddities)
    unreadable.add(found, times: sign)
  }
}
