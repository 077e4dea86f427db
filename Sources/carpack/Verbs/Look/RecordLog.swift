internal import ATProtocol
internal import Extraction
internal import Files
internal import Snapshots

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
    let did = try account(selector, history)
    let entries = history.entries.filter { $0.did == did }
    // A path that no snapshot has may be in one that cannot be read.
    guard
      let path = try opened.recordPath(selector, in: entries) ?? Selector(selector).exactPath
    else { throw BackupError.notFound(selector) }
    let record = RecordHistory(of: path, in: entries, opened.reader)
    for gap in record.gaps { Console.say(.damaged, "\(opened.name): \(gap)") }
    guard !record.changes.isEmpty || !record.gaps.isEmpty else {
      throw BackupError.notFound(selector)
    }
    if json { printJSON(record, path) } else { printTable(record) }
    return .worst(record.gaps.isEmpty ? .success : .damaged, opened.status)
  }

  /// Whose record is meant: that of the account named, or of the only one that has such a record.
  private func account(_ selector: String, _ history: SnapshotHistory) throws -> DID? {
    if let named = try Selector(selector).account { return try history.account(named.text) }
    if let chosen = try history.account(accountOption.account) { return chosen }
    let owners = try history.newestOfAccounts.map(\.did).filter { did in
      try opened.recordPath(selector, in: history.entries.filter { $0.did == did }) != nil
    }
    guard owners.count <= 1 else {
      throw SelectionError.severalAccounts(owners.map { history.name(of: $0) })
    }
    return owners.first
  }

  private static func name(of change: RecordHistory.Change) -> String {
    change.isNew ? "created" : change.cid == nil ? "deleted" : "updated"
  }

  private func printTable(_ record: RecordHistory) {
    var table = Table([("number", .right), ("made", .left), ("", .left), ("cid", .left)])
    for change in record.changes.reversed() {
      table.add([
        "\(change.entry.number)", change.entry.createdAt, Self.name(of: change),
        change.cid.map { "\($0)" } ?? "-",
      ])
    }
    for line in table.lines { Console.print(line) }
  }

  private func printJSON(_ record: RecordHistory, _ path: String) {
    for change in record.changes.reversed() {
      Console.printJSON(.record) {
        $0.field("file", opened.name)
        $0.field("account", change.entry.did.text)
        $0.field("path", path)
        $0.field("change", Self.name(of: change))
        $0.field("cid", change.cid.map { "\($0)" })
        $0.field("number", change.entry.number)
        $0.field("createdAt", change.entry.createdAt)
      }
    }
  }
}
