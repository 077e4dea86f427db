internal import ATProtocol
internal import Archive
internal import IPLD

/// Writes what a snapshot holds into a folder, in the layout that people know.
///
/// ```
/// OUT/{did}/{handle or did}-{rev}.car      bit for bit what came in
/// OUT/{did}/blobs/{cid}.{ext}
/// OUT/{did}/records/{collection}/{rkey}.json
/// OUT/{did}/backup-metadata.json  did-document.json  plc-audit-log.json
/// ```
/// What is damaged is left out and reported; everything else is written.
public struct SnapshotExtractor {
  /// What came of it.
  public struct Report: Sendable {
    /// What was written.
    public internal(set) var tally = OutputFolder.Tally()
    /// What could not be given back because it is damaged: what, and how.
    public internal(set) var damaged: [(what: String, why: String)] = []
    /// Names that no file may have.
    public internal(set) var refused: [String] = []
    /// Files that are in the way.
    public internal(set) var inTheWay: [String] = []
    /// Blobs that are not in the archive.
    public internal(set) var missing: [String] = []
    /// Records that are not in the archive, though the tree names them.
    public internal(set) var missingRecords: [String] = []
    /// Nodes of the tree that are not in the archive, and with them all records below.
    public internal(set) var missingNodes: [String] = []
    /// Blobs whose content has the signature of another type than their record says.
    public internal(set) var mistyped: [String] = []

    /// That nothing was done.
    public init() {}

    /// Whether there is nothing to say but how much was written.
    var isEmpty: Bool {
      damaged.isEmpty && refused.isEmpty && inTheWay.isEmpty && missing.isEmpty
        && missingRecords.isEmpty && missingNodes.isEmpty && mistyped.isEmpty
    }

    /// Adds what came of a later extraction into the same folder.
    public mutating func add(_ later: Report) {
      // It counts what was written into the folder, whatever for.
      tally = later.tally
      damaged += later.damaged
      refused += later.refused
      inTheWay += later.inTheWay
      missing += later.missing
      missingRecords += later.missingRecords
      missingNodes += later.missingNodes
      mistyped += later.mistyped
    }
  }

  private let archived: ArchivedSnapshot
  private let folder: OutputFolder
  private let observer: Progress.Observer
  private let account: String
  private var report = Report()

  /// An extractor into a folder.
  public init(
    _ archived: ArchivedSnapshot, into folder: OutputFolder,
    observer: @escaping Progress.Observer = { _ in }
  ) {
    self.archived = archived
    self.folder = folder
    self.observer = observer
    account = FileNaming.name(archived.snapshot.did.text)
  }

