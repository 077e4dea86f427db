internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots

/// Checks one snapshot after the other against the blocks of an archive.
///
/// What was found out about trees, blobs, lists and accounts serves all snapshots that have them.
struct SnapshotChecks {
  /// The snapshots of the archive, and the reader through which it is read.
  let history: SnapshotHistory
  private var reader: ArchiveReader { history.reader }
  /// How to judge the levels of proof; nil to leave them out.
  private let terms: ProofTerms?
  /// What the archive holds about who an account is, as far as it was asked.
  var evidence: [DID: Result<IdentityEvidence, any Error>] = [:]
  /// The number of each account's first snapshot.
  private(set) var firsts: [DID: Int] = [:]
  /// Rollbacks and forks, by the index of the snapshot.
  let disruptions: [Int: [(kind: Standing.Doubt, before: Int, isAccepted: Bool)]]
  private let census: LaidOutBlocks
  private let damaged: Set<CID>
  private let observer: Progress.Observer
  private var trees: SharedTrees
  /// How blobs and documents are damaged.
  private var damages: [CID: String] = [:]
  /// How many of the blobs that records refer to have been looked up, and by their numbers which
  /// are missing, damaged, and reported for a newer snapshot.
  private var lookedUpCount = 0
  private var missing = BlockSet(count: 0)
  private var broken = BlockSet(count: 0)
  private var reported = BlockSet(count: 0)
  /// Whether CARs are what their manifests say, as far as that was found out while the file was
  /// read; by the manifests.
  private let cars: [CID: Result<Void, BackupError>]
  /// What is wrong with pages of extras and lists of private data and context, which snapshots
  /// share.
  private var checkedLists: [CID: [String]] = [:]
  /// What is wrong with the proofs of contexts, by the lists.
  private var checkedProofs: [CID: [String]] = [:]
  /// What the pages say that were read last.
  private var reasons = Reasons()
  /// The blobs without numbers that have been reported for a newer snapshot.
  private var reportedUnreferenced: Set<CID> = []
  /// The sections of a CAR whose order is not that of the archive.
  private var gathered: LaidOutBlocks?
  private var orders = ResolvedOrders()
  /// How many bytes of CARs will be reassembled, and how many have been.
  private let byteCount: UInt64
  private var doneCount: UInt64 = 0

  /// How many findings of one kind are reported about one snapshot.
  private static let maximumListed = 100

  init(
    _ history: SnapshotHistory, _ census: LaidOutBlocks, except damaged: Set<CID>,
    cars: [CID: Result<Void, BackupError>], total: [SnapshotHistory.Entry],
    judging terms: ProofTerms?,
    observer: @escaping Progress.Observer
  ) {
    (self.history, self.census, self.damaged) = (history, census, damaged)
    (self.cars, self.terms, self.observer) = (cars, terms, observer)
    disruptions = Dictionary(
      (terms == nil ? [] : history.disruptions).map {
        ($0.after, [($0.kind, $0.before, $0.isAccepted)])
      },
      uniquingKeysWith: +)
    for entry in history.entries
    where terms != nil && entry.isVouched && firsts[entry.did] == nil {
      firsts[entry.did] = entry.number
    }
    trees = SharedTrees(census)
    byteCount = total.reduce(0) { $0.addingSaturated($1.carByteCount) }
  }

  /// The first of the records that break the data model, with why.
  var recordWarnings: [(record: String, why: String)] { trees.recordWarnings }

  /// What pages of missing blobs say.
  private struct Reasons {
    var pages: [CID] = []
    /// The entries, each blob once, and in which place each is.
    var ledger = BlobLedger()
    var places = IndexedCIDs()
    /// The blobs that are accepted as lost.
    var accepted: [CID] = []
    /// The blobs that no record refers to and that are really missing.
    var unreferenced = BlobLedger()
    /// Whether those have been reported.
    var isSaid = false
  }

  /// Checks a snapshot, and judges what that proves.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file.
  mutating func check(_ report: inout SnapshotVerifier.SnapshotReport) throws {
    let commit = try examine(&report)
    report.levels = terms.map { levels(of: report, commit, $0) }
  }

