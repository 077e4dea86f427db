internal import ATProtocol
internal import Archive
internal import Reports
internal import Snapshots
internal import Terminal
internal import Verification

/// What `carpack verify` found, as text or JSON.
struct VerifyReport {
  private let opened: OpenedArchive
  private let report: SnapshotVerifier.Report

  /// How many lines there are at most of one kind.
  private static let maximumLines = 100

  init(_ opened: OpenedArchive, _ report: SnapshotVerifier.Report) {
    self.opened = opened
    self.report = report
  }

  // MARK: Text

  func printText(_ common: CommonOptions, isOne: Bool) {
    sayDamage()
    sayLostBlobs()
    for (number, why) in report.doubts {
      Console.say(
        .notGenuine, report.snapshots.count > 1 ? "snapshot \(number): \(why)" : why)
    }
    for snapshot in report.snapshots where snapshot.isJudged {
      common.say(snapshot.unreadable, of: place(snapshot))
    }
    for (record, why) in report.recordWarnings.prefix(20) {
      common.say(.warning, "\(record): \(why)")
    }
    if report.isPartial {
      Console.say(
        .incomplete,
        "only the newest \(Quantity.grouped(SnapshotHistory.maximumCount)) snapshots were looked at"
      )
    }
    // Success is quiet.
    guard !common.quiet || report.verdict != .intact || !report.doubts.isEmpty else { return }
    let isDoubtful = report.verdict != .damaged && !report.doubts.isEmpty
    let verdict = isDoubtful ? Console.red("not genuine") : Self.coloured(report.verdict)
    Console.print("\(opened.name): \(verdict)")
    guard isOne else { return }
    printFile()
    printSnapshots()
    printLevels()
    if let head = report.archive.generation.head { Console.print("  head \(head.cid)") }
    printSafety()
    sayHint()
  }

  /// Prints what is proven of the snapshots that decide.
  private func printLevels() {
    for snapshot in report.snapshots.filter(\.isJudged).prefix(Self.maximumLines) {
      guard let levels = snapshot.levels else { continue }
      if report.snapshots.count > 1 {
        Console.print("  proven of snapshot \(snapshot.entry.number)")
      }
      for level in ProofLevels.Level.allCases {
        let finding = levels[level]
        let word =
          switch finding.isHeld {
          case true?: Console.green("yes")
          case false?: Console.red("no ")
          case nil: "-  "
          }
        let name = level.rawValue + String(repeating: " ", count: 17 - level.rawValue.count)
        Console.print("    \(name)\(word)  \(finding.why)")
      }
    }
  }

  /// Says in the last line that nothing is missing, if everything was looked at and nothing is.
  private func printSafety() {
    let judged = report.snapshots.filter(\.isJudged)
    guard report.verdict == .intact, report.doubts.isEmpty, report.archive.isComplete,
      !judged.isEmpty,
      judged.allSatisfy({ $0.blobs.missing == 0 })
    else { return }
    let (records, blobs) = judged.reduce((0, 0)) { sum, snapshot in
      (sum.0 + snapshot.entry.counts.records, sum.1 + snapshot.entry.blobs.referenced)
    }
    Console.print("  \(Quantity.allSafe(records: records, blobs: blobs))")
  }

  /// Says what is damaged of the file and of the snapshots: what several of these have in common only
  /// once, of the newest of them.
  private func sayDamage() {
    let list = "carpack verify --json \(opened.name)"
    Console.say(report.archive.findings.map { (Self.mark($0.severity), "\($0)") }, all: list)
    let more = report.archive.findingCount - report.archive.findings.count
    if more > 0 { Console.say(.damaged, "and \(Quantity.grouped(more)) more like these") }
    for what in report.fileDamage { Console.say(.damaged, "\(what)") }
    var said: Set<String> = []
    for snapshot in report.snapshots {
      let new = snapshot.damage.filter { said.insert($0).inserted }
      Console.say(new.map { (mark(snapshot), "\(place(snapshot))\($0)") }, all: list)
    }
  }

  private static func mark(_ severity: ArchiveVerification.Severity) -> Mark {
    switch severity {
    case .damaged: .damaged
    case .interruptedTail: .unfinished
    case .unverifiable: .warning
    }
  }

  private func mark(_ snapshot: SnapshotVerifier.SnapshotReport) -> Mark {
    snapshot.isCommitted ? .damaged : .unfinished
  }

  private func sayLostBlobs() {
    for snapshot in report.snapshots {
      let place = place(snapshot)
      func say(
        _ mark: Mark, _ blobs: [SnapshotVerifier.LostBlob],
        where isMeant: (SnapshotVerifier.LostBlob) -> Bool = { _ in true }
      ) {
        // There may be very many: none is copied.
        Console.say(
          mark, blobs.lazy.filter(isMeant).map { place + text($0) },
          of: blobs.count(where: isMeant),
          all: "carpack missing \(opened.name)")
      }
      say(mark(snapshot), snapshot.damagedBlobs)
      if snapshot.isJudged, let fault = snapshot.entry.blobs.listFault {
        Console.say(.incomplete, "\(place)\(fault.sentence)")
      }
      say(.missing, snapshot.missingBlobs) { $0.accepted == nil }
      say(.acceptedAsLost, snapshot.missingBlobs) { $0.accepted != nil }
    }
  }

