internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Extraction
internal import Files
internal import IPLD
internal import Reports
internal import Repository
internal import Snapshots
internal import Terminal

/// `carpack ls`: what an archive holds, and what it should hold and does not.
struct ListCommand: ReportingCommand, ConfigurableOptions {
  static let page = ManualPage("ls", PackageResources.ls_txt)
  static let settings = [
    Setting(name: "long", kind: .flag, letter: "l")
  ]

  @Flag(name: .shortAndLong, help: "List dates as well, in columns.")
  var long = false

  @Flag(help: "List the records only.")
  var records = false

  @Flag(help: "List the blobs only.")
  var blobs = false

  @Flag(help: "List the snapshots only.")
  var snapshots = false

  @Flag(
    help: "List what is missing or damaged only; all that is stored of the blobs is read for it.")
  var missing = false

  @OptionGroup var archive: ArchiveArgument

  @Argument(
    help: ArgumentHelp(
      "What to list: collections, collection/rkey with \"*\", rkeys, CIDs, at:// URIs, pages.",
      valueName: "selector"))
  var selectors: [String] = []

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var recordFilters: RecordFilterOptions

  @OptionGroup var blobFilters: BlobFilterOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if let file = selectors.first(where: { $0.hasSuffix(".car.zst") }) {
      throw ValidationError("ls lists one archive: \(file) is a second one")
    }
    if snapshots, choice.at != nil {
      throw ValidationError("--snapshots lists all of them: leave out --at")
    }
  }

  func run() throws { try archive.read(show) }

  private func show(_ opened: OpenedArchive) throws {
    if snapshots {
      let list = try SnapshotList(opened, account: choice.accountOption.account)
      let status = try list.show(json: json)
      if status != .success { throw status }
      return
    }
    var listing = Listing(
      isJSON: json, isLong: long, showsOnlyMissing: missing,
      filter: try ItemFilter(selectors, recordFilters, blobFilters))
    var status = ExitStatus.success
    let snapshots = try self.snapshots(opened)
    for snapshot in snapshots {
      listing.account = snapshot.snapshot.did
      listing.showsAccount = snapshots.count > 1
      status = .worst(status, try list(snapshot, &listing))
    }
    // What was not found may be in what cannot be listed.
    if let only = selectors.first, selectors.count == 1, !listing.hasFound, snapshots.count == 1,
      !listing.isPartial, try Selector(only).meansOneRecord
    {
      throw try opened.absence(of: only, in: snapshots[0])
    }
    if !listing.hasFound, !missing, !listing.isPartial {
      if !selectors.isEmpty { throw BackupError.notFound(selectors.joined(separator: ", ")) }
      if !listing.filter.hasNoOptions { throw BackupError.notFound("what the filters ask for") }
    }
    status = .worst(listing.worst, opened.status, status)
    if status != .success { throw status }
  }

  /// The snapshots to list; selectors that say whose they are choose the account.
  private func snapshots(_ opened: OpenedArchive) throws -> [ArchivedSnapshot] {
    guard try selectors.contains(where: { try Selector($0).account != nil }) else {
      return try opened.snapshots(choice)
    }
    return [try opened.snapshot(choice, naming: selectors)]
  }

  /// Lists one snapshot; answers whether it is whole.
  private func list(_ archived: ArchivedSnapshot, _ listing: inout Listing) throws -> ExitStatus {
    let all = !records && !blobs
    let takesRecords = listing.filter.takesRecords
    let needsTimes = long || listing.filter.needsTimes
    let blocks = SnapshotBlocks(
      archived, keepsRecords: needsTimes, observer: ProgressLine.observer(quiet: common.quiet))
    var dates = needsTimes ? BlobNotes(in: blocks) : nil
    let contents = try blocks.contents { record, body in
      let time = dates?.time(of: record, body)
      guard records || all, takesRecords else { return }
      listing.add(
        Listing.Row(
          path: record.key, cid: record.cid, kind: .record,
          state: record.length.map { .held($0) } ?? .missing, time: time ?? nil))
    }
    let tree = contents.tree
    if blobs || all {
      let entries = contents.blobs.entries
      let accepted = try archived.acceptances()
      let (states, isByIndex) = try archived.states(of: entries, isChecking: missing)
      if isByIndex { common.say(OpenedArchive.byIndex) }
      for (entry, state) in zip(entries, states) {
        listing.add(
          Listing.Row(
            path: Array(entry.firstRecord.utf8), cid: entry.cid, kind: .blob,
            type: entry.mimeType, state: state, accepted: accepted[entry.cid],
            declaredSize: entry.size,
            time: try dates?.time(of: entry.cid, record: Array(entry.firstRecord.utf8))))
      }
      let extras = try archived.extras()
      for (extra, state) in zip(
        extras, try archived.states(of: extras, isChecking: missing && !isByIndex))
      {
        listing.add(
          Listing.Row(path: nil, cid: extra, kind: .extra, state: state))
      }
    }
    listing.print()
    if !contents.listsAllRecords { listing.isPartial = true }
    if let flaw = contents.flaw {
      Console.say(
        .damaged, "the repository is not whole, this is what is left of it: \(flaw)"
      )
    } else if let why = tree.whyNoCommit {
      common.say(.incomplete, "no record can be listed: \(why)")
    } else if !tree.missingNodes.isEmpty {
      common.say(
        .incomplete,
        "\(Quantity.count(tree.missingNodes.count, "tree node")) missing, and all records below"
      )
    }
    let lacksRecords = (records || all) && !tree.isComplete
    return .worst(
      contents.flaw == nil ? .success : .damaged,
      lacksRecords || !tree.missingNodes.isEmpty ? .incomplete : .success)
  }
}

