internal import ATProtocol
internal import Extraction
internal import Files
internal import Reports
internal import Snapshots
internal import Terminal

/// The history of one record, as `log` shows it.
extension LogCommand {
  /// Prints the snapshots that changed the record; returns what the archive comes to.
  ///
  /// - Throws: `BackupError` if no snapshot has it, or none of what there is of them.
  func show(_ selector: String, in opened: OpenedArchive) throws -> ExitStatus {
    let history = try opened.usableHistory()
    let did = try account(selector, in: history)
    let entries = history.entries(of: did)
    // A path that no snapshot has may be in one that cannot be read.
    guard
      let path = try RecordHistory.path(selector, in: entries, opened.reader)
        ?? Selector(selector).exactPath
    else { throw BackupError.notFound(selector) }
    let record = try RecordHistory(of: path, in: entries, opened.reader)
    let status = opened.say(record.gaps)
    guard !record.changes.isEmpty || !record.gaps.isEmpty else {
      throw BackupError.notFound(selector)
    }
    if json {
      for change in record.changes.reversed() {
        Self.recordReport.print((opened.name, path, change))
      }
    } else if !record.changes.isEmpty {
      Table.print(
        [("number", .right), ("made", .left), ("", .left), ("cid", .left)],
        record.changes.reversed().map { change in
          [
            "\(change.entry.number)", change.entry.createdAt, Self.name(of: change),
            change.cid.map { "\($0)" } ?? "-",
          ]
        })
    }
    return .worst(status, opened.status)
  }

  /// The account of the record: the named one, or the only one that has such a record.
  private func account(_ selector: String, in history: SnapshotHistory) throws -> DID? {
    if let named = try Selector(selector).account { return try history.account(named.text) }
    return try history.account(accountOption.account)
      ?? RecordHistory.owner(of: selector, in: history)
  }

  private static func name(of change: RecordHistory.Change) -> String {
    change.isNew ? "created" : change.cid == nil ? "deleted" : "updated"
  }

  static let recordReport = Report<(file: String, path: String, change: RecordHistory.Change)>(
    "record", "`carpack log ARCHIVE RECORD`: a snapshot that changed the record."
  ) {
    ArchiveFields.file { $0.file }
    Field("account", "whose it is") { $0.change.entry.did }
    Field("path", "collection/rkey") { $0.path }
    Field("change", "what happened", .one(of: "created", "updated", "deleted")) {
      name(of: $0.change)
    }
    Field("cid", "the record; null if it is gone") { $0.change.cid }
    Field("number", "the snapshot's number") { $0.change.entry.number }
    Field("createdAt", "when the snapshot was made") { $0.change.entry.createdAt }
  }
}
