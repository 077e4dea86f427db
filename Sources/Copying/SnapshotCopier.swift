internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots

/// Copies snapshots from archives into a new one, the oldest first, each with all that it needs.
///
/// That is: the sections of its CAR; the blobs that its records refer to, as far as an archive at
/// hand holds them; the pages of its lists, and the extras on them; the documents of its identity;
/// and whatever fields lead to that are not known here. The new archive is one generation, which
/// ends in the manifests.
///
/// 1. A section is copied once and a record read once, however many snapshots share them. Which
///    blobs a snapshot needs is what the walk through its tree comes to, as when it was packed: not
///    what a stray block refers to.
/// 2. Damage ends the copy. In salvage the manifest says what is left instead.
struct SnapshotCopier: ~Copyable {
  var sections: SectionCopier
  private var chain: ManifestChain
  private var orders: [ResolvedOrders]
  /// What has become of the blobs that records of a source refer to, by their numbers.
  private(set) var blobs: [[SectionCopier.Outcome?]]
  /// The lengths of blobs of each source by their numbers, where they had to be counted again;
  /// `UInt64.max` elsewhere.
  var blobLengths: [[UInt64]]
  /// Whether what is the account owner's alone is copied, too.
  private let keepsPrivateData: Bool
  private let observer: Progress.Observer

  /// A copier into a storage, whose content is thrown away: an interrupted copy may have left more
  /// there than these snapshots need.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file; `ArchiveError` if the new
  ///   archive cannot be written.
  init(
    _ sources: [SourceArchive], into storage: any ArchiveStorage, carHeader: [UInt8], level: Int,
    isSalvage: Bool = false, keepsPrivateData: Bool = true, observer: @escaping Progress.Observer
  ) throws {
    try storage.lock()
    try storage.truncate(to: 0)
    var options = ArchiveOptions(level: level)
    // Until it is whole it has no name, so there is nothing to make safe meanwhile.
    options.checkpointLength = .max
    options.optionalFeatures = sources.reduce(0) { $0 | $1.reader.generation.features.optional }
    let chain = try ManifestChain()
    let copier = try SectionCopier(
      sources, isSalvage: isSalvage,
      into: ArchiveWriter.open(storage, carHeader: carHeader, options: options), observer: observer)
    self.chain = chain
    orders = sources.map { _ in ResolvedOrders() }
    blobs = sources.map { _ in [] }
    blobLengths = sources.map { _ in [] }
    self.keepsPrivateData = keepsPrivateData
    self.observer = observer
    sections = copier
  }

  /// Copies a snapshot, except for its manifest, which waits for ``finish()``.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - source: the number of the archive it is in.
  ///   - isVouched: whether a footer leads to it.
  ///   - strays: the blobs to list as extras if the repository cannot be walked, for the records
  ///     that refer to them are lost; nil if the snapshot is left out then.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if something is not there or not what it must
  ///   be, except in salvage; what the writer throws.
  /// - Returns: what could not be saved, and the CID of the new manifest; none if there is nothing
  ///   from which the repository could be walked, unless strays are given.
  @discardableResult
  mutating func copy(
    _ archived: ArchivedSnapshot, from source: Int, isVouched: Bool, strays: [CID]? = nil
  ) throws -> (new: CID?, loss: SnapshotLoss) {
    var snapshot = archived.snapshot
    let car = try copyCAR(archived, from: source)
    let tree = sections.blocks[source].walk(from: snapshot.commit, through: car.order)
    var loss = SnapshotLoss(car, tree)
    guard loss.whole == nil || strays != nil else { return (nil, loss) }
    // What the archive holds is there for every snapshot that reaches it.
    let reached =
      snapshot.isComplete || sections.isSalvage
      ? tree : sections.blocks[source].walk(from: snapshot.commit)
    try copyBlobs(of: reached, from: source)
    var lists = try copyLists(archived, from: source)
    lists.strays = try (strays ?? []).filter { try sections.copy($0, from: source) == .copied }
    for document in [snapshot.didDocument, snapshot.plcLog].compactMap(\.self)
    where try !sections.require(document, from: source) {
      loss.documents.append(document)
    }
    try copyPrivateData(of: archived, from: source, into: &snapshot, &loss)
    try sections.follow(snapshot.furtherLinks, from: source)
    if sections.isSalvage {
      try describe(archived, car, tree, lists, from: source, in: &snapshot, &loss)
    } else if sections.sources.count > 1 {
      try describeGains(tree, lists.missing, from: source, in: &snapshot)
    }
    snapshot.isUnvouched = !isVouched
    noteReplaced(archived, in: source)
    observer(Progress(stage: "copying", done: sections.writer.bytesWritten, total: 0))
    let order = try sections.newOrder(car.order, from: source)
    return (try chain.append(snapshot, order), loss)
  }

