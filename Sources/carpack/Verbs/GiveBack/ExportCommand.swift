internal import ATProtocol
internal import ArgumentParser
internal import Backup
internal import SystemPackage

/// `carpack export`: records for other programs.
struct ExportCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    _superCommandName: Carpack.name,
    abstract: "Write the records as tables for spreadsheets and databases.",
    usage: "carpack export <archive> --csv <folder> [<options>]",
    discussion: Help.discussion(
      """
      Writes one CSV file for each collection (RFC 4180, UTF-8): uri, cid, created, and for posts, likes, reposts, follows, blocks, lists, feeds and profiles what they say, for every other collection the record as JSON. Of the newest snapshot, or the one that --at chooses.

      A cell that a spreadsheet would take for a formula gets an apostrophe in front.

      Exit status: 0; 10 if records are missing, which have a row with their names; 11 if the repository is damaged; 73 if a file exists and --force is not given.
      """,
      examples: [
        "carpack export alice.example.com.car.zst --csv tables/",
        "carpack export alice.example.com.car.zst --csv tables/ --at 2026-01-01",
        "carpack export alice.example.com.car.zst --csv tables/ --force --json",
      ]))

  @OptionGroup var archive: ArchiveArgument

  @Option(
    help: ArgumentHelp("The folder to write CSV files to.", valueName: "folder"),
    completion: .directory)
  var csv: String

  @Flag(help: "Replace files that exist.")
  var force = false

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    try archive.read(export)
  }

  private func export(_ opened: OpenedArchive) throws {
    let snapshot = try opened.snapshot(choice)
    let report = try CSVExporter.export(
      snapshot, to: FilePath(csv), replacing: force,
      observer: ProgressLine.observer(quiet: common.quiet))
    Console.endProgress()
    if json {
      writeJSON(report, snapshot.snapshot, opened.input.name)
    } else {
      for table in report.tables where !common.quiet {
        Console.print("\(Quantity.grouped(table.rows))  \(FilePath(csv).appending(table.name))")
      }
    }
    Console.flush()
    var status = opened.status
    if let flaw = report.flaw {
      Console.say(.damaged, "\(opened.input.name): \(flaw)")
      status = .worst(status, .damaged)
    }
    if report.missing > 0 {
      Console.say(
        .incomplete,
        "\(Quantity.count(report.missing, "record")) not in the archive; the rows have their names")
      status = .worst(status, .incomplete)
    }
    if status != .success { throw status }
  }

  private func writeJSON(_ report: CSVExporter.Report, _ snapshot: Snapshot, _ file: String) {
    var json = JSONWriter.ofResults
    json.begin(.export)
    json.field("file", file)
    json.field("did", snapshot.did.text)
    json.field("rev", snapshot.rev?.text)
    json.field("folder", csv)
    json.beginArray("tables")
    for table in report.tables {
      json.beginObject()
      json.field("name", table.name)
      json.field("rows", table.rows)
      json.endObject()
    }
    json.endArray()
    json.field("missingRecords", report.missing)
    json.field("complete", report.missing == 0 && report.flaw == nil)
    Console.finish(&json)
  }
}
