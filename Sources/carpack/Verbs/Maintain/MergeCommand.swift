internal import Archive
internal import ArgumentParser
internal import Copying
internal import Files
internal import Remote
internal import Reports
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack merge`: one archive of several.
struct MergeCommand: ReportingCommand {
  static let page = ManualPage("merge", PackageResources.merge_txt)

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The archive to write.", valueName: "file"), completion: .file())
  var output: String

  @Flag(help: "Replace the output if it exists.")
  var force = false

  @Flag(
    name: .customLong("dry-run"),
    help: "Make the new archive and verify it, say what it comes to, and throw it away.")
  var dryRun = false

  @Flag(
    name: .customLong("private"), inversion: .prefixedNo,
    help: "Keep private data, or leave it out.")
  var keepsPrivateData: Bool?

  @Argument(
    help: ArgumentHelp(
      "The archives: files, https:// or s3:// addresses.", valueName: "archive"),
    completion: .file(extensions: ["zst"]))
  var files: [String]

  @OptionGroup var compression: CompressionOptions

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var limits: LimitOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    if OutputPath.isFolder(output) {
      throw ValidationError("\(output) is a folder: name the file")
    }
    if RemoteArchive.isAddress(output) {
      throw ValidationError("-o takes a file; \"carpack push\" then uploads it")
    }
    if output == "-" { throw ValidationError("-o takes a file: what is written is read back") }
  }

  func run() throws {
    for file in files where !RemoteArchive.isAddress(file) { try CARInput.refuse(file) }
    try OutputPath.refuseInput(output, among: files)
    let target = try AtomicFile(
      FilePath(output), replacing: force, from: files.map { FilePath($0) })
    let archives = try files.map(open)
    let copier = ArchiveCopier(
      level: compression.level, isDryRun: dryRun,
      observer: ProgressLine.observer(quiet: common.quiet))
    let report = try ArchiveReader.checkingFetched(archives.map(\.reader)) {
      try copier.merge(archives, to: target, keepsPrivateData: keepsPrivateData) {
        Interruption.removeIfInterrupted($0.string)
      }
    }
    Interruption.removeIfInterrupted(nil)
    Console.endProgress()
    if keepsPrivateData == nil, report.withoutPrivateCount > 0 {
      common.say(
        .note,
        "private data of \(Quantity.count(report.withoutPrivateCount, "account")) is left out: --private keeps it"
      )
    }
    if json { Self.report.print((output, dryRun, report)) } else { printSummary(report) }
    guard !dryRun else { return }
    let history = try open(output).history
    let unaccepted = history.disruptions.filter { !$0.isAccepted }
    Console.say(
      .notGenuine,
      unaccepted.lazy.map {
        "snapshot \(history.entries[$0.after].number): \(history.sentence($0.kind, after: $0.before))"
      }, of: unaccepted.count, all: "carpack verify \(output.shellWord)")
    if !unaccepted.isEmpty { throw ExitStatus.notGenuine }
  }

  /// Opens an archive; errors name it, because there are several.
  private func open(_ file: String) throws -> SourceArchive {
    let name = RemoteArchive.shown(file)
    return try Failure.naming(name) {
      let reader = try ArchiveReader.opening(file, limits.limits, store)
      return try ArchiveReader.checkingFetched([reader]) { try SourceArchive(reader, name: name) }
    }
  }

  private func printSummary(_ report: ArchiveCopier.MergeReport) {
    common.say(
      "\(output): \(dryRun ? "would be " : "")\(Quantity.bytes(report.generation.committedLength)) "
        + "from \(Quantity.bytes(report.sourceSize)) in \(Quantity.count(files.count, "archive"))"
    )
    common.say(
      "  \(Quantity.count(report.snapshotCount, "snapshot")) of \(Quantity.count(report.accountCount, "account"))"
        + (report.sharedCount > 0
          ? "; \(Quantity.grouped(report.sharedCount)) more were the same" : ""))
  }

  static let report = Report<(file: String, isDryRun: Bool, all: ArchiveCopier.MergeReport)>(
    "merge", "`carpack merge`."
  ) {
    ArchiveFields.file { $0.file }
    Field("dryRun", "whether nothing was written, and this is what would be") { $0.isDryRun }
    Field("bytes", "its size") { $0.all.generation.committedLength }
    Field("bytesBefore", "the size of the archives together") { $0.all.sourceSize }
    Field("sections", "its sections") { $0.all.generation.sectionCount }
    Field("snapshots", "its snapshots") { $0.all.snapshotCount }
    Field("foundAgain", "snapshots that several archives had") { $0.all.sharedCount }
    Field("withoutPrivate", "accounts whose private data was left out") {
      $0.all.withoutPrivateCount
    }
    Field("accounts", "its accounts") { $0.all.accountCount }
    ArchiveFields.head { $0.all.generation.head?.cid }
  }
}
