internal import ATProtocol
internal import Files
internal import Reports
internal import Snapshots
internal import Terminal
internal import Verification

/// The state of archives, as a table, JSON or metrics.
struct StatusReport {
  /// An archive, and its state, or why it cannot be read.
  typealias Row = (file: String, status: ArchiveStatus?, failure: Failure?)

  var rows: [Row] = []

  private typealias Place = (
    file: String, status: ArchiveStatus, account: ArchiveStatus.Account
  )

  /// The accounts of all archives, and where they are.
  private var accounts: [Place] {
    rows.flatMap { file, status, _ in
      status.map { status in status.accounts.map { (file, status, $0) } } ?? []
    }
  }

  /// Whether an archive has an account.
  func has(_ account: ATIdentifier) -> Bool {
    accounts.contains { _, _, found in
      switch account {
      case .did(let did): found.snapshot.did == did
      case .handle(let handle): found.snapshot.handle == handle
      }
    }
  }

  // MARK: Text

  func printText(_ common: CommonOptions) {
    Table.print(
      [
        ("archive", .left), ("account", .left), ("snapshots", .right), ("age", .right),
        ("size", .right), ("verified", .left), ("state", .left),
      ], rows.flatMap(cells))
    Console.flush()
    for (_, _, account) in accounts where account.isOverdue {
      common.say(
        .warning,
        "\(account.snapshot.name) is overdue: the last backup was \(account.age.map { "\(Quantity.age(seconds: $0)) ago" } ?? "at an unknown time")"
      )
    }
    if rows.count > 1 { common.say(summary) }
  }

  /// Why an archive was not read, in a few words.
  private static func unread(_ failure: Failure?) -> String {
    failure?.status == .loginRefused ? "sealed, no key" : Console.red("cannot be read")
  }

  /// The rows of the table for an archive, one for each account.
  private func cells(_ row: Row) -> [[String]] {
    guard let status = row.status else {
      return [[row.file, "-", "-", "-", "-", "-", Self.unread(row.failure)]]
    }
    return status.accounts.enumerated().map { number, account in
      [
        number == 0 ? row.file : "", account.snapshot.name,
        Quantity.grouped(account.snapshotCount),
        account.age.map { Quantity.age(seconds: $0) } ?? "?",
        number == 0 ? Quantity.bytes(status.byteCount) : "",
        number == 0 ? verified(status) : "", state(account, status),
      ]
    }
  }

  private func verified(_ status: ArchiveStatus) -> String {
    guard let mark = status.verification else { return status.isFar ? "?" : "never" }
    let since = status.bytesSinceVerification
    let time =
      status.verifiedAge.map { $0 < 60 ? "just now" : "\(Quantity.age(seconds: $0)) ago" }
      ?? mark.time
    let added = since > 0 ? "; \(Quantity.bytes(since)) added since" : ""
    let verdict = mark.verdict == .damaged ? Console.red("damaged") : mark.verdict.rawValue
    return "\(verdict) (checked \(time)\(added))"
  }

  private func state(_ account: ArchiveStatus.Account, _ status: ArchiveStatus) -> String {
    let (snapshot, standing) = (account.snapshot, account.standing)
    let missing = snapshot.blobs.unaccepted
    let lacks = [
      missing > 0 ? "\(Quantity.count(missing, "blob")) missing" : nil,
      snapshot.isComplete ? nil : "records missing",
      snapshot.unreadable.mayHideBlobs ? "records that cannot be read" : nil,
      snapshot.blobs.listFault == nil ? nil : "the server's list of blobs is incomplete",
    ].compactMap(\.self)
    let words =
      (status.bytesLost > 0
        ? [status.isOlderCopy ? "an older copy" : "cut off"] : lacks.isEmpty ? ["complete"] : lacks)
      + (account.isOverdue ? ["overdue"] : [])
      + (standing.doubts.isEmpty ? [] : standing.words)
    let text = words.joined(separator: ", ")
    return text == "complete" ? Console.green(text) : Console.yellow(text)
  }

  /// How many archives had each result, by the worst of each.
  var summary: String {
    let words = rows.map { $0.status?.verdict.rawValue ?? "not read" }
    let parts = (ArchiveStatus.Verdict.allCases.map(\.rawValue) + ["not read"]).compactMap { word in
      let count = words.count { $0 == word }
      return count > 0 ? "\(Quantity.grouped(count)) \(word)" : nil
    }
    return "\(Quantity.count(rows.count, "archive")): \(parts.joined(separator: ", "))"
  }

