package import ATProtocol
package import Archive
package import Files
public import IPLD

/// A snapshot in an archive: its manifest, and the way to its repository and its blobs.
///
/// ```swift
/// let reader = try ArchiveReader(path: "alice.car.zst")
/// let snapshot = try ArchivedSnapshot.newest(of: did, in: reader)
/// let profile = try snapshot?.record("app.bsky.actor.profile/self")
/// ```
public struct ArchivedSnapshot: Sendable {
  /// The archive.
  package let reader: ArchiveReader
  /// The manifest's CID; nil if the archive has lost it, and the snapshot was reconstructed from
  /// what is left.
  public let cid: CID?
  /// The manifest.
  public let snapshot: Snapshot

  /// The newest snapshot of an account; nil if there is none.
  ///
  /// - Throws: `ArchiveError` if the archive cannot be read.
  package static func newest(of did: DID, in reader: ArchiveReader) throws -> ArchivedSnapshot? {
    try newest(from: reader.generation.head?.cid, in: reader) { $0.snapshot.did == did }
  }

  /// The newest snapshot that is the one looked for, from a manifest back to the first; nil if
  /// there is none.
  ///
  /// Where a manifest is lost, it continues with those before it that footers lead to.
  ///
  /// - Parameters:
  ///   - head: the manifest to begin with.
  ///   - later: the one that follows it, if it is not the newest.
  ///   - reader: the archive.
  ///   - matches: whether a snapshot is the one looked for.
  /// - Throws: `ArchiveError` if the archive cannot be read; what `matches` throws.
  package static func newest(
    from head: CID?, after later: CID? = nil, in reader: ArchiveReader,
    where matches: (ArchivedSnapshot) throws -> Bool
  ) throws -> ArchivedSnapshot? {
    var (next, later) = (head, later)
    while let cid = next {
      guard let snapshot = try unlessDamaged({ try ArchivedSnapshot(cid, in: reader) }) else {
        break
      }
      if try matches(snapshot) { return snapshot }
      (next, later) = (snapshot.snapshot.previous, cid)
    }
    guard next != nil else { return nil }
    let entries = try SnapshotHistory(of: reader).entries
    for entry in entries.prefix(while: { $0.cid != later }).reversed() where entry.isVouched {
      // This reader's index may not lead to it.
      let snapshot = try unlessDamaged { try ArchivedSnapshot(entry.cid, in: reader) }
      if let snapshot, try matches(snapshot) { return snapshot }
    }
    return nil
  }

  /// The snapshot that a manifest describes.
  ///
  /// - Throws: ``SnapshotError`` if the archive does not hold it or it cannot be used;
  ///   `ArchiveError` if it is damaged.
  package init(_ cid: CID, in reader: ArchiveReader) throws {
    (self.reader, self.cid, snapshot) = (reader, cid, try Self.manifest(cid, in: reader))
  }

  /// The manifest with this CID.
  package static func manifest(_ cid: CID, in reader: ArchiveReader) throws -> Snapshot {
    // Nothing else hashes to its own successor, so that no chain of manifests leads back.
    guard cid.codec == .dagCBOR, cid.multihash.sha256 != nil else {
      throw SnapshotError.notAManifest
    }
    let block = try block(cid, in: reader)
    return try Snapshot(block.bytes.span)
  }

  /// A snapshot that was found without its manifest.
  package init(found snapshot: Snapshot, in reader: ArchiveReader) {
    (self.reader, cid, self.snapshot) = (reader, nil, snapshot)
  }

  /// The block of bookkeeping with this CID.
  package func block(_ cid: CID) throws -> Block { try Self.block(cid, in: reader) }

  /// A block of bookkeeping, which was written with a late snapshot, most likely.
  ///
  /// - Throws: ``SnapshotError`` if the archive does not hold it, or it is longer than bookkeeping
  ///   may be (FORMAT 8), so that nothing of this kind can be in it; `ArchiveError` if it is
  ///   damaged.
  package static func block(_ cid: CID, in reader: ArchiveReader) throws -> Block {
    do {
      let bytes = try reader.body(of: cid, limit: ManifestShape.maximumLength, isRecent: true)
      guard let bytes else { throw SnapshotError.blockMissing(cid) }
      return Block(cid: cid, bytes: bytes)
    } catch let error as ArchiveError where error.faultKind == .limit {
      throw SnapshotError.malformedPage(cid)
    }
  }

  /// The order of the CAR's sections, as ordinals in the archive.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if a block of it is damaged.
  package func order() throws -> BlockOrder { try resolvedOrder().order }

  func resolvedOrder() throws -> ResolvedOrders.Resolved {
    var orders = ResolvedOrders()
    return try orders.order(of: self)
  }