  /// Writes what is selected.
  ///
  /// - Throws: ``BackupError`` for a folder that cannot be written to; what is wrong with the archive is in the report.
  public static func extract(
    _ selection: Selection, of archived: ArchivedSnapshot, into folder: OutputFolder,
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> Report {
    var extractor = SnapshotExtractor(archived, into: folder, observer: observer)
    try extractor.run(selection)
    try folder.synchronize()
    extractor.report.tally = folder.tally
    return extractor.report
  }

  private mutating func run(_ selection: Selection) throws {
    if selection.car {
      try writeCAR(try RestoredRepository(archived, order: .exported, observer: observer))
    }
    if selection.records || selection.blobs || !selection.items.isEmpty {
      try writeContents(selection)
    }
    if selection.metadata { try writeMetadata() }
  }

  /// Writes one file, and keeps what is wrong with it for the report.
  private mutating func write(
    _ components: [String], durably: Bool = true,
    _ produce: ((Span<UInt8>) throws -> Void) throws -> Void
  ) throws {
    let name = components.joined(separator: "/")
    do {
      try folder.write([account] + components, durably: durably, produce)
    } catch let error as ArchiveError {
      report.damaged.append((name, "\(error)"))
    } catch let error as SnapshotError {
      report.damaged.append((name, "\(error)"))
    } catch let error as BackupError {
      switch error {
      case .hostileName(let name): report.refused.append(name)
      case .fileDiffers(let path), .inTheWay(let path): report.inTheWay.append(path)
      default: throw error
      }
    }
  }

  private mutating func writeCAR(_ restored: RestoredRepository) throws {
    let name = FileNaming.car(of: archived.snapshot)
    guard restored.isExact else {
      report.damaged.append((name, restored.flaw ?? ""))
      return
    }
    try write([name]) { sink in try restored.withBytes { try sink($0) } }
  }

  /// Writes records and blobs, which takes a walk through the repository to know their names.
  private mutating func writeContents(_ selection: Selection) throws {
    var wanted: Set<CID> = []
    var paths: Set<String> = []
    for item in selection.items {
      switch item {
      case .cid(let cid): wanted.insert(cid)
      case .record(let path): paths.insert(path.text)
      }
    }
    var unseen = paths
    let blocks = SnapshotBlocks(
      archived, keepsRecords: selection.records || !paths.isEmpty, observer: observer)
    let contents = try blocks.contents { record, body in
      guard selection.records || !unseen.isEmpty else { return }
      let key = String(decoding: record.key, as: UTF8.self)
      let isNamed = unseen.remove(key) != nil
      guard selection.records || isNamed else { return }
      try write(record, key, body)
    }
    if let flaw = contents.flaw {
      noteLosses(contents.tree, unseen, selection, flaw)
    } else {
      for path in unseen.sorted() { throw BackupError.notFound(path) }
      if selection.records || selection.blobs {
        report.missingNodes = contents.tree.missingNodes.map { "\($0)" }
      }
    }
    let blobs = contents.blobs
    if selection.blobs {
      try writeBlobs(blobs.entries.map { ($0.cid, $0.mimeType) })
      for entry in blobs.entries { wanted.remove(entry.cid) }
      try writeExtras()
      if contents.flaw != nil { try writeStrays(except: blobs) }
    }
    for cid in wanted.sorted(by: { "\($0)" < "\($1)" }) {
      guard archived.state(of: cid) != .missing || blobs.contains(cid) else {
        throw BackupError.notFound("\(cid)")
      }
      try writeBlob(cid, mimeType: blobs[cid]?.mimeType)
    }
  }

  /// Says what a damaged repository has lost of the selection, so that less than everything never
  /// passes for everything.
  private mutating func noteLosses(
    _ tree: SharedTrees.Tree, _ unseen: Set<String>, _ selection: Selection, _ flaw: String
  ) {
    if let error = tree.commitError { report.damaged.append(("records", "\(error)")) }
    // What the snapshot never had was missing before any damage.
    if selection.records || selection.blobs, archived.snapshot.isComplete || archived.cid == nil {
      for node in tree.missingNodes {
        report.damaged.append(("the tree node \(node)", "it is lost, and all records below it"))
      }
      for record in report.missingRecords { report.damaged.append((record, "it is lost")) }
      report.missingRecords = []
    } else if selection.records || selection.blobs {
      report.missingNodes = tree.missingNodes.map { "\($0)" }
      report.damaged.append(("records", flaw))
    }
    for path in unseen.sorted() {
      report.damaged.append((path, "it is not in what is left of the archive"))
    }
  }

  /// Writes blobs whose records are lost: everything that lies in the archive as a blob does and is
  /// nothing else that is known.
  ///
  /// Where there are several accounts, nothing tells whose they would be; `carpack cat` gives them by their CIDs.
  private mutating func writeStrays(except table: BlobTable) throws {
    let history = try SnapshotHistory(of: archived.reader)
    guard history.newestOfAccounts.count <= 1 else { return }
    var known = Self.documents(of: archived.snapshot)
    for entry in history.entries {
      known.formUnion(
        Self.documents(of: try ArchivedSnapshot(entry.cid, in: archived.reader).snapshot))
    }
    do {
      known.formUnion(try archived.extras())
    } catch {
      // They are found here, then.
    }
    for ordinal in archived.reader.ordinals {
      let cid: CID
      do {
        cid = try archived.reader.section(at: ordinal).cid
      } catch is ArchiveError {
        // Lost with its frame; whoever refers to it has been told.
        continue
      }
      guard cid.codec == .raw, !table.contains(cid), known.insert(cid).inserted else { continue }
      try writeBlob(cid, mimeType: nil)
    }
  }

  /// The blocks that look like blobs and are a snapshot's bookkeeping.
  private static func documents(of snapshot: Snapshot) -> Set<CID> {
    var documents = Set([snapshot.didDocument, snapshot.plcLog].compactMap { $0 })
    if case .pages(let pages) = snapshot.car.order { documents.formUnion(pages) }
    return documents
  }

  private mutating func writeExtras() throws {
    do {
      try writeBlobs(archived.extras().map { ($0, nil) })
    } catch let error as ArchiveError {
      report.damaged.append(("extras", "\(error)"))
    } catch let error as SnapshotError {
      report.damaged.append(("extras", "\(error)"))
    }
  }

  private mutating func write(
    _ record: SnapshotBlocks.Record, _ key: String, _ body: Span<UInt8>
  ) throws {
    guard record.length != nil else {
      report.missingRecords.append(key)
      return
    }
    guard RecordPath.isValid(record.key.span) else {
      report.refused.append(key)
      return
    }
    let path = try RecordPath(key)
    let content = RecordRendering(body)
    try write(
      [
        "records", FileNaming.name(path.collection.text),
        FileNaming.name(path.recordKey.text, ending: content.ending),
      ], durably: false
    ) { sink in try sink(content.bytes.span) }
  }

  /// Writes blobs in the order in which they lie in the archive, so that each frame is decompressed
  /// once, whatever the order of the records that refer to them.
  ///
  /// What is wrong is reported in the order of `blobs`.
  private mutating func writeBlobs(_ blobs: [(cid: CID, mimeType: String?)]) throws {
    let earlier = report
    var findings: [(index: Int, report: Report)] = []
    for (done, index) in try archiveOrder(of: blobs.map(\.cid)).enumerated() {
      observer(Progress(stage: "blobs", done: UInt64(done), total: UInt64(blobs.count)))
      report = Report()
      try writeBlob(blobs[index].cid, mimeType: blobs[index].mimeType)
      if !report.isEmpty { findings.append((index, report)) }
    }
    report = earlier
    for finding in findings.sorted(by: { $0.index < $1.index }) { report.add(finding.report) }
  }

  /// The indices of blobs in the order in which these lie in the archive; those that are damaged or missing come last.
  private func archiveOrder(of cids: [CID]) throws -> [Int] {
    let ordinals = try archived.reader.ordinals(cids.count) { cids[$0] }
    return ordinals.indices.sorted { (ordinals[$0], $0) < (ordinals[$1], $1) }
  }

  private mutating func writeBlob(_ cid: CID, mimeType: String?) throws {
    switch archived.state(of: cid) {
    case .held(let length) where length <= Self.maximumInMemory:
      try writeSmallBlob(cid, mimeType: mimeType)
      return
    case .held: break
    case .missing:
      report.missing.append("\(cid)")
      return
    case .damaged(let why):
      report.damaged.append(("\(cid)", why))
      return
    }
    let ending: String
    do {
      ending = try fileExtension(cid, mimeType)
    } catch let error as ArchiveError {
      report.damaged.append(("\(cid)", "\(error)"))
      return
    }
    let reader = archived.reader
    try write(["blobs", FileNaming.name("\(cid)", ending: ".\(ending)")]) { sink in
      try reader.read(cid, each: sink)
    }
  }

  /// Blobs up to this length are read once, into memory: it takes their beginning to know their names.
  private static let maximumInMemory: UInt64 = 1 << 16

  private mutating func writeSmallBlob(_ cid: CID, mimeType: String?) throws {
    let found: [UInt8]?
    do {
      found = try archived.reader.body(of: cid, limit: Int(Self.maximumInMemory))
    } catch let error as ArchiveError {
      report.damaged.append(("\(cid)", "\(error)"))
      return
    }
    guard let body = found else {
      report.missing.append("\(cid)")
      return
    }
    let ending = fileExtension(
      cid, mimeType, beginning: Array(body.prefix(MediaType.signatureLength)))
    try write(["blobs", FileNaming.name("\(cid)", ending: ".\(ending)")], durably: false) { sink in
      let bytes = body
      try sink(bytes.span)
    }
  }

  private mutating func fileExtension(_ cid: CID, _ mimeType: String?) throws -> String {
    var beginning: [UInt8] = []
    struct Enough: Error {}
    do {
      try archived.reader.read(cid) { chunk in
        let wanted = min(chunk.count, MediaType.signatureLength - beginning.count)
        beginning.append(contentsOf: chunk.extracting(0..<wanted))
        if beginning.count == MediaType.signatureLength { throw Enough() }
      }
    } catch is Enough {}
    return fileExtension(cid, mimeType, beginning: beginning)
  }

  private mutating func fileExtension(
    _ cid: CID, _ mimeType: String?, beginning: [UInt8]
  ) -> String {
    let ending = MediaType.fileExtension(mimeType: mimeType, beginning: beginning.span)
    if let named = mimeType.flatMap(MediaType.fileExtension(of:)), named != ending {
      report.mistyped.append("\(cid): \(mimeType ?? "") in the record, \(ending) by its content")
    }
    return ending
  }

  private mutating func writeMetadata() throws {
    let snapshot = archived.snapshot
    let metadata = snapshot.metadataJSON(head: archived.cid)
    try write([ExtractedName.metadata]) { sink in try sink(metadata.span) }
    for (cid, name) in [
      (snapshot.didDocument, ExtractedName.didDocument), (snapshot.plcLog, ExtractedName.plcLog),
    ] {
      guard let cid else { continue }
      let reader = archived.reader
      try write([name]) { sink in
        guard try reader.read(cid, each: sink) else { throw SnapshotError.blockMissing(cid) }
      }
    }
  }
}
