internal import ATProtocol
internal import Archive
internal import ArgumentParser
internal import Files
internal import HTTP
internal import IPLD
internal import Remote
internal import Reports
internal import Restore
internal import Snapshots
internal import Synchronization
internal import SystemPackage
internal import Terminal
internal import XRPC

/// `carpack restore`: an account from an archive back onto a server.
struct RestoreCommand: Verb {
  static let page = ManualPage("restore", PackageResources.restore_txt)

  @Option(help: ArgumentHelp("The server to restore to.", valueName: "url"))
  var to: String?

  @Flag(help: "Say what would be done and what is needed, and change nothing.")
  var plan = false

  @Flag(help: "Send the account's own server the blobs that it lacks.")
  var blobsOnly = false

  @Flag(help: "Make a new account of the archive, with a DID of its own.")
  var asNew = false

  @Flag(
    help: "With --as-new: have records that name their own account name the new one.")
  var rewriteReferences = false

  @Option(
    name: .customLong("record"),
    help: ArgumentHelp(
      "Put this record back, and its blobs; may be given several times.", valueName: "word"))
  var records: [String] = []

  @Flag(help: "With --record: replace another record that is in the place.")
  var overwrite = false

  @Flag(
    help:
      "With --blobs-only: where the server believes to have blobs that it has not, delete the records that refer to them and write them again, with the same keys, values and CIDs."
  )
  var rewriteRecords = false

  @Option(
    help: ArgumentHelp(
      "The code that the old server has sent by mail for signing the operation.",
      valueName: "code"))
  var mailCode: String?

  @Flag(help: "Do without the old server, though it answers.")
  var abandonOld = false

  /// What may be accepted.
  enum Acceptance: String, CaseIterable, ExpressibleByArgument { case missing }

  @Option(
    help: ArgumentHelp("Go on though blobs are missing on the new server.", valueName: "kind"))
  var accept: [Acceptance] = []

  @Flag(help: "Do not read the blobs back from the new server.")
  var skipBlobComparison = false

  @Flag(help: "Deactivate the account on the old server in the end.")
  var deactivateOld = false

  @Option(
    help: ArgumentHelp(
      "With --deactivate-old: when the old server may delete the account, in RFC 3339.",
      valueName: "time"))
  var deleteOldAfter: String?

  @Option(
    help: ArgumentHelp(
      "Write the operation that would move the identity to this file, and do not send it.",
      valueName: "file"),
    completion: .file())
  var dryRun: String?

  @OptionGroup var agreement: AgreementOptions

  @OptionGroup var argument: ArchiveArgument

  @OptionGroup var choice: SnapshotOptions

  @OptionGroup var account: NewAccountOptions

  @OptionGroup var keys: OwnerKeys

  @OptionGroup var login: OwnerLogin