  /// Examines a snapshot; returns its commit, if that can be read.
  private mutating func examine(
    _ report: inout SnapshotVerifier.SnapshotReport
  ) throws -> Commit? {
    let archived: ArchivedSnapshot
    do {
      archived = try ArchivedSnapshot(report.entry.cid, in: reader)
    } catch {
      report.damage.append(try error.flaw())
      return nil
    }
    let snapshot = archived.snapshot
    var blocks: BlockSet?
    do {
      blocks = census.blocks(in: try checkCAR(archived, isDigested: report.isCARDigested))
    } catch {
      let flaw = try error.flaw()
      report.damage.append("\(error as? BackupError ?? .carNotExact(flaw))")
    }
    let tree = trees.walk(from: snapshot.commit, within: blocks)
    // What was salvaged may have lost its commit, and its manifest says so.
    let hasNoCommit =
      !snapshot.isComplete && tree.commitError == .commitMissing(snapshot.commit)
    if let error = tree.commitFlaw, !hasNoCommit { report.damage.append("\(error)") }
    report.damage += Self.first(
      tree.treeProblems.lazy.map { "the tree of records: \($0)" }, of: tree.treeProblemCount,
      "further problems of the tree")
    if blocks != nil {
      checkFigures(snapshot, tree, &report)
    } else {
      // What the snapshot never had was missing before any damage, but which it is can no longer be
      // told.
      report.damage += Self.first(
        tree.missingRecords.lazy.map { "the record \($0) is lost" }, of: tree.missingRecordCount,
        "further lost records")
      report.damage += Self.first(
        tree.missingNodes.lazy.map { "the tree node \($0) is lost, and all records below it" },
        of: tree.missingNodes.count, "further lost tree nodes")
    }
    report.unreadable = tree.unreadable
    try checkLists(archived, &report)
    checkBlobs(archived, tree, &report)
    if blocks == nil || tree.commitError != nil, snapshot.isComplete {
      var left = Snapshot.Remains(snapshot.counts.records, snapshot.blobs.referenced)
      left.records = tree.recordCount - tree.missingRecordCount
      left.references = report.blobs.held - report.damagedBlobCount
      report.remains = left
    }
    return tree.commit
  }

  /// The first of some sentences, and how many more there are.
  private static func first(
    _ sentences: some Sequence<String>, of count: Int, _ further: String
  ) -> [String] {
    let first = Array(sentences.prefix(maximumListed))
    return first + (count > first.count ? ["\(further): \(count - first.count)"] : [])
  }

  // MARK: The CAR and its repository

  /// Checks that the sections of a CAR are there and as long as they should be; returns which they
  /// are.
  ///
  /// - Parameter isDigested: Whether its digest is compared, too.
  /// - Throws: what is wrong with it.
  private mutating func checkCAR(_ archived: ArchivedSnapshot, isDigested: Bool) throws
    -> [Range<UInt64>]
  {
    let car = archived.snapshot.car
    try RestoredRepository.checkLength(of: archived)
    let runs = try orders.order(of: archived).order.runs
    try census.checkAmount(
      of: runs, count: car.sectionCount, byteCount: car.byteCount, headerLength: car.header.count)
    if isDigested, car.sha256 != nil {
      try archived.cid.flatMap { cars[$0] }?.get() ?? checkDigest(of: car, runs)
    }
    return runs
  }

  /// Reassembles a CAR, and makes sure that it is the one that the manifest describes.
  private mutating func checkDigest(
    of car: Snapshot.CARDescription, _ runs: [Range<UInt64>]
  ) throws {
    var digest = try CARDigest(of: car)
    let (begin, total, observer) = (doneCount, byteCount, observer)
    try copy(runs, limit: car.byteCount) { bytes in
      try digest.take(bytes)
      observer(
        Progress(stage: "snapshots", done: begin.addingSaturated(digest.count), total: total))
    }
    doneCount = begin.addingSaturated(car.byteCount)
    try digest.finish()
  }

  /// Hands out the sections of a CAR: each has been hashed with the file.
  private mutating func copy(
    _ runs: [Range<UInt64>], limit: UInt64, to sink: (Span<UInt8>) throws -> Void
  ) throws {
    guard let sections = try gather(runs, limit: limit) else {
      return try reader.copySections(runs, isHashing: false, to: sink)
    }
    for run in runs {
      try sections.forEachPart(of: run) { part, isHere in
        if isHere {
          try sections.copy(part, to: sink)
        } else {
          try reader.copySections(CollectionOfOne(part), isHashing: false, to: sink)
        }
      }
    }
  }

  /// The sections of a CAR that stand in an order of their own, gathered; nil if they can be read
  /// where they are.
  ///
  /// Successive snapshots have nearly the same, so what was gathered for one serves the others,
  /// until they lack too much of it.
  private mutating func gather(_ runs: [Range<UInt64>], limit: UInt64) throws -> LaidOutBlocks? {
    guard runs.count > LaidOutBlocks.maximumRuns else { return nil }
    if let gathered {
      var lackCount = 0
      for run in runs { gathered.forEachPart(of: run) { _, isHere in lackCount += isHere ? 0 : 1 } }
      if lackCount <= LaidOutBlocks.maximumRuns { return gathered }
    }
    // The old ones go before the new ones come, because they may be large.
    gathered = nil
    let found = try LaidOutBlocks(runs, of: reader) { progress in
      guard progress.done <= limit else { throw SnapshotError.malformedOrder }
    }
    gathered = found
    return found
  }

