internal import ATProtocol
internal import Reports
internal import Snapshots
internal import Terminal

/// Snapshots as `log` and `ls --snapshots` show them: a table, or JSON with everything that is
/// known, one object a line.
struct SnapshotList {
  private let opened: OpenedArchive
  private let entries: [SnapshotHistory.Entry]

  /// The snapshots of an archive, or of one account in it, the newest first.
  init(_ opened: OpenedArchive, account: String?) throws {
    self.opened = opened
    let history = try opened.history
    let did = try history.account(account)
    entries = history.entries.reversed().filter { did == nil || $0.did == did }
    if entries.isEmpty {
      throw history.breaks.first.map { $0 as any Error } ?? SnapshotError.noSnapshot
    }
  }

  /// Prints them; answers whether something is wrong with the list, and has said so then.
  func show(json: Bool) throws -> ExitStatus {
    if json {
      for entry in entries {
        let snapshot = try ArchivedSnapshot(entry.cid, in: opened.reader).snapshot
        Self.report.print((opened.name, entry, snapshot))
      }
    } else {
      printTable()
    }
    var status = opened.status
    for broken in try opened.history.breaks where !broken.isOfManifest {
      let isCut = broken.reason == .tooMany
      Console.say(isCut ? .incomplete : .damaged, "\(opened.name): \(broken)")
      status = .worst(status, isCut ? .incomplete : .damaged)
    }
    return status
  }

  private func printTable() {
    var table = Table([
      ("number", .right), ("made", .left), ("account", .left), ("revision", .left),
      ("records", .right), ("blobs", .right), ("added", .right), ("", .left),
    ])
    for entry in entries {
      table.add([
        "\(entry.number)", entry.createdAt, entry.handle?.text ?? entry.did.text,
        entry.rev?.text ?? "-", Quantity.grouped(entry.counts.records),
        "\(Quantity.grouped(entry.blobs.held)) of \(Quantity.grouped(entry.blobs.referenced))",
        entry.bytesAdded.map { Quantity.bytes($0) } ?? "-", Self.lack(entry),
      ])
    }
    for line in table.lines { Console.print(line) }
  }

  /// What a snapshot lacked when it was made; nothing if it is complete.
  private static func lack(_ entry: SnapshotHistory.Entry) -> String {
    var lacks: [String] = []
    if !entry.isVouched { lacks.append("found, not committed") }
    lacks += entry.standing.words
    if let remains = entry.remains {
      lacks.append(remains.sentence)
    } else if !entry.isComplete {
      lacks.append("records missing")
    }
    let missing = entry.blobs.unaccepted
    if missing > 0 {
      lacks.append("\(Quantity.count(missing, "blob")) missing")
    }
    if let acceptance = entry.blobs.acceptance { lacks.append(acceptance) }
    if entry.blobs.listFault != nil { lacks.append("the list of blobs is not whole") }
    return lacks.joined(separator: ", ")
  }

  static let report = Report<
    (file: String, entry: SnapshotHistory.Entry, snapshot: Snapshot)
  >("log", "`carpack log` and `ls --snapshots`: a snapshot.") {
    ArchiveFields.file { $0.file }
    Field("number", "its number, from 1 for the oldest") { $0.entry.number }
    Field("manifest", "its manifest") { $0.entry.cid }
    Field("vouched", "whether a footer leads to it") { $0.entry.isVouched }
    Field("bytesAdded", "by how many bytes the file grew for it") { $0.entry.bytesAdded }
    SnapshotFields.manifest.of { $0.snapshot }
  }
}

extension Standing {
  /// What speaks against a snapshot, in a word or two each.
  var words: [String] {
    Doubt.allCases.compactMap { doubt in
      let word =
        switch doubt {
        case .rollback, .fork, .unsigned: doubt.rawValue
        case .handle: "handle not confirmed"
        case .behind: "behind its server"
        case .future: "revision in the future"
        }
      if doubts.contains(doubt) { return word }
      return accepted.contains(doubt) ? "\(word), accepted" : nil
    }
  }
}