  @OptionGroup(title: "Network options", visibility: .hidden)
  var network: NetworkCommandOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    guard [blobsOnly, to != nil, !records.isEmpty].count(where: { $0 }) == 1 else {
      throw ValidationError("one of --to, --blobs-only and --record is needed")
    }
    if to == nil, !login.login {
      throw ValidationError("--blobs-only and --record go with --login")
    }
    if rewriteRecords, !blobsOnly || skipBlobComparison {
      throw ValidationError("--rewrite-records goes with --blobs-only, and reads all blobs back")
    }
    if overwrite, records.isEmpty { throw ValidationError("--overwrite goes with --record") }
    if rewriteReferences, !asNew {
      throw ValidationError("--rewrite-references goes with --as-new")
    }
    if asNew, login.login {
      throw ValidationError(
        "--as-new needs no login of the old server: it has nothing to do with it")
    }
    if deleteOldAfter != nil, !deactivateOld {
      throw ValidationError("--delete-old-after goes with --deactivate-old")
    }
  }

  func run() throws {
    try Self.refuseStandardInput(argument.file)
    try argument.read(over: network.options()) { opened in
      let snapshot = try opened.snapshot(choice, naming: records)
      if opened.status != .success {
        Console.say(
          .warning, "the archive is not in order; what is restored is checked all the same")
      }
      let run = RestoreRun(argument.file, snapshot: snapshot, reporting: reporting)
      let networkOptions = try networkOptions()
      if !records.isEmpty {
        try RecordRestoring(command: self).run(snapshot, networkOptions)
      } else if blobsOnly {
        try run.run(try blobOptions(), networkOptions)
      } else if plan {
        try RestorePlanning(command: self).run(snapshot, networkOptions)
      } else {
        try run.run(try options(), networkOptions)
      }
    }
  }

  /// Refuses an archive that comes from standard input: what is done is noted beside it.
  static func refuseStandardInput(_ file: String) throws {
    guard file == "-" else { return }
    throw Failure(
      "what is done is noted beside the archive, so it has to be a file", status: .usage)
  }

  /// How something came out that throws.
  static func outcome(_ body: () async throws -> Void) async -> (any Error)? {
    do {
      try await body()
      return nil
    } catch {
      return error
    }
  }

  func networkOptions() throws -> NetworkOptions {
    var options = try network.options()
    if let to { options.namedServers.append(to) }
    return options
  }

  /// How the account's own server is sent its blobs.
  private func blobOptions() throws -> RestoreOptions {
    var options = RestoreOptions(
      target: "", password: try login.password() ?? Secret(""), now: { Host.now },
      agrees: { [agreement] in agreement.agrees($0) }, asksForCode: MailCode.ask)
    (options.sendsBlobsOnly, options.rewritesRecords) = (true, rewriteRecords)
    (options.comparesBlobs, options.authFactorToken) = (!skipBlobComparison, login.code)
    options.connections = network.connections
    return options
  }

  private func options() throws -> RestoreOptions {
    var options = try RestoreOptions(
      to: to ?? "", login, account, keys, connections: network.connections
    ) { [agreement] in agreement.agrees($0) }
    options.mailCode = mailCode.map { Secret($0) }
    (options.asNew, options.rewritesReferences) = (asNew, rewriteReferences)
    options.abandonsOld = abandonOld
    options.acceptsMissing = accept.contains(.missing)
    options.acceptsOlder = choice.at != nil
    options.deactivatesOld = deactivateOld
    options.deleteOldAfter = deleteOldAfter
    options.comparesBlobs = !skipBlobComparison
    if let dryRun {
      options.dryRun = { operation in
        let bytes = Array((operation.operation.json(pretty: true) + "\n").utf8)
        try AtomicFile.save(to: FilePath(dryRun), replacing: true) { try $0(bytes.span) }
      }
    }
    return options
  }
}

/// Runs a restore, and says what came of it.
struct RestoreRun {
  /// The file beside whose name it is noted what was done.
  private let archive: FilePath
  private let snapshot: ArchivedSnapshot
  private let reporting: ReportOptions

  /// The restore of a snapshot in an archive: a file, or an address, whose last part is the name of
  /// the note in the current folder.
  init(_ archive: String, snapshot: ArchivedSnapshot, reporting: ReportOptions) {
    self.archive = FilePath(
      RemoteArchive.isAddress(archive) ? Elsewhere.fileName(archive) : archive)
    (self.snapshot, self.reporting) = (snapshot, reporting)
  }

  /// Restores an account to a server.
  func run(_ options: RestoreOptions, _ networkOptions: NetworkOptions) throws {
    let (archive, snapshot) = (archive, snapshot)
    try run { tell in
      var restore = try AccountRestore(
        snapshot, in: archive, options, network: try Network(networkOptions), tell: tell)
      let error = await RestoreCommand.outcome { try await restore.run() }
      return (restore.report, error)
    }
  }

  /// Runs something, shows what happens, and says how it ended.
  ///
  /// - Throws: ``ExitStatus``, or what ended it before there was a report.
  func run(
    _ body:
      @escaping @Sendable (@escaping @Sendable (RestoreEvent) -> Void) async throws
      -> (RestoreReport, (any Error)?)
  ) throws {
    let display = RestoreDisplay(reporting.common)
    defer { Console.endProgress() }
    let (report, error) = try runBlocking { try await body { display.show($0) } }
    let failure = error.map { Failure($0) }
    display.finish(report, failure)
    if let failure {
      if error is CancellationError, let status = Interruption.received { throw status }
      throw failure.status
    }
    if report.status != .success { throw report.status }
  }
}
