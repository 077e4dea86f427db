internal import ATProtocol
internal import Archive
internal import Reports
internal import Snapshots
internal import Terminal
internal import Verification

/// What `carpack verify` found, as text or JSON.
struct VerifyReport {
  let opened: OpenedArchive
  let report: SnapshotVerifier.Report
  /// What parity can heal of it; nil if it is not damaged, or has no parity.
  let parity: ParityHealing.Report?

  /// The most lines of one kind.
  private static let maximumLines = 100

  /// Whether lines about a snapshot must name it.
  private var areSeveral: Bool { report.snapshots.count > 1 }

  // MARK: Text

  func printText(_ common: CommonOptions, isOne: Bool) {
    sayDamage()
    sayLostBlobs()
    for (number, why) in report.doubts {
      Console.say(.notGenuine, areSeveral ? "snapshot \(number): \(why)" : why)
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
        "only the newest \(Quantity.grouped(SnapshotHistory.maximumCount)) snapshots were checked"
      )
    }
    // Success is quiet.
    guard !common.quiet || report.verdict != .intact || !report.doubts.isEmpty else { return }
    Console.print("\(opened.name): \(Self.headline(report))")
    guard isOne else { return }
    for line in fileLines + snapshotLines { Console.print("  \(line)") }
    printLevels()
    if let head = report.archive.generation.head { Console.print("  head \(head.cid)") }
    if let safe = report.safe {
      Console.print("  \(Quantity.allSafe(records: safe.records, blobs: safe.blobs))")
    }
    if report.archive.findings.contains(where: { $0.error.reason == .furtherArchive }) {
      return Console.say("hint: \(OpenedArchive.completionOfAll)")
    }
    if report.archive.findings.contains(where: { $0.severity == .interruptedTail }) {
      Console.say("hint: \(OpenedArchive.completion)")
    }
    if report.verdict == .damaged {
      Self.say(parity, of: opened.name)
      guard parity?.isHealable != true else { return }
      Console.say(
        "hint: \"carpack repair \(Elsewhere.fileWord(opened.name))\" repairs indexes and footers; with --from COPY, or by \"carpack backup\", content is written again; \"carpack repair -o NEW\" makes a new archive of what is left"
      )
    }
  }

  /// The result of verifying an archive, in a word.
  static func headline(_ report: SnapshotVerifier.Report) -> String {
    let isDoubtful = report.verdict != .damaged && !report.doubts.isEmpty
    return isDoubtful ? Console.red("not genuine") : coloured(report.verdict)
  }

  /// Prints what parity can heal.
  static func say(_ parity: ParityHealing.Report?, of name: String) {
    guard let parity else { return }
    guard !parity.isHealable else {
      return Console.say(
        "hint: parity can heal all of it: \"carpack repair \(Elsewhere.fileWord(name))\"")
    }
    Console.say(
      .note,
      parity.healableCount == 0
        ? "parity cannot heal this damage"
        : "parity can heal \(Quantity.grouped(parity.healableCount)) of \(Quantity.count(parity.damagedCount, "damaged block")): \"carpack repair\" heals them"
    )
  }

  /// Prints the levels of proof of the snapshots that decide the verdict.
  private func printLevels() {
    for snapshot in report.snapshots.filter(\.isJudged).prefix(Self.maximumLines) {
      guard let levels = snapshot.levels else { continue }
      if areSeveral { Console.print("  proven of snapshot \(snapshot.entry.number)") }
      let rows = ProofLevels.Level.allCases.map { level -> (String, String?) in
        let finding = levels[level]
        let word =
          switch finding.isHeld {
          case true?: Console.green("yes")
          case false?: Console.red("no ")
          case nil: "-  "
          }
        return (level.rawValue, "\(word)  \(finding.why)")
      }
      Console.print(rows, indent: 4, width: 17)
    }
  }

  /// Prints the damage to the file and to the snapshots.
  ///
  /// Damage that several snapshots share is printed once, for the newest of them.
  private func sayDamage() {
    let list = "carpack verify --json \(opened.word)"
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
      say(mark(snapshot), snapshot.damagedBlobs, of: snapshot)
      if snapshot.isJudged, let fault = snapshot.entry.blobs.listFault {
        Console.say(.incomplete, "\(place(snapshot))\(fault.sentence)")
      }
      // There may be very many: none is copied.
      let missing = snapshot.missingBlobs.lazy
      say(.missing, missing.filter { $0.accepted == nil }, of: snapshot)
      say(.acceptedAsLost, missing.filter { $0.accepted != nil }, of: snapshot)
    }
  }

  private func say(
    _ mark: Mark, _ blobs: some Collection<SnapshotVerifier.LostBlob>,
    of snapshot: SnapshotVerifier.SnapshotReport
  ) {
    Console.say(
      mark, blobs.lazy.map { place(snapshot) + text($0) }, of: blobs.count,
      all: "carpack missing \(opened.word)")
  }

  /// The snapshot's number as a prefix, if there are several snapshots.
  private func place(_ snapshot: SnapshotVerifier.SnapshotReport) -> String {
    areSeveral ? "snapshot \(snapshot.entry.number): " : ""
  }

  private var fileLines: [String] {
    let archive = report.archive
    let (unknown, superseded) = (archive.unverifiableCount, archive.supersededBytes)
    let sections =
      archive.isComplete
      ? "\(Quantity.count(Int(clamping: archive.sectionCount), "section")) hashed"
      : "sections not hashed (--quick)"
    let rest =
      unknown > 0 ? ", \(unknown) of them with a hash function that is not supported" : ""
    let size =
      "\(Quantity.bytes(archive.byteCount)) in \(Quantity.count(Int(clamping: archive.frameCount), "data frame")), \(sections)\(rest)"
    guard superseded > 0 else { return [size] }
    return [
      size,
      "\(Quantity.bytes(superseded)) of them superseded by repairs",
    ]
  }

  /// The snapshots that decide, and those with which something is wrong.
  private var snapshotLines: [String] {
    let snapshots = report.snapshots
    let verdicts: [SnapshotVerifier.Verdict?] = SnapshotVerifier.Verdict.allCases + [nil]
    let counts = verdicts.compactMap { verdict in
      let count = snapshots.count { $0.verdict == verdict }
      let word = verdict?.rawValue ?? "not checked (--quick)"
      return count > 0 ? "\(Quantity.grouped(count)) \(word)" : nil
    }
    var lines =
      areSeveral
      ? ["\(Quantity.count(snapshots.count, "snapshot")): \(counts.joined(separator: ", "))"] : []
    let shown = snapshots.filter { $0.isJudged || ![.intact, nil].contains($0.verdict) }
    lines += shown.prefix(Self.maximumLines).map(line)
    let more = shown.count - Self.maximumLines
    if more > 0 { lines.append("and \(Quantity.grouped(more)) more like these") }
    return lines
  }

  /// What the archive now holds of a snapshot.
  private func line(_ snapshot: SnapshotVerifier.SnapshotReport) -> String {
    let (entry, accepted) = (snapshot.entry, snapshot.blobs.accepted)
    let revision = entry.rev.map { " at \($0.text)" } ?? ""
    let holdings =
      (snapshot.remains ?? entry.remains)?.sentence
      ?? "\(Quantity.count(entry.counts.records, "record")), \(Quantity.grouped(snapshot.heldBlobCount)) of \(Quantity.count(entry.blobs.referenced, "blob")) held\(snapshot.isExamined ? "" : ", by its manifest")"
    var line = "\(entry.handle?.text ?? entry.did.text)\(revision): \(holdings)"
    if accepted > 0 {
      line += ", \(Quantity.count(accepted, "loss was", "losses were")) accepted"
    }
    guard areSeveral else { return line }
    guard let verdict = snapshot.verdict, verdict != .intact else {
      return "\(entry.number)  \(line)"
    }
    return "\(entry.number)  \(line): \(Self.coloured(verdict))"
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
    let facts = [blob.mimeType, blob.size.map { Quantity.bytes($0) }].compactMap(\.self)
    if !facts.isEmpty { text += " (\(facts.joined(separator: ", ")))" }
    if let record = blob.record { text += " of \(record)" }
    return "\(text): \(blob.why)"
  }

  // MARK: JSON

  func printJSON() throws {
    let newest = try report.snapshots.first.map { try opened.snapshot($0.entry).snapshot }
    Self.report.print((opened.name, report, newest, parity))
  }

  private static let lostBlobs = Fields<SnapshotVerifier.LostBlob>("Lost blob") {
    Field("cid", "the blob") { $0.cid }
    Field("why", "why it is missing or how it is damaged") { $0.why }
    Field("record", "the first record that refers to it") { $0.record }
    Field("type", "its media type, as that record declares it") { $0.mimeType }
    Field("size", "its size in bytes, as that record declares it") { $0.size }
    Field(
      optional: "accepted", "when and why the loss was accepted", { $0.accepted },
      as: BlobFields.acceptance)
  }

  private static let levels = Fields<(level: ProofLevels.Level, finding: ProofLevels.Finding)> {
    Field("level", "the level of proof", .one(of: ProofLevels.Level.self)) { $0.level.rawValue }
    Field("holds", "whether it holds; null if the archive has no evidence either way") {
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
    Field(
      "verdict", "of the snapshot; null if only its manifest was read (--quick)",
      .one(of: SnapshotVerifier.Verdict.self)
    ) { $0.verdict?.rawValue }
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
      optional: "listFault", "why the server's list of blobs was not complete",
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

  static let report = Report<
    (
      file: String, all: SnapshotVerifier.Report, newest: Snapshot?, parity: ParityHealing.Report?
    )
  >(
    "verify", "`carpack verify`."
  ) {
    ArchiveFields.file { $0.file }
    Field("verdict", "of the whole file", .one(of: SnapshotVerifier.Verdict.self)) {
      $0.all.verdict.rawValue
    }
    Field(
      "genuine",
      "false if evidence contradicts that the accounts made their snapshots; null with --quick"
    ) { $0.all.archive.isComplete ? $0.all.doubts.isEmpty : nil }
    Field(
      "depth", "whether everything was hashed, or checksums compared", .one(of: "full", "quick")
    ) { $0.all.archive.isComplete ? "full" : "quick" }
    Field("bytes", "the size of the file") { $0.all.archive.byteCount }
    Field("frames", "data frames") { $0.all.archive.frameCount }
    Field("sections", "sections") { $0.all.archive.sectionCount }
    Field("unverifiableSections", "sections with a hash function that is not supported") {
      $0.all.archive.unverifiableCount
    }
    ArchiveFields.head { $0.all.archive.generation.head?.cid }
    Field(
      "snapshot", "the newest snapshot", orNull: { $0.newest },
      as: Fields { SnapshotFields.manifest })
    Field(
      "snapshots", "all snapshots that were checked, the newest first",
      each: { $0.all.snapshots }, as: snapshots)
    Field(
      "findings", "what is wrong with the file, or may be", each: { $0.all.archive.findings },
      as: Fields {
        Field("severity", "the severity") { "\($0.severity)" }
        Field("what", "what was found") { "\($0)" }
        Field("offset", "the byte in the file where it is") { $0.error.offset }
      })
    Field(
      "parity", "what parity can heal of a damaged archive; null without parity",
      orNull: { $0.parity },
      as: Fields {
        Field("damagedBlocks", "blocks that do not match their checksums") { $0.damagedCount }
        Field("healableBlocks", "those that parity can restore") { $0.healableCount }
      })
    Field("damage", "what is damaged in the file and its snapshots") { $0.all.damage }
    Field(
      "damagedBlobs", "all damaged blobs", each: { $0.all.damagedBlobs }, as: lostBlobs)
    Field(
      "missingBlobs", "all missing blobs", each: { $0.all.missingBlobs }, as: lostBlobs)
    Field("recordWarnings", "the first of the records that break the data model") {
      $0.all.recordWarnings.map { "\($0.record): \($0.why)" }
    }
  }
}
