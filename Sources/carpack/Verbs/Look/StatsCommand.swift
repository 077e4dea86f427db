internal import ATProtocol
internal import ArgumentParser
internal import Extraction
internal import IPLD
internal import Snapshots

/// `carpack stats`: what an account is made of.
struct StatsCommand: ReportingCommand {
  static let configuration = CommandConfiguration(
    commandName: "stats",
    _superCommandName: Carpack.name,
    abstract: "Count what an account is made of: collections, years, types of blobs.",
    usage: "carpack stats [<options>] <archive> ...",
    discussion: Help.discussion(
      """
      Counts the records of each collection and year, and the blobs of each type, of the newest snapshot of each account, or of those that --at and --account choose. The year of a record is that of its key, where that is a time. The size of a blob is that of what is held; of one that is missing or damaged, what its record declares.

      Exit status: 0; 10 if records are missing; 11 if the repository is damaged.
      """,
      examples: [
        "carpack stats alice.example.com.car.zst",
        "carpack stats --at 2026-01-01 alice.example.com.car.zst",
        "carpack stats --json backups/",
      ]))

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
          printJSON(statistics, snapshot.snapshot, opened.name)
        } else {
          printText(statistics, snapshot.snapshot)
        }
        if statistics.isByIndex { common.say(OpenedArchive.byIndex) }
        if let flaw = statistics.flaw {
          Console.say(.damaged, "\(opened.name): \(flaw)")
          status = .damaged
        } else if !statistics.isComplete {
          status = .worst(status, .incomplete)
        }
      }
      return .worst(status, opened.status)
    }.finish(common)
  }

  private func printText(_ statistics: SnapshotStatistics, _ snapshot: Snapshot) {
    let name = snapshot.handle?.text ?? snapshot.did.text
    let missing =
      statistics.missing.count > 0
      ? ", of which \(Quantity.grouped(statistics.missing.count)) missing or damaged" : ""
    Console.print(
      named:
        "\(name): \(Quantity.count(statistics.records.count, "record")), \(Quantity.bytes(statistics.records.bytes)); \(Quantity.count(statistics.blobs.count, "blob")), \(Quantity.bytes(statistics.blobs.bytes))\(missing)"
    )
    print("collections", statistics.collections.sorted { $0.key < $1.key })
    let undated = statistics.undated.count > 0 ? [("no date in the key", statistics.undated)] : []
    print(
      "years",
      statistics.years.sorted { $0.key < $1.key }.map { ("\($0.key)", $0.value) } + undated)
    print("blobs", statistics.types.sorted { ($0.value.count, $1.key) > ($1.value.count, $0.key) })
  }

  private func print(_ title: String, _ rows: [(key: String, value: SnapshotStatistics.Amount)]) {
    guard !rows.isEmpty else { return }
    var table = Table([("  \(title)", .left), ("number", .right), ("size", .right)])
    for (key, amount) in rows {
      table.add(["  \(key)", Quantity.grouped(amount.count), Quantity.bytes(amount.bytes)])
    }
    for line in table.lines { Console.print(line) }
  }

  private func printJSON(_ statistics: SnapshotStatistics, _ snapshot: Snapshot, _ file: String) {
    func write(
      _ key: String, _ amounts: [String: SnapshotStatistics.Amount], _ json: inout JSONWriter
    ) {
      json.beginObject(key)
      for (key, amount) in amounts.sorted(by: { $0.key < $1.key }) {
        json.beginObject(key)
        json.field("count", amount.count)
        json.field("bytes", Int(clamping: amount.bytes))
        json.endObject()
      }
      json.endObject()
    }
    Console.printJSON(.stats) { json in
      json.field("file", file)
      json.field("did", snapshot.did.text)
      json.field("handle", snapshot.handle?.text)
      json.field("rev", snapshot.rev?.text)
      json.field("records", statistics.records.count)
      json.field("recordBytes", Int(clamping: statistics.records.bytes))
      json.field("blobs", statistics.blobs.count)
      json.field("blobBytes", Int(clamping: statistics.blobs.bytes))
      json.field("missingBlobs", statistics.missing.count)
      json.field("undatedRecords", statistics.undated.count)
      write("collections", statistics.collections, &json)
      write(
        "years", Dictionary(uniqueKeysWithValues: statistics.years.map { ("\($0.key)", $0.value) }),
        &json)
      write("types", statistics.types, &json)
      json.field("complete", statistics.isComplete)
    }
  }
}
