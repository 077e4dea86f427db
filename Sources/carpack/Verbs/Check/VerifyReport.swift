internal import ATProtocol
internal import Archive
internal import Snapshots
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
    for finding in report.archive.findings.prefix(Self.maximumLines) {
      let mark: Mark =
        switch finding.severity {
        case .damaged: .damaged
        case .interruptedTail: .unfinished
        case .unverifiable: .warning
        }
      Console.say(mark, "\(finding)")
    }
    if report.archive.findingCount > Self.maximumLines {
      let more = report.archive.findingCount - Self.maximumLines
      Console.say(.damaged, "and \(Quantity.grouped(more)) more like these")
    }
    for what in report.fileDamage { Console.say(.damaged, "\(what)") }
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

  /// Says what is damaged of the snapshots: what several have in common only once, of the newest of
  /// them.
  private func sayDamage() {
    var said: Set<String> = []
    for snapshot in report.snapshots {
      for what in snapshot.damage where said.insert(what).inserted {
        Console.say(mark(snapshot), "\(place(snapshot))\(what)")
      }
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
    if let remains = snapshot.remains {
      return
        "\(Quantity.grouped(remains.recordCount)) of \(Quantity.count(records, "record")) left, which refer to \(Quantity.grouped(remains.blobCount)) of \(Quantity.count(referenced, "blob"))"
    }
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
    var json = JSONWriter.ofResults
    json.begin(.verify)
    json.field("file", opened.name)
    json.field("verdict", report.verdict.rawValue)
    json.field("genuine", report.archive.isComplete ? report.doubts.isEmpty : nil)
    json.field("depth", report.archive.isComplete ? "full" : "quick")
    json.field("bytes", report.archive.byteCount)
    json.field("frames", report.archive.frameCount)
    json.field("sections", report.archive.sectionCount)
    json.field("unverifiableSections", report.archive.unverifiableCount)
    json.field("archiveHead", report.archive.generation.head.map { "\($0.cid)" })
    json.key("snapshot")
    if let newest = report.snapshots.first {
      json.beginObject()
      try ArchivedSnapshot(newest.entry.cid, in: opened.reader).snapshot.writeFields(to: &json)
      json.endObject()
    } else {
      json.null()
    }
    json.beginArray("snapshots")
    for snapshot in report.snapshots {
      write(snapshot, to: &json)
      Console.print(&json)
    }
    json.endArray()
    json.beginArray("findings")
    for finding in report.archive.findings {
      json.beginObject()
      json.field("severity", "\(finding.severity)")
      json.field("what", "\(finding)")
      json.field("offset", finding.error.offset.map { Int(clamping: $0) })
      json.endObject()
    }
    json.endArray()
    json.field("damage", report.damage)
    write("damagedBlobs", report.damagedBlobs, to: &json)
    write("missingBlobs", report.missingBlobs, to: &json)
    json.beginArray("recordWarnings")
    for (record, why) in report.recordWarnings { json.string("\(record): \(why)") }
    json.endArray()
    Console.finish(&json)
  }

  private func write(
    _ snapshot: SnapshotVerifier.SnapshotReport, to json: inout JSONWriter
  ) {
    let entry = snapshot.entry
    json.beginObject()
    json.field("number", entry.number)
    json.field("manifest", "\(entry.cid)")
    json.field("did", entry.did.text)
    json.field("handle", entry.handle?.text)
    json.field("rev", entry.rev?.text)
    json.field("commit", "\(entry.commit)")
    json.field("createdAt", entry.createdAt)
    json.field("verdict", snapshot.verdict.rawValue)
    json.field("decides", snapshot.isJudged)
    json.field("carDigested", snapshot.isCARDigested)
    if let levels = snapshot.levels {
      json.beginArray("levels")
      for level in ProofLevels.Level.allCases {
        json.beginObject()
        json.field("level", level.rawValue)
        json.field("holds", levels[level].isHeld)
        json.field("why", levels[level].why)
        json.endObject()
      }
      json.endArray()
    }
    json.field("damage", snapshot.damage)
    json.field("damagedBlobCount", snapshot.damagedBlobCount)
    write("damagedBlobs", snapshot.damagedBlobs, to: &json)
    if let fault = entry.blobs.listFault {
      json.key("listFault")
      fault.write(to: &json)
    }
    json.field("missingBlobCount", snapshot.blobs.missing)
    json.field("unreadableRecords", snapshot.unreadable.count)
    json.field("partlySearchedRecords", snapshot.unreadable.partlySearchedCount)
    json.field("acceptedBlobCount", snapshot.blobs.accepted)
    write("missingBlobs", snapshot.missingBlobs, to: &json)
    json.endObject()
  }

  private func write(
    _ key: String, _ blobs: [SnapshotVerifier.LostBlob], to json: inout JSONWriter
  ) {
    json.beginArray(key)
    for blob in blobs {
      json.beginObject()
      json.field("cid", "\(blob.cid)")
      json.field("why", blob.why)
      json.field("record", blob.record)
      json.field("type", blob.mimeType)
      json.field("size", blob.size)
      if let accepted = blob.accepted {
        json.key("accepted")
        BlobFields.acceptance.write(accepted, to: &json)
      }
      json.endObject()
    }
    json.endArray()
  }
}