  // MARK: JSON

  private static let account = Fields<ArchiveStatus.Account> {
    Field("did", "the account") { $0.snapshot.did }
    Field("handle", "its handle") { $0.snapshot.handle?.text }
    Field("snapshots", "its snapshots") { $0.snapshotCount }
    Field("newest", "when the newest was made") { $0.newest }
    Field(
      "ageSeconds",
      "seconds since a backup last found that the server has nothing newer"
    ) { $0.age }
    Field("overdue", "whether that is more than --max-age") { $0.isOverdue }
    Field("complete", "whether nothing is missing but what is accepted as lost") {
      $0.snapshot.isSettled
    }
    SnapshotFields.standing.of { $0.standing }
    Field("records", "its records") { $0.snapshot.counts.records }
    Field("blobs", "blobs that they refer to") { $0.snapshot.blobs.referenced }
    Field("missingBlobs", "of these, missing and not accepted as lost") {
      $0.snapshot.blobs.unaccepted
    }
  }

  static let report = Report<Row>(
    "status", "`carpack status`: the state of an archive."
  ) {
    ArchiveFields.file { $0.file }
    Field("readable", "whether it can be opened") { $0.status != nil }
    Field("error", "why not") { $0.failure?.message }
    Field("bytes", "its size") { $0.status?.byteCount }
    Field("verified", "when all of it was last verified", .time) { $0.status?.verification?.time }
    Field("verdict", "the result of that verification", .one(of: SnapshotVerifier.Verdict.self)) {
      $0.status?.verification?.verdict.rawValue
    }
    Field("bytesSinceVerified", "how many bytes were appended since then") {
      $0.status.flatMap { $0.isFar ? nil : $0.bytesSinceVerification }
    }
    Field("bytesLost", "how many bytes were cut off of its end since it was written") {
      $0.status.flatMap { $0.isFar ? nil : $0.bytesLost }
    }
    Field(
      "accounts", "the accounts in it",
      each: { $0.status?.accounts ?? [] }, as: account)
  }

  // MARK: Metrics

  /// The same in the text format of Prometheus (exposition format 0.0.4).
  ///
  /// - Parameter status: The exit status of the command.
  func metrics(endingWith status: ExitStatus) -> String {
    var text = ""
    func add(_ name: String, _ help: String, _ values: [(labels: String, value: Int64)]) {
      text += "# HELP \(name) \(help)\n# TYPE \(name) gauge\n"
      for (labels, value) in values {
        text += "\(name)\(labels.isEmpty ? "" : "{\(labels)}") \(value)\n"
      }
    }
    add(
      "carpack_exit_status", "Exit status of carpack status: 0 if all is well.",
      [("", Int64(status.number))])
    add(
      "carpack_archive_readable", "Whether the archive can be opened.",
      rows.map { (Self.label($0.file), $0.status == nil ? 0 : 1) })
    typealias Metric = (name: String, help: String, value: (Place) -> Int64?)
    let metrics: [Metric] = [
      ("archive_bytes", "Size of the archive.", { Int64(clamping: $0.status.byteCount) }),
      ("snapshots", "Snapshots of the account.", { Int64($0.account.snapshotCount) }),
      ("age_seconds", "Seconds since the last backup.", { $0.account.age }),
      (
        "overdue", "Whether the last backup is older than --max-age.",
        { $0.account.isOverdue ? 1 : 0 }
      ),
      ("complete", "Whether nothing is missing.", { $0.account.snapshot.isSettled ? 1 : 0 }),
      (
        "missing_blobs", "Blobs that are missing.",
        { Int64($0.account.snapshot.blobs.unaccepted) }
      ),
      (
        "verified_seconds", "When the archive was last verified.",
        { $0.status.verification.flatMap { Moment($0.time)?.seconds } }
      ),
      (
        "verified_damaged", "Whether that found damage.",
        { $0.status.verification.map { $0.verdict == .damaged ? 1 : 0 } }
      ),
    ]
    for metric in metrics {
      add(
        "carpack_\(metric.name)", metric.help,
        accounts.compactMap { place in
          let account = "account=\"\(place.account.snapshot.did.text)\""
          return metric.value(place).map { ("\(Self.label(place.file)),\(account)", $0) }
        })
    }
    return text
  }

  /// The label that names the archive: backslash, quotation mark and line feed are escaped.
  private static func label(_ file: String) -> String {
    let escaped = file.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
      .replacing("\n", with: "\\n")
    return "file=\"\(escaped)\""
  }
}
