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
  var sources: [CopySource]
  var writer: ArchiveWriter
  let isSalvage: Bool
  let observer: Progress.Observer
  /// How many sections are lost.
  var lostCount: UInt64 = 0
  /// The first of the lost sections whose CIDs could be read.
  var lost: [CID] = []
  private var chain: ManifestChain
  /// Whether private data is copied, too.
  private let keepsPrivateData: Bool

  /// A copier into a storage, whose content is thrown away: an interrupted copy may have left more
  /// there than these snapshots need.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file; `ArchiveError` if the new
  ///   archive cannot be written.
  init(
    _ archives: [SourceArchive], into storage: any ArchiveStorage, carHeader: [UInt8], level: Int,
    isSalvage: Bool = false, keepsPrivateData: Bool = true, observer: @escaping Progress.Observer
  ) throws {
    try storage.lock()
    try storage.truncate(to: 0)
    var options = ArchiveOptions(level: level)
    // Until it is whole it has no name, so there is nothing to make safe in the meantime.
    options.checkpointLength = .max
    options.optionalFeatures = archives.reduce(0) { $0 | $1.reader.generation.features.optional }
    options.parity = archives.compactMap(\.reader.parityPercent).max()
    let chain = try ManifestChain()
    let writer = try ArchiveWriter.open(storage, carHeader: carHeader, options: options)
    sources = try archives.map { try CopySource($0, observer) }
    (self.chain, self.observer) = (chain, observer)
    (self.isSalvage, self.keepsPrivateData) = (isSalvage, keepsPrivateData)
    self.writer = writer
  }

  /// A copier that appends to an archive what others have, whatever is damaged of these.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file; `ArchiveError` if nothing
  ///   can be appended.
  init(
    _ archives: [SourceArchive], appendingTo storage: any ArchiveStorage, keepsPrivateData: Bool,
    observer: @escaping Progress.Observer
  ) throws {
    let chain = try ManifestChain()
    let writer = try ArchiveWriter.reopen(storage)
    sources = try archives.map { try CopySource($0, observer) }
    (self.chain, self.observer) = (chain, observer)
    (isSalvage, self.keepsPrivateData) = (true, keepsPrivateData)
    self.writer = writer
  }

  /// Keeps a snapshot of the archive that is appended to in its place in the chain.
  ///
  /// - Throws: `ArchiveError` if it cannot be read.
  mutating func keep(
    _ link: ChainLink, of archive: SourceArchive, _ orders: inout ResolvedOrders
  ) throws {
    try chain.append(link, in: archive, &orders, toleratesDamage: true)
  }

  /// Copies a snapshot, except for its manifest, which waits for ``finish()``.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - source: the number of the archive it is in.
  ///   - isVouched: whether a footer leads to it.
  ///   - strays: the blobs to list as extras if the repository cannot be walked, because the
  ///     records that refer to them are lost; nil if the snapshot is left out then.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if something is missing or not what it must be,
  ///   except in salvage; what the writer throws.
  /// - Returns: what could not be saved, and the CID of the new manifest; none if there is nothing
  ///   from which the repository could be walked, unless strays are given.
  @discardableResult
  mutating func copy(
    _ archived: ArchivedSnapshot, from source: Int, isVouched: Bool, strays: [CID]? = nil
  ) throws -> (new: CID?, loss: SnapshotLoss) {
    let car = try copyCAR(of: archived, from: source)
    let tree = sources[source].walk(from: archived.snapshot.commit, through: car.order)
    var new = SnapshotCopy(
      archived: archived, source: source, car: car, tree: tree, snapshot: archived.snapshot,
      loss: SnapshotLoss(of: archived.snapshot, car, tree))
    guard new.loss.whole == nil || strays != nil else { return (nil, new.loss) }
    // What the archive holds is there for every snapshot that reaches it.
    let isWholeTree = archived.snapshot.isComplete || isSalvage
    try copyBlobs(
      of: isWholeTree ? tree : sources[source].walk(from: archived.snapshot.commit), from: source)
    try copyLists(of: &new)
    new.strays = try (strays ?? []).filter { try copy($0, from: source) == .copied }
    for document in [new.snapshot.didDocument, new.snapshot.plcLog].compactMap(\.self)
    where try !require(document, from: source) {
      new.loss.documents.append(document)
    }
    try copyPrivateData(of: &new)
    try copyContext(of: &new)
    try follow(new.snapshot.furtherLinks, from: source)
    if isSalvage {
      try describe(&new)
    } else if sources.count > 1 {
      try describeGains(of: &new)
    }
    new.snapshot.isUnvouched = !isVouched
    observer(Progress(stage: "copying", done: writer.bytesWritten, total: 0))
    let manifest = try chain.append(new.snapshot, sources[source].newOrder(car.order))
    // The manifest and the pages of its order are rebuilt; one that says the same as the new one
    // may be in the archive, too.
    let made = [archived.cid, manifest].compactMap(\.self) + archived.snapshot.car.pages
    sources[source].replaced.formUnion(made)
    return (manifest, new.loss)
  }

  /// Appends the manifests and commits; the newest that was copied is the archive head.
  ///
  /// - Throws: what the writer throws; ``BackupError/damagedArchive(_:_:)`` if the index of a
  ///   source had to be rebuilt in the meantime, except in salvage.
  mutating func finish() throws -> Generation {
    let generation = try Self.writing { try chain.end(&writer) }
    if !isSalvage { for source in sources { try source.archive.checkIndex() } }
    return generation
  }

  /// How many sections of the archives are neither in the new one nor rebuilt.
  var leftOutCount: Int { sources.reduce(0) { $0 + $1.leftOutCount } }

  // MARK: What a snapshot needs

  /// Copies the sections of a snapshot's CAR, and nothing else of it yet.
  @discardableResult
  mutating func copyCAR(of archived: ArchivedSnapshot, from source: Int) throws -> CopiedCAR {
    let order = try order(of: archived, in: source)
    if let order { try copy(order.runs, from: source, limit: archived.snapshot.car.byteCount) }
    guard let order, !isSalvage else { return try whatIsLeft(of: archived, order, from: source) }
    if !archived.snapshot.isComplete {
      let reachable = sources[source].reachable(from: archived.snapshot.commit, besides: order)
      for ordinal in reachable { try copy(ordinal..<ordinal + 1, from: source) }
    }
    return (order, nil)
  }

  /// The order of a CAR; in salvage nil if it cannot be read.
  private mutating func order(of archived: ArchivedSnapshot, in source: Int) throws -> BlockOrder? {
    try sources[source].archive.reading(toleratesDamage: isSalvage) {
      guard archived.cid != nil else { throw SnapshotError.noSnapshot }
      try RestoredRepository.checkLength(of: archived)
      let order = try sources[source].orders.order(of: archived).order
      // No section has fewer bytes than its length and its CID.
      guard order.count <= archived.snapshot.car.byteCount,
        !isSalvage || order.runs.allSatisfy({ $0.upperBound <= sources[source].capacity })
      else { throw SnapshotError.malformedOrder }
      return order
    }
  }

  /// Copies the blobs that records refer to, from whichever archive holds them.
  private mutating func copyBlobs(of tree: RepositoryInspection, from first: Int) throws {
    let known = sources[first].trees.blobs.entries
    sources[first].blobs += repeatElement(nil, count: known.count - sources[first].blobs.count)
    let wanted = tree.blobNumbers.map(\.self).filter { sources[first].blobs[$0] == nil }
      .map { (ordinal: sources[first].ordinal(of: known[$0].cid) ?? .max, blob: $0) }
    // In the order of the file, in which they are read fastest.
    for (_, blob) in wanted.sorted(by: { $0.ordinal < $1.ordinal }) {
      var outcome = try copy(known[blob].cid, from: first)
      for other in sources.indices where outcome == .absent && other != first {
        outcome = try copy(known[blob].cid, from: other)
      }
      sources[first].blobs[blob] = outcome
    }
  }

  /// Counts blobs as held that the archive of the snapshot lacks and another one has.
  private mutating func describeGains(of new: inout SnapshotCopy) throws {
    let source = sources[new.source]
    let held = new.tree.blobNumbers.map(\.self).filter { source.blobs[$0] == .copied }
    guard held.count > new.snapshot.blobs.held else { return }
    recount(held, of: &new)
    let cids = Set(held.lazy.map { source.trees.blobs.entries[$0].cid })
    let rest = new.missing.filter { !cids.contains($0.cid) }
    guard rest.count < new.missing.count else { return }
    new.missing = rest
    try list(of: &new)
  }

  /// Makes the pages of missing blobs again.
  mutating func list(of new: inout SnapshotCopy) throws {
    new.snapshot.missingPages = try append(BlobLedger.pages(missing: new.missing))
    new.snapshot.blobs.accepted = BlobLedger(missing: new.missing).counts.accepted
  }

  /// Counts the blobs again that records refer to, of which these are held.
  ///
  /// All other figures stay what the manifest says: a copy that changes nothing has the same bytes.
  func recount(_ held: [Int], of new: inout SnapshotCopy) {
    let known = sources[new.source].trees.blobs.entries
    new.snapshot.blobs.recount(isReferenced: true)
    new.snapshot.blobs.hold(
      held.count, length(of: held.lazy.map { known[$0].cid }), isReferenced: true)
    new.snapshot.blobs.miss(new.tree.blobNumbers.count - held.count, isReferenced: true)
  }

  /// How many bytes blobs have that were copied.
  func length(of blobs: some Sequence<CID>) -> UInt64 {
    blobs.reduce(0) { length, cid in
      for source in sources {
        if let number = source.blocks.number(of: cid) {
          return length + source.blocks.bodyLength(number)
        }
      }
      return length
    }
  }

  /// Copies the pages of extras and of missing blobs, and the extras.
  private mutating func copyLists(of new: inout SnapshotCopy) throws {
    for page in new.snapshot.extrasPages {
      let extras = try read(page, of: new, BlobLedger.extras(onPage:))
      if extras == nil { new.areExtrasLost = true }
      for extra in extras ?? [] {
        if try require(extra, from: new.source) {
          new.extras.append(extra)
        } else {
          new.lostExtras.append(extra)
        }
      }
    }
    for page in new.snapshot.missingPages {
      let missing = try read(page, of: new, BlobLedger.missing(onPage:))
      if missing == nil { new.areReasonsLost = true }
      new.missing += missing ?? []
    }
  }

  /// Copies a page and reads it; in salvage nil if that cannot be done.
  private mutating func read<Item>(
    _ page: CID, of new: SnapshotCopy, _ parse: (Block) throws(SnapshotError) -> [Item]
  ) throws -> [Item]? {
    guard try require(page, from: new.source) else { return nil }
    return try sources[new.source].archive.reading(toleratesDamage: isSalvage) {
      try parse(try new.archived.block(page))
    }
  }

  /// Copies private data; in salvage as far as it can be read.
  private mutating func copyPrivateData(of new: inout SnapshotCopy) throws {
    guard let link = new.snapshot.privateData else { return }
    new.snapshot.privateData = nil
    guard keepsPrivateData else { return }
    let archived = new.archived
    guard try require(link, from: new.source),
      var data = try sources[new.source].archive.reading(
        toleratesDamage: isSalvage, archived.privateData) ?? nil
    else { return new.loss.documents.append(link) }
    for index in data.entries.indices {
      let answers = try data.entries[index].answers.filter { answer in
        try answer.allSatisfy { piece in
          if try require(piece, from: new.source) { return true }
          new.loss.documents.append(piece)
          return false
        }
      }
      guard answers.count < data.entries[index].answers.count else { continue }
      data.entries[index].answers = answers
      data.entries[index].fault = PrivateData.Fault(.lost, "the archive was damaged")
    }
    new.snapshot.privateData = try append([data.block()])[0]
  }

  /// Copies what app views have shown of others; in salvage as far as it can be read.
  private mutating func copyContext(of new: inout SnapshotCopy) throws {
    guard let link = new.snapshot.context else { return }
    let (archived, source) = (new.archived, new.source)
    guard try require(link, from: source),
      var context = try sources[source].archive.reading(
        toleratesDamage: isSalvage, archived.context) ?? nil
    else {
      new.snapshot.context = nil
      return new.loss.documents.append(link)
    }
    let pages = context.pages
    context.pages = []
    for page in pages {
      guard try require(page.cid, from: source),
        let items = try sources[source].archive.reading(
          toleratesDamage: isSalvage, { try archived.contextItems(page) })
      else {
        new.loss.documents.append(page.cid)
        continue
      }
      let kept = try items.map { item in
        try item.keeping { piece in
          if try require(piece, from: source) { return true }
          new.loss.documents.append(piece)
          return false
        }
      }
      let cid = kept == items ? page.cid : try append([Context.page(kept)])[0]
      context.pages.append(Context.Page(cid, itemCount: kept.count))
    }
    new.snapshot.context = try append([context.block()])[0]
  }
}

/// The sections of a CAR that have been copied, by their ordinals in the source; the length and the
/// digest of what is left, if that is not the CAR.
typealias CopiedCAR = (order: BlockOrder, left: (byteCount: UInt64, sha256: SHA256Digest)?)

/// A snapshot on its way into the new archive.
struct SnapshotCopy {
  let archived: ArchivedSnapshot
  /// The number of the archive that it is in.
  let source: Int
  let car: CopiedCAR
  let tree: RepositoryInspection
  /// What the new manifest says.
  var snapshot: Snapshot
  /// What could not be saved.
  var loss: SnapshotLoss
  var extras: [CID] = []
  var lostExtras: [CID] = []
  /// Blobs that are extras from now on, because the records that refer to them are lost.
  var strays: [CID] = []
  /// Whether a page of extras is lost, and with it which they were.
  var areExtrasLost = false
  var missing: [BlobLedger.Missing] = []
  /// Whether a page of missing blobs is lost, and with it why they are missing.
  var areReasonsLost = false
}
