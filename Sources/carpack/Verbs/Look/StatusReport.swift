internal import ATProtocol
internal import Files
internal import Snapshots
internal import Verification

/// How archives stand, as a table, JSON or metrics.
struct StatusReport {
  private struct Row {
    let file: String
    /// Nil for an archive that cannot be read.
    let status: ArchiveStatus?
    let failure: Failure?
  }

  private let now: Moment?
  private let maximumAge: Int64?
  private var rows: [Row] = []

  init(now: Moment?, maximumAge: Int64?) {
    self.now = now
    self.maximumAge = maximumAge
  }

  mutating func add(_ file: String, _ status: ArchiveStatus) {
    rows.append(Row(file: file, status: status, failure: nil))
  }

  mutating func add(unreadable file: String, _ failure: Failure) {
    rows.append(Row(file: file, status: nil, failure: failure))
  }

  /// What an archive comes to.
  func verdict(of status: ArchiveStatus) -> ExitStatus {
    .worst(
      status.verification?.verdict == .damaged ? .damaged : .success,
      status.accounts.allSatisfy { $0.standing.grave.isEmpty } ? .success : .notGenuine,
      status.accounts.allSatisfy { $0.isSettled && !isOverdue($0) } ? .success : .incomplete)
  }

  private func isOverdue(_ account: ArchiveStatus.Account) -> Bool {
    guard let maximumAge else { return false }
    return account.age(at: now).map { $0 > maximumAge } ?? true
  }

  // MARK: Text

  func printText(_ common: CommonOptions) {
    var table = Table([
      ("archive", .left), ("account", .left), ("snapshots", .right), ("age", .right),
      ("size", .right), ("verified", .left), ("state", .left),
    ])
    for row in rows {
      guard let status = row.status else {
        table.add([row.file, "-", "-", "-", "-", "-", Console.red("cannot be read")])
        continue
      }
      for account in status.accounts {
        let isFirst = account.did == status.accounts[0].did
        table.add([
          isFirst ? row.file : "", account.handle?.text ?? account.did.text,
          Quantity.grouped(account.snapshotCount),
          account.age(at: now).map { Quantity.age(seconds: $0) } ?? "?",
          isFirst ? Quantity.bytes(status.byteCount) : "",
          isFirst ? verified(status) : "", state(account),
        ])
      }
    }
    for line in table.lines { Console.print(line) }
    Console.flush()
    for row in rows {
      for account in row.status?.accounts ?? [] where isOverdue(account) {
        common.say(
          .warning,
          "\(account.handle?.text ?? account.did.text) is overdue: the last backup was \(account.age(at: now).map { "\(Quantity.age(seconds: $0)) ago" } ?? "at an unknown time")"
        )
      }
    }
    if rows.count > 1 { common.say(summary) }
  }

  private func verified(_ status: ArchiveStatus) -> String {
    guard let mark = status.verification else { return status.isFar ? "?" : "never" }
    let since = status.bytesSinceVerification
    let age = now.flatMap { now in
      Moment(mark.time).map { Quantity.age(seconds: max(0, now.seconds - $0.seconds)) + " ago" }
    }
    return
      "\(mark.verdict == .damaged ? Console.red("damaged") : mark.verdict.rawValue), \(age ?? mark.time)"
      + (since > 0 ? ", \(Quantity.bytes(since)) since" : "")
  }

  private func state(_ account: ArchiveStatus.Account) -> String {
    let snapshot = account.snapshot
    var lacks: [String] = []
    let missing = snapshot.blobs.unaccepted
    if missing > 0 { lacks.append("\(Quantity.count(missing, "blob")) missing") }
    if !snapshot.isComplete { lacks.append("records missing") }
    if snapshot.unreadable.mayHideBlobs { lacks.append("records that cannot be read") }
    if snapshot.blobs.listFault != nil { lacks.append("the server's list of blobs broke off") }
    let isComplete = lacks.isEmpty
    let doubts = account.standing.doubts.isEmpty ? [] : account.standing.words
    if isComplete { lacks.append("complete") }
    let isOverdue = isOverdue(account)
    if isOverdue { lacks.append("overdue") }
    lacks += doubts
    let text = lacks.joined(separator: ", ")
    return isComplete && !isOverdue && doubts.isEmpty ? Console.green(text) : Console.yellow(text)
  }

