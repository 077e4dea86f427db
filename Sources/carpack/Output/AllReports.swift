extension ReportDescription {
  /// Every object that --json writes, in the order of `Docs/JSON.md`.
  static let all: [ReportDescription] = [
    Failure.report.description, Console.report.description, StatusReport.report.description,
    InfoCommand.report.description, SnapshotList.report.description,
    RecordLog.report.description, Listing.report.description, FindCommand.report.description,
    StatsCommand.report.description, DiffListing.record.description,
    DiffListing.blob.description, DiffListing.summary.description,
  ]
}
