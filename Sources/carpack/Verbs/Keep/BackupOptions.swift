internal import ArgumentParser
internal import HTTP
internal import Live
internal import Snapshots

/// How a live account is backed up: what `backup` and `fill` share.
struct BackupOptions: ParsableArguments {
  @OptionGroup var network: NetworkCommandOptions

  @OptionGroup var login: LoginOptions

  @OptionGroup var size: BlobSize

  @OptionGroup var compression: CompressionOptions

  @Flag(
    help: "Believe that what the archive holds is what was written: compare it with no checksums.")
  var quick = false

  @Flag(
    help:
      "Accept that the account was put back to an earlier state, or has two commits of one revision, and note it."
  )
  var acceptRollback = false

  @Flag(help: "Accept a handle that does not lead back to the account, and note it.")
  var allowUnconfirmedHandle = false

  @Flag(
    help: "Ask for repositories compressed: quicker on a slow line, slower on any other.")
  var compressed = false

  @OptionGroup var reporting: ReportOptions

  /// Whether what happens is written as JSON, an event a line.
  var json: Bool { reporting.json }
  var common: CommonOptions { reporting.common }

  /// What was set about the network, with `display` told what happens there.
  func networkOptions(showing display: BackupDisplay) throws -> NetworkOptions {
    var options = try network.options()
    let tell = options.observer
    options.observer = { event in
      tell(event)
      display.show(event)
    }
    return options
  }

  /// What was set about backups.
  func backupOptions() throws -> AccountBackup.Options {
    var options = AccountBackup.Options(compression, size, network)
    options.checksHeld = !quick
    options.isCompressed = compressed
    if acceptRollback { options.accepted.formUnion([.rollback, .fork]) }
    if allowUnconfirmedHandle { options.accepted.insert(.handle) }
    options.session = try login.session()
    return options
  }

  /// Runs a backup, and says what is to be said when it is interrupted.
  func run(
    _ display: BackupDisplay, _ body: @escaping @Sendable () async throws -> Void
  ) throws {
    Memory.keepForBlobs()
    defer { Console.endProgress() }
    do {
      try runBlocking(body)
    } catch {
      // What came of the accounts before it is said all the same.
      display.finish()
      if error is ExitStatus {
        Console.say(.interrupted, "nothing is lost; the same command goes on from here")
      }
      throw error
    }
    display.finish()
    let status = display.status
    if status != .success { throw status }
  }
}

extension AccountBackup.Options {
  /// What every backup is made by.
  init(_ compression: CompressionOptions, _ size: BlobSize, _ network: NetworkCommandOptions) {
    self.init(
      tool: "carpack \(Carpack.version)", hostSystem: Host.system, now: { Host.now },
      milliseconds: Host.milliseconds)
    level = compression.level
    connections = network.connections
    maxBlob = size.maxBlob.bytes
  }
}
