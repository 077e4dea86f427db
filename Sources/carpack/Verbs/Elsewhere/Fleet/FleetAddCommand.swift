internal import ATProtocol
internal import ArgumentParser
internal import Fleet
internal import HTTP
internal import Reports
internal import Sealing
internal import Terminal

/// `carpack fleet add`: accounts, hosts, firehoses.
struct FleetAddCommand: ReportingCommand {
  static let page = ManualPage("add", PackageResources.fleet_add_txt)

  @Option(
    name: .customLong("accounts"),
    help: ArgumentHelp(
      "A file with one account a line; \"-\" for standard input.", valueName: "file"),
    completion: .file())
  var list: String?

  @Option(
    help: ArgumentHelp("A server; all its accounts are backed up.", valueName: "url"))
  var host: String?

  @Option(
    help: ArgumentHelp("How often to list the host's accounts.", valueName: "age"))
  var relist: Age?

  @Option(
    help: ArgumentHelp(
      "A relay or server whose events make accounts with --on-change due: wss://…",
      valueName: "url"))
  var firehose: String?

  @Option(
    help: ArgumentHelp(
      "The interval between two backups of these accounts.", valueName: "age"))
  var every: Age?

  @Flag(
    inversion: .prefixedNo,
    help: "Also back up these accounts as soon as a new revision is seen.")
  var onChange: Bool?

  @Option(
    name: .customLong("recipient"),
    help: ArgumentHelp(
      "Seal new archives of these accounts so that this age recipient can also read them; may be repeated.",
      valueName: "age1…"))
  var recipients: [String] = []

  @Argument(
    help: ArgumentHelp("The accounts: handles, DIDs or at:// URIs.", valueName: "account"))
  var accounts: [String] = []

  @OptionGroup var fleet: FleetArguments

  @OptionGroup(title: "Network options")
  var network: NetworkCommandOptions

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(
      !accounts.isEmpty || list != nil || host != nil || firehose != nil,
      "nothing to add: name accounts, or use --accounts, --host or --firehose")
    try require(relist == nil || host != nil, "--relist goes with --host")
    try require(
      recipients.isEmpty || !accounts.isEmpty || list != nil,
      "--recipient goes with accounts, or --accounts")
    for text in recipients { _ = try SealedRecipient(named: text) }
  }

  func run() throws {
    let named = try list.map { try ATIdentifier.list(in: $0) }
    for failure in named?.failures ?? [] { failure.say() }
    let given = try accounts.map { try ATIdentifier(account: $0) } + (named?.accounts ?? [])
    let host = try host.map { try ServerOrigin($0).text }
    let firehose = try firehose.map { try FirehoseAddress($0).text }
    let (every, onChange, relist, recipients) = (every, onChange, relist, recipients)
    let options = try network.options()
    let (added, unresolved) = try fleet.ask { database in
      if let host { try await database.add(host: host, every: relist.map { Int($0.seconds) }) }
      if let firehose { try await database.add(firehose: firehose) }
      let (dids, failures) = try await FleetAccounts.resolve(given, options)
      let added = try await database.add(
        dids, every: every.map { Int($0.seconds) }, onChange: onChange, recipients: recipients)
      return (added, failures)
    }
    for failure in unresolved { failure.say() }
    Self.report.printIfWanted((given.count, added, unresolved.count, host, firehose))
    if !given.isEmpty {
      common.say("\(Quantity.count(given.count, "account")): \(Quantity.grouped(added)) new")
    }
    if let host { common.say("\(host): a worker will list its accounts") }
    if let firehose { common.say("\(firehose): a worker will follow it") }
    try ExitStatus.worst(
      unresolved.map(\.status) + (named?.failures ?? []).map { _ in .incomplete }
    ).finish()
  }

  static let report = Report<
    (accounts: Int, new: Int, unresolved: Int, host: String?, firehose: String?)
  >(
    "fleet-add", "`carpack fleet add`."
  ) {
    Field("accounts", "accounts that were named") { $0.accounts }
    Field("new", "of these, new to the fleet") { $0.new }
    Field("unresolved", "of these, handles that lead to no account, and were not added") {
      $0.unresolved
    }
    Field("host", "the host whose accounts are listed") { $0.host }
    Field("firehose", "the stream that is followed") { $0.firehose }
  }
}
