internal import ATProtocol
internal import Archive
internal import IPLD
internal import Live
internal import Snapshots

/// What came of a backup, as a person reads it.
struct BackupSummary {
  private let report: BackupReport

  init(_ report: BackupReport) { self.report = report }

  /// Prints it: one line, or all that there is to say.
  func print(isShort: Bool) {
    let snapshot = report.snapshot
    let missing = snapshot.blobs.unaccepted
    let accepted = snapshot.blobs.acceptance.map { ", \($0)" } ?? ""
    let verdict =
      switch report.outcome {
      case .upToDate: "up to date\(accepted)"
      case .recent where snapshot.isSettled: "recent, skipped\(accepted)"
      case .recent: "recent, skipped; \(Console.yellow("incomplete"))\(accepted)"
      case .complete:
        accepted.isEmpty ? Console.green("complete") : "nothing else is missing\(accepted)"
      case .incomplete:
        "\(Console.yellow("incomplete")), \(whatIsLacking(isShort: isShort))\(accepted)"
      }
    guard !isShort else {
      let growth = report.bytesAdded > 0 ? ", \(Quantity.bytes(report.bytesAdded)) added" : ""
      let damage =
        report.damage.isNone ? "" : ", \(Console.red("\(report.damage.text) damaged"))"
      Console.print("\(report.name): \(verdict)\(damage)\(growth)")
      sayDoubts()
      return
    }
    Console.print("\(report.name): \(verdict)")
    let blobs = snapshot.blobs
    Console.print(
      "  \(snapshot.handle.map { "\($0.text) (\(snapshot.did))" } ?? snapshot.did.text)\(snapshot.rev.map { " at \($0.text)" } ?? ""), from \(snapshot.pds ?? "an unknown server")"
    )
    Console.print(
      "  \(Quantity.count(snapshot.counts.records, "record")); blobs: \(Quantity.grouped(blobs.referenced)) referenced, \(blobs.listed.map { "\(Quantity.grouped($0)) listed" } ?? "not listed"), \(Quantity.grouped(blobs.held)) held (\(Quantity.bytes(blobs.heldBytes))), \(Quantity.grouped(missing)) missing\(accepted)"
        + (blobs.extras > 0
          ? "; \(Quantity.count(blobs.extras, "extra")) (\(Quantity.bytes(blobs.extrasBytes)))"
          : ""))
    if report.bytesAdded > 0 || report.outcome == .complete {
      Console.print(
        "  \(Quantity.bytes(report.bytesAdded)) added in \(Quantity.duration(seconds: Double(report.milliseconds) / 1000)), \(growth)"
          + ((blobs.new ?? 0) > 0
            ? " and \(Quantity.count(blobs.new ?? 0, "new blob")) (\(Quantity.bytes(blobs.newBytes ?? 0)))"
            : ""))
    }
    for change in report.identityChanges { Console.print("  \(change)") }
    if snapshot.standing.doubts.contains(.unsigned) {
      Console.print("  unsigned: no key of the account was known to check the commit with")
    }
    for doubt in Standing.Doubt.allCases where snapshot.standing.accepted.contains(doubt) {
      Console.print("  accepted: the account \(doubt)")
    }
    if let sentence = snapshot.unreadable.sentence { Console.print("  \(sentence)") }
    if report.isHealed { Console.print("  damaged sections were written again") }
    if !report.damage.isNone {
      Console.print(
        "  \(Console.red("damaged:")) \(report.damage.text) (\(report.damage.advice))"
      )
    }
    if let fault = blobs.listFault {
      Console.print("  \(fault.sentence); the next backup asks again")
    }
    if report.lacksPrivateData {
      Console.print("  private data is not whole; the next backup with --private asks again")
    }
    for (reason, count) in reasons {
      Console.print("  missing: \(Quantity.grouped(count)), \(reason.sentence)")
    }
    if missing > 0 {
      Console.print("  \"carpack missing \(report.name)\" names them, \"carpack fill\" tries again")
    }
    if let head = report.generation.head { Console.print("  archive head \(head.cid)") }
    sayDoubts()
    if snapshot.isSettled, snapshot.standing.grave.isEmpty, !report.lacksPrivateData,
      blobs.accepted == 0, report.damage.isNone
    {
      Console.print(
        "  \(Quantity.allSafe(records: snapshot.counts.records, blobs: blobs.referenced))")
    }
  }

  /// Says what is wrong, if anything is: all that a quiet backup says.
  func sayTrouble() {
    let snapshot = report.snapshot
    sayDoubts()
    if !snapshot.isSettled || report.lacksPrivateData {
      let hint =
        snapshot.blobs.unaccepted > 0
        ? "; \"carpack missing \(report.name)\" names what is missing" : ""
      Console.say(.incomplete, "\(report.name): \(whatIsLacking(isShort: true))\(hint)")
    }
    if !report.damage.isNone {
      Console.say(
        .damaged,
        "\(report.name): \(report.damage.text); \"carpack verify \(report.name)\" says what is lost"
      )
    }
  }

  /// Says what is evidence against the account, and how to accept it.
  private func sayDoubts() {
    for doubt in report.snapshot.standing.grave {
      let option = doubt == .handle ? "--allow-unconfirmed-handle" : "--accept-rollback"
      Console.say(
        .notGenuine, "\(report.name): the account \(doubt); if you know why, \(option) accepts it")
    }
  }

  /// What is not whole, and in short why.
  private func whatIsLacking(isShort: Bool) -> String {
    let missing = report.snapshot.blobs.unaccepted
    guard missing == 0 else {
      let why = isShort ? reasons.map { ", \($0.0.sentence)" }.joined() : ""
      return "\(Quantity.count(missing, "blob")) missing\(why)"
    }
    if report.snapshot.blobs.listFault != nil { return "the list of blobs" }
    if report.snapshot.standing.doubts.contains(.behind) {
      return "the newest commit, which the server did not give out"
    }
    return report.snapshot.unreadable.mayHideBlobs ? "records that cannot be read" : "private data"
  }

  /// What was added of the repository.
  private var growth: String {
    if report.isRepositoryUnchanged { return "the repository unchanged" }
    return report.snapshot.fetched?.since == nil ? "the whole repository" : "by what has changed"
  }

  /// How many blobs are missing for which reason, the most frequent first.
  private var reasons: [(BlobLedger.Reason, Int)] {
    var counts: [BlobLedger.Reason: Int] = [:]
    for entry in report.missing where entry.accepted == nil {
      counts[entry.reason, default: 0] += 1
    }
    return counts.sorted { ($1.value, $0.key.rawValue) < ($0.value, $1.key.rawValue) }
      .map { ($0.key, $0.value) }
  }
}

extension Snapshot.BlobCounts {
  /// How many losses were accepted, in words; nil if none was.
  var acceptance: String? {
    guard accepted > 0 else { return nil }
    return "\(Quantity.count(accepted, "loss was", "losses were")) accepted"
  }
}

extension StoredDamage {
  /// What is damaged, in a word or two.
  var text: String {
    sectionCount > 0 ? Quantity.count(sectionCount, "section") : "an index, a footer or the header"
  }

  /// Which command helps.
  var advice: String {
    sectionCount > 0
      ? "\"carpack verify\" says what is lost" : "no content; \"carpack repair\" makes it again"
  }
}
