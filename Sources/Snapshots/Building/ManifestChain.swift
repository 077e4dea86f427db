internal import ATProtocol
package import Archive
internal import Files
package import IPLD

/// A snapshot in its place in a chain of manifests.
package struct ChainLink: Sendable {
  /// The number of the archive it is in, if there are several.
  package var source = 0
  /// Its manifest.
  package let manifest: CID
  /// Whether a footer leads to it.
  package var isVouched: Bool
  /// Whether it may become the newest.
  private let mayBeNewest: Bool

  /// A link to a snapshot.
  package init(_ manifest: CID, isVouched: Bool = true) {
    (self.manifest, self.isVouched, mayBeNewest) = (manifest, isVouched, isVouched)
  }

  /// A link to a snapshot of a history.
  package init(_ entry: SnapshotHistory.Entry, source: Int = 0) {
    (self.source, manifest, isVouched) = (source, entry.cid, entry.isVouched)
    mayBeNewest = entry.mayBeNewest || !entry.isCommitted && entry.continuesChain
  }

  /// The chain of some snapshots, the oldest first.
  ///
  /// The archive head is the newest snapshot that may be it, if there is one. The others that came
  /// after it go directly before it.
  package static func chain(_ links: [ChainLink]) -> [ChainLink] {
    SnapshotHistory.inOrder(links, mayBeLast: \.mayBeNewest)
  }
}

/// The chain of manifests of an archive that is being written.
///
/// Each manifest is made again with another `prev` and another `car.order`. All other fields stay,
/// also unknown ones.
///
/// 1. An order is relative to the account's previous one where that is shorter, and at most
///    ``BlockOrder/maximumDepth`` orders are relative to one another.
/// 2. Until ``write(into:)`` everything lies in a temporary file, so nothing has been appended when
///    the last manifest is made. Then come the pages of orders, and each manifest alone in its
///    frame.
package struct ManifestChain {
  /// The newest manifest so far.
  package private(set) var head: CID?
  /// The sections to be appended, as in a CAR: pages of orders are raw, manifests are DAG-CBOR.
  private let spool: TemporaryFile
  /// The newest order of each account.
  private var bases: [DID: ResolvedOrders.Resolved] = [:]
  private var runCount = 0
  /// Whether a manifest has no digest of a CAR.
  private var hasUndigested = false
  /// The newest snapshot of each account whose manifest stays what it is.
  private var kept: [DID: ArchivedSnapshot] = [:]

  /// An empty chain.
  ///
  /// - Throws: ``BackupError`` if a temporary file cannot be made.
  package init() throws { spool = try TemporaryFile() }

  /// Adds a snapshot, its manifest made again.
  ///
  /// - Parameters:
  ///   - snapshot: what its manifest says otherwise.
  ///   - order: the sections of its CAR by their ordinals in the file that is written; nil to keep
  ///     what the manifest says.
  /// - Throws: ``BackupError`` for an order that takes more than a reader reads; what finding the
  ///   order before it throws.
  /// - Returns: the new manifest's CID.
  @discardableResult
  package mutating func append(_ snapshot: Snapshot, _ order: BlockOrder?) throws -> CID {
    var snapshot = snapshot
    let did = snapshot.did
    var depth = 0
    if let order {
      let basis = try bases[did] ?? kept[did].flatMap { try unlessDamaged($0.resolvedOrder) }
      let written = try order.write(to: &snapshot.car, after: basis)
      for page in written.pages { try spool.append(page) }
      depth = written.depth
    }
    if snapshot.car.sha256 == nil { hasUndigested = true }
    snapshot.previous = head
    let block = try snapshot.block()
    try spool.append(block)
    head = block.cid
    (bases[did], kept[did]) = (nil, nil)
    if let order { keep(order, of: did, in: block.cid, depth: depth) }
    return block.cid
  }

  /// Adds a snapshot whose manifest stays what it is.
  mutating func keep(_ archived: ArchivedSnapshot) {
    head = archived.cid
    kept[archived.snapshot.did] = archived
  }

  private mutating func keep(_ order: BlockOrder, of did: DID, in manifest: CID, depth: Int) {
    guard order.runs.count <= ResolvedOrders.maximumRuns else { return }
    runCount += order.runs.count
    // An account whose order is dropped writes its next one absolute.
    if runCount > ResolvedOrders.maximumRuns { (bases, runCount) = ([:], order.runs.count) }
    bases[did] = (order, depth, did, manifest)
  }

  /// What has to be appended, each block once: pages of orders, then the manifests.
  var blocks: [Block] {
    get throws {
      var (pages, manifests) = ([Block](), [Block]())
      try spool.forEachBlock { cid, body in
        let block = Block(cid: cid, bytes: body.array)
        if cid.codec == .dagCBOR { manifests.append(block) } else { pages.append(block) }
      }
      return pages + manifests
    }
  }

  /// Appends the chain to an archive, which the caller commits with ``head``.
  ///
  /// - Throws: what the writer throws.
  func write(into writer: inout ArchiveWriter) throws {
    if hasUndigested { writer.require(FeatureFlags.undigested) }
    for isManifest in [false, true] {
      try spool.forEachBlock { cid, body in
        guard (cid.codec == .dagCBOR) == isManifest else { return }
        if isManifest { try writer.flush() }
        try writer.append(cid, body)
        if isManifest { try writer.flush() }
      }
    }
  }
}

