internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Files
internal import IPLD
internal import Live
internal import Packing
internal import Reports
internal import Repository
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// `carpack pack`: one archive of a repository and its blobs.
struct PackCommand: ReportingCommand, ConfigurableOptions {
  static let page = ManualPage("pack", PackageResources.pack_txt)
  static let settings = [
    Setting(name: "extras", kind: .flag)
  ]

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp(
      "The archive to write or append to, usually NAME.car.zst; \"-\" for standard output.",
      valueName: "file"),
    completion: .file())
  var given: String?

  @Option(
    help: ArgumentHelp(
      "Like --output, but the archive may have other accounts, too.", valueName: "file"),
    completion: .file())
  var into: String?

  @Argument(
    help: ArgumentHelp("The CAR or folder to pack.", valueName: "input"), completion: .file())
  var input: String

  /// Where the archive goes.
  private var output: String {
    let path = given ?? into ?? "-"
    return OutputPath.archive(path, for: input) ?? path
  }

  @Option(
    name: .customLong("blobs"),
    help: ArgumentHelp(
      "A folder to search for blobs; may be repeated.", valueName: "dir"),
    completion: .directory)
  var blobFolders: [String] = []

  @Flag(help: "Also keep files that no record refers to.")
  var extras = false

  @Option(help: "The account's handle.")
  var handle: String?

  @Option(help: ArgumentHelp("The account's server.", valueName: "url"))
  var pds: String?

  @Option(
    help: ArgumentHelp(
      "The account's DID document, to store; it gives handle and server.",
      valueName: "file"), completion: .file())
  var didDocument: String?

  @Option(
    help: ArgumentHelp(
      "The account's PLC log, to store: /log/audit or /log of the directory, or the output of \"goat plc history\".",
      valueName: "file"),
    completion: .file())
  var plcLog: String?

  /// What may be accepted.
  enum Acceptance: String, CaseIterable, ExpressibleByArgument { case rollback }

  @Option(
    help: ArgumentHelp(
      "Accept that the account was rolled back or has two commits with one revision, and record it.",
      valueName: "kind"))
  var accept: [Acceptance] = []

  @Flag(help: "Replace the output if it exists, instead of appending to it.")
  var force = false

  @OptionGroup var compression: CompressionOptions

  @OptionGroup var parity: ParityOptions

  @OptionGroup var recipients: RecipientOptions

  @OptionGroup var terminal: TerminalOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(
      (given == nil) != (into == nil), "say where the archive goes: -o FILE, or --into FILE")
    try require(
      OutputPath.archive(given ?? into ?? "-", for: input) != nil,
      "the output is a folder, and standard input has no name: name the file")
    try require(!json || output != "-", "--json and -o - both write to standard output")
  }

  func run() throws {
    try Elsewhere.refuse(
      given ?? into ?? "-", "archives are packed into files",
      hint: "pack into a file, and \"carpack push\" that")
    try CARInput.refuseAddress(input)
    if output == "-" { try terminal.check() }
    var input = try PackInput(input, blobFolders: blobFolders)
    input.car = try CARInput.open(input.car)
    let options = try options(input)
    do {
      let lossStatus = lossStatus
      let report = try output == "-" ? packToStandardOutput(input, options) : pack(input, options)
      try finish(report, lossStatus)
    } catch let error as CARError {
      throw Failure(error).of(input.car.name)
    } catch let error as PLCLogError {
      guard let plcLog else { throw error }
      throw Failure(
        "\(plcLog): \(error)",
        hint: error == .notALog ? "a DID document goes with --did-document" : nil,
        status: .damaged, at: plcLog)
    }
  }

  /// 10 if the archive that is appended to is older than it was, 11 if its end was cut off, 0
  /// otherwise; prints what is lost.
  private var lossStatus: ExitStatus {
    let path = FilePath(output)
    guard output != "-", !force, let loss = WrittenSize.loss(of: path) else { return .success }
    return OpenedArchive.say(loss, of: path, named: output, output.shellWord)
  }

  /// Packs into a file without a name, and then copies that: an archive needs a file that can be
  /// written to twice.
  private func packToStandardOutput(_ input: PackInput, _ options: RepositoryPacker.Options) throws
    -> RepositoryPacker.Report
  {
    var options = options
    options.startsOver = true
    let spool = try TemporaryFile()
    let report = try packer(options).pack(
      input.car, folders: input.folders, into: StorageLayers.begin(in: spool.storage()))
    try spool.map().withBytes { bytes throws in try Console.write(bytes) }
    return report
  }

  private func pack(_ input: PackInput, _ options: RepositoryPacker.Options) throws
    -> RepositoryPacker.Report
  {
    try OutputPath.makeFolder(given ?? into)
    let (path, packer) = (FilePath(output), packer(options))
    guard !force, AtomicFile.isTaken(path) else {
      defer { Interruption.removeIfInterrupted(nil) }
      return try packer.pack(
        input.car, folders: input.folders, to: AtomicFile(path, replacing: force)
      ) {
        Interruption.removeIfInterrupted($0.string)
      } willReplace: {
        common.say(.note, $0)
      }
    }
    try AtomicFile.refuseUnlessFile(path)
    let storage = try open(path)
    if !recipients.recipients.isEmpty, !storage.isSealed {
      Console.say(.warning, AccountBackup.unsealed)
    }
    do {
      return try packer.pack(input.car, folders: input.folders, into: storage)
    } catch BackupError.archiveOfOther(_, let account) {
      throw BackupError.archiveOfOther(output, account: account)
    } catch let error as ArchiveError where error.reason == .noFooter {
      // Replacing it would destroy the backup.
      throw Failure(
        "\(output) is a damaged archive without a valid footer; nothing is appended",
        hint:
          "\"carpack repair \(output.shellWord)\" repairs what it can; \"carpack verify\" says what is lost",
        status: .damaged)
    } catch let error as ArchiveError
      where error.reason == .notAnArchive || error.reason == .begunOtherwise
    {
      throw Failure(
        "\(error.of(output))", hint: "use --force to replace it, or choose another name",
        status: .cannotCreate)
    }
  }

  /// Opens an archive to append to it; if that fails, it is the output that is wrong.
  private func open(_ path: FilePath) throws -> any ArchiveStorage {
    do {
      return try FileStorage.openArchive(path)
    } catch let error as ArchiveError {
      guard case .system = error.reason else { throw error }
      throw Failure("\(error)", status: .cannotCreate)
    }
  }

  private func packer(_ options: RepositoryPacker.Options) -> RepositoryPacker {
    RepositoryPacker(options, observer: ProgressLine.observer(quiet: common.quiet))
  }

  private func options(_ input: PackInput) throws -> RepositoryPacker.Options {
    var options = RepositoryPacker.Options(
      tool: Program.tool, createdAt: Host.now, hostSystem: Host.system,
      milliseconds: Host.milliseconds)
    options.level = compression.level
    options.parity = parity.percent
    options.keepsExtras = extras
    options.sharesArchive = into != nil
    options.facts = input.facts
    if accept.contains(.rollback) { options.accepted = [.rollback, .fork] }
    if let handle { options.facts.handle = try reading("--handle") { try Handle(handle) } }
    if let pds { options.facts.pds = pds }
    if let didDocument { options.facts.didDocument = try PackInput.document(didDocument) }
    if let plcLog {
      options.facts.plcLog = try PackInput.document(plcLog)
      options.requiresProvenLog = true
    }
    return options
  }

  private func finish(_ report: RepositoryPacker.Report, _ lossStatus: ExitStatus) throws {
    for (path, why) in report.refused { Console.say(.refused, "\(path): \(why)") }
    // Packed data cannot confirm a handle.
    var standing = report.snapshot.standing
    standing.doubts.remove(.handle)
    standing.sayDoubts(named: output)
    let stranger = report.signature.flatMap { $0.isGenuine ? nil : $0 }
    if let stranger {
      Console.say(.notGenuine, "\(stranger), according to what was given about the account")
    }
    if !report.knowsTimes {
      common.say(
        .note,
        "the PLC log does not say when its operations were received: it proves keys, not times"
      )
    }
    CARInput.say(report.archivedCommits, report.inspection, common)
    Console.say(lost: report.lost, of: output)
    if json { Self.report.print((output, report)) } else { saySummary(report) }
    try ExitStatus.end(
      with: report.refused.isEmpty ? .success : .refused,
      report.snapshot.isSettled && report.lost.isEmpty ? .success : .incomplete,
      stranger == nil && standing.grave.isEmpty ? .success : .notGenuine,
      report.damage.isNone ? .success : .damaged, lossStatus)
  }

  private func saySummary(_ report: RepositoryPacker.Report) {
    let (snapshot, blobs) = (report.snapshot, report.snapshot.blobs)
    let size = report.generation.committedLength
    let content = report.generation.streamLength
    let growth =
      report.isUnchanged && !report.isHealed
      ? "nothing new, "
      : report.bytesAdded < size ? "\(Quantity.bytes(report.bytesAdded)) added, " : ""
    common.say(
      "\(output == "-" ? "standard output" : output): \(growth)\(Quantity.bytes(size)), \(Quantity.percent(size, of: content)) of \(Quantity.bytes(content))"
    )
    let account = snapshot.handle?.text ?? snapshot.did.text
    let revision = snapshot.rev.map { " at \($0.text)" } ?? ""
    let extras = blobs.extras > 0 ? ", \(Quantity.count(blobs.extras, "extra"))" : ""
    common.say(
      "  \(account)\(revision): \(Quantity.count(snapshot.counts.records, "record")), \(Quantity.grouped(blobs.held)) of \(Quantity.count(blobs.referenced, "blob")) (\(Quantity.bytes(blobs.heldBytes)))\(extras)"
    )
    if report.isHealed { common.say("  damaged sections were written again") }
    if !report.damage.isNone {
      Console.say(.damaged, "\(report.damage.text) of the archive (\(report.damage.advice))")
    }
    let leftOut = report.leftOutCount
    if leftOut > 0 {
      let them = leftOut == 1 ? "it" : "them"
      common.say(
        "  \(Quantity.count(leftOut, "file")) skipped: no record refers to \(them) (--extras keeps \(them))"
      )
    }
    if !report.inspection.isComplete {
      Console.say(.incomplete, Quantity.lacking(report.inspection))
    }
    common.say(report.inspection.unreadable)
    if blobs.unaccepted > 0 {
      let file = output == "-" ? "FILE" : output.shellWord
      Console.say(
        .incomplete,
        "\(Quantity.count(blobs.unaccepted, "blob")) missing (\"carpack ls --missing \(file)\" names them)"
      )
    }
    if let fault = blobs.listFault { Console.say(.incomplete, fault.sentence) }
    if let acceptance = blobs.acceptance { common.say("  \(acceptance)") }
  }

  static let report = Report<(file: String, report: RepositoryPacker.Report)>(
    "pack", "`carpack pack`."
  ) {
    ArchiveFields.file { $0.file }
    Field("bytes", "its size") { $0.report.generation.committedLength }
    Field("bytesAdded", "by how many bytes it grew") { $0.report.bytesAdded }
    Field("unchanged", "whether nothing was new") { $0.report.isUnchanged }
    Field("healed", "whether damaged sections were written again") { $0.report.isHealed }
    ArchiveFields.damage.of { $0.report.damage }
    Field("streamBytes", "the length of its content") { $0.report.generation.streamLength }
    Field("sections", "its sections") { $0.report.generation.sectionCount }
    ArchiveFields.head { $0.report.generation.head?.cid }
    ArchiveFields.lost { $0.report.lost }
    SnapshotFields.manifest.of { $0.report.snapshot }
    Field("missing", "blobs that are missing", each: { $0.report.missing }, as: missing)
    Field("refused", "files that were rejected", each: { $0.report.refused }, as: refused)
    Field("leftOut", "files that no record refers to") { $0.report.leftOutCount }
    Field(
      optional: "signed", "whether the account's key signed it; absent if nothing given names one"
    ) { $0.report.signature?.isGenuine }
    Field(optional: "why", "with `signed`: why") { $0.report.signature.map { "\($0)" } }
  }

  private static let missing = Fields<BlobLedger.Missing> {
    Field("cid", "the blob") { $0.cid }
    Field("reason", "why") { $0.reason.rawValue }
  }

  private static let refused = Fields<(path: String, why: String)> {
    Field("file", "the file") { $0.path }
    Field("why", "why") { $0.why }
  }
}
