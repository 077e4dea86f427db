internal import ATProtocol
internal import Archive
package import Files
internal import IPLD
internal import Repository
package import Snapshots

/// Writes what a snapshot holds into a folder, in the layout that people know.
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
  let folder: OutputFolder
  let options: ExtractionOptions
  let observer: Progress.Observer
  private let account: String
  private let files: ExtractedFiles
  private let times: RecordTimes
  var report = Report()
  private var blocks: SnapshotBlocks?
  /// How many of the missing things are private data.
  var missingPrivateCount = 0
  var notes: BlobNotes?
  /// The names that were given, where names meet that differ in case only.
  var claims: ClaimedNames?
  private var collection = (key: [UInt8](), name: "")

  private init(
    _ archived: ArchivedSnapshot, into folder: OutputFolder, _ options: ExtractionOptions,
    observer: @escaping Progress.Observer
  ) throws {
    (self.archived, self.folder, self.options, self.observer) = (
      archived, folder, options, observer
    )
    account = FileNaming.account(archived.snapshot.did, for: options.target)
    files = try ExtractedFiles(folder, account)
    times = RecordTimes(of: archived.snapshot)
  }

  /// Writes what is selected.
  ///
  /// Files that an earlier extraction wrote, and that were not changed since, are replaced by what
  /// the snapshot has now. If anything else is in the way, nothing is written.
  ///
  /// - Parameter checksOnly: whether it is only found out what is in the way, and nothing written.
  /// - Throws: ``BackupError`` for a folder that cannot be written to; `CancellationError` if the
  ///   folder was told to stop, and then what was written is known to the next extraction. What is
  ///   wrong with the archive is in the report.
  package static func extract(
    _ selection: Selection, of archived: ArchivedSnapshot, into folder: OutputFolder,
    options: ExtractionOptions = ExtractionOptions(), checksOnly: Bool = false,
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> Report {
    var extractor = try SnapshotExtractor(archived, into: folder, options, observer: observer)
    try extractor.findWhatIsInTheWay(selection)
    guard extractor.report.inTheWay.isEmpty, !checksOnly else { return extractor.report }
    try extractor.files.begin()
    do {
      try extractor.run(selection)
      try extractor.finish(selection)
    } catch {
      do {
        try extractor.files.stop()
      } catch {
        // What keeps the list from being ended kept the files from being written, and is said once.
      }
      throw error
    }
    try folder.synchronize()
    extractor.report.tally = folder.tally
    return extractor.report
  }

  private mutating func findWhatIsInTheWay(_ selection: Selection) throws {
    guard files.isThere else { return }
    try run(selection)
    // What is wrong with the archive is said when it is extracted.
    var found = Report()
    (found.inTheWay, found.inTheWayCount) = (report.inTheWay, report.inTheWayCount)
    found.tally = folder.tally
    report = found
  }

  private mutating func run(_ selection: Selection) throws {
    claims = options.names == .readable || folder.foldsCase(account) ? ClaimedNames() : nil
    (collection, missingPrivateCount) = (([], ""), 0)
    if selection.car { try writeCAR() }
    // What follows takes a while, and may be interrupted before the next file.
    try files.flush()
    if selection.records || selection.blobs || !selection.items.isEmpty {
      try writeContents(selection)
    }
    if selection.metadata { try writeMetadata() }
    if selection.privateData { try writePrivateData() }
  }

  /// Removes what the snapshot no longer has, if that was asked for, and ends the list of what was
  /// written.
  private mutating func finish(_ selection: Selection) throws {
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
      if path.hasPrefix("private/") { return selection.privateData && missingPrivateCount == 0 }
      if path.contains("/") { return false }
      return path.hasSuffix(".car")
        ? selection.car : selection.metadata && ExtractedName.all.contains(path)
    }
  }

  /// Writes one file, and keeps what is wrong with it for the report.
  ///
  /// - Parameters:
  ///   - components: its path below the account's folder.
  ///   - durably: whether the content is on the medium before the file has its name.
  ///   - digest: that of its content, where it is known beforehand.
  ///   - time: when it was modified, if it gets that time.
  ///   - isPrivate: whether it is for its owner alone.
  ///   - produce: its content.
  mutating func write(
    _ components: [String], durably: Bool = true, digest: SHA256Digest? = nil,
    time: FileTime? = nil, isPrivate: Bool = false,
    _ produce: ((Span<UInt8>) throws -> Void) throws -> Void
  ) throws {
    let file = OutputFile(
      components: [account] + components, isDurable: durably, digest: digest,
      time: options.setsTimes ? time : nil, isPrivate: isPrivate)
    do {
      try files.write(file, produce)
    } catch BackupError.hostileName(let name) {
      report.refused.append(name)
    } catch BackupError.fileDiffers(let path), BackupError.inTheWay(let path) {
      report.addInTheWay(path)
    } catch let error where Self.isOfArchive(error) {
      report.damaged.append((components.joined(separator: "/"), "\(error)"))
    }
  }

  static func isOfArchive(_ error: any Error) -> Bool {
    error is ArchiveError || error is SnapshotError
  }

  private mutating func writeCAR() throws {
    let snapshot = archived.snapshot
    let name = FileNaming.car(of: snapshot, for: options.target)
    if files.isChecking {
      guard try folder.isThere([account, name]) else { return }
      if snapshot.fetched?.since == nil, let digest = snapshot.car.sha256 {
        try write([name], digest: digest) { _ in }
        return
      }
    }
    let restored = try RestoredRepository(archived, order: .exported, observer: observer)
    guard restored.isExact else {
      report.damaged.append((name, restored.flaw ?? ""))
      return
    }
    report.isCARPartial = !snapshot.isComplete
    try write([name], time: times.commit) { sink in try restored.withBytes { try sink($0) } }
  }

  /// Writes records and blobs, which takes a walk through the repository to know their names.
  private mutating func writeContents(_ selection: Selection) throws {
    var wanted: Set<CID> = []
    var paths: Set<String> = []
    for item in selection.items {
      switch item {
      case .cid(let cid): wanted.insert(cid)
      case .record(let path): paths.insert(path)
      }
    }
    var unseen = paths
    let blocks =
      blocks
      ?? SnapshotBlocks(
        archived, keepsRecords: selection.records || !paths.isEmpty, observer: observer)
    // Once they are laid out, they serve again.
    self.blocks = blocks
    let wantsNotes = options.setsTimes || options.names == .readable
    notes = (selection.blobs || !wanted.isEmpty) && wantsNotes ? BlobNotes(in: blocks) : nil
    var done: UInt64 = 0
    let total = UInt64(clamping: archived.snapshot.counts.records)
    let contents = try blocks.contents { record, body in
      notes?.add(record)
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
      try write(record, key, body)
    }
    try noteLosses(contents, unseen, selection)
    let blobs = contents.blobs
    if selection.blobs {
      try writeBlobs(
        blobs.entries.map { ($0.cid, $0.mimeType, $0.size, $0.firstRecord) })
      for entry in blobs.entries { wanted.remove(entry.cid) }
      try writeExtras()
      if contents.flaw != nil { try writeStrays(except: blobs) }
    }
    for cid in wanted.sorted(by: { "\($0)" < "\($1)" }) {
      guard archived.state(of: cid) != .missing || blobs.contains(cid) else {
        throw BackupError.notFound("\(cid)")
      }
      let entry = blobs[cid]
      try writeBlob((cid, entry?.mimeType, nil, entry?.firstRecord))
    }
  }

  /// Says what is not there of the selection, so that less than everything never passes for
  /// everything.
  ///
  /// - Throws: ``BackupError/notFound(_:)`` if a record is not in a repository that is not damaged.
  private mutating func noteLosses(
    _ contents: LaidOutRepository, _ unseen: Set<String>, _ selection: Selection
  ) throws {
    let (tree, takesTree) = (contents.tree, selection.records || selection.blobs)
    guard let flaw = contents.flaw else {
      if let path = unseen.min() { throw BackupError.notFound(path) }
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
      for node in tree.missingNodes where takesTree {
        report.damaged.append(("the tree node \(node)", "it is lost, and all records below it"))
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

  private mutating func write(
    _ record: SnapshotBlocks.Record, _ key: String, _ body: Span<UInt8>
  ) throws {
    guard record.length != nil else {
      report.missingRecords.append(key)
      return
    }
    let content = RecordRendering(body)
    try write(
      name(of: record.key, ending: content.ending), durably: false,
      time: times.time(of: record.key, createdAt: content.createdAt)
    ) { sink in
      let bytes = content.bytes
      try sink(bytes.span)
    }
  }

  /// The path of a record's file.
  private mutating func name(of key: [UInt8], ending: String) -> [String] {
    let (part, rest) = FileNaming.parts(of: key)
    let key = part.map(Array.init) ?? []
    if collection.name.isEmpty || collection.key != key || part == nil {
      // All records of a collection follow one another.
      let name = FileNaming.component(part, for: options.target)
      collection = (key, claimed("records/", name, "", key))
    }
    let name = FileNaming.component(rest, ending: ending, for: options.target)
    let folder = "records/\(collection.name)/"
    return ["records", collection.name, claimed(folder, name, ending, Array(rest))]
  }

  /// A name, or another if there is one already that differs in case only.
  private mutating func claimed(
    _ folder: String, _ name: String, _ ending: String, _ part: [UInt8]
  ) -> String {
    guard claims != nil, claims?.insert(folder + name) == false else { return name }
    return FileNaming.other(than: name, ending: ending, for: part)
  }
}
