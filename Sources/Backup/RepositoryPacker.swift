public import ATProtocol
public import Archive
internal import IPLD

/// Packs a repository and its blobs into a new archive.
///
/// The CAR is inspected first, so that nothing is written for one that is not what it should be. Then its blocks go into the archive in
/// their order, then the blobs, then what is known about the account, then the manifest.
public struct RepositoryPacker {
  /// How to pack.
  public struct Options: Sendable {
    /// The zstd level.
    public var level = 3
    /// Whether files that no record refers to are kept as well.
    public var keepsExtras = false
    /// What is known about the account.
    public var facts = AccountFacts()
    /// Name and version of the program that packs.
    public var tool: String
    /// When the snapshot is made, in RFC 3339 and UTC.
    public var createdAt: String
    /// The operating system.
    public var hostSystem: String
    /// Answers the milliseconds since some moment, for the duration in the manifest.
    public var milliseconds: @Sendable () -> Int

    /// Options with these facts about the moment.
    public init(
      tool: String, createdAt: String, hostSystem: String,
      milliseconds: @escaping @Sendable () -> Int
    ) {
      self.tool = tool
      self.createdAt = createdAt
      self.hostSystem = hostSystem
      self.milliseconds = milliseconds
    }
  }

  /// What came of it.
  public struct Report: Sendable {
    /// What was packed.
    public let inspection: RepositoryInspection
    /// The manifest.
    public let snapshot: Snapshot
    /// What was committed.
    public let generation: Generation
    /// Blobs that records refer to and that were not there.
    public let missing: [BlobLedger.Missing]
    /// Files whose content is not what their names say, or that could not be taken: path and why.
    public let refused: [(path: String, why: String)]
    /// How many files no record refers to, and are not in the archive.
    public let leftOutCount: Int
  }

  private let options: Options
  private let observer: Progress.Observer

  /// A packer.
  public init(_ options: Options, observer: @escaping Progress.Observer = { _ in }) {
    self.options = options
    self.observer = observer
  }

  /// Inspects the CAR and packs it with what is found in the folders.
  ///
  /// - Parameters:
  ///   - car: the CAR.
  ///   - folders: where blobs may be.
  ///   - makeStorage: makes the file, once it is sure that there is something to put into it.
  /// - Throws: ``BackupError`` and `CARError` for a repository that cannot be packed; `ArchiveError` for a file that cannot be
  ///   written.
  public func pack(
    _ car: InputFile, folders: [BlobFolder], into makeStorage: () throws -> any ArchiveStorage
  ) throws -> Report {
    let begin = options.milliseconds()
    let inspection = try inspect(car)
    guard let commit = inspection.commit else {
      throw BackupError.malformedRepository("the CAR is not a repository")
    }
    var facts = options.facts
    try facts.completeFromDIDDocument(of: commit.did)
    let files = try folders.flatMap { folder in try folder.files() }
    var writer = try ArchiveWriter.open(
      try makeStorage(),
      carHeader: car.withBytes { $0.array(headerRange(inspection)) },
      options: ArchiveOptions(level: options.level))
    let description = try packCAR(car, inspection, into: &writer)
    var blobs = car.withBytes { bytes in
      BlobPacking(inspection, car: bytes, keepsExtras: options.keepsExtras)
    }
    try blobs.pack(files, into: &writer, observer)
    let ledger = blobs.ledger()
    var snapshot = Snapshot(
      did: commit.did, handle: facts.handle, pds: facts.pds, rev: commit.rev,
      commit: inspection.header.roots[0], previous: nil, createdAt: options.createdAt,
      tool: options.tool, car: description,
      counts: Snapshot.Counts(
        records: inspection.recordCount, nodes: inspection.nodeCount,
        blocks: inspection.blocks.count),
      blobs: ledger.counts, didDocument: nil, plcLog: nil, extrasPages: [], missingPages: [],
      isComplete: inspection.isComplete, hostSystem: options.hostSystem, durationMilliseconds: 0)
    snapshot.didDocument = try append(facts.didDocument, to: &writer)
    snapshot.plcLog = try append(facts.plcLog, to: &writer)
    snapshot.extrasPages = try append(BlobLedger.pages(extras: blobs.extras), to: &writer)
    let explained = ledger.missing.filter { $0.reason != .notProvided }
    snapshot.missingPages = try append(BlobLedger.pages(missing: explained), to: &writer)
    snapshot.durationMilliseconds = options.milliseconds() - begin
    let bytes = try snapshot.encode()
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    try writer.append(cid, bytes.span)
    let generation = try writer.commit(manifest: cid)
    return Report(
      inspection: inspection, snapshot: snapshot, generation: generation, missing: ledger.missing,
      refused: blobs.refused, leftOutCount: blobs.leftOutCount)
  }

