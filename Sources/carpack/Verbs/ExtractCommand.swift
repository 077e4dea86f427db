internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD

/// `carpack extract`: everything back, or a part of it.
struct ExtractCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "extract",
    _superCommandName: Carpack.name,
    abstract: "Give back the CAR bit for bit, records as JSON, blobs, metadata.",
    discussion: """
      Writes DIR/{did}/{handle or did}-{rev}.car, blobs/{cid}.{ext}, records/{collection}/{rkey}.json and backup-metadata.json. Without -d, DIR lies beside the archive and has its name without the ending: alice.example.com for alice.example.com.car.zst. Without a selection everything (--all). That is of the newest snapshot of each account in the archive, or of those that --at and --account choose: deleted posts and their blobs are still there.

      Extracting a newer snapshot into the same folder updates it. A file that is there already and correct is left alone. One that an earlier extraction wrote, and nobody has changed since, is replaced; with --delete it is removed if the snapshot no longer has it. If anything else is in the way, nothing is written, unless --overwrite. Nothing is ever written outside DIR. A file has its name only when it is complete.

      Exit status: 0 everything selected was given back, 10 something is missing, 11 something is damaged (everything else is written), 13 a name that no file may have, 73 a file is in the way.
      """)

  @OptionGroup var archive: ArchiveArgument

  @Argument(
    help: ArgumentHelp(
      "Single things: CIDs, collection/rkey, or at:// URIs.", valueName: "selector"))
  var selectors: [String] = []

  @OptionGroup var extraction: ExtractionArguments

  @OptionGroup var choice: SnapshotOptions

  @Flag(help: "Everything.")
  var all = false

  @Flag(help: "The CAR.")
  var car = false

  @Flag(help: "Every record.")
  var records = false

  @Flag(help: "Every blob, extras included.")
  var blobs = false

  @Flag(help: "The metadata, and the account's documents.")
  var metadata = false

  @Flag(help: "Write a report as JSON.")
  var json = false

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if extraction.directory == "-",
      !car || all || records || blobs || metadata || !selectors.isEmpty || json
    {
      throw ValidationError("-d - gives the CAR alone: use it with --car and nothing else")
    }
    if extraction.delete, !selectors.isEmpty {
      throw ValidationError("--delete is for whole kinds of things: leave out the single ones")
    }
  }

  func run() throws {
    let selection = try self.selection()
    let opened = try archive.open()
    let observer = ProgressLine.observer(quiet: common.quiet)
    if extraction.directory == "-" {
      let restored = try RestoredRepository(
        opened.snapshot(choice), order: .exported, observer: observer)
      if let flaw = restored.flaw { throw BackupError.carNotExact(flaw) }
      try restored.withBytes { try Console.write($0) }
      let status = opened.status
      if status != .success { throw status }
      return
    }
    // Single things are of one account; everything is of all of them, each in a folder of its own.
    let snapshots =
      selectors.isEmpty
      ? try opened.snapshots(choice) : [try opened.snapshot(choice, naming: selectors)]
    let directory = try extraction.folder(for: archive.file)
    let report = try InterruptibleExtraction(
      selection: selection, options: extraction.options, directory: directory,
      overwrites: extraction.overwrite, observer: observer
    ).run(snapshots)
    Console.endProgress()
    say(report, directory)
    if json { printJSON(report, directory) }
    let status = ExitStatus.worst(
      opened.status,
      report.damaged.isEmpty ? .success : .damaged,
      report.refused.isEmpty ? .success : .refused,
      report.inTheWay.isEmpty ? .success : .cannotCreate,
      report.missing.isEmpty && report.missingRecords.isEmpty && report.missingNodes.isEmpty
        ? .success : .incomplete)
    if status != .success { throw status }
  }

  private func selection() throws -> Selection {
    if all || !(car || records || blobs || metadata) && selectors.isEmpty { return .all }
    var selection = Selection()
    selection.car = car
    selection.records = records
    selection.blobs = blobs
    selection.metadata = metadata
    selection.items = try selectors.map { try Selection.Item($0) }
    return selection
  }

  private func say(_ report: SnapshotExtractor.Report, _ directory: String) {
    for (what, why) in report.damaged {
      Console.say("carpack: \(Console.red("damaged:")) \(what): \(why)")
    }
    for name in report.refused {
      Console.say(
        "carpack: \(Console.red("refused:")) no file may have the name \(name.debugDescription)")
    }
    for path in report.inTheWay.prefix(20) {
      Console.say(
        "carpack: \(Console.red("error:")) \(path) exists already and holds something else")
    }
    if report.inTheWayCount > 20 {
      Console.say(
        "carpack: \(Console.red("error:")) and \(Quantity.grouped(report.inTheWayCount - 20)) more")
    }
    if !report.inTheWay.isEmpty {
      Console.say(
        "hint: move them, choose another folder with -d, or replace them with --overwrite")
    }
    for what in report.missing.prefix(20) {
      common.say("carpack: \(Console.yellow("missing:")) \(what)")
    }
    if report.missing.count > 20 {
      common.say("carpack: \(Quantity.grouped(report.missing.count - 20)) more blobs are missing")
    }
    if !report.missingRecords.isEmpty {
      common.say(
        "carpack: \(Console.yellow("missing:")) \(Quantity.count(report.missingRecords.count, "record")), the first is \(report.missingRecords[0])"
      )
    }
    if !report.missingNodes.isEmpty {
      common.say(
        "carpack: \(Console.yellow("missing:")) \(Quantity.count(report.missingNodes.count, "tree node")), and all records below"
      )
    }
    for what in report.mistyped.prefix(20) {
      common.say("carpack: \(Console.yellow("note:")) \(what)")
    }
    sayWhatStays(report)
    let tally = report.tally
    let further = [
      tally.replaced > 0 ? ", \(Quantity.grouped(tally.replaced)) of them replaced" : "",
      tally.alreadyThere > 0 ? ", \(Quantity.grouped(tally.alreadyThere)) there already" : "",
      tally.removed > 0 ? ", \(Quantity.grouped(tally.removed)) removed" : "",
    ]
    common.say(
      "\(directory): \(Quantity.count(tally.written, "file")) written, \(Quantity.bytes(tally.bytes))"
        + further.joined())
  }

  /// Says which files the snapshot no longer has and were not removed all the same.
  private func sayWhatStays(_ report: SnapshotExtractor.Report) {
    for path in report.changed.prefix(20) {
      common.say("carpack: \(Console.yellow("note:")) \(path) was changed, and stays")
    }
    if report.changed.count > 20 {
      common.say(
        "carpack: \(Console.yellow("note:")) and \(Quantity.grouped(report.changed.count - 20)) more"
      )
    }
    if let why = report.keptBecause {
      common.say("carpack: \(Console.yellow("note:")) files of earlier snapshots stay: \(why)")
    }
  }

  private func printJSON(_ report: SnapshotExtractor.Report, _ directory: String) {
    var json = JSONWriter(pretty: true)
    json.beginObject()
    json.field("directory", directory)
    json.field("written", report.tally.written)
    json.field("bytes", report.tally.bytes)
    json.field("replaced", report.tally.replaced)
    json.field("alreadyThere", report.tally.alreadyThere)
    json.field("removed", report.tally.removed)
    json.field("missing", report.missing)
    json.field("missingRecords", report.missingRecords)
    json.field("missingNodes", report.missingNodes)
    json.field("damaged", report.damaged.map { "\($0.what): \($0.why)" })
    json.field("refused", report.refused)
    json.field("inTheWay", report.inTheWay)
    json.field("inTheWayCount", report.inTheWayCount)
    json.field("changed", report.changed)
    Console.finish(&json)
  }
}
