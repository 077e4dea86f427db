internal import ATProtocol
internal import Archive
internal import Copying
internal import Files
internal import Remote
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal
internal import Verification

/// `carpack repair -o`: a new archive of what is left.
extension RepairCommand {
  func salvage(_ file: String, to target: AtomicFile) throws {
    let output = target.path.string
    let copier = ArchiveCopier(
      level: compression.level, isDryRun: dryRun,
      observer: ProgressLine.observer(quiet: common.quiet))
    let parts = try healed(file) ?? parts(of: file)
    let readers = parts.readable.map(\.reader)
    let (report, verification) = try ArchiveReader.checkingFetched(readers) {
      try copier.salvage(parts, to: target, by: provenance, verifier: verifier) {
        Interruption.removeIfInterrupted($0.string)
      }
    }
    Interruption.removeIfInterrupted(nil)
    Console.endProgress()
    if json {
      Self.salvageReport.print((output, report, verification))
    } else {
      let list = "carpack repair --json --force \(file.shellWord) -o \(output.shellWord)"
      printText(report, output, all: list)
    }
    if dryRun { common.say("\(output): nothing was written") }
    let status: ExitStatus =
      !report.isWhole ? .incomplete : report.hasReadRemains ? .damaged : .success
    if status == .damaged {
      Console.say(.damaged, "\(file) is damaged; everything in it was saved")
    }
    try end(with: verification, of: output, status)
  }

  /// The archive as parity makes it, which leaves the file as it is; nil if parity has nothing to
  /// heal, or the archive is remote.
  func healed(_ file: String) throws -> ArchiveParts? {
    guard !RemoteArchive.isAddress(file) else { return nil }
    do {
      let (healed, count) = try HealedCopy.map(FilePath(file), limits: limits.limits) {
        try TemporaryFile().storage()
      }
      guard count > 0 else { return nil }
      common.say("\(file): \(Quantity.bytes(count)) healed from parity in what is copied")
      return try ArchiveParts(of: healed, limits: limits.limits)
    } catch let error as ArchiveError {
      // Without the library, what is damaged is lost.
      guard case .noErasureLibrary = error.reason else { throw error }
      Console.say(.note, "\(file): \(error)")
      return nil
    }
  }

  /// The archives that a file holds.
  private func parts(of name: String) throws -> ArchiveParts {
    let input = try OpenedArchive.input(name, store)
    return try Failure.naming(name) {
      // A file that lies here may have a writer, which is asked when it is opened by its path.
      try ArchiveParts(
        of: input.isFar ? input.mapped : MappedFile(input.path), limits: limits.limits)
    }
  }

  /// Prints what was saved, and the first of what was lost.
  ///
  /// - Parameters:
  ///   - report: the result.
  ///   - output: the new archive.
  ///   - verb: the command that lists all that is lost.
  private func printText(
    _ report: ArchiveCopier.SalvageReport, _ output: String, all verb: String
  ) {
    func say(_ lost: [String]) {
      Console.say(.lost, lost, of: lost.count, all: verb, limit: Self.maximumTold)
    }
    say(report.lostSections.map { "\($0)" })
    say(report.lostSnapshots)
    for snapshot in report.snapshots where !snapshot.loss.isNone {
      let name = "\(snapshot.did)\(snapshot.rev.map { " at \($0)" } ?? "")"
      Console.say(.incomplete, "\(name) lost \(Self.losses(of: snapshot))")
      say(snapshot.loss.records)
      say((snapshot.loss.blobs + snapshot.loss.documents).map { "\($0)" })
    }
    let whole = report.snapshots.count(where: \.loss.isNone)
    let size = report.generation?.committedLength ?? 0
    common.say(
      "\(output): \(Quantity.bytes(size)), \(Quantity.grouped(whole)) of \(Quantity.count(report.snapshotCount, "snapshot")) whole, \(Quantity.count(Int(clamping: report.lostSectionCount), "section")) lost"
    )
  }

  /// The most lost things of one kind that are named.
  private static let maximumTold = 10

  private static func losses(of snapshot: ArchiveCopier.SalvagedSnapshot) -> String {
    let blocks = Quantity.count(Int(clamping: snapshot.loss.blockCount), "block")
    let records = Quantity.count(snapshot.loss.recordCount, "record")
    let losses = [
      "\(blocks) (\(records))", Quantity.count(snapshot.loss.blobCount, "blob"),
      Quantity.some(snapshot.loss.documents.count, "document"),
      !snapshot.loss.isExact && snapshot.loss.blockCount == 0 ? "the order of its blocks" : nil,
    ]
    return losses.compactMap(\.self).joined(separator: ", ")
      + (snapshot.loss.remains.map { "; \($0.sentence)" } ?? "")
  }

  static let salvageReport = Report<
    (file: String, all: ArchiveCopier.SalvageReport, verification: SnapshotVerifier.Report)
  >(
    "salvage", "`carpack repair -o`."
  ) {
    ArchiveFields.file { $0.file }
    Field("bytes", "the size of the new archive") { $0.all.generation?.committedLength ?? 0 }
    ArchiveFields.head { $0.all.generation?.head?.cid }
    Field("verdict", "the result of verifying it", .one(of: SnapshotVerifier.Verdict.self)) {
      $0.verification.verdict.rawValue
    }
    Field("lostSections", "sections that are lost") { $0.all.lostSectionCount }
    Field("lost", "the first of these") { $0.all.lostSections.map { "\($0)" } }
    Field("lostSnapshots", "snapshots that are lost") { $0.all.lostSnapshots }
    Field("snapshots", "the snapshots", each: { $0.all.snapshots }, as: salvagedSnapshot)
  }

  private static let salvagedSnapshot = Fields<ArchiveCopier.SalvagedSnapshot> {
    Field("did", "the account") { $0.did }
    Field("rev", "its revision") { $0.rev?.text }
    Field("manifest", "its manifest") { $0.new }
    Field("oldManifest", "its manifest in the damaged archive") { $0.old }
    Field("lostBlocks", "blocks it lost") { $0.loss.blockCount }
    Field("lostRecords", "records it lost") { $0.loss.recordCount }
    Field("records", "these records, as far as they can be named") { $0.loss.records }
    Field("lostBlobs", "blobs it lost") { $0.loss.blobs.map { "\($0)" } }
    Field(
      optional: "left", "what is left of it", \.loss.remains,
      as: SnapshotFields.remains)
    Field(optional: "vouched", "whether a footer led to it") { $0.isVouched ? nil : false }
  }
}
