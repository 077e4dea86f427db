internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Backup
internal import IPLD

/// `carpack extract`: everything back, or a part of it.
struct ExtractCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "extract",
    _superCommandName: Carpack.name,
    abstract: "Give back the CAR bit for bit, records as JSON, blobs, metadata.",
    discussion: Help.discussion(
      """
      Writes DIR/{did}/{handle or did}-{rev}.car, blobs/{cid}.{ext}, records/{collection}/{rkey}.json and backup-metadata.json. Without a selection everything (--all). That is of the newest snapshot of each account in the archive, or of those that --at and --account choose: deleted posts and their blobs are still there. Nothing is ever written outside DIR. A file that is there already and correct is left alone; one that differs is an error, unless --overwrite. A file has its name only when it is complete.

      Exit status: 0 everything selected was given back, 10 something is missing, 11 something is damaged (everything else is written), 13 a name that no file may have, 73 a file is in the way.
      """,
      examples: [
        "carpack extract alice.example.com.car.zst -d alice",
        "carpack extract --blobs alice.example.com.car.zst -d pictures",
        "carpack extract --car alice.example.com.car.zst -d - > alice.car",
      ]))

  @OptionGroup var archive: ArchiveArgument

  @Argument(
    help: ArgumentHelp(
      "Single things: CIDs, collection/rkey, or at:// URIs.", valueName: "selector"))
  var selectors: [String] = []

  @Option(
    name: [.customShort("d"), .customLong("directory")],
    help: ArgumentHelp(
      "The folder to write into; with --car, \"-\" writes the CAR to standard output.",
      valueName: "dir"), completion: .directory)
  var directory: String

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

  @Flag(help: "Replace files that differ.")
  var overwrite = false

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if directory == "-", !car || all || records || blobs || metadata || !selectors.isEmpty || json {
      throw ValidationError("-d - gives the CAR alone: use it with --car and nothing else")
    }
  }

  func run() throws {
    let selection = try self.selection()
    let opened = try archive.open()
    let observer = ProgressLine.observer(quiet: common.quiet)
    if directory == "-" {
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
    let folder = try OutputFolder(directory, overwriting: overwrite)
    var report = SnapshotExtractor.Report()
    for snapshot in snapshots {
      report.add(
        try SnapshotExtractor.extract(
          selection, of: snapshot, into: folder, observer: observer))
    }
    Console.endProgress()
    say(report)
    if json { printJSON(report) }
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

  private func say(_ report: SnapshotExtractor.Report) {
    for (what, why) in report.damaged {
      Console.say(.damaged, "\(what): \(why)")
    }
    for name in report.refused {
      Console.say(.refused, "no file may have the name \(name.debugDescription)")
    }
    for path in report.inTheWay {
      Console.say(.error, "\(path) exists already and holds something else")
    }
    if !report.inTheWay.isEmpty { Console.say("hint: use --overwrite to replace them") }
    for what in report.missing.prefix(20) {
      common.say(.missing, "\(what)")
    }
    if report.missing.count > 20 {
      common.say(.missing, "and \(Quantity.grouped(report.missing.count - 20)) more blobs")
    }
    if !report.missingRecords.isEmpty {
      common.say(
        .missing,
        "\(Quantity.count(report.missingRecords.count, "record")), the first is \(report.missingRecords[0])"
      )
    }
    if !report.missingNodes.isEmpty {
      common.say(
        .missing, "\(Quantity.count(report.missingNodes.count, "tree node")), and all records below"
      )
    }
    for what in report.mistyped.prefix(20) {
      common.say(.note, "\(what)")
    }
    let tally = report.tally
    common.say(
      "\(directory): \(Quantity.count(tally.written, "file")) written, \(Quantity.bytes(tally.bytes))"
        + (tally.alreadyThere > 0 ? ", \(Quantity.grouped(tally.alreadyThere)) there already" : ""))
  }

  private func printJSON(_ report: SnapshotExtractor.Report) {
    var json = JSONWriter.ofResults
    json.begin(.extract)
    json.field("directory", directory)
    json.field("written", report.tally.written)
    json.field("bytes", report.tally.bytes)
    json.field("alreadyThere", report.tally.alreadyThere)
    json.field("missing", report.missing)
    json.field("missingRecords", report.missingRecords)
    json.field("missingNodes", report.missingNodes)
    json.field("damaged", report.damaged.map { "\($0.what): \($0.why)" })
    json.field("refused", report.refused)
    json.field("inTheWay", report.inTheWay)
    Console.finish(&json)
  }
}
