internal import ATProtocol
package import Archive
package import IPLD

/// Builds a snapshot: all that its manifest says, and the end of the write that makes it.
///
/// Every write to an archive ends in this file: with a new snapshot, with one that says nothing
/// new, or with a chain of manifests that were made again.
///
/// Facts about the account that are not known this time are copied from the snapshot before.
package struct SnapshotBuilder: Sendable {
  /// The program, system and time of a snapshot.
  package struct Provenance: Sendable {
    /// Name and version of the program.
    package let tool: String
    /// When, in RFC 3339 and UTC.
    package var createdAt: String
    /// The operating system.
    package let hostSystem: String
    /// Returns how long it has taken so far, in milliseconds; or, before it has begun, how long
    /// some moment is ago.
    private(set) var milliseconds: @Sendable () -> Int

    package init(
      tool: String, createdAt: String, hostSystem: String,
      milliseconds: @escaping @Sendable () -> Int
    ) {
      (self.tool, self.createdAt, self.hostSystem) = (tool, createdAt, hostSystem)
      self.milliseconds = milliseconds
    }

    /// The provenance of a snapshot that begins now.
    package func begun() -> Provenance {
      var begun = self
      begun.milliseconds = { [milliseconds, begin = milliseconds()] in milliseconds() - begin }
      return begun
    }
  }

  /// The result of a write: the account's newest snapshot; what is committed; whether the
  /// snapshot before says the same, so that none was added; whether damaged sections were written
  /// again.
  package typealias Ending = (
    snapshot: Snapshot, generation: Generation, isUnchanged: Bool, isHealed: Bool
  )

  private var snapshot: Snapshot
  /// What the server gave to the account's owner, if it says something new.
  private var privateData: ReceivedPrivateData?
  /// What app views have shown, if it says something new.
  private var context: ReceivedContext?
  private let facts: AccountFacts
  private let ledger: BlobLedger
  private let base: ArchivedSnapshot?
  private let provenance: Provenance

  /// A snapshot of a repository.
  ///
  /// - Parameters:
  ///   - draft: what the manifest is to say of the repository, its CAR, how a server gave it and
  ///     what speaks against it; the snapshot before, if only the blobs are others.
  ///   - facts: what is known of the account.
  ///   - ledger: the figures of its blobs, and those that its pages are to list.
  ///   - base: the account's snapshot before.
  ///   - provenance: by whom it is made, where and when.
  package init(
    _ draft: Snapshot, _ facts: AccountFacts, _ ledger: BlobLedger,
    after base: ArchivedSnapshot?, _ provenance: Provenance
  ) {
    var snapshot = draft
    snapshot.further = Snapshot.FurtherFields()
    snapshot.did = base?.snapshot.did ?? draft.did
    (snapshot.handle, snapshot.pds) = (facts.handle, facts.pds)
    (snapshot.createdAt, snapshot.tool) = (provenance.createdAt, provenance.tool)
    (snapshot.hostSystem, snapshot.blobs) = (provenance.hostSystem, ledger.counts)
    snapshot.didDocument = Self.cid(facts.didDocument) ?? base?.snapshot.didDocument
    snapshot.plcLog = Self.cid(facts.plcLog) ?? base?.snapshot.plcLog
    snapshot.privateData = base?.snapshot.privateData
    snapshot.context = base?.snapshot.context
    if let earlier = base?.snapshot, !draft.isComplete, draft.commit == earlier.commit,
      draft.counts.records == earlier.counts.records, draft.counts.nodes == earlier.counts.nodes
    {
      snapshot.remains = earlier.remains
    }
    self.snapshot = snapshot
    (self.facts, self.ledger, self.base) = (facts, ledger, base)
    self.provenance = provenance
  }

  /// Adds what the server gave to the account's owner.
  package mutating func add(_ received: ReceivedPrivateData) throws {
    guard received.isNews else { return }
    snapshot.privateData = try received.data.block().cid
    privateData = received
  }

  /// Adds what app views have shown.
  package mutating func add(_ received: ReceivedContext) throws {
    guard received.isNews, let list = received.list else { return }
    snapshot.context = try list.block().cid
    context = received
  }

  /// The CID under which a document is kept.
  private static func cid(_ document: [UInt8]?) -> CID? {
    document.map { CID(codec: .raw, hashing: $0.span) }
  }

  // MARK: The end of a write

  /// Ends a write: appends what the manifest leads to beside the repository and the blobs, the
  /// manifest, and the footer that makes everything count.
  ///
  /// If the snapshot before says the same, none is added. Damaged sections that were written again
  /// count then, and without any the file is left as it was.
  ///
  /// - Parameter wantsBlobs: whether the account and the reasons why blobs are missing are not news
  ///   as long as no blob has arrived.
  /// - Throws: as `append` and `commit` of the writer do.
  package func end(_ writer: inout ArchiveWriter, wantsBlobs: Bool = false) throws -> Ending {
    if wantsBlobs, let base, gainsNothing(over: base.snapshot) {
      var same = base.snapshot
      same.blobs = ledger.counts
      if let ending = try endWithoutNews(same, &writer) { return ending }
    }
    var snapshot = snapshot
    for document in [facts.didDocument, facts.plcLog] {
      guard let document, let cid = Self.cid(document) else { continue }
      try writer.append(cid, document.span)
    }
    try privateData?.append(to: &writer)
    try context?.append(to: &writer)
    snapshot.extrasPages = try writer.append(BlobLedger.pages(extras: ledger.extras))
    // Another failed request for blobs is not news: the earlier pages still apply.
    if let base, let known = try base.exhaustiveLedger(),
      ledger.missing.saysNothingNew(after: known)
    {
      snapshot.missingPages = base.snapshot.missingPages
      if let ending = try endWithoutNews(snapshot, &writer) { return ending }
    }
    snapshot.missingPages = []
    try BlobLedger.forEachPage(of: ledger.missing) { page in
      try writer.append(page.cid, page.bytes.span)
      snapshot.missingPages.append(page.cid)
    }
    if let ending = try endWithoutNews(snapshot, &writer) { return ending }
    snapshot.previous = writer.generation?.head?.cid
    snapshot.durationMilliseconds = provenance.milliseconds()
    let manifest = try snapshot.block()
    try writer.append([manifest])
    if snapshot.car.sha256 == nil { writer.require(FeatureFlags.undigested) }
    return (snapshot, try writer.commit(manifest: manifest.cid), false, writer.isHealing)
  }

  /// Whether it holds the same as the snapshot before: neither a blob nor private data has arrived,
  /// no more and no fewer are missing, and nothing more is accepted.
  private func gainsNothing(over earlier: Snapshot) -> Bool {
    var counts = ledger.counts
    (counts.listed, counts.newBytes) = (earlier.blobs.listed, earlier.blobs.newBytes)
    guard counts.new ?? 0 == 0 else { return false }
    counts.new = earlier.blobs.new
    return counts == earlier.blobs && snapshot.privateData == earlier.privateData
      && snapshot.context == earlier.context
      && snapshot.standing.accepted.isSubset(of: earlier.standing.accepted)
  }

  /// Ends a write without a snapshot; nil if there is something new to say.
  private func endWithoutNews(_ snapshot: Snapshot, _ writer: inout ArchiveWriter) throws
    -> Ending?
  {
    guard let base, snapshot.saysNothingNew(after: base.snapshot) else { return nil }
    // What came now is reported, and not what came when that snapshot was made.
    var described = base.snapshot
    described.blobs.new = snapshot.blobs.new
    described.blobs.newBytes = snapshot.blobs.newBytes
    described.blobs.listed = snapshot.blobs.listed
    var generation = writer.generation
    if writer.isHealing {
      generation = try writer.commit(manifest: nil)
    } else {
      try writer.abandon()
    }
    return generation.map { (described, $0, true, writer.isHealing) }
  }
}

extension ArchiveWriter {
  /// Appends blocks; returns their CIDs.
  @discardableResult
  package mutating func append(_ blocks: [Block]) throws -> [CID] {
    for block in blocks { try append(block.cid, block.bytes.span) }
    return blocks.map(\.cid)
  }
}

extension ManifestChain {
  /// Ends a write that made manifests again: appends the chain, and commits it.
  ///
  /// - Throws: what the writer throws.
  package func end(_ writer: inout ArchiveWriter) throws -> Generation {
    try write(into: &writer)
    return try writer.commit(manifest: head)
  }
}
