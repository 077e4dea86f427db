internal import ArgumentParser
internal import HTTP
internal import Live
internal import Reports
internal import Snapshots
internal import Terminal

/// How a live account is backed up: what `backup` and `fill` share.
struct BackupOptions: ConfigurableOptions {
  static let settings = [
    Setting(name: "compressed", kind: .flag, isGeneral: true),
    Setting(name: "quick", kind: .flag),
  ]

  @Flag(
    help: "Skip checksum verification of the data in the archive.")
  var quick = false

  /// What may be accepted.
  enum Acceptance: String, CaseIterable, ExpressibleByArgument { case rollback, handle }

  @Option(
    help: ArgumentHelp(
      "Accept a problem with the account, and record it: \"rollback\" (rolled back, or two commits with one revision) or \"handle\" (unconfirmed handle). May be repeated.",
      valueName: "kind"))
  var accept: [Acceptance] = []

  @Flag(
    help: "Request compressed repositories: faster on a slow line, slower on any other.")
  var compressed = false

  @OptionGroup var size: BlobSize

  @OptionGroup var compression: CompressionOptions

  @OptionGroup var parity: ParityOptions

  @OptionGroup var login: LoginOptions

  @OptionGroup(title: "Network options")
  var network: NetworkCommandOptions

  @OptionGroup var reporting: ReportOptions

  /// Whether events are written as JSON, one a line.
  var json: Bool { reporting.json }
  var common: CommonOptions { reporting.common }

  /// The network options; `display` shows what happens on the network.
  func networkOptions(showing display: BackupDisplay) throws -> NetworkOptions {
    var options = try network.options()
    let tell = options.observer
    options.observer = { event in
      tell(event)
      display.show(event)
    }
    return options
  }

  /// The options for backups.
  func backupOptions() throws -> AccountBackup.Options {
    var options = AccountBackup.Options(compression, size, network)
    options.parity = parity.percent
    options.checksHeld = !quick
    options.isCompressed = compressed
    if accept.contains(.rollback) { options.accepted.formUnion([.rollback, .fork]) }
    if accept.contains(.handle) { options.accepted.insert(.handle) }
    options.session = try login.session()
    return options
  }

  /// Runs a backup; prints how to continue if it is interrupted.
  func run(
    _ display: BackupDisplay, _ body: @escaping @Sendable () async throws -> Void
  ) throws {
    Memory.keepForBlobs()
    defer { Console.endProgress() }
    do {
      try runBlocking(body)
    } catch {
      // The results of earlier accounts are shown anyway.
      display.finish()
      if error is ExitStatus {
        Console.say(.interrupted, "nothing is lost; the same command continues from here")
      }
      throw error
    }
    display.finish()
    try display.status.finish()
  }
}

extension AccountBackup.Options {
  /// The program and the limits with which every backup is made.
  init(_ compression: CompressionOptions, _ size: BlobSize, _ network: NetworkCommandOptions) {
    self.init(
      tool: Program.tool, hostSystem: Host.system, now: { Host.now },
      milliseconds: Host.milliseconds)
    level = compression.level
    connections = network.connections
    maxBlob = size.maxBlob.bytes
  }
}