  /// Compares what the manifest says with what its CAR holds.
  private func checkFigures(
    _ snapshot: Snapshot, _ tree: RepositoryInspection,
    _ report: inout SnapshotVerifier.SnapshotReport
  ) {
    var root: CID?
    do {
      root = try CARHeader(snapshot.car.header.span).roots.first
    } catch {
      report.damage.append("\(error)")
    }
    let isOther =
      tree.commit.map { $0.did != snapshot.did || $0.rev != snapshot.rev }
      // Without a commit there is nothing to compare.
      ?? snapshot.isComplete
    if root != snapshot.commit || isOther {
      report.damage.append("the manifest describes a commit other than the CAR's")
    }
    // Earlier versions did not search the records that cannot be read.
    let isBlobCountRight =
      tree.unreadable.count == 0
      ? tree.blobNumbers.count == snapshot.blobs.referenced
      : tree.blobNumbers.count >= snapshot.blobs.referenced
    if tree.recordCount != snapshot.counts.records
      || tree.isComplete != snapshot.isComplete
      || !isBlobCountRight
    {
      report.damage.append("the manifest's figures do not match the repository")
    }
  }

  // MARK: Blobs and documents

  /// Checks what the manifest names beside the repository.
  private mutating func checkLists(
    _ archived: ArchivedSnapshot, _ report: inout SnapshotVerifier.SnapshotReport
  ) throws {
    let snapshot = archived.snapshot
    for page in snapshot.extrasPages {
      report.damage += try check(page, { "the extra blob \($0)" }) {
        try BlobLedger.extras(onPage: archived.block(page))
      }
    }
    if snapshot.missingPages != reasons.pages {
      reasons = Reasons(pages: snapshot.missingPages)
      do {
        for entry in try archived.ledger().missing where reasons.places.insert(entry.cid) {
          reasons.ledger.miss(entry)
          if entry.accepted != nil { reasons.accepted.append(entry.cid) }
          if !entry.isReferenced, case .missing = state(of: entry.cid) {
            reasons.unreferenced.miss(entry)
          }
        }
      } catch {
        report.damage.append(try error.flaw())
        // The next snapshot that has these pages is to say so, too.
        reasons = Reasons()
      }
    }
    if let link = snapshot.privateData {
      report.damage += try check(
        link, { "the block \($0) of private data" }, or: "private data: ",
        limit: Self.maximumListed
      ) {
        try archived.privateData()?.pieces ?? []
      }
    }
    if let link = snapshot.context {
      report.damage += try check(
        link, { "the block \($0) of context" }, or: "context: ", limit: Self.maximumListed
      ) {
        try archived.contextBlocks()
      }
      report.damage += try faultsOfProofs(archived, link)
    }
    for document in [snapshot.didDocument, snapshot.plcLog] {
      guard let document else { continue }
      if let loss = loss(of: document, "the document \(document)") { report.damage.append(loss) }
    }
  }

  /// What is wrong with the blobs and blocks on a list, which is examined once.
  ///
  /// - Parameters:
  ///   - link: the list.
  ///   - kind: the name in messages of what is on it.
  ///   - unreadable: what comes before the reason why the list cannot be read.
  ///   - limit: how many are reported.
  private mutating func check(
    _ link: CID, _ kind: (CID) -> String, or unreadable: String = "", limit: Int = .max,
    of list: () throws -> [CID]
  ) throws -> [String] {
    if let known = checkedLists[link] { return known }
    var damage: [String] = []
    do {
      for cid in try list() {
        if let loss = loss(of: cid, kind(cid)) { damage.append(loss) }
        if damage.count == limit { break }
      }
    } catch {
      damage.append("\(unreadable)\(try error.flaw())")
    }
    checkedLists[link] = damage
    return damage
  }

  /// What is wrong with the proofs of a context, which is examined once.
  private mutating func faultsOfProofs(_ archived: ArchivedSnapshot, _ link: CID) throws -> [String]
  {
    if let known = checkedProofs[link] { return known }
    // What is damaged has been named.
    let faults =
      try unlessDamaged { try archived.faultsOfContextProofs(limit: Self.maximumListed) } ?? []
    checkedProofs[link] = faults
    return faults
  }

