internal import ATProtocol
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

  @Flag(help: "List other people and their posts, as an app view showed them.")
  var context = false

  @Flag(
    help: "List only what is missing or damaged; this reads the stored bytes of all blobs.")
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
    if context, records || blobs || snapshots || missing || !selectors.isEmpty {
      throw ValidationError(
        "--context lists only other people and their posts: leave out the other options")
    }
  }

  func run() throws { try archive.read(show) }

  private func show(_ opened: OpenedArchive) throws {
    if snapshots {
      return try opened.showSnapshots(of: choice.accountOption.account, json: json).finish()
    }
    if context { return try showContext(opened) }
    let filter = try ItemFilter(selectors, recordFilters, blobFilters)
    var listing = Listing(command: self)
    let snapshots = try self.snapshots(opened)
    for snapshot in snapshots {
      listing.account = snapshot.snapshot.did
      listing.prefix = snapshots.count > 1 ? "at://\(snapshot.snapshot.did)/" : ""
      try list(snapshot, filter, &listing)
    }
    // What was not found may be in what cannot be listed.
    if !listing.hasFound, !listing.isPartial {
      if let only = selectors.first, selectors.count == 1, snapshots.count == 1,
        try Selector(only).meansOneRecord
      {
        throw try opened.absence(of: only, in: snapshots[0])
      }
      let isOfFilters = selectors.isEmpty && !filter.hasNoOptions
      let wanted = isOfFilters ? "what the filters ask for" : selectors.joined(separator: ", ")
      if !missing, !wanted.isEmpty { throw BackupError.notFound(wanted) }
    }
    try ExitStatus.worst(listing.worst, opened.status).finish()
  }

  private func showContext(_ opened: OpenedArchive) throws {
    for snapshot in try opened.snapshots(choice) {
      try snapshot.forEachContextItem { item in
        ContextListing.show((opened.name, snapshot.snapshot.did, item, nil), json: json)
      }
    }
    try opened.status.finish()
  }

  /// The snapshots to list; selectors that say whose they are choose the account.
  private func snapshots(_ opened: OpenedArchive) throws -> [ArchivedSnapshot] {
    guard try selectors.contains(where: { try Selector($0).account != nil }) else {
      return try opened.snapshots(choice)
    }
    return [try opened.snapshot(choice, naming: selectors)]
  }

  /// Lists one snapshot, and says what cannot be listed of it.
  private func list(
    _ archived: ArchivedSnapshot, _ filter: ItemFilter, _ listing: inout Listing
  ) throws {
    let all = !records && !blobs
    let (contents, isByIndex) = try filter.forEachItem(
      of: archived, records: records || all, blobs: blobs || all, extras: blobs || all,
      isDated: long, isChecking: missing,
      observer: ProgressLine.observer(quiet: common.quiet)
    ) { listing.add($0) }
    if isByIndex { common.say(OpenedArchive.byIndex) }
    listing.print()
    let tree = contents.tree
    if !contents.listsAllRecords { listing.isPartial = true }
    if (records || all) && !tree.isComplete { listing.add(.incomplete) }
    listing.add(contents.sayWhatIsLost(common))
  }
}

extension LaidOutRepository {
  /// Prints why it does not list all records, if it does not; returns 11 for damage, 10 for what is
  /// missing.
  func sayWhatIsLost(_ common: CommonOptions) -> ExitStatus {
    if let flaw {
      Console.say(.damaged, "the repository is damaged; this is what is left of it: \(flaw)")
      return .damaged
    }
    if let why = tree.whyNoCommit {
      common.say(.incomplete, "no record can be listed: \(why)")
      return .incomplete
    }
    guard let nodes = Quantity.some(tree.missingNodes.count, "tree node") else { return .success }
    common.say(.incomplete, "\(nodes) missing, and all records below")
    return .incomplete
  }
}

/// Prints records and blobs as they come.
struct Listing {
  let command: ListCommand
  /// Whose they are.
  var account: DID?
  /// What stands in front of paths, where there are several accounts.
  var prefix = ""
  /// Whether there are records that cannot be listed.
  var isPartial = false
  private(set) var worst = ExitStatus.success
  /// Whether anything passed the filter.
  private(set) var hasFound = false
  private var json = JSONWriter.ofResults
  private var lines = OutputLines()

  init(command: ListCommand) { self.command = command }

  mutating func add(_ status: ExitStatus) { worst = .worst(worst, status) }

  mutating func add(_ item: ListedItem) {
    // What is listed decides the exit status, and nothing else.
    hasFound = true
    let isHeld = item.state.isHeld
    if command.missing, isHeld { return }
    if !isHeld, item.accepted == nil {
      add(item.state == .missing ? .incomplete : .damaged)
    }
    if command.json {
      Self.report.write((account, item), to: &json)
    } else {
      let word = item.accepted == nil ? item.state.word : Mark.acceptedAsLost.rawValue
      append(item, mark: isHeld ? "" : "  [\(word)]")
    }
  }

  /// Adds a line: path, CID, type and size; with `--long` these two come first, after the date, and
  /// in columns.
  private mutating func append(_ item: ListedItem, mark: String) {
    let type = item.kind == .record ? "record" : item.type ?? "-"
    if command.long {
      lines.append(visible: (item.time?.minute ?? "-").padded(to: 16))
      let size = item.size.map { Quantity.bytes($0) } ?? "-"
      lines.append(visible: "  \(size.padded(.right, to: 8))  \(type.padded(to: 12))  ")
    }
    if let path = item.path {
      lines.append(visible: prefix)
      lines.append(visible: path)
    } else {
      lines.append("-")
    }
    lines.append("  ")
    item.cid.appendText(to: &lines.bytes)
    if !command.long {
      lines.append("  ")
      lines.append(visible: type)
      lines.append("  ")
      if let size = item.size { lines.append(byteCount: size) } else { lines.append("-") }
    }
    lines.append(visible: mark)
    lines.append("\n")
    lines.printIfMany()
  }

  static let report = Report<(account: DID?, item: ListedItem)>(
    "ls", "`carpack ls`: a record or a blob."
  ) {
    Field("kind", "an extra is a blob that no record refers to", .one(of: ListedItem.Kind.self)) {
      $0.item.kind.rawValue
    }
    Field("account", "whose it is") { $0.account }
    Field("path", "the record, or the first that refers to the blob") {
      $0.item.path.map(UTF8Text.init)
    }
    Field("cid", "its CID") { $0.item.cid }
    Field("type", "its media type") {
      $0.item.kind == .record ? "application/vnd.ipld.dag-cbor" : $0.item.type
    }
    Field("size", "its bytes; if missing, as declared") { $0.item.size }
    Field("state", "whether the archive holds it", .one(of: "held", "missing", "damaged")) {
      $0.item.state.word
    }
    Field(
      optional: "accepted", "when and why the loss was accepted", { $0.item.accepted },
      as: BlobFields.acceptance)
    Field(
      optional: "createdAt", "with -l, --since or --until: the record's date, if it has one", .time
    ) { $0.item.time?.text }
  }

  mutating func print() {
    lines.print()
    Console.print(json.takeBytes().span)
  }
}
