internal import Archive
internal import ArgumentParser
internal import Copying
internal import Files
internal import IPLD
internal import Keys
internal import Remote
internal import Reports
internal import Sealing
internal import Snapshots
internal import SystemPackage
internal import Terminal
internal import Verification

/// `carpack repair`: repairs what can be repaired, and touches nothing else.
struct RepairCommand: ReportingCommand {
  static let page = ManualPage("repair", PackageResources.repair_txt)

  @Option(
    help: ArgumentHelp(
      "Another archive that may have what is lost, such as an older copy: a file, an https:// or s3:// address (repeatable).",
      valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var from: [String] = []

  @Flag(
    name: .customLong("dry-run"),
    help: "Say what would be done and what it would come to, and change nothing.")
  var dryRun = false

  @OptionGroup var destination: NewArchiveOptions

  @OptionGroup var archives: ChangedArchives

  @OptionGroup var compression: CompressionOptions

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var limits: LimitOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if !from.isEmpty && destination.output != nil {
      throw ValidationError(
        "--from writes lost data again in place; \"carpack merge\" makes a new archive of several")
    }
    try destination.check(archives)
  }

  func run() throws {
    for file in from where !RemoteArchive.isAddress(file) { try CARInput.refuse(file) }
    let onlyReading = destination.output != nil
    try archives.each(common, onlyReading: onlyReading, acceptingLoss: true) { file in
      if let target = try destination.target(for: file) {
        try salvage(file, to: target)
      } else if dryRun {
        try plan(file)
      } else {
        try repair(file)
      }
    }
  }

  /// Another archive, and its name.
  typealias Copy = (name: String, reader: ArchiveReader)

  /// Heals what parity around the file can heal, which takes no key, and repairs what is in it.
  private func repair(_ file: String) throws {
    let healed = try ArchiveRepair.healStored(FilePath(file)) {
      Interruption.removeIfInterrupted($0.string)
    }
    Interruption.removeIfInterrupted(nil)
    do {
      try repair(file, healed: healed)
    } catch let error as SealedError where error.cause == .noKey && healed > 0 {
      common.say("\(file): \(Quantity.bytes(healed)) healed from parity")
      try SealedVerification.verify(file, store, self, heals: false).finish()
    }
  }

  private func repair(_ file: String, healed: UInt64) throws {
    let copies = try copies(of: file)
    let sources = copies.map(\.reader)
    try takeKeys(of: copies, to: file)
    let change = try ArchiveRepair.putInOrder(FilePath(file)) {
      Interruption.removeIfInterrupted($0.string)
    }
    switch change {
    case .none: break
    case .cutOff(let count):
      common.say("\(file): \(Quantity.bytes(count)) of an unfinished write cut off")
    case .end: common.say("\(file): its last pieces and their table written again")
    case .all: common.say("\(file): rewritten, because pieces of it were lost or moved")
    }
    let moved =
      try healed
      + ArchiveRepair.align(FilePath(file), limits: limits.limits) {
        Interruption.removeIfInterrupted($0.string)
      }
    Interruption.removeIfInterrupted(nil)
    let storage = try FileStorage.openArchive(FilePath(file))
    try ArchiveReader.checkingFetched(sources) {
      let report = try repair(storage, of: file, from: copies)
      Console.endProgress()
      // What could not be fetched is not lost.
      for source in sources { try source.checkFetched() }
      let renewed = report.isWholeApart ? try renew(file, storage) : nil
      if json {
        Self.report.print((file, false, moved, report, renewed))
      } else {
        printText(report, moved: moved, file, isChanged: change != .none || renewed != nil)
      }
      Console.say(lost: report.lost, of: file)
      if let renewed {
        for lost in renewed.report.lostSnapshots { Console.say(.lost, "\(file): \(lost)") }
        common.say(
          "\(file): rewritten with all that is left: \(Quantity.count(renewed.report.snapshots.count, "snapshot")), each whole"
        )
        WrittenSize.accept(FilePath(file))
        let isWhole = renewed.report.isWhole && report.lost.isEmpty
        return try end(with: renewed.verification, of: file, isWhole ? .success : .incomplete)
      }
      if let damage = report.damage {
        Failure("\(file): \(damage)", hint: try hint(on: file, copies), status: .damaged).say()
      } else {
        try pointToMerge(file, copies)
      }
      // What parity has healed is no loss.
      let isLost =
        WrittenSize.lost(of: FilePath(file)) > 0 && moved + report.archive.bytesHealed == 0
        && report.takenCount == 0
      WrittenSize.accept(FilePath(file))
      try end(
        with: report.verification, of: file,
        isLost || !report.lost.isEmpty ? .incomplete : .success)
    }
  }

  /// Takes over who can open a copy of a sealed archive, where that was changed more often.
  private func takeKeys(of copies: [Copy], to file: String) throws {
    for (name, reader) in copies {
      let storage = try FileStorage.open(FilePath(file))
      defer { storage.unlock() }
      guard try storage.map().layer != nil else { return }
      var keys = try SealedKeys(storage, ArchiveKeys.ring)
      do {
        guard try keys.take(from: reader.file) else { continue }
        common.say("\(file): who can open it was changed in \(name), and not here: that counts")
      } catch let error as ArchiveError where error.faultKind == .damage {
        // Its damage comes first.
        Console.say(
          .warning,
          "\(file): who can open it was changed in \(name), and cannot be changed here until it is repaired: \(error)"
        )
      }
    }
  }

  /// Repairs what a storage holds of a file.
  ///
  /// - Throws: ``Failure`` if nothing can be repaired there; what the repair throws.
  func repair(
    _ storage: any ArchiveStorage, of file: String, from copies: [Copy]
  ) throws -> ArchiveRepair.Outcome {
    do {
      return try ArchiveRepair.repair(
        storage, from: copies.map(\.reader), limits: limits.limits, verifier: try verifier,
        observer: ProgressLine.observer(quiet: common.quiet))
    } catch let error as ArchiveError where error.reason == .damagedEnd {
      throw Failure("\(file): \(error)", hint: Self.newArchive, status: .damaged)
    } catch let error as ArchiveError where error.reason == .noFooter {
      throw Failure(
        "\(file): cannot be repaired in place: its end is lost, and with it every snapshot",
        hint: try copyInPlace(of: file, copies) ?? Self.newArchive, status: .damaged)
    }
  }

  /// The archives that may have what is lost.
  func copies(of file: String) throws -> [Copy] {
    try from.map { name in
      guard !AtomicFile.areSame(FilePath(name), FilePath(file)) else {
        throw Failure("--from: \(name) is the archive itself", status: .usage)
      }
      return (RemoteArchive.shown(name), try ArchiveReader.opening(name, limits.limits, store))
    }
  }

  /// A new archive in the place of one that is damaged where no snapshot needs it.
  typealias Renewal = (report: ArchiveCopier.SalvageReport, verification: SnapshotVerifier.Report)

  private func renew(_ file: String, _ storage: any ArchiveStorage) throws -> Renewal? {
    let copier = ArchiveCopier(
      level: compression.level, observer: ProgressLine.observer(quiet: common.quiet))
    let renewed = try copier.renew(
      FilePath(file), storage, limits: limits.limits, by: provenance, verifier: verifier
    ) { Interruption.removeIfInterrupted($0.string) }
    Interruption.removeIfInterrupted(nil)
    Console.endProgress()
    return renewed
  }

  /// By whom a snapshot is made whose manifest is lost.
  var provenance: SnapshotBuilder.Provenance {
    SnapshotBuilder.Provenance(
      tool: Program.tool, createdAt: Host.now, hostSystem: Host.system,
      milliseconds: Host.milliseconds)
  }

  /// Verifies the repaired archive, as "carpack verify" does.
  var verifier: SnapshotVerifier {
    get throws {
      SnapshotVerifier(
        judging: (try Host.unixTime, nil), observer: ProgressLine.observer(quiet: common.quiet))
    }
  }

  /// Prints the result of verifying, and ends with its exit status.
  func end(with report: SnapshotVerifier.Report, of file: String, _ status: ExitStatus = .success)
    throws
  {
    for (_, why) in report.doubts { Console.say(.notGenuine, why) }
    common.say("\(file): \(VerifyReport.headline(report))")
    try ExitStatus.worst(status, report.status).finish()
  }

  private static let newArchive =
    "\"carpack backup\", \"carpack pack\" or \"carpack repair --from COPY\" write again the data that they have; \"carpack repair -o NEW\" makes a new archive of everything else"

  /// What to do about damage that is left.
  private func hint(on file: String, _ copies: [Copy]) throws -> String {
    if let hint = try copyInPlace(of: file, copies) { return hint }
    return from.isEmpty
      ? "\"carpack verify\" says what is lost with it; \(Self.newArchive)"
      : "the archives of --from do not have it; \"carpack verify\" says what is lost with it; \"carpack repair -o NEW\" makes a new archive of everything else"
  }

  /// What to do if a copy has a damaged or lost snapshot; nil if none has.
  private func copyInPlace(of file: String, _ copies: [Copy]) throws -> String? {
    let left = try ArchiveReader(path: FilePath(file), limits: limits.limits)
    for (name, copy) in copies where try copy.surplus(over: left).snapshots > 0 {
      guard try left.surplus(over: copy) != (0, 0, 0) else {
        return "\(name) has all that is left of \(file), and more: put a copy of it in its place"
      }
      return
        "\(name) has snapshots that are lost here: \"carpack repair \(file.shellWord) -o LEFT\", then \"carpack merge LEFT \(name.shellWord) -o NEW\""
    }
    return nil
  }

  /// Prints what the other archives have that this one lacks.
  private func pointToMerge(_ file: String, _ copies: [Copy]) throws {
    for (name, copy) in copies {
      let repaired = try ArchiveReader(path: FilePath(file), limits: limits.limits)
      let (snapshots, blobs, _) = try copy.surplus(over: repaired)
      let counts = [Quantity.some(snapshots, "snapshot"), Quantity.some(blobs, "blob")]
        .compactMap(\.self)
      guard !counts.isEmpty else { continue }
      common.say(
        .note, "\(name) has \(counts.joined(separator: " and ")) that \(file) lacks")
      common.say(
        "hint: \"carpack merge \(file.shellWord) \(name.shellWord) -o NEW\" puts both into one archive"
      )
    }
  }

  func printText(
    _ whole: ArchiveRepair.Outcome, moved: UInt64, _ file: String, isChanged: Bool
  ) {
    if moved == 0, whole.archive.isUnchanged, whole.namedCount == 0, whole.takenCount == 0 {
      // Damage that stays is reported right after.
      if whole.damage == nil, !isChanged, !whole.isWholeApart {
        common.say("\(file): nothing to repair")
      }
      return
    }
    let report = whole.archive
    let done: [String?] = [
      Quantity.some(report.segments.count, "index segment").map { "\($0) rebuilt" },
      Quantity.some(report.footers.count, "footer").map { "\($0) rebuilt" },
      report.isNoteRestored ? "the note after the header written again" : nil,
      report.bytesCutOff > 0
        ? "\(Quantity.bytes(report.bytesCutOff)) of an unfinished write cut off" : nil,
      moved + report.bytesHealed > 0
        ? "\(Quantity.bytes(moved + report.bytesHealed)) healed from parity" : nil,
      Quantity.some(Int(clamping: report.sectionsHealed), "section").map { "\($0) written again" },
      report.isReindexed ? "a new index appended" : nil,
      report.bytesVoided > 0
        ? "\(Quantity.bytes(report.bytesVoided)) of damage marked as superseded" : nil,
      Quantity.some(whole.namedCount, "snapshot").map {
        "\($0) found that no footer led to (\"carpack log\" marks them)"
      },
      Quantity.some(whole.takenCount, "snapshot").map { "\($0) taken over from --from" },
    ]
    let parts = done.compactMap(\.self).joined(separator: ", ")
    common.say("\(file): \(dryRun ? "would be repaired: " : "")\(parts)")
    if report.bytesCutOff > 0, from.isEmpty, !dryRun {
      common.say(
        .note,
        "if \(file) is a copy whose end was lost, a snapshot may be lost: compare it with another copy"
      )
    }
  }

  static let report = Report<
    (
      file: String, isDryRun: Bool, moved: UInt64, all: ArchiveRepair.Outcome, renewed: Renewal?
    )
  >(
    "repair", "`carpack repair`."
  ) {
    ArchiveFields.file { $0.file }
    Field("dryRun", "whether nothing was changed, and this is what would be") { $0.isDryRun }
    Field("segmentsRestored", "index segments rebuilt") { $0.all.archive.segments.count }
    Field("footersRestored", "footers rebuilt") { $0.all.archive.footers.count }
    Field("noteRestored", "whether the note after the header was written again") {
      $0.all.archive.isNoteRestored
    }
    Field("bytesCutOff", "bytes of an unfinished write cut off") { $0.all.archive.bytesCutOff }
    Field("reindexed", "whether a new index was appended") { $0.all.archive.isReindexed }
    Field(
      "bytesHealed",
      "bytes healed from parity, including those that were moved back into place"
    ) {
      $0.moved + $0.all.archive.bytesHealed
    }
    Field("bytesVoided", "bytes of damage marked as superseded") { $0.all.archive.bytesVoided }
    Field("sectionsHealed", "sections written again") { $0.all.archive.sectionsHealed }
    Field("snapshotsFound", "snapshots that no footer led to") { $0.all.namedCount }
    Field("snapshotsTaken", "snapshots that were taken over from another archive") {
      $0.all.takenCount
    }
    Field("lostSections", "sections that are lost") { $0.all.archive.lostSectionCount }
    Field("lost", "what is still damaged") { $0.renewed == nil ? $0.all.damage : nil }
    Field(
      "rewritten",
      "whether the archive was written anew, because what no snapshot needs, or a whole snapshot, is lost"
    ) { $0.renewed != nil }
    Field("lostSnapshots", "snapshots that were there and could not be kept, a sentence each") {
      $0.all.lost.map { "\($0)" } + ($0.renewed?.report.lostSnapshots ?? [])
    }
    Field(
      "verdict", "the result of verifying it", .one(of: SnapshotVerifier.Verdict.self)
    ) { ($0.renewed?.verification ?? $0.all.verification).verdict.rawValue }
  }
}