/// Prints rows as they come.
struct Listing {
  enum Kind: String, CaseIterable {
    case record, blob, extra
  }

  struct Row {
    let path: [UInt8]?
    let cid: CID
    let kind: Kind
    /// The media type of a blob.
    var type: String?
    let state: BlobState
    /// That its loss is accepted, if it is missing.
    var accepted: BlobLedger.Acceptance?
    var declaredSize: Int?
    /// When the record was made, if that was asked for.
    var time: Moment?
  }

  let isJSON: Bool
  let isLong: Bool
  let showsOnlyMissing: Bool
  let filter: ItemFilter
  /// Whose rows come.
  var account: DID?
  /// Whether paths say whose they are.
  var showsAccount = false
  /// Whether there are records that cannot be listed.
  var isPartial = false
  private(set) var worst = ExitStatus.success
  /// Whether anything passed the filter.
  private(set) var hasFound = false
  private var json = JSONWriter.ofResults
  private var lines = OutputLines()

  init(isJSON: Bool, isLong: Bool, showsOnlyMissing: Bool, filter: ItemFilter) {
    self.isJSON = isJSON
    self.isLong = isLong
    self.showsOnlyMissing = showsOnlyMissing
    self.filter = filter
  }

  mutating func add(_ row: Row) {
    let mark: String?
    var size = row.declaredSize.map { UInt64($0) }
    switch row.state {
    case .held(let length):
      mark = nil
      size = length
    case .missing:
      mark = "missing"
    case .damaged:
      mark = "damaged"
    }
    // What is listed decides the exit status, and nothing else.
    guard filter.passes(row.path, row.cid, type: row.type, size: size, time: row.time) else {
      return
    }
    hasFound = true
    if showsOnlyMissing, mark == nil { return }
    let isAccepted = row.state == .missing && row.accepted != nil
    if let mark, !isAccepted {
      worst = .worst(worst, mark == "missing" ? .incomplete : .damaged)
    }
    let word = isAccepted ? Mark.acceptedAsLost.rawValue : mark
    if isJSON {
      Self.report.write((self, row, size, mark ?? "held"), to: &json)
    } else if isLong {
      printLong(row, size, word)
    } else {
      printText(row, size, word)
    }
  }

  private mutating func printText(_ row: Row, _ size: UInt64?, _ mark: String?) {
    if let path = row.path {
      if showsAccount, let account { lines.append(visible: "at://\(account)/") }
      lines.append(visible: path)
    } else {
      lines.append("-")
    }
    lines.append("  ")
    row.cid.appendText(to: &lines.bytes)
    lines.append("  ")
    if row.kind == .record {
      lines.append("record")
    } else {
      lines.append(visible: row.type ?? "-")
    }
    lines.append("  ")
    if let size { lines.append(byteCount: size) } else { lines.append("-") }
    if let mark { lines.append(visible: "  [\(mark)]") }
    lines.append("\n")
    lines.printIfMany()
  }

  /// Prints a row in columns: date, size, type, path, CID.
  private mutating func printLong(_ row: Row, _ size: UInt64?, _ mark: String?) {
    func padded(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    let bytes = size.map { Quantity.bytes($0) } ?? "-"
    lines.append(visible: padded(row.time?.minute ?? "-", 16))
    lines.append(visible: String(repeating: " ", count: max(0, 8 - bytes.count) + 2))
    lines.append(visible: bytes)
    lines.append("  ")
    lines.append(visible: padded(row.kind == .record ? "record" : row.type ?? "-", 12))
    lines.append("  ")
    if showsAccount, let account { lines.append(visible: "at://\(account)/") }
    if let path = row.path { lines.append(visible: path) } else { lines.append("-") }
    lines.append("  ")
    row.cid.appendText(to: &lines.bytes)
    if let mark { lines.append(visible: "  [\(mark)]") }
    lines.append("\n")
    lines.printIfMany()
  }

  static let report = Report<(all: Listing, row: Row, size: UInt64?, state: String)>(
    "ls", "`carpack ls`: a record or a blob."
  ) {
    Field("kind", "an extra is a blob that no record refers to", .one(of: Kind.self)) {
      $0.row.kind.rawValue
    }
    Field("account", "whose it is") { $0.all.account }
    Field("path", "the record, or the first that refers to the blob") {
      $0.row.path.map(UTF8Text.init)
    }
    Field("cid", "its CID") { $0.row.cid }
    Field("type", "its media type") {
      $0.row.kind == .record ? "application/vnd.ipld.dag-cbor" : $0.row.type
    }
    Field("size", "its bytes; if missing, as declared") { $0.size }
    Field("state", "whether it is there", .one(of: "held", "missing", "damaged")) { $0.state }
    Field(
      optional: "accepted", "that the loss is accepted",
      { $0.row.state == .missing ? $0.row.accepted : nil }, as: BlobFields.acceptance)
    Field(
      optional: "createdAt", "with -l, --since or --until: when the record was made", .time
    ) { $0.row.time?.text }
  }

  mutating func print() {
    lines.print()
    Console.print(json.takeBytes().span)
  }
}
