internal import ATProtocol
internal import Archive
package import Files
internal import IPLD
internal import Repository
package import Snapshots

/// Writes what a snapshot holds into a folder, in a familiar layout.
///
/// ```
/// OUT/{did}/{handle or did}-{rev}.car      bit for bit what came in
/// OUT/{did}/blobs/{cid}.{ext}                         or names that people can read
/// OUT/{did}/records/{collection}/{rkey}.json
/// OUT/{did}/backup-metadata.json  did-document.json  plc-audit-log.json
/// OUT/{did}/private/{method}.json                     only where it is asked for
/// ```
/// What is damaged is left out and reported; everything else is written.
package struct SnapshotExtractor {
  let archived: ArchivedSnapshot
  let options: ExtractionOptions
  let observer: Progress.Observer
  private let selection: Selection
  private let folder: OutputFolder
  private let account: String
  private let files: ExtractedFiles
  /// The blocks, which are used again once they are laid out.
  private let blocks: SnapshotBlocks
  var notes: BlobNotes
  var report = Report()
  /// How many of the missing things are private data.
  private var missingPrivateCount = 0
  /// Digests of the names that were given, where names meet that differ in case only: a million
  /// take some 16 MB.
  private var claims: Set<Int>?
  /// The collection that was named last, and the name that its folder got.
  private var collection: (key: ArraySlice<UInt8>?, name: String)?

  private init(
    _ selection: Selection, of archived: ArchivedSnapshot, into folder: OutputFolder,
    _ options: ExtractionOptions, _ observer: @escaping Progress.Observer
  ) throws {
    (self.selection, self.archived, self.folder) = (selection, archived, folder)
    (self.options, self.observer) = (options, observer)
    account = FileNaming.account(archived.snapshot.did, for: options.target)
    files = try ExtractedFiles(folder, account)
    let namesRecords = selection.items.contains { if case .record = $0 { true } else { false } }
    blocks = SnapshotBlocks(
      archived, keepsRecords: selection.records || namesRecords, observer: observer)
    notes = BlobNotes(in: blocks)
  }

  /// Writes what is selected of several snapshots, each account into a folder of its own, unless
  /// something is in the way of any.
  ///
  /// - Returns: The result for each account, with what it is called.
  /// - Throws: as it does for one.
  package static func extract(
    _ selection: Selection, of snapshots: [ArchivedSnapshot], into folder: OutputFolder,
    options: ExtractionOptions, observer: @escaping Progress.Observer
  ) throws -> [(account: String, report: Report)] {
    var results: [(account: String, report: Report)] = []
    for checksOnly in snapshots.count > 1 ? [true, false] : [false] {
      results = try snapshots.map { snapshot in
        let report = try extract(
          selection, of: snapshot, into: folder, options: options, checksOnly: checksOnly,
          observer: observer)
        return (snapshot.snapshot.handle?.text ?? snapshot.snapshot.did.text, report)
      }
      guard results.allSatisfy(\.report.inTheWay.isEmpty) else { break }
    }
    return results
  }

  /// Writes what is selected.
  ///
  /// Files that an earlier extraction wrote, and that were not changed since, are replaced by what
  /// the snapshot has now. If anything else is in the way, nothing is written.
  ///
  /// - Parameter checksOnly: whether only files in the way are looked for, and nothing is written.
  /// - Throws: ``BackupError`` for a folder that cannot be written to; `CancellationError` if the
  ///   folder was stopped, and then what was written is known to the next extraction. What is
  ///   wrong with the archive is in the report.
  package static func extract(
    _ selection: Selection, of archived: ArchivedSnapshot, into folder: OutputFolder,
    options: ExtractionOptions = ExtractionOptions(), checksOnly: Bool = false,
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> Report {
    var extractor = try SnapshotExtractor(selection, of: archived, into: folder, options, observer)
    if extractor.files.isThere {
      try extractor.run()
      let found = extractor.report
      // What is wrong with the archive is reported when it is extracted.
      extractor.report = Report()
      extractor.report.tally = folder.tally
      extractor.report.inTheWay = found.inTheWay
      extractor.report.inTheWayCount = found.inTheWayCount
    }
    guard extractor.report.inTheWay.isEmpty, !checksOnly else { return extractor.report }
    try extractor.files.begin()
    do {
      try extractor.run()
      try extractor.finish()
    } catch {
      do {
        _ = try extractor.files.finish(isStopped: true) { _ in false }
      } catch {
        // The error that stops the list also stopped the files, and is reported once.
      }
      throw error
    }
    try folder.synchronize()
    extractor.report.tally = folder.tally
    return extractor.report
  }

  private mutating func run() throws {
    claims = try options.isReadable || folder.foldsCase(account) ? [] : nil
    (collection, missingPrivateCount) = (nil, 0)
    if selection.car { try writeCAR() }
    // What follows takes a while, and may be interrupted before the next file.
    try files.flush()
    if selection.records || selection.blobs || !selection.items.isEmpty { try writeContents() }
    if selection.metadata { try writeMetadata() }
    if selection.privateData { try writePrivateData() }
    if selection.context { try writeContext() }
  }

  /// Removes what the snapshot no longer has, if that was requested, and ends the list of what was
  /// written.
  private mutating func finish() throws {
    var isDeleting = options.isDeleting
    if isDeleting, !report.damaged.isEmpty || report.inTheWayCount > 0 {
      // What cannot be read may be what the file is a copy of.
      (isDeleting, report.keptBecause) = (false, "not everything could be extracted")
    }
    let hasAllRecords = report.missingRecords.isEmpty && report.missingNodes.isEmpty
    let hasAllBlobs = hasAllRecords && report.missing.count == missingPrivateCount
    if isDeleting, selection.records && !hasAllRecords || selection.blobs && !hasAllBlobs {
      report.keptBecause = "some of what the snapshot refers to is not in the archive"
    }
    report.changed = try files.finish { path in
      guard isDeleting else { return false }
      if path.hasPrefix("records/") { return selection.records && hasAllRecords }
      if path.hasPrefix("blobs/") { return selection.blobs && hasAllBlobs }
      if path.hasPrefix("context/") { return selection.context && !report.lacksContext }
      if path.hasPrefix("private/") { return selection.privateData && missingPrivateCount == 0 }
      if path.contains("/") { return false }
      return path.hasSuffix(".car")
        ? selection.car : selection.metadata && FileNaming.documents.contains(path)
    }
  }

  /// Writes one file of the account, and keeps what is wrong with it for the report.
  mutating func write(_ file: OutputFile, _ produce: OutputFolder.Content) throws {
    var file = file
    if !options.setsTimes { file.time = nil }
    do {
      try files.write(file, produce)
    } catch BackupError.hostileName(let name) {
      report.refused.append(name)
    } catch BackupError.fileDiffers(let path), BackupError.inTheWay(let path) {
      report.inTheWayCount += 1
      if report.inTheWayCount <= Report.maximumListed { report.inTheWay.append(path) }
    } catch let error where error.isLoss {
      report.damaged.append((file.components.joined(separator: "/"), "\(error)"))
    }
  }

  // MARK: The repository

  private mutating func writeCAR() throws {
    let snapshot = archived.snapshot
    let name = FileNaming.car(of: snapshot, for: options.target)
    if files.isChecking {
      guard try folder.isThere([account, name]) else { return }
      if snapshot.fetched?.since == nil, let digest = snapshot.car.sha256 {
        return try write(OutputFile(components: [name], digest: digest)) { _ in }
      }
    }
    let restored = try RestoredRepository(archived, exporting: true, observer: observer)
    guard restored.isExact else {
      report.damaged.append((name, restored.flaw ?? ""))
      return
    }
    report.isCARPartial = !snapshot.isComplete
    try write(OutputFile(components: [name], time: notes.times.commit)) { sink in
      try restored.withBytes { try sink($0) }
    }
  }

  /// Writes records and blobs, which takes a walk through the repository to know their names.
  private mutating func writeContents() throws {
    var (wanted, unseen): (Set<CID>, Set<String>) = ([], [])
    for item in selection.items {
      switch item {
      case .cid(let cid): wanted.insert(cid)
      case .record(let path): unseen.insert(path)
      }
    }
    let asksForNotes =
      (selection.blobs || !wanted.isEmpty) && (options.setsTimes || options.isReadable)
    var done: UInt64 = 0
    let total = UInt64(clamping: archived.snapshot.counts.records)
    let contents = try blocks.contents { record, body in
      if asksForNotes { notes.add(record) }
      done += 1
      if done % 64 == 0 { observer(Progress(stage: "records", done: done, total: total)) }
      if selection.blobs, !selection.records, record.length == nil {
        // It may refer to blobs that nothing else does.
        report.missingRecords.append(String(decoding: record.key, as: UTF8.self))
      }
      guard selection.records || !unseen.isEmpty else { return }
      let key = String(decoding: record.key, as: UTF8.self)
      let isNamed = unseen.remove(key) != nil
      guard selection.records || isNamed else { return }
      guard record.length != nil else { return report.missingRecords.append(key) }
      try write(record.key, RecordRendering(body))
    }
    try noteLosses(contents, unseen)
    let blobs = contents.blobs
    if selection.blobs {
      try writeBlobs(blobs.entries.map(\.cid), blobs)
      for entry in blobs.entries { wanted.remove(entry.cid) }
      do {
        try writeBlobs(archived.extras(), blobs)
      } catch let error where error.isLoss {
        report.damaged.append(("extras", "\(error)"))
      }
      if contents.flaw != nil {
        // Blobs whose records are lost; of several accounts, they are not told apart.
        let history = try SnapshotHistory(of: archived.reader)
        try writeBlobs(archived.strays(history, besides: blobs.contains), blobs)
      }
    }
    for cid in wanted.sorted(by: { "\($0)" < "\($1)" }) {
      guard archived.state(of: cid) != .missing || blobs.contains(cid) else {
        throw BackupError.notFound("\(cid)")
      }
      try writeBlob(cid, blobs[cid])
    }
  }

  /// Reports what is missing of the selection, so that an incomplete extraction never passes for a
  /// complete one.
  ///
  /// - Throws: ``BackupError`` if a record is not in a repository that is not damaged.
  private mutating func noteLosses(_ contents: LaidOutRepository, _ unseen: Set<String>) throws {
    let (tree, takesTree) = (contents.tree, selection.records || selection.blobs)
    guard let flaw = contents.flaw else {
      if let path = unseen.min() { throw contents.absence(of: path) }
      guard takesTree else { return }
      report.missingNodes = tree.missingNodes.map { "\($0)" }
      if case .commitMissing(let commit)? = tree.commitError {
        report.missingNodes.append("\(commit)")
      }
      return
    }
    if let error = tree.commitError { report.damaged.append(("records", "\(error)")) }
    // What the snapshot never had was missing before any damage.
    if archived.snapshot.isComplete || archived.cid == nil {
      if takesTree, let why = tree.whyRecordsAreLost { report.damaged.append(("records", why)) }
      for node in tree.missingNodes where takesTree {
        report.damaged.append(("the tree node \(node)", "it is lost, with all records below it"))
      }
      for record in report.missingRecords { report.damaged.append((record, "it is lost")) }
      report.missingRecords = []
    } else if takesTree {
      report.missingNodes = tree.missingNodes.map { "\($0)" }
      report.damaged.append(("records", flaw))
    }
    for path in unseen.sorted() {
      report.damaged.append((path, "it is not in what is left of the archive"))
    }
  }

  // MARK: Records

  private mutating func write(_ key: [UInt8], _ content: RecordRendering) throws {
    let (part, rest) = FileNaming.parts(of: key)
    // All records of a collection follow one another.
    var folder = collection?.name ?? ""
    if folder.isEmpty || collection?.key != part {
      folder = FileNaming.component(part, for: options.target)
      folder = claimed("records/", folder, "", Array(part ?? []))
      collection = (part, folder)
    }
    let ending = content.isJSON ? ".json" : ".cbor"
    var name = FileNaming.component(rest, ending: ending, for: options.target)
    name = claimed("records/\(folder)/", name, ending, Array(rest))
    let file = OutputFile(
      components: ["records", folder, name], isDurable: false,
      time: notes.times.time(of: key, createdAt: content.createdAt) ?? notes.times.commit)
    try write(file) { sink in
      let bytes = content.bytes
      try sink(bytes.span)
    }
  }

  /// A name, or another one if a name is taken already that differs in case only.
  private mutating func claimed(
    _ folder: String, _ name: String, _ ending: String, _ part: [UInt8]
  ) -> String {
    claim(folder + name) ? name : FileNaming.other(than: name, ending: ending, for: part)
  }

  /// Takes a name; returns whether it was free.
  mutating func claim(_ name: String) -> Bool {
    claims?.insert(name.lowercased().hashValue).inserted ?? true
  }

  // MARK: Documents

  private mutating func writeMetadata() throws {
    let (snapshot, reader) = (archived.snapshot, archived.reader)
    let metadata = snapshot.metadataJSON(head: archived.cid)
    try write(OutputFile(components: [FileNaming.metadata])) { sink in try sink(metadata.span) }
    for (cid, name) in [
      (snapshot.didDocument, FileNaming.didDocument), (snapshot.plcLog, FileNaming.plcLog),
    ] {
      guard let cid else { continue }
      try write(OutputFile(components: [name])) { sink in
        guard try reader.read(cid, each: sink) else { throw SnapshotError.blockMissing(cid) }
      }
    }
  }

  /// Writes private data: each answer as it was received, for the owner's eyes.
  private mutating func writePrivateData() throws {
    let entries: [PrivateData.Entry]
    do {
      entries = try archived.privateData()?.entries ?? []
    } catch let error where error.isLoss {
      return report.damaged.append(("private data", "\(error)"))
    }
    report.lacksPrivateData = entries.allSatisfy(\.answers.isEmpty)
    let archived = archived
    for entry in entries {
      if let fault = entry.fault, fault.kind != .notGiven {
        report.missing.append("private data, \(entry.endpoint): \(fault.why)")
        missingPrivateCount += 1
      }
      let isLines = entry.contentType.map { $0.contains("jsonl") || $0.contains("ndjson") } ?? false
      for (index, answer) in entry.answers.enumerated() {
        let page = entry.answers.count > 1 ? "-\(index + 1)" : ""
        let name = FileNaming.component(
          Array((entry.endpoint + page).utf8)[...], ending: isLines ? ".jsonl" : ".json",
          for: options.target)
        try write(OutputFile(components: ["private", name], isPrivate: true)) { sink in
          try archived.readPrivate(answer, to: sink)
        }
      }
    }
  }
}

extension SnapshotExtractor {
  /// The result.
  package struct Report: Sendable {
    /// What was written.
    package internal(set) var tally = OutputFolder.Tally()
    /// What could not be written because it is damaged: what, and how.
    package internal(set) var damaged: [(what: String, why: String)] = []
    /// Names that no file may have.
    package internal(set) var refused: [String] = []
    /// The first of the files that are in the way: then nothing was written, or, if a file appeared
    /// in the meantime, everything else was.
    package internal(set) var inTheWay: [String] = []
    /// How many files are in the way.
    package internal(set) var inTheWayCount = 0
    /// Blobs that are not in the archive.
    package internal(set) var missing: [String] = []
    /// Records that are not in the archive, though the tree names them.
    package internal(set) var missingRecords: [String] = []
    /// Nodes of the tree that are not in the archive, and with them all records below.
    package internal(set) var missingNodes: [String] = []
    /// Whether the CAR came in without some of its blocks, and is written without them.
    package internal(set) var isCARPartial = false
    /// Blobs whose content has the signature of another type than their record says.
    package internal(set) var mistyped: [String] = []
    /// Files that were to be removed, and were changed since they were extracted: the first of
    /// them.
    package internal(set) var changed: [String] = []
    /// Whether private data was requested, and the snapshot has none.
    package internal(set) var lacksPrivateData = false
    /// Whether the context was requested, and the snapshot has none.
    package internal(set) var lacksContext = false
    /// Why files that the snapshot no longer has were not removed; nil if they were.
    package internal(set) var keptBecause: String?

    /// Whether the archive has everything that was selected.
    package var isComplete: Bool {
      missing.isEmpty && missingRecords.isEmpty && missingNodes.isEmpty && !isCARPartial
    }

    /// How many files in the way are named.
    static let maximumListed = 1000

    /// An empty report.
    package init() {}

    /// Adds the result of a later extraction into the same folder.
    package mutating func add(_ later: Report) {
      // It counts what was written into the folder, whatever for.
      tally = later.tally
      damaged += later.damaged
      refused += later.refused
      inTheWay += later.inTheWay.prefix(Self.maximumListed - inTheWay.count)
      inTheWayCount += later.inTheWayCount
      missing += later.missing
      missingRecords += later.missingRecords
      missingNodes += later.missingNodes
      isCARPartial = isCARPartial || later.isCARPartial
      mistyped += later.mistyped
      changed += later.changed
      lacksPrivateData = lacksPrivateData || later.lacksPrivateData
      lacksContext = lacksContext || later.lacksContext
      keptBecause = keptBecause ?? later.keptBecause
    }
  }
}

extension FileNaming {
  /// The file of a snapshot's CAR: handle or DID, then the revision; a commit of version 2 has none
  /// and gives its CID.
  package static func car(of snapshot: Snapshot, for target: Target = .unix) -> String {
    let owner = snapshot.handle?.text ?? account(snapshot.did, for: target)
    return name(owner, ending: "-\(snapshot.rev?.text ?? "\(snapshot.commit)").car")
  }
}
