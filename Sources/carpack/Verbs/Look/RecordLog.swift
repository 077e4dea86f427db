internal import ATProtocol
internal import Backup

/// The history of one record, as `log` shows it.
struct RecordLog {
  private let opened: OpenedArchive
  private let accountOption: AccountOption

  init(_ opened: OpenedArchive, _ accountOption: AccountOption) {
    (self.opened, self.accountOption) = (opened, accountOption)
  }

  /// Prints the snapshots that changed the record; answers what the archive comes to.
  ///
  /// - Throws: `BackupError` if no snapshot has it.
  func show(_ selector: String, json: Bool) throws -> ExitStatus {
    let history = try opened.usableHistory()
    let did =
      try Selector(selector).account.map { try history.account($0.text) }
      ?? history.account(accountOption.account) ?? history.newest?.did
    let entries = history.entries.filter { $0.did == did }
    let path = try path(selector, in: entries)
    let record = RecordHistory(of: path, in: entries, opened.reader)
    for gap in record.gaps { Console.say(.damaged, "\(opened.input.name): \(gap)") }
    guard !record.changes.isEmpty else { throw BackupError.notFound(selector) }
    if json { printJSON(record, path) } else { printTable(record) }
    return .worst(record.gaps.isEmpty ? .success : .damaged, opened.status)
  }

  /// The path that is meant: of a key alone, that of the newest snapshot that has it.
  private func path(_ selector: String, in entries: [SnapshotHistory.Entry]) throws -> String {
    if case .records(let pattern, _) = try Selector(selector), let path = pattern.exactPath {
      return path
    }
    for entry in entries.reversed() {
      do {
        let found = try SelectorResolution([selector], in: try opened.snapshot(entry)).items
        if case .record(let path)? = found.first { return path }
      } catch BackupError.notFound {
        continue
      }
    }
    throw BackupError.notFound(selector)
  }

  private func printTable(_ record: RecordHistory) {
    var table = Table([("number", .right), ("made", .left), ("", .left), ("cid", .left)])
    for change in record.changes.reversed() {
      table.add([
        "\(change.entry.number)", change.entry.createdAt, change.kind.rawValue,
        change.cid.map { "\($0)" } ?? "-",
      ])
    }
    for line in table.lines { Console.print(line) }
  }

  private func printJSON(_ record: RecordHistory, _ path: String) {
    for change in record.changes.reversed() {
      Console.printJSON(.record) {
        $0.field("file", opened.input.name)
        $0.field("account", change.entry.did.text)
        $0.field("path", path)
        $0.field("change", change.kind.rawValue)
        $0.field("cid", change.cid.map { "\($0)" })
        $0.field("number", change.entry.number)
        $0.field("createdAt", change.entry.createdAt)
      }
    }
  }
}