  /// Appends the manifests and commits; the newest that was copied is the archive head.
  ///
  /// - Throws: what the writer throws; ``BackupError/damagedArchive(_:_:)`` if the index of a
  ///   source had to be rebuilt meanwhile, except in salvage.
  mutating func finish() throws -> Generation {
    let generation = try SectionCopier.writing { try chain.end(&sections.writer) }
    if !sections.isSalvage { for source in sections.sources { try source.checkIndex() } }
    return generation
  }

  // MARK: What a snapshot needs

  /// Copies the sections of a snapshot's CAR, and nothing else of it yet.
  mutating func copyBlocks(of archived: ArchivedSnapshot, from source: Int) throws {
    _ = try copyCAR(archived, from: source)
  }

  /// Copies the sections of a CAR.
  private mutating func copyCAR(_ archived: ArchivedSnapshot, from source: Int) throws -> CopiedCAR
  {
    guard let order = try order(of: archived, in: source) else {
      return try whatIsLeft(of: archived, nil, from: source)
    }
    try sections.copy(order.runs, from: source, limit: archived.snapshot.car.byteCount)
    guard !sections.isSalvage else { return try whatIsLeft(of: archived, order, from: source) }
    if !archived.snapshot.isComplete {
      let reachable = sections.blocks[source].reachable(
        from: archived.snapshot.commit, besides: order)
      for ordinal in reachable { try sections.copy(ordinal..<ordinal + 1, from: source) }
    }
    return CopiedCAR(order: order)
  }

  /// The order of a CAR; in salvage nil if it cannot be read.
  private mutating func order(of archived: ArchivedSnapshot, in source: Int) throws -> BlockOrder? {
    let archive = sections.sources[source]
    do {
      return try archive.reading {
        guard archived.cid != nil else { throw SnapshotError.noSnapshot }
        try RestoredRepository.checkLength(of: archived)
        let order = try orders[source].order(of: archived).order
        // No section has fewer bytes than its length and its CID.
        guard order.count <= archived.snapshot.car.byteCount,
          !sections.isSalvage
            || order.runs.allSatisfy({ $0.upperBound <= sections.copied[source].capacity })
        else { throw SnapshotError.malformedOrder }
        return order
      }
    } catch BackupError.damagedArchive where sections.isSalvage {
      return nil
    }
  }

  /// Copies the blobs that records refer to, from whichever archive holds them.
  private mutating func copyBlobs(of tree: SharedTrees.Tree, from first: Int) throws {
    let known = sections.blocks[first].blobs
    blobs[first] += repeatElement(nil, count: known.count - blobs[first].count)
    var wanted: [(ordinal: UInt64, blob: Int)] = []
    for blob in sections.blocks[first].blobs(of: tree) where blobs[first][blob] == nil {
      wanted.append((sections.blocks[first].ordinal(of: known[blob].cid) ?? .max, blob))
    }
    // In the order of the file, in which they are read fastest.
    for (_, blob) in wanted.sorted(by: { $0.ordinal < $1.ordinal }) {
      var outcome = try sections.copy(known[blob].cid, from: first)
      for other in sections.sources.indices where outcome == .absent && other != first {
        outcome = try sections.copy(known[blob].cid, from: other)
      }
      blobs[first][blob] = outcome
    }
  }

  /// Counts blobs as held that the archive of the snapshot lacks and another one has.
  private mutating func describeGains(
    _ tree: SharedTrees.Tree, _ missing: [BlobLedger.Missing], from source: Int,
    in snapshot: inout Snapshot
  ) throws {
    let known = sections.blocks[source].blobs
    let held = sections.blocks[source].blobs(of: tree).filter { blobs[source][$0] == .copied }
    guard held.count > snapshot.blobs.held else { return }
    let cids = Set(held.map { known[$0].cid })
    let rest = missing.filter { !cids.contains($0.cid) }
    snapshot.blobs.held = held.count
    snapshot.blobs.heldBytes = try length(of: held, from: source)
    snapshot.blobs.accepted = rest.count { $0.accepted != nil }
    if rest.count < missing.count {
      snapshot.missingPages = try append(BlobLedger.pages(missing: rest))
    }
  }

