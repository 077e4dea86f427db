internal import ATProtocol
internal import Archive
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

  /// A link to a snapshot.
  package init(_ manifest: CID, isVouched: Bool = true) {
    (self.manifest, self.isVouched) = (manifest, isVouched)
  }

  /// A link to a snapshot of a history.
  package init(_ entry: SnapshotHistory.Entry, source: Int = 0) {
    (self.source, manifest, isVouched) = (source, entry.cid, entry.isVouched)
  }

  /// The chain of some snapshots, the oldest first.
  ///
  /// The archive head is the newest snapshot that a footer vouches for, if there is one. The others
  /// that came after it go directly before it.
  package static func chain(_ links: [ChainLink]) -> [ChainLink] {
    guard let head = links.lastIndex(where: \.isVouched) else { return links }
    return links[..<head] + links[(head + 1)...] + [links[head]]
  }
}

/// The chain of manifests of an archive that is being written.
///
/// Each manifest is made again with another `prev` and another `car.order`. All other fields stay,
/// also those that are not known here.
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
  private var bases: [DID: OrderBasis] = [:]
  private var runCount = 0
  /// Whether a manifest has no digest of a CAR.
  private var hasUndigested = false
  /// The newest snapshot of each account whose manifest stays what it is.
  private var kept: [DID: ArchivedSnapshot] = [:]

  /// An empty chain.
  ///
  /// - Throws: ``BackupError`` if a temporary file cannot be made.
  package init() throws { spool = try TemporaryFile() }

  /// Whether there is nothing to be appended.
  var isEmpty: Bool { spool.count == 0 }

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
      let written = try order.written(after: bases[did] ?? kept[did].flatMap(OrderBasis.init))
      for page in written.pages { try put(page) }
      (snapshot.car.order, snapshot.car.base) = (written.order, written.base)
      depth = written.depth
    }
    if snapshot.car.sha256 == nil { hasUndigested = true }
    snapshot.previous = head
    let block = try snapshot.block()
    try put(block)
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
    bases[did] = OrderBasis(manifest: manifest, depth: depth) { order }
  }

  private func put(_ block: Block) throws {
    var prefix: [UInt8] = []
    CARWriter.appendPrefix(block.cid, bodyLength: UInt64(block.bytes.count), to: &prefix)
    try spool.write(prefix.span)
    try spool.write(block.bytes.span)
  }

  /// Appends the chain to an archive, which the caller commits with ``head``.
  ///
  /// - Throws: what the writer throws.
  func write(into writer: inout ArchiveWriter) throws {
    if hasUndigested { writer.require(FeatureFlags.undigested) }
    let sections = try spool.map()
    for isManifest in [false, true] {
      try sections.withBytes { bytes in
        var cursor = CARCursor(payload: 0..<bytes.count, limits: .mapped)
        while let (section, cid) = try cursor.next(in: bytes) {
          guard (cid.codec == .dagCBOR) == isManifest else { continue }
          if isManifest { try writer.flush() }
          try writer.append(cid, bytes.extracting(section.bodyRange))
          if isManifest { try writer.flush() }
        }
      }
    }
  }
}
