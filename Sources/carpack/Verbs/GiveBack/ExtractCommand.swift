internal import Archive
internal import ArgumentParser
internal import Extraction
internal import Files
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack extract`: everything back, or a part of it.
struct ExtractCommand: ReportingCommand, ConfigurableOptions {
  static let page = ManualPage("extract", PackageResources.extract_txt)

  static let settings = [
    Setting(name: "names", kind: .text),
    Setting(name: "no-times", kind: .flag),
  ]

  /// How blobs are named, if the user chose.
  enum BlobNames: String, CaseIterable, ExpressibleByArgument { case cid, readable }

  @Flag(help: "Everything except private data.")
  var all = false

  @Flag(help: "The CAR.")
  var car = false

  @Flag(help: "Every record; beside selectors, records without their blobs.")
  var records = false

  @Flag(help: "Every blob, extras included; beside selectors, the blobs of records alone.")
  var blobs = false

  @Flag(help: "The metadata, and the account's documents.")
  var metadata = false

  @Flag(
    name: .customLong("private"),
    help:
      "The private data, as private/METHOD.json, readable only by you (mode 0600)."
  )
  var privateData = false

  @Flag(
    help:
      "What an app view showed of other people and their posts (\"carpack backup --context\"), as context/people.json, context/posts.json and thumbnails."
  )
  var context = false

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "With --car alone: the file for the CAR, \"-\" for standard output.", valueName: "file"),
    completion: .file())
  var output: String?

  @Option(
    name: [.customShort("d"), .customLong("directory")],
    help: ArgumentHelp(
      "The folder to write into (default: one beside the archive, with its name). With --car, \"-\" writes the CAR to standard output.",
      valueName: "dir"), completion: .directory)
  var directory: String?

  @Option(
    help: ArgumentHelp(
      "The names of blobs: their CIDs, or readable names that also work on Windows and exFAT, such as 2025-03-22_3lkxag2q_1_plan-of-forty-beds.svg.",
      valueName: "cid|readable"))
  var names = BlobNames.cid

  @Flag(help: "Do not set the times of files to those of their records.")
  var noTimes = false

  @Flag(
    help:
      "Remove files that the snapshot no longer has, if an earlier extraction wrote them and they are unchanged since."
  )
  var delete = false

  @Flag(help: "Replace files that differ, even those that carpack did not write.")
  var overwrite = false

  @OptionGroup var archive: ArchiveArgument

  @Argument(
    help: ArgumentHelp(
      "Single things, and the blobs of records: collections, collection/rkey with \"*\", rkeys, CIDs, at:// URIs, pages.",
      valueName: "selector"))
  var selectors: [String] = []

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var recordFilters: RecordFilterOptions

  @OptionGroup var blobFilters: BlobFilterOptions

  @OptionGroup var terminal: TerminalOptions

  @OptionGroup var reporting: ReportOptions

  /// Where the CAR goes, if it alone is wanted: a file, or `-`.
  private var carOutput: String? { output ?? (directory == "-" ? "-" : nil) }

  func validate() throws {
    let isOtherwiseChosen = all || records || blobs || metadata || privateData || context || json
    if carOutput != nil, isOtherwiseChosen || car != selectors.isEmpty {
      throw ValidationError("-o and -d - write only the CAR: use them with --car and nothing else")
    }
    if let directory, output != nil {
      throw ValidationError(
        "-o names a file for the CAR, -d \(directory) a folder: use one of them")
    }
    let isFiltered = try !filter.hasNoOptions
    if delete, !selectors.isEmpty || isFiltered {
      throw ValidationError(
        "--delete works on whole kinds of files: leave out selectors and filters")
    }
    if isFiltered, all || car || metadata || privateData || context {
      throw ValidationError(
        "--collection, --since, --until, --type and --larger choose only records and blobs")
    }
  }

  /// What the options leave of records and blobs.
  private var filter: ItemFilter {
    get throws { try ItemFilter(selectors, recordFilters, blobFilters) }
  }

  func run() throws {
    if carOutput != nil, let selector = selectors.first {
      throw Failure(
        "-o and -d - write only the CAR",
        hint:
          "\"carpack cat \(archive.file.shellWord) \(selector.shellWord) > FILE\" writes one thing to a file, -d DIR all of them to a folder",
        status: .usage)
    }
    try archive.read { opened in
      if let carOutput { try writeCAR(of: opened, to: carOutput) } else { try extract(opened) }
    }
  }

  /// Writes the CAR of a snapshot to a file, or to standard output.
  private func writeCAR(of opened: OpenedArchive, to output: String) throws {
    if output == "-" { try terminal.check() }
    let snapshot = try opened.snapshot(choice)
    let observer = ProgressLine.observer(quiet: common.quiet)
    if output == "-" {
      // What was printed cannot be taken back.
      let restored = try RestoredRepository(snapshot, exporting: true, observer: observer)
      if let flaw = restored.flaw { throw BackupError.carNotExact(flaw) }
      try restored.withBytes { try Console.write($0) }
    } else {
      guard overwrite || !AtomicFile.isTaken(FilePath(output)) else {
        throw Failure("\(output) exists", hint: "--overwrite replaces it", status: .cannotCreate)
      }
      try snapshot.writeCAR(exporting: true, observer) { content in
        try AtomicFile.save(to: FilePath(output), replacing: overwrite, content)
      }
    }
    if !snapshot.snapshot.isComplete { common.say(.missing, Self.partialCAR) }
    try ExitStatus.end(
      with: opened.status, snapshot.snapshot.isComplete ? .success : .incomplete)
  }

  private static let partialCAR =
    "tree nodes or records, which the CAR did not have when it was packed or fetched"

  /// Writes what was asked for to files.
  private func extract(_ opened: OpenedArchive) throws {
    let observer = ProgressLine.observer(quiet: common.quiet)
    // Single things are of one account; everything is of all of them, each in a folder of its own.
    let snapshots =
      try selectors.isEmpty && filter.hasNoOptions
      ? try opened.snapshots(choice) : [try opened.snapshot(choice, naming: selectors)]
    let folder = try folder(for: archive.file)
    let selection = try selection(in: snapshots[0], of: opened, observer)
    let results = try opened.explainingAbsence(of: selectors, in: snapshots[0]) {
      try extract(selection, of: snapshots, into: folder, observer: observer)
    }
    Console.endProgress()
    var report = SnapshotExtractor.Report()
    for (account, part) in results {
      sayLosses(of: results.count > 1 ? "\(account): " : "", part)
      report.add(part)
    }
    say(report, folder)
    if selection.isAll, !privateData, snapshots.contains(where: \.holdsPrivateData) {
      common.say(.note, "private data is left out: --private extracts it, too")
    }
    if json { Self.report.print((folder, report)) }
    try ExitStatus.end(
      with: opened.status,
      report.damaged.isEmpty ? .success : .damaged,
      report.refused.isEmpty ? .success : .refused,
      report.inTheWay.isEmpty ? .success : .cannotCreate,
      report.isComplete ? .success : .incomplete)
  }

  /// What the words and options mean in a snapshot.
  private func selection(
    in snapshot: ArchivedSnapshot, of opened: OpenedArchive, _ observer: @escaping Progress.Observer
  ) throws -> Selection {
    let filter = try filter
    let isChosen = car || records || blobs || metadata || privateData || context
    let isAll = all || !isChosen && selectors.isEmpty && filter.hasNoOptions
    var selection = Selection(
      car: car || isAll, records: records || isAll, blobs: blobs || isAll,
      metadata: metadata || isAll, privateData: privateData, context: context)
    if !filter.hasNoOptions {
      try selection.choose(filter, in: snapshot, observer: observer)
    } else if !selectors.isEmpty {
      try opened.explainingAbsence(of: selectors, in: snapshot) {
        try selection.choose(selectors, in: snapshot, observer: observer)
      }
      guard !selection.items.isEmpty else {
        throw Failure("\(selectors.joined(separator: ", ")) refers to no blob", status: .noInput)
      }
    }
    return selection
  }

  /// Prints what is wrong with the extraction of one account.
  private func sayLosses(of account: String, _ report: SnapshotExtractor.Report) {
    for (what, why) in report.damaged { Console.say(.damaged, "\(account)\(what): \(why)") }
    for name in report.refused {
      Console.say(.refused, "\(account)no file may have the name \(name.debugDescription)")
    }
    common.say(
      .missing, report.missing.lazy.map { "\(account)\($0)" }, of: report.missing.count,
      all: "carpack missing")
    let gaps = [
      report.missingRecords.first.map {
        "\(Quantity.count(report.missingRecords.count, "record")), the first is \($0)"
      },
      Quantity.some(report.missingNodes.count, "tree node").map { "\($0), and all records below" },
    ].compactMap(\.self)
    for gap in gaps.isEmpty && report.isCARPartial ? [Self.partialCAR] : gaps {
      common.say(.missing, "\(account)\(gap)")
    }
    common.say(
      .note, report.mistyped.lazy.map { "\(account)\($0)" }, of: report.mistyped.count)
  }

  /// Prints what was done with the files of all accounts.
  private func say(_ report: SnapshotExtractor.Report, _ directory: String) {
    Console.say(
      .error, report.inTheWay.lazy.map { "\($0) exists already and holds something else" },
      of: report.inTheWayCount)
    if !report.inTheWay.isEmpty {
      Console.say(
        "hint: move them, choose another folder with -d, or replace them with --overwrite")
    }
    common.say(
      .note, report.changed.lazy.map { "\($0) was changed, so it stays" }, of: report.changed.count)
    if let why = report.keptBecause {
      common.say(.note, "files of earlier snapshots stay: \(why)")
    }
    let tally = report.tally
    let further = [
      (tally.replaced, "of them replaced"), (tally.alreadyThere, "there already"),
      (tally.removed, "removed"),
    ].filter { $0.0 > 0 }.map { ", \(Quantity.grouped($0.0)) \($0.1)" }
    common.say(
      "\(directory): \(Quantity.count(tally.written, "file")) written, \(Quantity.bytes(tally.bytes))"
        + further.joined())
    if report.lacksContext {
      common.say(
        .note, "there is no context: \"carpack backup --context\" keeps what records point to")
    }
    if report.lacksPrivateData {
      common.say(
        .note,
        "there is no private data: \"carpack backup --login --private\" keeps what the server gives"
      )
    }
  }

  static let report = Report<(directory: String, all: SnapshotExtractor.Report)>(
    "extract", "`carpack extract`."
  ) {
    Field("directory", "the folder") { $0.directory }
    Field("written", "files written") { $0.all.tally.written }
    Field("bytes", "their bytes") { $0.all.tally.bytes }
    Field("replaced", "of these, files that an earlier extraction wrote") {
      $0.all.tally.replaced
    }
    Field("alreadyThere", "files that were there and correct") { $0.all.tally.alreadyThere }
    Field("removed", "files removed with --delete") { $0.all.tally.removed }
    Field("missing", "blobs that are missing") { $0.all.missing }
    Field("missingRecords", "records that are missing") { $0.all.missingRecords }
    Field("missingNodes", "tree nodes that are missing") { $0.all.missingNodes }
    Field("damaged", "what is damaged") { $0.all.damaged.map { "\($0.what): \($0.why)" } }
    Field("refused", "names that no file may have") { $0.all.refused }
    Field("inTheWay", "the first of the files that are in the way") { $0.all.inTheWay }
    Field("inTheWayCount", "how many") { $0.all.inTheWayCount }
    Field("changed", "files that were changed, and therefore not removed") { $0.all.changed }
  }
}
