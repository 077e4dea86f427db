internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import Reports
internal import Snapshots
internal import Terminal

/// `carpack stats`: what an account is made of.
struct StatsCommand: ReportingCommand {
  static let page = ManualPage("stats", PackageResources.stats_txt)

  @OptionGroup var argument: ArchivesArgument

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    try argument.archives.each { opened in
      var status = ExitStatus.success
      for snapshot in try opened.snapshots(choice) {
        let statistics = try SnapshotStatistics(
          of: snapshot, observer: ProgressLine.observer(quiet: common.quiet))
        Console.endProgress()
        if json {
          Self.report.print((opened.name, snapshot.snapshot, statistics))
        } else {
          printText(statistics, snapshot.snapshot)
        }
        if statistics.isByIndex { common.say(OpenedArchive.byIndex) }
        if let flaw = statistics.flaw {
          Console.say(.damaged, "\(opened.name): \(flaw)")
          status = .damaged
        } else if !statistics.isComplete {
          common.say(.incomplete, "\(opened.name): not all of its records are in the archive")
          status = .worst(status, .incomplete)
        }
      }
      return .worst(status, opened.status)
    }.finish(common, good: "read")
  }

  private func printText(_ statistics: SnapshotStatistics, _ snapshot: Snapshot) {
    let missing =
      statistics.missing.count > 0
      ? ", of which \(Quantity.grouped(statistics.missing.count)) missing or damaged" : ""
    Console.print(
      named:
        "\(snapshot.name): \(Quantity.count(statistics.records.count, "record")), \(Quantity.bytes(statistics.records.bytes)); \(Quantity.count(statistics.blobs.count, "blob")), \(Quantity.bytes(statistics.blobs.bytes))\(missing)"
    )
    print("collections", statistics.collections.sorted { $0.key < $1.key })
    let undated = statistics.undated.count > 0 ? [("no date", statistics.undated)] : []
    print(
      "years",
      statistics.years.sorted { $0.key < $1.key }.map { ("\($0.key)", $0.value) } + undated)
    print("blobs", statistics.types.sorted { ($0.value.count, $1.key) > ($1.value.count, $0.key) })
  }

  private func print(_ title: String, _ rows: [(key: String, value: SnapshotStatistics.Amount)]) {
    guard !rows.isEmpty else { return }
    Table.print(
      [("  \(title)", .left), ("number", .right), ("size", .right)],
      rows.map { key, amount in
        ["  \(key)", Quantity.grouped(amount.count), Quantity.bytes(amount.bytes)]
      })
  }

  private static let amount = Fields<SnapshotStatistics.Amount> {
    Field("count", "how many") { $0.count }
    Field("bytes", "their bytes") { $0.bytes }
  }

  static let report = Report<(file: String, snapshot: Snapshot, all: SnapshotStatistics)>(
    "stats", "`carpack stats`: what an account is made of."
  ) {
    ArchiveFields.file { $0.file }
    Field("did", "the account") { $0.snapshot.did }
    Field("handle", "its handle") { $0.snapshot.handle?.text }
    Field("rev", "the revision") { $0.snapshot.rev?.text }
    Field("records", "records") { $0.all.records.count }
    Field("recordBytes", "their bytes") { $0.all.records.bytes }
    Field("blobs", "blobs that they refer to") { $0.all.blobs.count }
    Field("blobBytes", "their bytes; of those that are missing, as declared") {
      $0.all.blobs.bytes
    }
    Field("missingBlobs", "of these, missing or damaged") { $0.all.missing.count }
    Field("undatedRecords", "records without a date") { $0.all.undated.count }
    Field(
      "collections", "the records of each collection", byName: { $0.all.collections }, as: amount)
    Field(
      "years", "the records of each year, by their dates",
      byName: { Dictionary(uniqueKeysWithValues: $0.all.years.map { ("\($0.key)", $0.value) }) },
      as: amount)
    Field("types", "the blobs of each media type", byName: { $0.all.types }, as: amount)
    Field("complete", "whether all records are in the archive") { $0.all.isComplete }
  }
}
