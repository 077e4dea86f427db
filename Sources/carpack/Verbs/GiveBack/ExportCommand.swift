internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import IPLD
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
      "The database to write, or to bring up to date.", valueName: "file"),
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
      throw ValidationError("say what to write: --csv, --sqlite or --html, one of them")
    }
    guard sqlite != nil else { return }
    if choice.at != nil || choice.accountOption.account != nil {
      throw ValidationError("--sqlite takes all snapshots of all accounts")
    }
    if archive.file == "-" { throw ValidationError("--sqlite takes a file") }
  }

  func run() throws {
    if sqlite != nil { try Elsewhere.refuse(archive.file, "--sqlite reads a file") }
    try archive.read { opened in
      if let sqlite { return try writeDatabase(sqlite, opened) }
      if let csv { return try writeTables(csv, opened) }
      if let html { try writePages(html, opened) }
    }
  }

  private func writeDatabase(_ database: String, _ opened: OpenedArchive) throws {
    try ServeProgram.run("sqlite") { json in
      json.field("archive", archive.file)
      json.field("database", database)
      json.field("allowsLarge", archive.limits.allowLarge)
      json.field("isQuiet", common.quiet)
      json.field("isJSON", reporting.json)
    }
  }

  private func writeTables(_ csv: String, _ opened: OpenedArchive) throws {
    let snapshot = try opened.snapshot(choice)
    let (tables, contents) = try CSVExporter.export(
      snapshot, to: FilePath(csv), replacing: force,
      observer: ProgressLine.observer(quiet: common.quiet))
    Console.endProgress()
    let records = contents.tree.missingRecordCount
    let nodes = contents.tree.missingNodes.count + (contents.tree.commit == nil ? 1 : 0)
    if json {
      Self.tables.print(
        ((opened.name, snapshot.snapshot, csv), tables, records + nodes, contents.flaw != nil))
    } else {
      for table in tables where !common.quiet {
        Console.print("\(Quantity.grouped(table.rows))  \(FilePath(csv).appending(table.name))")
      }
    }
    var gaps: [String] = []
    if records > 0 {
      gaps.append(
        "\(Quantity.count(records, "record")) not in the archive; the rows have their names")
    }
    if nodes > 0 {
      gaps.append(
        "\(Quantity.count(nodes, "tree node")) not in the archive; the records below are in no table"
      )
    }
    try finish(opened, flaws: [contents.flaw].compactMap(\.self), gaps)
  }

  private func writePages(_ html: String, _ opened: OpenedArchive) throws {
    let snapshot = try opened.snapshot(choice)
    let report = try PageExporter.export(
      snapshot, to: FilePath(html), replacing: force,
      observer: ProgressLine.observer(quiet: common.quiet))
    Console.endProgress()
    let missingRecords = report.missingRecords + report.missingNodes
    let isComplete = report.flaws.isEmpty && report.missingMedia + missingRecords == 0
    if json {
      Self.pages.print(((opened.name, snapshot.snapshot, html), report, missingRecords, isComplete))
    } else if !common.quiet {
      let index = FilePath(html).appending("index.html")
      Console.print(
        text:
          "\(index): \(Quantity.count(report.pages, "page")), \(Quantity.count(report.posts, "post")), \(Quantity.count(report.media, "media file"))"
      )
    }
    let missing = [
      report.missingMedia > 0 ? Quantity.count(report.missingMedia, "media file") : nil,
      missingRecords > 0 ? Quantity.count(missingRecords, "record") : nil,
    ].compactMap(\.self).joined(separator: " and ")
    try finish(
      opened, flaws: report.flaws,
      missing.isEmpty ? [] : ["\(missing) cannot be shown; the pages say why in their place"])
  }

  // MARK: JSON

  typealias Place = (file: String, snapshot: Snapshot, folder: String)

  private static func place<Subject>(
    _ folder: String, _ place: @escaping @Sendable (Subject) -> Place
  ) -> [Field<Subject>] {
    [
      ArchiveFields.file { place($0).file },
      Field("did", "the account") { place($0).snapshot.did },
      Field("rev", "the revision") { place($0).snapshot.rev?.text },
      Field("folder", folder) { place($0).folder },
    ]
  }

  static let tables = Report<
    (
      place: Place, tables: [CSVExporter.Table],
      missingRecords: Int, isMalformed: Bool
    )
  >("export", "`carpack export --csv`: the tables that were written.") {
    place("where the tables are") { $0.place }
    Field(
      "tables", "the tables, one a collection", each: { $0.tables },
      as: Fields {
        Field("name", "the file") { $0.name }
        Field("rows", "its records") { $0.rows }
      })
    Field(
      "missingRecords",
      "records that are not in the archive, of which only the names are in a table"
    ) { $0.missingRecords }
    Field("complete", "whether all records are in the tables") {
      $0.missingRecords == 0 && !$0.isMalformed
    }
  }

  static let pages = Report<
    (
      place: Place, all: PageExporter.Report,
      missingRecords: Int, isComplete: Bool
    )
  >("export", "`carpack export --html`: the pages that were written.") {
    place("where the pages are") { $0.place }
    Field("pages", "the pages") { $0.all.pages }
    Field("posts", "the posts on them") { $0.all.posts }
    Field("others", "the other records on them") { $0.all.others }
    Field("media", "the media files") { $0.all.media }
    Field("missingMedia", "the media that posts show and the archive lacks") {
      $0.all.missingMedia
    }
    Field("missingRecords", "the records that are not in the archive, or cannot be read") {
      $0.missingRecords
    }
    Field("complete", "whether all of that is there") { $0.isComplete }
  }

  private func finish(_ opened: OpenedArchive, flaws: [String], _ gaps: [String]) throws {
    Console.flush()
    var status = opened.status
    for flaw in flaws {
      Console.say(.damaged, "\(opened.name): \(flaw)")
      status = .worst(status, .damaged)
    }
    for gap in gaps {
      Console.say(.incomplete, gap)
      status = .worst(status, .incomplete)
    }
    if status != .success { throw status }
  }
}
