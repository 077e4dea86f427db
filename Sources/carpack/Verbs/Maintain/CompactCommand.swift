internal import Archive
internal import ArgumentParser
internal import Copying
internal import Files
internal import Remote
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack compact`: rewrites an archive, dropping what no snapshot needs.
struct CompactCommand: ReportingCommand {
  static let page = ManualPage("compact", PackageResources.compact_txt)

  @Flag(
    name: .customLong("dry-run"),
    help: "Make the new archive and verify it, say what it comes to, and throw it away.")
  var dryRun = false

  @OptionGroup var destination: NewArchiveOptions

  @OptionGroup var archives: ChangedArchives

  @OptionGroup var compression: CompressionOptions

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var limits: LimitOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws { try destination.check(archives) }

  func run() throws {
    try archives.each(common, onlyReading: destination.output != nil) { file in
      let report = try compact(file, to: destination.target(for: file))
      Interruption.removeIfInterrupted(nil)
      Console.endProgress()
      if json {
        Self.report.print((name(file), dryRun, report))
      } else {
        printSummary(report, file)
      }
    }
  }

  private func compact(_ file: String, to target: AtomicFile?) throws
    -> ArchiveCopier.CompactReport
  {
    let copier = ArchiveCopier(
      level: compression.level, limits: limits.limits, isDryRun: dryRun,
      observer: ProgressLine.observer(quiet: common.quiet))
    func note(_ path: FilePath) { Interruption.removeIfInterrupted(path.string) }
    guard let target else { return try copier.compact(FilePath(file), willWrite: note) }
    let reader = try ArchiveReader.opening(file, limits.limits, store)
    return try ArchiveReader.checkingFetched([reader]) {
      let archive = try SourceArchive(reader, name: RemoteArchive.shown(file))
      return try copier.compact(archive, to: target, willWrite: note)
    }
  }

  private func printSummary(_ report: ArchiveCopier.CompactReport, _ file: String) {
    let new = report.generation.committedLength
    let snapshots = Quantity.count(report.snapshotCount, "snapshot")
    guard report.isReplaced else {
      common.say("\(file): nothing to save, \(Quantity.bytes(report.oldSize)), \(snapshots)")
      return
    }
    let change =
      new < report.oldSize
      ? "\(Quantity.bytes(report.oldSize - new)) less (\(Quantity.percent(report.oldSize - new, of: report.oldSize)))"
      : "\(Quantity.bytes(new - report.oldSize)) more"
    common.say(
      "\(name(file)): \(dryRun ? "would be " : "")\(Quantity.bytes(new)), \(change), "
        + "\(snapshots), \(Quantity.count(report.leftOutCount, "section")) left out"
    )
  }

  private func name(_ file: String) -> String { destination.path(for: file) ?? file }

  static let report = Report<
    (file: String, isDryRun: Bool, all: ArchiveCopier.CompactReport)
  >(
    "compact", "`carpack compact`."
  ) {
    ArchiveFields.file { $0.file }
    Field("dryRun", "whether nothing was changed, and this is what would be") { $0.isDryRun }
    Field("replaced", "whether a new archive was written") { $0.all.isReplaced }
    Field("snapshots", "its snapshots") { $0.all.snapshotCount }
    Field("bytesBefore", "the size before") { $0.all.oldSize }
    Field("bytes", "the size now") {
      $0.all.isReplaced ? $0.all.generation.committedLength : $0.all.oldSize
    }
    Field("leftOut", "sections left out") { $0.all.leftOutCount }
    Field("sectionsBefore", "sections before") { $0.all.oldSectionCount }
    Field("sections", "sections now") {
      $0.all.isReplaced ? $0.all.generation.sectionCount : $0.all.oldSectionCount
    }
    Fields { ArchiveFields.head { $0 } }.optional {
      $0.all.isReplaced ? $0.all.generation.head?.cid : nil
    }
  }
}