  private func inspect(_ car: InputFile) throws -> RepositoryInspection {
    let inspection = try car.withBytes { bytes throws(CARError) in
      try RepositoryInspector.inspect(bytes) { done in
        observer(Progress(stage: "checking", done: UInt64(done), total: UInt64(car.count)))
      }
    }
    if let error = inspection.carError { throw error }
    if let error = inspection.commitError { throw error }
    if let cid = inspection.mismatchedBlocks.first {
      throw BackupError.malformedRepository(
        "blocks do not hash to their CIDs (\(inspection.mismatchedBlocks.count) of them, the first is \(cid))"
      )
    }
    if let problem = inspection.treeProblems.first {
      throw BackupError.malformedRepository(
        "the tree of records is malformed (problems: \(inspection.treeProblemCount), the first: \(problem))"
      )
    }
    return inspection
  }

  private func headerRange(_ inspection: RepositoryInspection) -> Range<Int> {
    let start = inspection.payload.lowerBound
    return start..<start + inspection.header.length
  }

  /// Appends all blocks in the order of the CAR.
  private func packCAR(
    _ car: InputFile, _ inspection: RepositoryInspection, into writer: inout ArchiveWriter
  ) throws -> Snapshot.CARDescription {
    let payload = inspection.payload
    var order = BlockOrder()
    var hash = SHA256()
    try car.withBytes { bytes throws in
      var cursor = CARCursor(header: inspection.header, payload: payload)
      var hashed = payload.lowerBound
      while let (section, cid) = try cursor.next(in: bytes) {
        order.append(try writer.append(cid, bytes.extracting(section.bodyRange)))
        if section.end - hashed >= 1 << 20 {
          hash.update(bytes.extracting(hashed..<section.end))
          hashed = section.end
          observer(
            Progress(stage: "packing", done: UInt64(hashed), total: UInt64(payload.count)))
        }
      }
      hash.update(bytes.extracting(hashed..<payload.upperBound))
    }
    let encoded = order.encoded
    guard encoded.count <= BlockOrder.maximumEncoded else {
      throw BackupError.malformedRepository(
        "the CAR repeats its blocks in an order that takes over \(BlockOrder.maximumEncoded) bytes to write down"
      )
    }
    let written: Snapshot.Order
    if encoded.count <= BlockOrder.maximumInline {
      written = .inline(encoded)
    } else {
      let pages = stride(from: 0, to: encoded.count, by: BlockOrder.maximumPage).map { start in
        let bytes = Array(
          encoded[start..<min(start + BlockOrder.maximumPage, encoded.count)])
        return Block(cid: CID(codec: .raw, hashing: bytes.span), bytes: bytes)
      }
      written = .pages(try append(pages, to: &writer))
    }
    return Snapshot.CARDescription(
      header: car.withBytes { $0.array(headerRange(inspection)) },
      byteCount: UInt64(payload.count), sha256: hash.finish(),
      sectionCount: UInt64(inspection.sectionCount), order: written)
  }

  private func append(_ document: [UInt8]?, to writer: inout ArchiveWriter) throws -> CID? {
    guard let document else { return nil }
    let cid = CID(codec: .raw, hashing: document.span)
    try writer.append(cid, document.span)
    return cid
  }

  private func append(_ pages: [Block], to writer: inout ArchiveWriter) throws -> [CID] {
    for page in pages { try writer.append(page.cid, page.bytes.span) }
    return pages.map(\.cid)
  }
}
