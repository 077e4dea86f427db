internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import Reports
internal import Repository
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack export`: records for other programs.
struct ExportCommand: ReportingCommand {
  static let page = ManualPage("export", PackageResources.export_txt)

  @Option(
    help: ArgumentHelp("The folder to write CSV files to.", valueName: "folder"),
    completion: .directory)
  var csv: String?

  @Option(
    help: ArgumentHelp(
      "The database to write or update.", valueName: "file"),
    completion: .file(extensions: ["db", "sqlite"]))
  var sqlite: String?

  @Option(
    help: ArgumentHelp("The folder to write pages to.", valueName: "folder"),
    completion: .directory)
  var html: String?

  @Flag(help: "With --csv and --html: replace files that exist.")
  var force = false

  @OptionGroup var archive: ArchiveArgument

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    guard [csv, sqlite, html].count(where: { $0 != nil }) == 1 else {
      throw ValidationError("use one of --csv, --sqlite and --html")
    }
    guard sqlite != nil else { return }
    if choice.at != nil || choice.accountOption.account != nil {
      throw ValidationError(
        "--sqlite exports all snapshots of all accounts: leave out --at and --account")
    }
    if archive.file == "-" { throw ValidationError("--sqlite takes a file") }
  }

  func run() throws {
    if sqlite != nil { try Elsewhere.refuse(archive.file, "--sqlite reads a file") }
    try archive.read { opened in
      if let sqlite { return try writeDatabase(sqlite) }
      let snapshot = try opened.snapshot(choice)
      let (flaws, gaps) =
        if let csv {
          try writeTables(csv, snapshot, of: opened.name)
        } else {
          try writePages(html ?? "", snapshot, of: opened.name)
        }
      Console.flush()
      for flaw in flaws { Console.say(.damaged, "\(opened.name): \(flaw)") }
      for gap in gaps { Console.say(.incomplete, gap) }
      try ExitStatus.end(
        with: opened.status, flaws.isEmpty ? .success : .damaged,
        gaps.isEmpty ? .success : .incomplete)
    }
  }

  private func writeDatabase(_ database: String) throws {
    try ServeProgram.run("sqlite") { json in
      json.field("archive", archive.file)
      json.field("database", database)
      json.field("allowsLarge", archive.limits.allowLarge)
      json.field("isQuiet", common.quiet)
      json.field("isJSON", reporting.json)
    }
  }

  /// What is damaged, and what is missing.
  private typealias Faults = (flaws: [String], gaps: [String])

  private func writeTables(_ csv: String, _ snapshot: ArchivedSnapshot, of archive: String) throws
    -> Faults
  {
    let (tables, contents) = try CSVExporter.export(
      snapshot, to: FilePath(csv), replacing: force,
      observer: ProgressLine.observer(quiet: common.quiet))
    Console.endProgress()
    if json {
      Self.tables.print(((archive, snapshot.snapshot, csv), tables, contents))
    } else {
      for table in tables where !common.quiet {
        Console.print("\(Quantity.grouped(table.rows))  \(FilePath(csv).appending(table.name))")
      }
    }
    let gaps = [
      Quantity.some(contents.tree.missingRecordCount, "record").map {
        "\($0) not in the archive; the rows have only their names"
      },
      Self.gap(of: contents.missingNodeCount, "in no table"),
    ]
    return ([contents.flaw].compactMap(\.self), gaps.compactMap(\.self))
  }

  /// The sentence about missing tree nodes: how many records lie below them is unknown.
  private static func gap(of nodes: Int, _ place: String) -> String? {
    Quantity.some(nodes, "tree node").map {
      "\($0) not in the archive; the records below are \(place)"
    }
  }

  private func writePages(_ html: String, _ snapshot: ArchivedSnapshot, of archive: String) throws
    -> Faults
  {
    let report = try PageExporter.export(
      snapshot, to: FilePath(html), replacing: force,
      observer: ProgressLine.observer(quiet: common.quiet))
    Console.endProgress()
    if json {
      Self.pages.print(((archive, snapshot.snapshot, html), report))
    } else if !common.quiet {
      let index = FilePath(html).appending("index.html")
      Console.print(
        text:
          "\(index): \(Quantity.count(report.pages, "page")), \(Quantity.count(report.posts, "post")), \(Quantity.count(report.media, "media file"))"
      )
    }
    let gaps = [
      Quantity.some(report.missingMedia, "media file").map {
        "\($0) not in the archive; the pages say so in their place"
      },
      Quantity.some(report.missingRecords, "record").map {
        "\($0) not in the archive or unreadable; the pages have only their names"
      },
      Self.gap(of: report.missingNodes, "on no page"),
    ]
    return (report.flaws, gaps.compactMap(\.self))
  }

  // MARK: JSON

  typealias Place = (file: String, snapshot: Snapshot, folder: String)

  private static let place = Fields<Place> {
    ArchiveFields.file { $0.file }
    Field("did", "the account") { $0.snapshot.did }
    Field("rev", "the revision") { $0.snapshot.rev?.text }
  }

  private static let missingNodes =
    "tree nodes that are not in the archive, with all records below"

  static let tables = Report<
    (place: Place, tables: [CSVExporter.Table], contents: LaidOutRepository)
  >("export", "`carpack export --csv`: the tables that were written.") {
    place.of { $0.place }
    Field("folder", "where the tables are") { $0.place.folder }
    Field(
      "tables", "the tables, one a collection", each: { $0.tables },
      as: Fields {
        Field("name", "the file") { $0.name }
        Field("rows", "its records") { $0.rows }
      })
    Field(
      "missingRecords",
      "records that are not in the archive; the tables have only their names"
    ) { $0.contents.tree.missingRecordCount }
    Field("missingNodes", missingNodes) { $0.contents.missingNodeCount }
    Field("complete", "whether all records are in the tables") { $0.contents.isWhole }
  }

  static let pages = Report<(place: Place, all: PageExporter.Report)>(
    "export", "`carpack export --html`: the pages that were written."
  ) {
    place.of { $0.place }
    Field("folder", "where the pages are") { $0.place.folder }
    Field("pages", "the pages") { $0.all.pages }
    Field("posts", "the posts on them") { $0.all.posts }
    Field("others", "the other records on them") { $0.all.others }
    Field("media", "the media files") { $0.all.media }
    Field("missingMedia", "the media that posts show and the archive lacks") {
      $0.all.missingMedia
    }
    Field("missingRecords", "the records that are not in the archive, or cannot be read") {
      $0.all.missingRecords
    }
    Field("missingNodes", missingNodes) { $0.all.missingNodes }
    Field("complete", "whether no media and no records are missing") { $0.all.isComplete }
  }
}