  /// Of which snapshot something is said, where there are several.
  private func place(_ snapshot: SnapshotVerifier.SnapshotReport) -> String {
    report.snapshots.count > 1 ? "snapshot \(snapshot.entry.number): " : ""
  }

  private func printFile() {
    let archive = report.archive
    Console.print(
      "  \(Quantity.bytes(archive.byteCount)) in \(Quantity.count(Int(clamping: archive.frameCount), "data frame")), \(Quantity.count(Int(clamping: archive.sectionCount), "section")) \(archive.isComplete ? "hashed" : "not hashed (--quick)")"
        + (archive.unverifiableCount > 0
          ? ", \(archive.unverifiableCount) of them under a hash function that cannot be checked"
          : ""))
    if archive.supersededBytes > 0 {
      Console.print(
        "  \(Quantity.bytes(archive.supersededBytes)) of them superseded: repaired around, they count no more"
      )
    }
  }

  private func printSnapshots() {
    let snapshots = report.snapshots
    if snapshots.count > 1 {
      let counts = [SnapshotVerifier.Verdict.intact, .incomplete, .damaged].compactMap { verdict in
        let count = snapshots.count { $0.verdict == verdict }
        return count > 0 ? "\(Quantity.grouped(count)) \(verdict.rawValue)" : nil
      }
      Console.print(
        "  \(Quantity.count(snapshots.count, "snapshot")): \(counts.joined(separator: ", "))")
    }
    // Those that decide, and those with which something is wrong.
    let shown = snapshots.filter { $0.isJudged || $0.verdict != .intact }
    for snapshot in shown.prefix(Self.maximumLines) {
      let entry = snapshot.entry
      let verdict =
        snapshots.count > 1 && snapshot.verdict != .intact
        ? ": \(Self.coloured(snapshot.verdict))" : ""
      Console.print(
        "  \(snapshots.count > 1 ? "\(entry.number)  " : "")\(entry.handle?.text ?? entry.did.text)\(entry.rev.map { " at \($0.text)" } ?? ""): \(holdings(of: snapshot))\(Self.acceptance(snapshot))\(verdict)"
      )
    }
    if shown.count > Self.maximumLines {
      Console.print("  and \(Quantity.grouped(shown.count - Self.maximumLines)) more like these")
    }
  }

  private static func acceptance(_ snapshot: SnapshotVerifier.SnapshotReport) -> String {
    let count = snapshot.blobs.accepted
    return count > 0 ? ", \(Quantity.count(count, "loss was", "losses were")) accepted" : ""
  }

  /// How many of the records and blobs of a snapshot are here now.
  private func holdings(of snapshot: SnapshotVerifier.SnapshotReport) -> String {
    let (records, referenced) = (snapshot.entry.counts.records, snapshot.entry.blobs.referenced)
    if let remains = snapshot.remains ?? snapshot.entry.remains { return remains.sentence }
    let held = max(0, referenced - snapshot.blobs.missing - snapshot.damagedBlobCount)
    return
      "\(Quantity.count(records, "record")), \(Quantity.grouped(held)) of \(Quantity.count(referenced, "blob")) held"
  }

  /// Says what to do about damage.
  private func sayHint() {
    guard report.verdict == .damaged else { return }
    Console.say(
      "hint: \"carpack repair --from COPY\" or \"carpack backup\" write again what is damaged; \"carpack repair -o NEW\" makes a new archive of what is left"
    )
  }

  private static func coloured(_ verdict: SnapshotVerifier.Verdict) -> String {
    switch verdict {
    case .intact: Console.green("intact")
    case .incomplete: Console.yellow("incomplete")
    case .damaged: Console.red("damaged")
    }
  }

  private func text(_ blob: SnapshotVerifier.LostBlob) -> String {
    var text = "\(blob.cid)"
    let facts = [blob.mimeType, blob.size.map { Quantity.bytes($0) }].compactMap { $0 }
    if !facts.isEmpty { text += " (\(facts.joined(separator: ", ")))" }
    if let record = blob.record { text += " of \(record)" }
    return "\(text): \(blob.why)"
  }

  // MARK: JSON

  func printJSON() throws {
    let newest = try report.snapshots.first.map {
      try ArchivedSnapshot($0.entry.cid, in: opened.reader).snapshot
    }
    Self.report.print((opened.name, report, newest))
  }

