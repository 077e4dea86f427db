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
  /// Whether what is the account owner's alone is copied, too.
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
    // Until it is whole it has no name, so there is nothing to make safe meanwhile.
    options.checkpointLength = .max
    options.optionalFeatures = archives.reduce(0) { $0 | $1.reader.generation.features.optional }
    let chain = try ManifestChain()
    let writer = try ArchiveWriter.open(storage, carHeader: carHeader, options: options)
    sources = try archives.map { try CopySource($0, observer) }
    (self.chain, self.observer) = (chain, observer)
    (self.isSalvage, self.keepsPrivateData) = (isSalvage, keepsPrivateData)
    self.writer = writer
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
    let car = try copyCAR(of: archived, from: source)
    let tree = sources[source].walk(from: snapshot.commit, through: car.order)
    var loss = SnapshotLoss(of: snapshot, car, tree)
    guard loss.whole == nil || strays != nil else { return (nil, loss) }
    // What the archive holds is there for every snapshot that reaches it.
    let reached =
      snapshot.isComplete || isSalvage ? tree : sources[source].walk(from: snapshot.commit)
    try copyBlobs(of: reached, from: source)
    var lists = try copyLists(archived, from: source)
    lists.strays = try (strays ?? []).filter { try copy($0, from: source) == .copied }
    for document in [snapshot.didDocument, snapshot.plcLog].compactMap(\.self)
    where try !require(document, from: source) {
      loss.documents.append(document)
    }
    try copyPrivateData(of: archived, from: source, into: &snapshot, &loss)
    try follow(snapshot.furtherLinks, from: source)
    if isSalvage {
      try describe(archived, car, tree, lists, from: source, in: &snapshot, &loss)
    } else if sources.count > 1 {
      try describeGains(tree, lists.missing, from: source, in: &snapshot)
    }
    snapshot.isUnvouched = !isVouched
    // The manifest and the pages of its order are made again.
    var made = [archived.cid].compactMap(\.self)
    if case .pages(let pages) = archived.snapshot.car.order { made += pages }
    sources[source].replaced.formUnion(made.compactMap(sources[source].ordinal))
    observer(Progress(stage: "copying", done: writer.bytesWritten, total: 0))
    return (try chain.append(snapshot, sources[source].newOrder(car.order)), loss)
  }

  /// Appends the manifests and commits; the newest that was copied is the archive head.
  ///
  /// - Throws: what the writer throws; ``BackupError/damagedArchive(_:_:)`` if the index of a
  ///   source had to be rebuilt meanwhile, except in salvage.
  mutating func finish() throws -> Generation {
    let generation = try Self.writing { try chain.end(&writer) }
    if !isSalvage { for source in sources { try source.archive.checkIndex() } }
    return generation
  }

  /// How many sections of the archives are neither in the new one nor made again.
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
    do {
      return try sources[source].archive.reading {
        guard archived.cid != nil else { throw SnapshotError.noSnapshot }
        try RestoredRepository.checkLength(of: archived)
        let order = try sources[source].orders.order(of: archived).order
        // No section has fewer bytes than its length and its CID.
        guard order.count <= archived.snapshot.car.byteCount,
          !isSalvage
            || order.runs.allSatisfy({ $0.upperBound <= sources[source].capacity })
        else { throw SnapshotError.malformedOrder }
        return order
      }
    } catch BackupError.damagedArchive where isSalvage {
      return nil
    }
  }

  /// Copies the blobs that records refer to, from whichever archive holds them.
  private mutating func copyBlobs(of tree: SharedTrees.Tree, from first: Int) throws {
    let known = sources[first].trees.blobs.entries
    sources[first].blobs += repeatElement(nil, count: known.count - sources[first].blobs.count)
    let wanted = sources[first].trees.blobs(of: tree).filter { sources[first].blobs[$0] == nil }
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
  private mutating func describeGains(
    _ tree: SharedTrees.Tree, _ missing: [BlobLedger.Missing], from source: Int,
    in snapshot: inout Snapshot
  ) throws {
    let known = sources[source].trees.blobs.entries
    let held = sources[source].trees.blobs(of: tree)
      .filter { sources[source].blobs[$0] == .copied }.map { known[$0].cid }
    guard held.count > snapshot.blobs.held else { return }
    let cids = Set(held)
    let rest = missing.filter { !cids.contains($0.cid) }
    snapshot.blobs.held = held.count
    snapshot.blobs.heldBytes = length(of: held)
    snapshot.blobs.accepted = rest.count { $0.accepted != nil }
    if rest.count < missing.count {
      snapshot.missingPages = try append(BlobLedger.pages(missing: rest))
    }
  }

  /// How many bytes blobs have that were copied.
  func length(of blobs: [CID]) -> UInt64 {
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
  private mutating func copyLists(_ archived: ArchivedSnapshot, from source: Int) throws
    -> CopiedLists
  {
    var lists = CopiedLists()
    for page in archived.snapshot.extrasPages {
      let extras = try read(page, of: archived, from: source, BlobLedger.extras(onPage:))
      if extras == nil { lists.areExtrasLost = true }
      for extra in extras ?? [] {
        if try require(extra, from: source) {
          lists.extras.append(extra)
        } else {
          lists.lostExtras.append(extra)
        }
      }
    }
    for page in archived.snapshot.missingPages {
      let missing = try read(page, of: archived, from: source, BlobLedger.missing(onPage:))
      if missing == nil { lists.areReasonsLost = true }
      lists.missing += missing ?? []
    }
    return lists
  }

  /// Copies a page and reads it; in salvage nil if that cannot be done.
  private mutating func read<Item>(
    _ page: CID, of archived: ArchivedSnapshot, from source: Int,
    _ parse: (Block) throws(SnapshotError) -> [Item]
  ) throws -> [Item]? {
    guard try require(page, from: source) else { return nil }
    do {
      return try sources[source].archive.reading { try parse(try archived.block(page)) }
    } catch BackupError.damagedArchive where isSalvage {
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
    guard try require(link, from: source) else { return loss.documents.append(link) }
    let list: PrivateData?
    do {
      list = try sources[source].archive.reading { try archived.privateData() }
    } catch BackupError.damagedArchive where isSalvage {
      return loss.documents.append(link)
    }
    guard var data = list else { return }
    for index in data.entries.indices {
      let answers = try data.entries[index].answers.filter { answer in
        try answer.allSatisfy { piece in
          if try require(piece, from: source) { return true }
          loss.documents.append(piece)
          return false
        }
      }
      guard answers.count < data.entries[index].answers.count else { continue }
      data.entries[index].answers = answers
      data.entries[index].fault = PrivateData.Fault(.lost, "the archive was damaged")
    }
    snapshot.privateData = try append([data.block()])[0]
  }
}

/// The sections of a CAR that have been copied, by their ordinals in the source; the length and the
/// digest of what is left, if that is not the CAR.
typealias CopiedCAR = (order: BlockOrder, left: (byteCount: UInt64, sha256: SHA256Digest)?)

/// The lists of a snapshot, as far as they were copied.
struct CopiedLists {
  var extras: [CID] = []
  var lostExtras: [CID] = []
  var missing: [BlobLedger.Missing] = []
  /// Blobs that are extras from now on, for the records that refer to them are lost.
  var strays: [CID] = []
  /// Whether a page of extras is lost, and with it which they were.
  var areExtrasLost = false
  /// Whether a page of missing blobs is lost, and with it why they are missing.
  var areReasonsLost = false
}
