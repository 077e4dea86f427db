internal import ATProtocol
internal import Archive
internal import IPLD
internal import Repository
internal import Snapshots

/// A checked repository on its way into a snapshot: one that was inspected as a
/// whole, one that is known by how it differs from the snapshot before (``RepositoryChanges``), or
/// the one that this has.
struct FoundRepository: Sendable {
  /// What its manifest says of it, and how a server sent it.
  let draft: Snapshot
  /// How many bytes there were to look at.
  let byteCount: Int
  /// The header of its CAR, with its length in front.
  let header: [UInt8]
  /// Appends the blocks that an archive does not have; returns what the manifest says of the CAR.
  let pack: @Sendable (inout ArchiveWriter) throws -> Snapshot.CARDescription
  /// Sets the blobs that records refer to, and that a server lists, against what an archive holds.
  let reconcile: @Sendable (BlobListing?, ArchiveReader, RetrySchedule) throws -> BlobReconciliation
  /// Visits its blocks; of one that was put together with an earlier snapshot, those of that, too.
  let visitBlocks: BlockVisitor
}

extension FoundRepository {
  /// A repository at hand as a CAR, all of which was inspected.
  ///
  /// - Parameter archive: where its stored blocks are.
  init(
    _ repository: CheckedRepository, after base: ArchivedSnapshot?, origin: Snapshot.Fetched,
    in archive: ArchiveReader? = nil
  ) {
    var draft = repository.draft
    draft.fetched = origin
    (self.draft, header) = (draft, repository.header)
    byteCount = Int(clamping: repository.byteCount)
    pack = { try repository.pack(into: &$0, after: base) }
    reconcile = { listing, archive, schedule in
      try BlobReconciliation(
        repository.inspection.blobs, inCAR: repository.lengthOfBlock, listing: listing,
        archive: archive, base: base, schedule: schedule,
        ofNewRecords: archive.liesElsewhere ? repository.blobsOfNewRecords() : nil)
    }
    visitBlocks = { visit in
      for index in 0..<repository.newCount {
        try repository.file?.withSection(at: repository.start(index)) { bytes, section throws in
          try visit(bytes.extracting(section.bodyRange))
        }
      }
      if let reader = archive ?? base?.reader {
        for ordinal in repository.stored.joined() {
          let cid = try reader.section(at: ordinal).cid
          if let body = try reader.body(of: cid) { try visit(body.span) }
        }
      }
    }
  }

  /// The repository of a snapshot that the archive has, of which no block is read.
  init(of base: ArchivedSnapshot, _ reconciliation: BlobReconciliation) {
    (draft, header, byteCount) = (base.snapshot, base.snapshot.car.header, 0)
    pack = { _ in base.snapshot.car }
    reconcile = { _, _, _ in reconciliation }
    visitBlocks = base.visitRecords
  }

  /// The repository at a commit that an interrupted backup has left in the archive: it had arrived
  /// and was checked, and only blobs were still to come.
  ///
  /// What was appended of it lies after the manifest of the snapshot before, or makes up the
  /// beginning of an archive without any.
  ///
  /// - Parameters:
  ///   - commit: the account's newest.
  ///   - base: the snapshot that the archive has of the account.
  ///   - storage: the archive, with what lies after its last footer.
  ///   - verifier: what the commit has to pass.
  /// - Returns: nil if the archive does not hold all of it.
  /// - Throws: `ArchiveError`, `CARError` and ``BackupError`` if the archive cannot be read, or
  ///   there is no room; what the verifier throws.
  static func left(
    at commit: CID, after base: ArchivedSnapshot?, in storage: any ArchiveStorage,
    _ verifier: CommitVerifier
  ) throws -> FoundRepository? {
    let reader = try ArchiveReader(storage.map())
    guard try reader.ordinal(of: commit) != nil else { return nil }
    // The first section that the interrupted backup may have appended.
    var start: UInt64 = 0
    var known: ArchivedSnapshot?
    if let base {
      guard let manifest = base.cid, let ordinal = try reader.ordinal(of: manifest) else {
        return nil
      }
      (start, known) = (ordinal, try ArchivedSnapshot(manifest, in: reader))
    } else {
      let header = try reader.carHeader
      guard reader.generation.head == nil, try CARHeader(header.span).roots == [commit] else {
        return nil
      }
    }
    // The sections that may be blocks of a repository.
    var left = BlockOrder()
    for ordinal in start..<reader.sectionCount
    where try reader.section(at: ordinal).cid.codec == .dagCBOR { left.append(ordinal) }
    do {
      let repository = try CheckedRepository(left.runs, at: commit, over: known, in: reader)
      try verifier.check(repository.commit)
      var origin = Snapshot.Fetched()
      origin.since = base?.snapshot.rev
      return FoundRepository(repository, after: base, origin: origin, in: reader)
    } catch is IncompleteRepository {
      return nil
    }
  }
}