  private static let lostBlobs = Fields<SnapshotVerifier.LostBlob>("Lost blob") {
    Field("cid", "the blob") { $0.cid }
    Field("why", "why it is missing or how it is damaged") { $0.why }
    Field("record", "the first record that refers to it") { $0.record }
    Field("type", "its media type, as that record declares it") { $0.mimeType }
    Field("size", "its size in bytes, as that record declares it") { $0.size }
    Field(
      optional: "accepted", "that the loss is accepted", { $0.accepted },
      as: BlobFields.acceptance)
  }

  private static let levels = Fields<(level: ProofLevels.Level, finding: ProofLevels.Finding)> {
    Field("level", "the level of proof", .one(of: ProofLevels.Level.self)) { $0.level.rawValue }
    Field("holds", "whether it holds; null if the archive has nothing that would tell") {
      $0.finding.isHeld
    }
    Field("why", "why") { $0.finding.why }
  }

  private static let snapshots = Fields<SnapshotVerifier.SnapshotReport> {
    Field("number", "its number") { $0.entry.number }
    Field("manifest", "its manifest") { $0.entry.cid }
    Field("did", "the account") { $0.entry.did }
    Field("handle", "its handle") { $0.entry.handle?.text }
    Field("rev", "its revision") { $0.entry.rev?.text }
    Field("commit", "its commit") { $0.entry.commit }
    Field("createdAt", "when it was made") { $0.entry.createdAt }
    Field("verdict", "of the snapshot", .one(of: SnapshotVerifier.Verdict.self)) {
      $0.verdict.rawValue
    }
    Field("decides", "whether what it lacks counts for the verdict of the file") { $0.isJudged }
    Field("carDigested", "whether the digest of its CAR was compared") { $0.isCARDigested }
    Field(
      optional: "levels", "what is proven; absent with --quick",
      each: { snapshot in
        snapshot.levels.map { levels in ProofLevels.Level.allCases.map { ($0, levels[$0]) } }
      }, as: levels)
    Field("damage", "what is damaged") { $0.damage }
    Field("damagedBlobCount", "damaged blobs") { $0.damagedBlobCount }
    Field(
      "damagedBlobs", "those not named with a newer snapshot", each: { $0.damagedBlobs },
      as: lostBlobs)
    Field(
      optional: "listFault", "why the server's list of blobs was not whole",
      { $0.entry.blobs.listFault }, as: BlobFields.listFault)
    Field("missingBlobCount", "missing blobs") { $0.blobs.missing }
    Field("unreadableRecords", "records that cannot be read") { $0.unreadable.count }
    Field("partlySearchedRecords", "of these, those that may refer to unknown blobs") {
      $0.unreadable.partlySearchedCount
    }
    Field("acceptedBlobCount", "missing blobs that are accepted as lost") { $0.blobs.accepted }
    Field(
      "missingBlobs", "those not named with a newer snapshot", each: { $0.missingBlobs },
      as: lostBlobs)
  }

  static let report = Report<(file: String, all: SnapshotVerifier.Report, newest: Snapshot?)>(
    "verify", "`carpack verify`."
  ) {
    ArchiveFields.file { $0.file }
    Field("verdict", "of the whole file", .one(of: SnapshotVerifier.Verdict.self)) {
      $0.all.verdict.rawValue
    }
    Field(
      "genuine",
      "whether nothing speaks against an account having made its snapshots; null with --quick"
    ) { $0.all.archive.isComplete ? $0.all.doubts.isEmpty : nil }
    Field(
      "depth", "whether everything was hashed, or checksums compared", .one(of: "full", "quick")
    ) { $0.all.archive.isComplete ? "full" : "quick" }
    Field("bytes", "the size of the file") { $0.all.archive.byteCount }
    Field("frames", "data frames") { $0.all.archive.frameCount }
    Field("sections", "sections") { $0.all.archive.sectionCount }
    Field("unverifiableSections", "sections under a hash function that cannot be checked") {
      $0.all.archive.unverifiableCount
    }
    ArchiveFields.head { $0.all.archive.generation.head?.cid }
    Field(
      "snapshot", "the newest snapshot", orNull: { $0.newest },
      as: Fields { SnapshotFields.manifest })
    Field(
      "snapshots", "all snapshots that were looked at, the newest first",
      each: { $0.all.snapshots }, as: snapshots)
    Field(
      "findings", "what is wrong with the file, or may be", each: { $0.all.archive.findings },
      as: Fields {
        Field("severity", "how bad it is") { "\($0.severity)" }
        Field("what", "what was found") { "\($0)" }
        Field("offset", "the byte in the file where it is") { $0.error.offset }
      })
    Field("damage", "what is damaged of file and snapshots") { $0.all.damage }
    Field(
      "damagedBlobs", "all damaged blobs", each: { $0.all.damagedBlobs }, as: lostBlobs)
    Field(
      "missingBlobs", "all missing blobs", each: { $0.all.missingBlobs }, as: lostBlobs)
    Field("recordWarnings", "records that break the data model, the first of them") {
      $0.all.recordWarnings.map { "\($0.record): \($0.why)" }
    }
  }
}
