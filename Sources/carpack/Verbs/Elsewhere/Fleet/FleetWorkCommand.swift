internal import ATProtocol
internal import ArgumentParser
internal import Fleet
internal import HTTP
internal import Live
internal import ObjectStore
internal import Reports
internal import Scraping
internal import Terminal
internal import XRPC

/// `carpack fleet work`: takes accounts that are due, and backs them up.
struct FleetWorkCommand: ReportingCommand {
  static let page = ManualPage("work", PackageResources.fleet_work_txt)

  @Option(help: ArgumentHelp("How many accounts to back up at a time.", valueName: "n"))
  var jobs = 4

  @Option(
    help: ArgumentHelp(
      "Others take over this worker's accounts after this time without a sign of life.",
      valueName: "age"))
  var lease = Age(seconds: 120)

  @Flag(help: "End when nothing is due: no account, no host to list, no firehose to read.")
  var untilIdle = false

  @Option(
    help: ArgumentHelp(
      "Where to serve metrics: an address and a port, 127.0.0.1:9464 or [::]:9464.",
      valueName: "place"))
  var metrics: String?

  @OptionGroup var size: BlobSize

  @OptionGroup var repositorySize: RepositorySize

  @OptionGroup var fleet: FleetArguments

  @OptionGroup var compression: CompressionOptions

  @OptionGroup var parity: ParityOptions

  @OptionGroup var recipients: RecipientOptions

  @OptionGroup(title: "Network options")
  var network: NetworkCommandOptions

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var exclusive: ExclusiveOption

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(1...256 ~= jobs, "--jobs takes 1 to 256")
    try require(3...86_400 ~= lease.seconds, "--lease takes 3s to 1d")
  }

  func run() throws {
    let url = try fleet.url()
    let counters = FleetCounters()
    let server = try metrics.map { place in
      guard let server = try MetricsServer(at: place, text: { counters.answer($0) }) else {
        throw Failure(
          "--metrics takes an address and a port, 127.0.0.1:9464 or [::]:9464", status: .usage)
      }
      return server
    }
    defer { server?.stop() }
    if let server { common.say("metrics: http://\(server.authority)/metrics") }
    var options = FleetWorker.Options(name: "\(Host.name):\(Host.processNumber)")
    (options.jobs, options.leaseSeconds) = (jobs, Int(lease.seconds))
    options.endsWhenIdle = untilIdle
    var backup = AccountBackup.Options(compression, size, network)
    backup.parity = parity.percent
    backup.maxRepository = repositorySize.maxRepo.bytes
    let (network, store, common) = (try network.options(), store.options, common)
    try runBlocking { [options, backup, exclusive] in
      try await FleetWork.run(
        url, options: options, network: network, store: store, backup: backup,
        isExclusive: exclusive.exclusive, cache: Host.cacheFolder, counters: counters
      ) { event in
        switch event {
        case .alarm(let host, let reason):
          Console.say(
            .incomplete,
            "\(host): \(reason); none of its archives is removed until \"carpack fleet resume --host \(host)\""
          )
        case .ended(let did, let outcome):
          Self.report.printIfWanted((did, outcome, options.name))
          let added = outcome.added > 0 ? ", \(Quantity.bytes(outcome.added)) added" : ""
          let reason = outcome.reason.map { ": \($0)" } ?? ""
          common.say("\(did): \(outcome.verdict.rawValue)\(added)\(reason)")
        }
      }
    }
  }

  static let report = Report<(did: DID, result: FleetOutcome, worker: String)>(
    "fleet-work", "`carpack fleet work`: an account a line, when its backup has ended."
  ) {
    Field("did", "the account") { $0.did }
    Field("outcome", "the result", .one(of: FleetOutcome.Verdict.self)) {
      $0.result.verdict.rawValue
    }
    Field(
      "state",
      "the account's state; `removed`: its archive was moved aside, `purged`: and then deleted",
      .one(of: FleetOutcome.State.self)
    ) { $0.result.state.rawValue }
    Field("cause", "why it is not complete, as one word") { $0.result.cause?.rawValue }
    Field("reason", "the same in full") { $0.result.reason }
    Field("rev", "the revision that is backed up") { $0.result.rev }
    Field("bytes", "bytes of the archive") { $0.result.bytes }
    Field("bytesAdded", "bytes that were added to it") { $0.result.added }
    Field("worker", "which worker") { $0.worker }
  }
}