  /// The order as it is written, with positions below `limit`.
  func writtenOrder(limit: UInt64) throws -> BlockOrder {
    let maximumRuns = reader.maximumRuns
    let maximumLength = BlockOrder.maximumLength(ofRuns: maximumRuns)
    var encoded = snapshot.car.runs ?? []
    for page in snapshot.car.pages {
      encoded += try block(page).bytes
      guard encoded.count <= maximumLength else {
        throw SnapshotError.tooManyRuns(limit: maximumRuns)
      }
    }
    let order = try BlockOrder(encoded, limit: limit, maximumRuns: maximumRuns)
    guard order.count == snapshot.car.sectionCount else { throw SnapshotError.malformedOrder }
    return order
  }

  /// The blobs that are missing for a reason other than that they were not provided, as recorded
  /// when the snapshot was made.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if a page is damaged.
  public func missingBlobs() throws -> [BlobLedger.Missing] { Array(try ledger().missing) }

  /// A ledger of these alone.
  package func ledger() throws -> BlobLedger {
    var ledger = BlobLedger()
    for page in snapshot.missingPages {
      for entry in try BlobLedger.missing(onPage: try block(page)) { ledger.miss(entry) }
    }
    return ledger
  }

  /// The missing blobs, if the ledger names all that the snapshot lacks; nil if it does not, or
  /// cannot be read.
  ///
  /// A repository that was packed without its blobs does not list them.
  package func exhaustiveLedger() throws -> BlobLedger.MissingList? {
    guard let ledger = try unlessDamaged(ledger),
      ledger.counts.missing == snapshot.blobs.missing,
      ledger.counts.listedMissing == snapshot.blobs.listedMissing
    else { return nil }
    return ledger.missing
  }

  /// The missing blobs whose losses are accepted.
  ///
  /// - Throws: `ArchiveError` if the archive cannot be read; a page that is damaged tells of none.
  package func acceptances() throws -> [CID: BlobLedger.Acceptance] {
    guard snapshot.blobs.accepted > 0 else { return [:] }
    var accepted: [CID: BlobLedger.Acceptance] = [:]
    for entry in try unlessDamaged(ledger)?.missing ?? [] where entry.accepted != nil {
      accepted[entry.cid] = entry.accepted
    }
    return accepted
  }

  /// The blobs that are held though no record refers to them.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if a page is damaged.
  package func extras() throws -> [CID] {
    try snapshot.extrasPages.flatMap { try BlobLedger.extras(onPage: try block($0)) }
  }

  /// The extras and the missing blobs: by this snapshot, or, if its pages are damaged, by the one
  /// before it of the same account.
  ///
  /// - Throws: ``SnapshotError`` and `ArchiveError` for a manifest that cannot be read.
  package func readableLists() throws -> BlobLedger {
    var next: ArchivedSnapshot? = self
    while let current = next {
      let lists = try unlessDamaged {
        var lists = try current.ledger()
        lists.extras = try current.extras()
        return lists
      }
      if let lists { return lists }
      next = try Self.newest(from: current.snapshot.previous, after: current.cid, in: reader) {
        $0.snapshot.did == snapshot.did
      }
    }
    return BlobLedger()
  }

  /// The account's DID document as it was received; nil if it is not known.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if it is damaged.
  public func didDocument() throws -> [UInt8]? {
    try snapshot.didDocument.map { try block($0).bytes }
  }

  /// The account's PLC audit log as it was received; nil if it is not known.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if it is damaged.
  public func plcLog() throws -> [UInt8]? { try snapshot.plcLog.map { try block($0).bytes } }

  /// What is read of a snapshot; nil also if it cannot be read, because it is damaged.
  package func readable<Value>(_ read: (ArchivedSnapshot) throws -> Value?) throws -> Value? {
    try unlessDamaged { try read(self) } ?? nil
  }

  /// The block of the record with this path, found through the tree; nil if there is no such
  /// record.
  ///
  /// - Throws: ``SnapshotError`` if a block on the way is not in the archive; `ArchiveError` if it
  ///   is damaged, or longer than a block of a repository may be.
  public func record(_ path: String) throws -> Block? {
    try recordCID(path).map(repositoryBlock)
  }

  /// A block of the repository.
  ///
  /// - Throws: ``SnapshotError/notPacked(_:)`` if a snapshot that is not whole lacks it; otherwise
  ///   as ``record(_:)`` does.
  package func repositoryBlock(_ cid: CID) throws -> Block {
    guard let bytes = try reader.body(of: cid) else {
      throw snapshot.isComplete ? SnapshotError.blockMissing(cid) : SnapshotError.notPacked(cid)
    }
    return Block(cid: cid, bytes: bytes)
  }

  /// The CID that the tree has for the record with this path, be its block there or not; nil if
  /// there is no such record.
  ///
  /// - Throws: as ``record(_:)`` does.
  package func recordCID(_ path: String) throws -> CID? {
    try MSTDescent.find(path.utf8, below: try treeRoot) { try repositoryBlock($0).bytes }
  }