  /// Copies the pages of extras and of missing blobs, and the extras.
  private mutating func copyLists(_ archived: ArchivedSnapshot, from source: Int) throws
    -> CopiedLists
  {
    var lists = CopiedLists()
    for page in archived.snapshot.extrasPages {
      guard let extras = try read(page, of: archived, from: source, BlobLedger.extras(onPage:))
      else {
        lists.hasLostExtras = true
        continue
      }
      for extra in extras {
        if try sections.require(extra, from: source) {
          lists.extras.append(extra)
        } else {
          lists.lostExtras.append(extra)
        }
      }
    }
    for page in archived.snapshot.missingPages {
      guard let missing = try read(page, of: archived, from: source, BlobLedger.missing(onPage:))
      else {
        lists.hasLostReasons = true
        continue
      }
      lists.missing += missing
    }
    return lists
  }

  /// Copies a page and reads it; in salvage nil if that cannot be done.
  private mutating func read<Item>(
    _ page: CID, of archived: ArchivedSnapshot, from source: Int,
    _ parse: (Block) throws(SnapshotError) -> [Item]
  ) throws -> [Item]? {
    guard try sections.require(page, from: source) else { return nil }
    do {
      return try sections.sources[source].reading { try parse(try archived.block(page)) }
    } catch BackupError.damagedArchive where sections.isSalvage {
      return nil
    }
  }

  /// Copies what is the account owner's alone; in salvage as far as it can be read.
  private mutating func copyPrivateData(
    of archived: ArchivedSnapshot, from source: Int, into snapshot: inout Snapshot,
    _ loss: inout SnapshotLoss
  ) throws {
    guard let link = snapshot.privateData else { return }
    snapshot.privateData = nil
    guard keepsPrivateData else { return }
    guard try sections.require(link, from: source) else { return loss.documents.append(link) }
    let list: PrivateData?
    do {
      list = try sections.sources[source].reading { try archived.privateData() }
    } catch BackupError.damagedArchive where sections.isSalvage {
      return loss.documents.append(link)
    }
    guard var data = list else { return }
    for index in data.entries.indices {
      let answers = try data.entries[index].answers.filter { answer in
        try answer.allSatisfy { piece in
          if try sections.require(piece, from: source) { return true }
          loss.documents.append(piece)
          return false
        }
      }
      guard answers.count < data.entries[index].answers.count else { continue }
      data.entries[index].answers = answers
      data.entries[index].fault = PrivateData.Fault(.lost, "the archive was damaged")
    }
    let block = try data.block()
    try SectionCopier.writing { _ = try sections.writer.append(block.cid, block.bytes.span) }
    snapshot.privateData = block.cid
  }

  /// Notes what is not copied, but made again.
  private mutating func noteReplaced(_ archived: ArchivedSnapshot, in source: Int) {
    var made = [archived.cid].compactMap(\.self)
    if case .pages(let pages) = archived.snapshot.car.order { made += pages }
    for cid in made {
      guard let ordinal = sections.blocks[source].ordinal(of: cid) else { continue }
      sections.copied[source].noteReplaced(ordinal)
    }
  }
}

/// The sections of a CAR that have been copied, by their ordinals in the source.
struct CopiedCAR {
  let order: BlockOrder
  /// How many sections are lost.
  var lostCount: UInt64 = 0
  /// Whether they are all sections of the CAR, in their order.
  var isExact = true
  /// The length of the CAR, where it had to be measured.
  var byteCount: UInt64 = 0
  /// The digest of the CAR, where it had to be measured.
  var sha256: SHA256Digest?
}

/// The lists of a snapshot, as far as they were copied.
struct CopiedLists {
  var extras: [CID] = []
  var lostExtras: [CID] = []
  /// Blobs that are extras from now on, for the records that refer to them are lost.
  var strays: [CID] = []
  var missing: [BlobLedger.Missing] = []
  /// Whether a page of extras is lost, and with it which they were.
  var hasLostExtras = false
  /// Whether a page of missing blobs is lost, and with it why they are missing.
  var hasLostReasons = false
}
