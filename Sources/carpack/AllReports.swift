internal import Reports
internal import Terminal

extension ReportDescription {
  /// Every object that --json writes, in the order of `Docs/JSON.md`.
  static let all: [ReportDescription] =
    [
      Failure.report.description, Console.report.description, StatusReport.report.description,
      InfoCommand.report.description, LogCommand.report.description,
      LogCommand.recordReport.description, Listing.report.description,
      CatCommand.report.description, FindCommand.report.description,
      ContextListing.report.description,
      StatsCommand.report.description, ExportCommand.tables.description, sqlite,
      ExportCommand.pages.description, serve, MissingCommand.blob.description,
      MissingCommand.fault.description, MissingCommand.acceptanceReport.description,
      DiffCommand.record.description, DiffCommand.blob.description,
      DiffCommand.summary.description, VerifyReport.report.description,
      InspectReport.report.description, PackCommand.report.description,
      ExtractCommand.report.description, PruneCommand.report.description,
      CompactCommand.report.description, MergeCommand.report.description,
      ProtectCommand.report.description, ForgetContextCommand.report.description,
      RepairCommand.report.description, RepairCommand.salvageReport.description,
      ResolveCommand.report.description, VerifyProofCommand.report.description,
      IdentityCommand.report.description, ConfigCommand.report.description,
      FetchCommand.report.description,
    ] + RestoreDisplay.reports + [
      RecoveryKeyReport.report.description, SealedCopy.report.description,
      SealedVerification.report.description,
      NewIdentityCommand.report.description, sealedKeysReport.description,
      PushCommand.report.description,
      PullCommand.report.description, FleetAddCommand.report.description,
      FleetWorkCommand.report.description, FleetStatusCommand.report.description,
      FleetListCommand.report.description, FleetListCommand.hostReport.description,
      FleetHistoryCommand.report.description, fleetChangeReport.description,
      FleetCheckCommand.report.description,
    ] + BackupEvents.descriptions

  // What carpack-serve writes, whose libraries are not linked here.

  private static let sqlite = written(
    "export", "`carpack export --sqlite`: the database that was written.",
    [
      ("file", .text(.any), "the archive"), ("database", .text(.any), "the database"),
      ("newSnapshots", .integer, "the snapshots that were added"),
      ("records", .integer, "the records in it, in all their versions"),
      (
        "missingRecords", .integer,
        "of these, not in the archive or unreadable: their rows have only names"
      ),
      ("complete", .boolean, "whether all records are in it"),
    ])

  private static let serve = written(
    "serve", "`carpack serve` and `carpack view`: the addresses of the server, once it is running.",
    [
      ("page", .text(.any), "the secret address of the page that shows the archives"),
      (
        "pds", .orNull(.text(.any)),
        "the address of the personal data server; null for `carpack view`"
      ),
      ("archives", .integer, "the archives that are served"),
      ("accounts", .integer, "the accounts in them"),
    ])

  private static func written(
    _ name: String, _ about: String, _ rows: [(String, JSONKind, String)]
  ) -> ReportDescription {
    let head = Report<Void>(name, about) {}.description.table.rows
    return ReportDescription(
      name: name, about: about,
      table: ReportTable(title: nil, rows: head + rows.map { .init($0.0, $0.1, $0.2) }))
  }
}