/// Blocks that a server sent and that are not part of the repository: which of them are stored
/// anyway.
///
/// Some servers send blocks of earlier commits, and a CAR that came in is given back bit for bit,
/// so a few are kept. They are left out once they outweigh the repository: nothing shows what they
/// are, and a server could fill any disk with them.
extension Snapshot.LeftOut {
  /// How many bytes they may have beyond what the repository has.
  private static let allowance = 1 << 20
  /// What a block counts for beside its bytes: what it takes in tables and indexes.
  private static let overhead = 64

  /// What is left out of the file of a repository; nil if it is too little.
  init?(of repository: CheckedRepository) {
    guard let file = repository.file else { return nil }
    self.init(
      of: file, using: (0..<repository.newCount).map(repository.start),
      own: (
        Int(clamping: repository.sectionCount),
        Int(clamping: repository.byteCount) - repository.header.count
      ))
  }

  /// What is left out of a CAR; nil if it is too little.
  ///
  /// - Parameters:
  ///   - file: the CAR.
  ///   - starts: where its sections begin that are part of the repository.
  ///   - own: how many blocks and bytes the repository has; nil if it has these alone.
  init?(of file: CARFile, using starts: [Int], own: (blocks: Int, bytes: Int)? = nil) {
    let usedBytes = file.byteCount(ofSectionsAt: starts)
    let (ownBlocks, ownBytes) = own ?? (starts.count, usedBytes)
    let blocks = file.sectionCount - starts.count
    let bytes = file.sectionByteCount - usedBytes
    guard bytes + blocks * Self.overhead > ownBytes + ownBlocks * Self.overhead + Self.allowance
    else { return nil }
    self.init(blocks: blocks, bytes: bytes)
  }
}

/// How a repository differs from the snapshot that an archive has.
///
/// Only what is new is read: the blocks that a server sent, the nodes of the old tree that the new
/// one does not have, and the records that changed. The rest is what it was in that snapshot, which
/// was checked when it was made.
///
/// Invariants:
/// 1. The new tree keeps the rules, every block of it that the snapshot does not have is in the
///    archive or was sent, and each hashes to its CID.
/// 2. Every figure is exact, and the CAR has every block that the commit leads to, and no other.
///    Where what changed does not tell that, there are none
///    (``find(in:after:_:verify:)``).
struct RepositoryChanges {
  private let sent: CARFile
  private let base: ArchivedSnapshot
  private let root: CID
  private let commit: Commit
  /// What the snapshot lacks, by its own ledger.
  private let missing: BlobLedger.MissingList
  private let blocks: SnapshotBlocks
  private var created: [CID] = []
  private var deleted: [CID] = []
  /// The records that changed.
  private var records: [MSTDiff.RecordChange] = []
  private var counts: Snapshot.Counts
  private var unreadable: UnreadableRecords
  private var scanner = RecordScanner()
  /// Where the sections begin, in what was sent, that go into the archive.
  private var new: [Int] = []
  /// The sections of the archive that the snapshot does not have, and the new tree does.
  private var reused: [UInt64] = []
  /// The sections that the snapshot has, and the new tree does not.
  private var removed: [UInt64] = []
  private var (addedBytes, removedBytes): (UInt64, UInt64) = (0, 0)

  /// Finds out how a repository differs from a snapshot.
  ///
  /// - Parameters:
  ///   - sent: what the server sent, each block of which hashes to its CID.
  ///   - base: the snapshot.
  ///   - origin: how the server sent it.
  ///   - verify: refuses a commit.
  /// - Returns: The repository; nil if the two do not make one, or not all that a manifest says
  ///   follows from what changed: a blob that is held already, or is not referred to by a record
  ///   any more, may be referred to by others that did not change.
  static func find(
    in sent: CARFile, after base: ArchivedSnapshot, _ origin: Snapshot.Fetched,
    verify: (Commit) throws -> Void
  ) throws -> FoundRepository? {
    do {
      var changes = try RepositoryChanges(sent, base)
      let repository = try changes?.repository(origin)
      if let changes, repository != nil { try verify(changes.commit) }
      return repository
    } catch let error where error.isLoss {
      return nil
    }
  }