extension TemporaryFile {
  /// Adds a block, as a section of a CAR.
  func append(_ block: Block) throws {
    var prefix: [UInt8] = []
    CARWriter.appendPrefix(block.cid, bodyLength: UInt64(block.bytes.count), to: &prefix)
    try write(prefix.span)
    try write(block.bytes.span)
  }

  /// Visits the blocks that were added.
  func forEachBlock(_ body: (CID, Span<UInt8>) throws -> Void) throws {
    try map().withBytes { bytes in
      var cursor = CARCursor(payload: 0..<bytes.count, limits: .mapped)
      while let (section, cid) = try cursor.next(in: bytes) {
        try body(cid, bytes.extracting(section.bodyRange))
      }
    }
  }
}

/// Making the chain of an archive again in place, by one more generation.
extension SourceArchive {
  /// Locks an archive to which nothing has been written yet, and reads its snapshots: those that
  /// are committed, and what may follow them.
  ///
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is damaged; `ArchiveError` if another
  ///   process writes to it.
  package init(locking storage: any ArchiveStorage, name: String) throws {
    try storage.lock()
    try self.init(ArchiveReader(storage.map()), name: name, allowsTail: true)
  }

  /// Appends a chain.
  ///
  /// - Parameters:
  ///   - storage: the archive, which is locked.
  ///   - plan: makes the chain, with the pages that its manifests name anew and the snapshots that
  ///     are to go, for the archive as it is once it is open for writing: an interrupted write may
  ///     have left one snapshot more. Nil if there is nothing to be changed.
  /// - Throws: what `plan` throws; what the writer throws.
  /// - Returns: what is committed; by how many bytes the archive has grown; and the snapshots that
  ///   an unfinished write has left and that cannot be kept.
  package func append(
    to storage: any ArchiveStorage,
    _ plan: (SourceArchive) throws -> (
      chain: ManifestChain, pages: [Block], wished: Set<SnapshotMember>
    )?
  ) throws -> (Generation, bytesAdded: UInt64, lost: [LostSnapshot]) {
    let header = try reading { try reader.carHeader }
    var losses: [LostSnapshot] = []
    var writer = try ArchiveWriter.openNaming(storage, carHeader: header, losses: &losses)
    let archive = try SourceArchive(writer.reader ?? reader, name: name, allowsTail: true)
    let before = archive.reader.generation
    guard let (chain, pages, wished) = try plan(archive) else { return (before, 0, losses) }
    return try writer.orAbandon { writer in
      try writer.append(pages)
      let generation = try chain.end(&writer)
      let after = try SnapshotHistory(of: ArchiveReader(storage.map()))
      losses = after.losses(since: archive.history.entries, wished: wished, named: losses)
      return (generation, generation.committedLength - before.committedLength, losses)
    }
  }
}

/// Changing the chain of an archive by appending to it.
extension ManifestChain {
  /// The chain of some of the archive's snapshots.
  ///
  /// Manifests before the first change stay what they are. Ordinals are what they were, so only
  /// orders that are relative to a manifest that was made again, or is not on the chain any more,
  /// change.
  ///
  /// - Parameters:
  ///   - links: the snapshots, the oldest first.
  ///   - archive: where they are.
  ///   - replacing: manifests that are to say something else, by the CIDs that they have.
  ///   - toleratesDamage: whether an order that cannot be read is left as it is.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if a manifest or an order is damaged.
  package init(
    _ links: [ChainLink], in archive: SourceArchive, replacing: [CID: Snapshot] = [:],
    toleratesDamage: Bool = false
  ) throws {
    try self.init()
    var orders = ResolvedOrders()
    for link in ChainLink.chain(links) {
      try append(
        link, in: archive, &orders, replacing: replacing[link.manifest],
        toleratesDamage: toleratesDamage)
    }
  }

  /// Adds one of the archive's snapshots, whose manifest stays what it is as long as nothing before
  /// it has changed.
  ///
  /// - Throws: as ``init(_:in:replacing:toleratesDamage:)`` does.
  package mutating func append(
    _ link: ChainLink, in archive: SourceArchive, _ orders: inout ResolvedOrders,
    replacing replacement: Snapshot? = nil, as reordered: SnapshotState.Reordered? = nil,
    toleratesDamage: Bool = false
  ) throws {
    let archived = try archive.reading { try ArchivedSnapshot(link.manifest, in: archive.reader) }
    var snapshot = archived.snapshot
    if spool.count == 0, snapshot.previous == head, snapshot.isUnvouched != link.isVouched,
      replacement == nil, reordered == nil
    {
      return keep(archived)
    }
    snapshot = replacement ?? snapshot
    snapshot.isUnvouched = !link.isVouched
    if let reordered {
      snapshot.car = reordered.car
      try append(snapshot, reordered.order)
      return
    }
    try append(
      snapshot,
      archive.reading(toleratesDamage: toleratesDamage) { try orders.order(of: archived).order })
  }
}
