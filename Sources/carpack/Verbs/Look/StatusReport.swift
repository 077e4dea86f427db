internal import ATProtocol
internal import Files
internal import Reports
internal import Snapshots
internal import Terminal
internal import Verification

/// How archives stand, as a table, JSON or metrics.
struct StatusReport {
  struct Row {
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
    for row in rows { Self.report.print((row, self)) }
  }

  private static let account = Fields<(ArchiveStatus.Account, StatusReport)> {
    Field("did", "the account") { $0.0.did }
    Field("handle", "its handle") { $0.0.handle?.text }
    Field("snapshots", "its snapshots") { $0.0.snapshotCount }
    Field("newest", "when the newest was made") { $0.0.newest }
    Field(
      "ageSeconds",
      "seconds since a backup last found that the server has nothing newer"
    ) { $0.0.age(at: $0.1.now) }
    Field("overdue", "whether that is more than --max-age") { $0.1.isOverdue($0.0) }
    Field("complete", "whether nothing is missing but what is accepted as lost") {
      $0.0.isSettled
    }
    SnapshotFields.standing.of { $0.0.standing }
    Field("records", "its records") { $0.0.snapshot.counts.records }
    Field("blobs", "blobs that they refer to") { $0.0.snapshot.blobs.referenced }
    Field("missingBlobs", "of these, missing and not accepted as lost") {
      $0.0.snapshot.blobs.unaccepted
    }
  }

  static let report = Report<(row: Row, all: StatusReport)>(
    "status", "`carpack status`: how an archive stands."
  ) {
    ArchiveFields.file { $0.row.file }
    Field("readable", "whether it can be opened") { $0.row.status != nil }
    Field("error", "why not") { $0.row.failure?.message }
    Field("bytes", "its size") { $0.row.status?.byteCount }
    Field("verified", "when all of it was last verified", .time) {
      $0.row.status?.verification?.time
    }
    Field("verdict", "what came of that", .one(of: SnapshotVerifier.Verdict.self)) {
      $0.row.status?.verification?.verdict.rawValue
    }
    Field("bytesSinceVerified", "how many bytes were appended since") {
      $0.row.status.flatMap { $0.isFar ? nil : $0.bytesSinceVerification }
    }
    Field(
      "accounts", "the accounts in it",
      each: { subject in (subject.row.status?.accounts ?? []).map { ($0, subject.all) } },
      as: account)
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