  /// How many archives came to what, by the worst of each.
  var summary: String {
    var counts: [(word: String, count: Int)] = [
      ("complete", 0), ("overdue", 0), ("incomplete", 0), ("not genuine", 0), ("damaged", 0),
      ("not read", 0),
    ]
    for row in rows {
      let index =
        switch row.status {
        case nil: 5
        case let status? where status.verification?.verdict == .damaged: 4
        case let status? where status.accounts.contains { !$0.standing.grave.isEmpty }: 3
        case let status? where !status.accounts.allSatisfy(\.isSettled): 2
        case let status? where status.accounts.contains(where: isOverdue): 1
        default: 0
        }
      counts[index].count += 1
    }
    let parts = counts.filter { $0.count > 0 }.map { "\(Quantity.grouped($0.count)) \($0.word)" }
    return "\(Quantity.count(rows.count, "archive")): \(parts.joined(separator: ", "))"
  }

  // MARK: JSON

  func printJSON() {
    for row in rows {
      Console.printJSON(.status) { json in
        json.field("file", row.file)
        json.field("readable", row.status != nil)
        json.field("error", row.failure?.message)
        json.field("bytes", row.status.map { Int(clamping: $0.byteCount) })
        json.field("verified", row.status?.verification?.time)
        json.field("verdict", row.status?.verification?.verdict.rawValue)
        json.field(
          "bytesSinceVerified",
          row.status.flatMap { $0.isFar ? nil : Int(clamping: $0.bytesSinceVerification) })
        json.beginArray("accounts")
        for account in row.status?.accounts ?? [] {
          json.beginObject()
          json.field("did", account.did.text)
          json.field("handle", account.handle?.text)
          json.field("snapshots", account.snapshotCount)
          json.field("newest", account.newest)
          json.field("ageSeconds", account.age(at: now).map { Int($0) })
          json.field("overdue", isOverdue(account))
          json.field("complete", account.isSettled)
          account.standing.writeFields(to: &json)
          json.field("records", account.snapshot.counts.records)
          json.field("blobs", account.snapshot.blobs.referenced)
          json.field("missingBlobs", account.snapshot.blobs.unaccepted)
          json.endObject()
        }
        json.endArray()
      }
    }
  }

  // MARK: Metrics

  private struct Metric {
    let name: String
    let help: String
    let value: (ArchiveStatus, ArchiveStatus.Account) -> Int64?
  }

  /// The same in the text format of Prometheus (exposition format 0.0.4).
  var metrics: String {
    var text = ""
    func header(_ name: String, _ help: String) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
    }
    header("carpack_archive_readable", "Whether the archive can be opened.")
    for row in rows {
      text +=
        "carpack_archive_readable{file=\"\(Self.escaped(row.file))\"} \(row.status == nil ? 0 : 1)\n"
    }
    let now = now
    let metrics = [
      Metric(name: "carpack_archive_bytes", help: "Size of the archive.") { status, _ in
        Int64(clamping: status.byteCount)
      },
      Metric(name: "carpack_snapshots", help: "Snapshots of the account.") {
        Int64($1.snapshotCount)
      },
      Metric(name: "carpack_age_seconds", help: "Seconds since the last backup.") {
        $1.age(at: now)
      },
      Metric(name: "carpack_overdue", help: "Whether the last backup is older than --max-age.") {
        isOverdue($1) ? 1 : 0
      },
      Metric(name: "carpack_complete", help: "Whether nothing is missing.") {
        $1.isSettled ? 1 : 0
      },
      Metric(name: "carpack_missing_blobs", help: "Blobs that are missing.") {
        Int64($1.snapshot.blobs.unaccepted)
      },
      Metric(name: "carpack_verified_seconds", help: "When the archive was last verified.") {
        status, _ in status.verification.flatMap { Moment($0.time)?.seconds }
      },
      Metric(name: "carpack_verified_damaged", help: "Whether that found damage.") { status, _ in
        status.verification.map { $0.verdict == .damaged ? 1 : 0 }
      },
    ]
    for metric in metrics {
      header(metric.name, metric.help)
      for row in rows {
        guard let status = row.status else { continue }
        for account in status.accounts {
          guard let value = metric.value(status, account) else { continue }
          text +=
            "\(metric.name){file=\"\(Self.escaped(row.file))\",account=\"\(account.did.text)\"} \(value)\n"
        }
      }
    }
    return text
  }

  /// A label's value: backslash, quotation mark and line feed are escaped.
  private static func escaped(_ text: String) -> String {
    text.reduce(into: "") { escaped, character in
      switch character {
      case "\\": escaped += "\\\\"
      case "\"": escaped += "\\\""
      case "\n": escaped += "\\n"
      default: escaped.append(character)
      }
    }
  }
}
