internal import Reports
internal import Terminal

extension ReportDescription {
  /// Every object that --json writes, in the order of `Docs/JSON.md`.
  static let all: [ReportDescription] =
    [
      Failure.report.description, Console.report.description, StatusReport.report.description,
      InfoCommand.report.description, SnapshotList.report.description,
      RecordLog.report.description, Listing.report.description, FindCommand.report.description,
      StatsCommand.report.description, ExportCommand.tables.description,
      ExportCommand.pages.description, DiffListing.record.description,
      DiffListing.blob.description, DiffListing.summary.description,
      VerifyReport.report.description, InspectReport.report.description,
      ExtractCommand.report.description, PruneCommand.report.description,
      CompactCommand.report.description, MergeCommand.report.description,
      RepairCommand.report.description, RepairCommand.salvageReport.description,
      ResolveCommand.report.description, VerifyProofCommand.report.description,
      IdentityCommand.report.description, ConfigCommand.report.description,
    ] + RestoreReports.all + [RecoveryKeyReport.report.description]
}