  private init?(_ sent: CARFile, _ base: ArchivedSnapshot) throws {
    let snapshot = base.snapshot
    // A CAR with repeated blocks, with blocks beside its tree, or without some of them, is not what
    // its tree leads to.
    guard snapshot.isComplete, snapshot.car.sectionCount == UInt64(snapshot.counts.blocks),
      let recordBlocks = snapshot.counts.recordBlocks,
      snapshot.counts.blocks == 1 + snapshot.counts.nodes + recordBlocks,
      let root = sent.header.roots.first, let missing = try base.exhaustiveLedger(),
      // Blobs that have come otherwise are counted with all of the repository at hand.
      try base.lacksAll(missing),
      let commit = try sent.body(of: root).map({ (body) throws in try Commit(body.span) })
    else { return nil }
    (self.sent, self.base, self.root, self.commit) = (sent, base, root, commit)
    (self.missing, counts, unreadable) = (missing, snapshot.counts, snapshot.unreadable)
    blocks = SnapshotBlocks(base)
  }

  /// The repository; nil if it takes away more than the manifest says there was.
  private mutating func repository(_ origin: Snapshot.Fetched) throws -> FoundRepository? {
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
      counts.records += (record.new == nil ? 0 : 1) - (record.old == nil ? 0 : 1)
    }
    counts.nodes += created.count - deleted.count
    try locate()
    counts.blocks += new.count + reused.count - removed.count
    let newBlobs = try readRecords()
    let car = base.snapshot.car
    let (bytesBefore, gone) = (car.byteCount + addedBytes, UInt64(car.header.count) + removedBytes)
    guard bytesBefore >= gone, counts.records >= 0, counts.nodes >= 0, counts.blocks > 0,
      counts.recordBlocks ?? 0 >= 0, unreadable.count >= 0, unreadable.partlySearchedCount >= 0
    else { return nil }
    var origin = origin
    origin.leftOut = Snapshot.LeftOut(
      of: sent, using: new, own: (counts.blocks, Int(clamping: bytesBefore - gone)))
    let header = CARHeader(roots: [root]).bytes
    // It makes a whole of what was whole.
    var draft = Snapshot(
      commit, at: root, counts, unreadable, isComplete: true,
      blobCount: base.snapshot.blobs.referenced + newBlobs.entries.count)
    draft.fetched = origin
    return FoundRepository(
      draft: draft, byteCount: sent.file.count, header: header,
      pack: packing(header, byteCount: bytesBefore - gone + UInt64(header.count)),
      reconcile: { [base, missing] listing, archive, schedule in
        try BlobReconciliation(
          adding: newBlobs, to: missing, of: base, listing: listing, archive: archive,
          schedule: schedule)
      },
      visitBlocks: { [sent, base, new] visit in
        try base.visitRecords(visit)
        for start in new {
          try sent.withSection(at: start) { bytes, section throws in
            try visit(bytes.extracting(section.bodyRange))
          }
        }
      })
  }

  /// What appends the blocks that are new, in the order in which they were sent, and the order if
  /// it is too long for a manifest.
  ///
  /// It returns the manifest's description of the CAR, without a digest: it was never put together.
  private func packing(_ header: [UInt8], byteCount: UInt64)
    -> @Sendable (inout ArchiveWriter) throws -> Snapshot.CARDescription
  {
    {
      [sent, base, reused, new = new.sorted(), removed = removed.sorted()] writer in
      var order = BlockOrder()
      try sent.file.withBytes { bytes throws in
        for start in new {
          let body = bytes.extracting(CARSection.body(at: start, in: bytes))
          order.append(try writer.append(verified: CARSection.cid(at: start, in: bytes), body))
        }
      }
      for ordinal in reused { order.append(ordinal) }
      order.append(try base.order(), except: removed)
      return try order.describe(
        header, byteCount: byteCount, sha256: nil, after: base, into: &writer)
    }
  }

  // MARK: Blocks

  /// Finds out where the added blocks are, and where the removed ones.
  private mutating func locate() throws {
    let createdRecords = Set(records.compactMap(\.new))
    let removedRecords = Set(records.compactMap(\.old)).subtracting(createdRecords)
    // One of them might be what another key leads to, too.
    if !removedRecords.isEmpty, base.snapshot.counts.recordBlocks != base.snapshot.counts.records {
      throw IncompleteRepository()
    }
    let order = try base.order().runs.sorted { $0.lowerBound < $1.lowerBound }
    let wanted = [root] + created + createdRecords
    let states = try base.reader.states(wanted.count) { wanted[$0] }
    var createdRecordCount = 0
    for (index, cid) in wanted.enumerated() {
      let isRecord = index > created.count
      if case .held(let ordinal, let length) = states[index] {
        if order.has(ordinal) {
          // The only blocks that both trees may have are records under other keys.
          guard isRecord else { throw IncompleteRepository() }
          continue
        }
        reused.append(ordinal)
        addedBytes += Self.sectionLength(cid, length)
      } else {
        guard let number = sent.number(of: cid), let length = sent.length(of: cid)
        else { throw IncompleteRepository() }
        new.append(sent.start(of: number))
        addedBytes += Self.sectionLength(cid, length)
      }
      if isRecord { createdRecordCount += 1 }
    }
    let gone = [base.snapshot.commit] + deleted + removedRecords
    for (cid, state) in zip(gone, try base.reader.states(gone.count) { gone[$0] }) {
      guard case .held(let ordinal, let length) = state, order.has(ordinal) else {
        throw IncompleteRepository()
      }
      removed.append(ordinal)
      removedBytes += Self.sectionLength(cid, length)
    }
    counts.recordBlocks = counts.recordBlocks.map { $0 + createdRecordCount - removedRecords.count }
  }

  private static func sectionLength(_ cid: CID, _ bodyLength: UInt64) -> UInt64 {
    let total = UInt64(cid.bytes.count) + bodyLength
    return total + UInt64(Varint.length(of: total))
  }

  // MARK: Records

  /// Reads the records that changed.
  ///
  /// - Returns: The blobs to which records refer now and none did before. None of them is in the
  ///   archive, or known to be missing.
  private mutating func readRecords() throws -> BlobTable {
    var (before, after) = (BlobTable(), BlobTable())
    for record in records {
      guard let cid = record.new else { continue }
      let body = try sent.body(of: cid) ?? blocks.body(of: cid)
      try scan(body, of: record, sign: 1, &after)
    }
    // In the order of the archive, so that no frame is decompressed for each of them.
    let gone = records.compactMap { record in record.old.map { (record: record, cid: $0) } }
    let ordinals = try base.reader.ordinals(gone.count) { gone[$0].cid }
    for index in gone.indices.sorted(by: { (ordinals[$0], $0) < (ordinals[$1], $1) }) {
      let body = try blocks.body(of: gone[index].cid)
      try scan(body, of: gone[index].record, sign: -1, &before)
    }
    guard before.entries.allSatisfy({ after.contains($0.cid) }) else {
      throw IncompleteRepository()
    }
    var new = BlobTable()
    let candidates = after.entries.filter { !before.contains($0.cid) }
    let noted = IndexedCIDs(missing.cids)
    let states = try base.reader.states(candidates.count) { candidates[$0].cid }
    for (entry, state) in zip(candidates, states) {
      guard case .missing = state, noted.place(of: entry.cid) == nil,
        sent.number(of: entry.cid) == nil
      else { throw IncompleteRepository() }
      new.insert(
        BlobRef(
          cid: entry.cid, mimeType: entry.mimeType, size: entry.size, isLegacy: entry.isLegacy),
        from: Array(entry.firstRecord.utf8))
    }
    return new
  }

  private mutating func scan(
    _ body: [UInt8]?, of record: MSTDiff.RecordChange, sign: Int, _ blobs: inout BlobTable
  ) throws {
    guard let body else { throw IncompleteRepository() }
    var found = UnreadableRecords()
    found.count(scanner.scan(body.span) { blobs.insert($0, from: record.key) })
    unreadable.add(found, times: sign)
  }
}

extension ArchivedSnapshot {
  /// Visits its records.
  ///
  /// - Throws: as `SnapshotBlocks.contents` does; what `visit` throws.
  @Sendable func visitRecords(_ visit: (Span<UInt8>) throws -> Void) throws {
    _ = try SnapshotBlocks(self, keepsRecords: true).contents { _, body in try visit(body) }
  }

  /// Whether the archive holds none of these blobs.
  func lacksAll(_ blobs: BlobLedger.MissingList) throws -> Bool {
    try reader.states(blobs.count) { blobs.cids[$0] }
      .allSatisfy { if case .missing = $0 { true } else { false } }
  }
}