  /// Checks the blobs to which no earlier snapshot referred.
  private mutating func lookUpBlobs() {
    let blobs = trees.blobs.entries
    missing.grow(to: blobs.count)
    broken.grow(to: blobs.count)
    reported.grow(to: blobs.count)
    for number in lookedUpCount..<blobs.count {
      switch state(of: blobs[number].cid) {
      case .held: break
      case .missing: missing.insert(number)
      case .damaged: broken.insert(number)
      }
    }
    lookedUpCount = blobs.count
  }

  /// Counts the blobs, and compares them with the manifest; damaged ones count as held.
  private mutating func checkBlobs(
    _ archived: ArchivedSnapshot, _ tree: RepositoryInspection,
    _ report: inout SnapshotVerifier.SnapshotReport
  ) {
    lookUpBlobs()
    let lost = missing.filter(tree.blobNumbers, areIn: true)
    let spoilt = broken.filter(tree.blobNumbers, areIn: true)
    report.blobs = reasons.unreferenced.counts
    report.blobs.listFault = archived.snapshot.blobs.listFault
    // How many bytes they have is not asked.
    let lostCount = lost.count
    report.blobs.hold(tree.blobNumbers.count - lostCount, 0, isReferenced: true)
    let acceptedCount = reasons.accepted.count { cid in
      trees.blobs.number(of: cid).map(lost.contains) ?? false
    }
    report.blobs.miss(lostCount, accepted: acceptedCount, isReferenced: true)
    report.damagedBlobCount = spoilt.count
    report.missingBlobs = tell(lost) { [reasons] blob in
      let entry = reasons.places.place(of: blob.cid).map { reasons.ledger.missing[$0] }
      return ((entry?.reason ?? .notProvided).sentence, entry?.accepted)
    }
    report.damagedBlobs = tell(spoilt) { [damages] in (damages[$0.cid] ?? "", nil) }
    tellOfUnreferenced(in: &report)
    // There may be more than there were: another snapshot or account has brought them.
    let (held, counted) = (report.blobs.held, archived.snapshot.blobs.held)
    if tree.isComplete, held < counted, report.damagedBlobCount == 0 {
      report.damage.append("the manifest counts \(counted) blobs, but only \(held) are here")
    }
  }

  /// The blobs among some that have not been reported, which they are now.
  private mutating func tell(
    _ lost: BlockSet, _ why: (BlobTable.Entry) -> (String, BlobLedger.Acceptance?)
  ) -> [SnapshotVerifier.LostBlob] {
    let entries = trees.blobs.entries
    let unsaid = lost.filter(reported, areIn: false)
    var told: [SnapshotVerifier.LostBlob] = []
    // Each takes some two hundred bytes, so there is to be no room for more.
    told.reserveCapacity(unsaid.count)
    for number in unsaid.map(\.self) {
      let blob = entries[number]
      guard !reportedUnreferenced.contains(blob.cid) else { continue }
      reported.insert(number)
      let (why, accepted) = why(blob)
      told.append((blob.cid, blob.firstRecord, why, blob.mimeType, blob.size, accepted))
    }
    return told
  }

  /// Reports the missing blobs that no record refers to, those that have not been.
  private mutating func tellOfUnreferenced(in report: inout SnapshotVerifier.SnapshotReport) {
    guard !reasons.isSaid else { return }
    reasons.isSaid = true
    for entry in reasons.unreferenced.missing {
      guard reportedUnreferenced.insert(entry.cid).inserted,
        !(trees.blobs.number(of: entry.cid).map(reported.contains) ?? false)
      else { continue }
      let why = "listed by the server; \(entry.reason.sentence)"
      report.missingBlobs.append((entry.cid, nil, why, nil, entry.size, entry.accepted))
    }
  }

  /// What is wrong with something that has to be here; nil if nothing is.
  private mutating func loss(of cid: CID, _ what: String) -> String? {
    switch state(of: cid) {
    case .held: nil
    case .missing: "\(what) is lost"
    case .damaged(let why): "\(what) is damaged: \(why)"
    }
  }

  /// The state of a blob or document in the archive.
  private mutating func state(of cid: CID) -> BlobState {
    if let why = damages[cid] { return .damaged(why) }
    let state: BlobState
    if damaged.contains(cid) {
      state = .damaged("its bytes do not hash to its CID")
    } else if census.number(of: cid) != nil {
      return .held(0)
    } else {
      // Not in the census: lost, or never there.
      do {
        state = try reader.section(of: cid).map { .held($0.bodyLength) } ?? .missing
      } catch {
        state = .damaged("\(error)")
      }
    }
    if case .damaged(let why) = state { damages[cid] = why }
    return state
  }
}
