internal import ATProtocol
internal import Reports
internal import Snapshots
internal import Terminal

/// Snapshots as `log` and `ls --snapshots` show them: a table, or JSON with everything that is
/// known, one object a line.
extension OpenedArchive {
  /// Prints the snapshots of the archive, or of one account in it, the newest first; returns
  /// whether something is wrong with the list, after reporting it.
  ///
  /// - Parameters:
  ///   - account: whose; nil for all.
  ///   - json: whether JSON is written.
  ///   - isNamed: whether the archive's name stands above a table.
  func showSnapshots(of account: String?, json: Bool, isNamed: Bool = false) throws -> ExitStatus {
    let history = try self.history
    let entries = history.entries(of: try history.account(account)).reversed()
    if entries.isEmpty {
      throw history.breaks.first.map { $0 as any Error } ?? SnapshotError.noSnapshot
    }
    if json {
      for entry in entries {
        LogCommand.report.print((name, entry, try snapshot(entry).snapshot))
      }
    } else {
      if isNamed { Console.print("\(name):") }
      Table.print(
        [
          ("number", .right), ("made", .left), ("account", .left), ("revision", .left),
          ("records", .right), ("blobs", .right), ("added", .right), ("", .left),
        ],
        entries.map { entry in
          [
            "\(entry.number)", entry.createdAt, entry.name, entry.rev?.text ?? "-",
            Quantity.grouped(entry.counts.records),
            "\(Quantity.grouped(entry.blobs.held)) of \(Quantity.grouped(entry.blobs.referenced))",
            entry.bytesAdded.map { Quantity.bytes($0) } ?? "-", lack(entry),
          ]
        })
    }
    return history.breaks.reduce(status) { status, broken in
      guard !broken.isOfManifest else { return status }
      let isCut = broken.reason == .tooMany
      Console.say(isCut ? .incomplete : .damaged, "\(name): \(broken)")
      return .worst(status, isCut ? .incomplete : .damaged)
    }
  }

  /// What a snapshot lacked when it was made; nothing if it is complete.
  private func lack(_ entry: SnapshotHistory.Entry) -> String {
    let missing = entry.blobs.unaccepted
    let lacks: [String?] =
      [entry.isVouched ? nil : "found, not committed"] + entry.standing.words + [
        entry.remains?.sentence ?? (entry.isComplete ? nil : "records missing"),
        missing > 0 ? "\(Quantity.count(missing, "blob")) missing" : nil, entry.blobs.acceptance,
        entry.blobs.listFault == nil ? nil : "the list of blobs is incomplete",
      ]
    return lacks.compactMap(\.self).joined(separator: ", ")
  }
}

extension LogCommand {
  static let report = Report<
    (file: String, entry: SnapshotHistory.Entry, snapshot: Snapshot)
  >("log", "`carpack log` and `ls --snapshots`: a snapshot.") {
    ArchiveFields.file { $0.file }
    Field("number", "its number, from 1 for the oldest") { $0.entry.number }
    Field("manifest", "its manifest") { $0.entry.cid }
    Field("vouched", "whether a footer leads to it") { $0.entry.isVouched }
    Field("bytesAdded", "how many bytes it added to the file") { $0.entry.bytesAdded }
    SnapshotFields.manifest.of { $0.snapshot }
  }
}