  /// The root of the tree of records, as the commit has it.
  var treeRoot: CID {
    get throws {
      let commit = try repositoryBlock(snapshot.commit)
      return try Commit(commit.bytes.span).data
    }
  }
}

extension ArchiveReader {
  /// Refuses an archive that has snapshots of others, or of which every footer is lost.
  ///
  /// - Parameters:
  ///   - did: whose snapshots it may have.
  ///   - name: what to call it.
  /// - Throws: ``BackupError/archiveOfOther(_:account:)``; `ArchiveError`.
  package func refuseOtherAccounts(than did: DID, named name: String?) throws {
    let history = try SnapshotHistory(of: self)
    guard let newest = history.newest else { return }
    guard history.entries.contains(where: { $0.did == did }) else {
      throw BackupError.archiveOfOther(name ?? "the output", account: newest.name)
    }
    guard generation.number > 0 else { throw ArchiveError(.noFooter) }
  }

  /// Whether the newest manifest is lost.
  package var hasLostHead: Bool {
    get throws {
      guard let head = generation.head else { return false }
      return try unlessDamaged { try section(of: head.cid) != nil } != true
    }
  }

  /// The most runs that an order of a snapshot may have.
  package var maximumRuns: Int {
    BlockOrder.maximumRuns(ofSections: limits.allowsLarge ? .max : sectionLimit)
  }
}

extension ArchiveReader {
  /// The CIDs of the sections that can be read, in the order of the file.
  package func readableCIDs() throws -> CIDList {
    var cids = CIDList()
    for ordinal in ordinals {
      do {
        cids.append(try section(at: ordinal).cid)
      } catch let error as ArchiveError where error.faultKind != .system {
        continue
      }
    }
    return cids
  }

  /// How much is here that another archive lacks, either of which may be damaged: snapshots, as
  /// told by their commits; blobs and documents; blocks of repositories, and of bookkeeping.
  ///
  /// - Throws: `ArchiveError` if one cannot be read.
  package func surplus(
    over other: ArchiveReader
  ) throws -> (snapshots: Int, blobs: Int, blocks: Int) {
    let known = Set(try SnapshotHistory(of: other).entries.map(\.commit))
    let history = try SnapshotHistory(of: self)
    let cids = try history.reader.readableCIDs()
    var (blobs, blocks) = (0, 0)
    for (cid, state) in zip(cids, try other.states(cids.count) { cids[$0] })
    where state.bodyLength == nil {
      if cid.codec == .raw { blobs += 1 } else { blocks += 1 }
    }
    return (history.entries.count { !known.contains($0.commit) }, blobs, blocks)
  }

  /// Whether a section was written before the last footer.
  package func isCommitted(_ cid: CID) throws -> Bool {
    try ordinal(of: cid).map { $0 < generation.sectionCount } ?? false
  }
}

extension ArchivedSnapshot {
  /// The blobs whose records are lost: everything that lies in the archive as a blob does, and is
  /// neither known as one nor a document or page of a snapshot.
  ///
  /// Where there are several accounts, nothing tells whose they are, so there are none.
  ///
  /// - Parameters:
  ///   - history: the snapshots of the archive.
  ///   - isKnown: whether a record that is left refers to a blob.
  /// - Throws: ``SnapshotError`` and `ArchiveError` for a manifest that cannot be read.
  package func strays(_ history: SnapshotHistory, besides isKnown: (CID) -> Bool) throws -> [CID] {
    guard history.newestOfAccounts.count <= 1 else { return [] }
    var known = Self.documents(of: snapshot)
    for entry in history.entries {
      known.formUnion(Self.documents(of: try ArchivedSnapshot(entry.cid, in: reader).snapshot))
    }
    // Those on pages that cannot be read are found here.
    known.formUnion(try unlessDamaged(extras) ?? [])
    var strays: [CID] = []
    for cid in try reader.readableCIDs() where cid.codec == .raw && !isKnown(cid) {
      if known.insert(cid).inserted { strays.append(cid) }
    }
    return strays
  }

  /// The blocks that look like blobs and are a snapshot's bookkeeping.
  private static func documents(of snapshot: Snapshot) -> Set<CID> {
    Set([snapshot.didDocument, snapshot.plcLog].compactMap(\.self) + snapshot.car.pages)
  }
}

/// The content read from an archive; nil if it is damaged or missing.
///
/// - Throws: what `read` throws about anything else.
package func unlessDamaged<Value>(_ read: () throws -> Value) throws -> Value? {
  do {
    return try read()
  } catch let error where error.isLoss {
    return nil
  }
}

/// Runs `body`, and replaces errors about damage.
///
/// - Throws: `failure` in place of an error about something damaged or missing; any other error
///   unchanged.
package func onDamage<Value>(
  _ failure: (String) -> BackupError, _ body: () throws -> Value
) throws -> Value {
  do {
    return try body()
  } catch let error where error.isLoss && !(error is BackupError) {
    throw failure("\(error)")
  }
}
