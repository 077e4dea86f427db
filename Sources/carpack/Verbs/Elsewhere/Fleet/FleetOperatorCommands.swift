internal import ATProtocol
internal import ArgumentParser
internal import Fleet
internal import HTTP
internal import Reports
internal import Terminal

/// The accounts of a fleet that a verb applies to.
struct FleetSelectionArguments: ParsableArguments {
  @Option(help: ArgumentHelp("The accounts of this server.", valueName: "url"))
  var host: String?

  @Flag(help: "Only accounts whose last backup failed or was incomplete.")
  var failed = false

  @Argument(help: ArgumentHelp("The accounts: handles or DIDs.", valueName: "account"))
  var accounts: [String] = []

  /// Whether no account was named.
  var isEmpty: Bool { accounts.isEmpty && host == nil && !failed }

  /// The selection; handles are looked up.
  func selection() async throws -> FleetSelection {
    var selection = FleetSelection()
    selection.host = try host.map { try ServerOrigin($0).text }
    selection.isFailed = failed
    let given = try accounts.map { try ATIdentifier(account: $0) }
    guard !given.isEmpty else { return selection }
    let (dids, failures) = try await FleetAccounts.resolve(given, StoreArguments.network())
    // What is changed is what was named, all of it or nothing.
    if let failure = failures.first { throw failure }
    selection.dids = dids
    return selection
  }
}

/// `carpack fleet list`: accounts one by one, or hosts.
struct FleetListCommand: ReportingCommand {
  static let page = ManualPage("list", PackageResources.fleet_list_txt)

  @Flag(help: "List hosts instead: their queues, and what they wait for.")
  var hosts = false

  @OptionGroup var which: FleetSelectionArguments

  @OptionGroup var fleet: FleetArguments

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let (which, hosts, isJSON) = (which, hosts, json)
    try fleet.ask { database in
      if hosts {
        for host in try await database.queues() {
          if isJSON { Self.hostReport.print(host) } else { Self.print(host) }
        }
        return
      }
      let selection = try await which.selection()
      var last = ""
      while true {
        let accounts = try await database.accounts(selection, after: last)
        for account in accounts {
          if isJSON { Self.report.print(account) } else { Self.print(account) }
        }
        guard let end = accounts.last else { return }
        last = end.did
      }
    }
  }

  private static func print(_ account: FleetAccount) {
    let host = account.host.isEmpty ? "" : " at \(account.host)"
    let result = account.outcome.map { ", \($0)" } ?? ", never backed up"
    let failures = account.failures > 1 ? " (\(account.failures) times)" : ""
    let reason = account.reason.map { ": \($0)" } ?? ""
    let until = account.waitUntil.map { "; next try \($0)" } ?? ""
    let wait = account.wait.map { "; waits: \($0)" } ?? ""
    Console.print(
      "\(account.did)\(host): \(account.state)\(result)\(failures)\(reason)\(until)\(wait)")
  }

  private static func print(_ host: FleetHost) {
    var parts = [
      "\(Int(host.due)) due, \(Int(host.running)) of at most \(Int(host.places)) being backed up"
    ]
    if host.waitSeconds > 0 {
      let time = Quantity.duration(seconds: host.waitSeconds)
      parts.append("requests start again in \(time)\(host.waitReason.map { ": \($0)" } ?? "")")
    }
    if host.isPaused { parts.append("paused") }
    if host.alarm > 0 { parts.append("alarm: no archive is removed") }
    let name = host.host.isEmpty ? "(not looked up yet)" : host.host
    Console.print("\(name): \(parts.joined(separator: "; "))")
  }

  static let report = Report<FleetAccount>(
    "fleet-account", "`carpack fleet list`: an account a line."
  ) {
    Field("did", "the account") { $0.did }
    Field("host", "the origin of its server; empty until it is looked up") { $0.host }
    Field("state", "the account's state", .one(of: FleetOutcome.State.self)) { $0.state }
    Field("outcome", "the result of the last backup") { $0.outcome }
    Field("cause", "why it is not complete, as one word") { $0.cause }
    Field("reason", "the same in full") { $0.reason }
    Field("failures", "failures in a row") { $0.failures }
    Field("backedUp", "when the last complete backup ended", .time) { $0.backedUp }
    Field("due", "when it is due", .time) { $0.due }
    Field("wait", "what it waits for") { $0.wait }
    Field("nextTry", "when it may be backed up next", .time) { $0.waitUntil }
    Field("bytes", "bytes of its archive") { $0.bytes }
    Field("aside", "where its archive was moved") { $0.aside }
  }

  static let hostReport = Report<FleetHost>(
    "fleet-host", "`carpack fleet list --hosts`: a host a line."
  ) {
    Field("host", "its origin; empty for accounts that have not been looked up") { $0.host }
    Field("due", "accounts that are due, at most 10,001 of them") { Int($0.due) }
    Field("running", "accounts that are being backed up") { Int($0.running) }
    Field("places", "how many may be at a time") { Int($0.places) }
    Field("waitSeconds", "in how many seconds requests to it start again") { Int($0.waitSeconds) }
    Field("waitReason", "why there are no requests now") { $0.waitReason }
    Field("paused", "whether an operator has paused it") { $0.isPaused }
    Field("alarm", "whether its alarm is raised, so that no archive is removed") {
      $0.alarm > 0
    }
  }
}

/// Changes accounts of a fleet, and returns their number.
typealias FleetChange = @Sendable (FleetDatabase, FleetSelection) async throws -> Int

/// A verb that changes accounts of a fleet, and says how many.
protocol FleetChangeCommand: ReportingCommand {
  var which: FleetSelectionArguments { get }
  var fleet: FleetArguments { get }
  /// What was done, in a word.
  static var done: String { get }
  var change: FleetChange { get }
}

extension FleetChangeCommand {
  func validate() throws {
    try require(!which.isEmpty, "name accounts, or use --host or --failed")
  }

  func run() throws {
    let (which, change) = (which, change)
    let count = try fleet.ask { try await change($0, which.selection()) }
    fleetChangeReport.printIfWanted((Self.done, count))
    common.say("\(Self.done): \(Quantity.grouped(count))")
  }
}

/// What the verbs that change a fleet report.
let fleetChangeReport = Report<(done: String, count: Int)>(
  "fleet-change", "`carpack fleet retry`, `pause`, `resume` and `remove`."
) {
  Field("done", "what was done") { $0.done }
  Field("count", "how many accounts or hosts") { $0.count }
}

/// A verb that takes nothing but which accounts are meant.
struct FleetPlainChangeCommand<Verb: FleetPlainVerb>: FleetChangeCommand {
  static var page: ManualPage { Verb.page }
  static var done: String { Verb.done }
  var change: FleetChange { Verb.change }

  @OptionGroup var which: FleetSelectionArguments
  @OptionGroup var fleet: FleetArguments
  @OptionGroup var reporting: ReportOptions
}

/// What differs between these verbs.
protocol FleetPlainVerb: Sendable {
  static var page: ManualPage { get }
  static var done: String { get }
  static var change: FleetChange { get }
}

/// `carpack fleet retry`: back accounts up now.
enum FleetRetry: FleetPlainVerb {
  static let (page, done) = (ManualPage("retry", PackageResources.fleet_retry_txt), "due now")
  static let change: FleetChange = { try await $0.retry($1) }
}

/// `carpack fleet pause`: no backups of accounts or a host until they are resumed.
enum FleetPause: FleetPlainVerb {
  static let (page, done) = (ManualPage("pause", PackageResources.fleet_pause_txt), "paused")
  static let change: FleetChange = { try await $0.pause($1, true) }
}

/// `carpack fleet resume`: backups of paused accounts or a host again.
enum FleetResume: FleetPlainVerb {
  static let (page, done) = (ManualPage("resume", PackageResources.fleet_resume_txt), "resumed")
  static let change: FleetChange = { try await $0.pause($1, false) }
}

/// `carpack fleet remove`: take accounts out, and bring them back.
struct FleetRemoveCommand: FleetChangeCommand {
  static let page = ManualPage("remove", PackageResources.fleet_remove_txt)
  static let done = "done"

  @Flag(help: "Also move their archives aside, to removed/DATE/.")
  var archives = false

  @Flag(help: "Bring back accounts whose archives were moved aside, by this verb or a worker.")
  var undo = false

  @OptionGroup var which: FleetSelectionArguments
  @OptionGroup var fleet: FleetArguments

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func validate() throws {
    try require(!which.isEmpty, "name accounts, or use --host or --failed")
    try require(!archives || !undo, "--archives and --undo exclude each other: use one of them")
  }

  var change: FleetChange {
    { [archives, undo, options = store.options] fleet, selection in
      guard archives || undo else { return try await fleet.remove(selection) }
      let archives = try await FleetArchives(
        fleet, options, StoreArguments.network(), cache: Host.cacheFolder)
      return try await undo ? archives.bringBack(selection) : archives.putAside(selection)
    }
  }
}

/// `carpack fleet check`: whether each complete account has its archive in the store.
struct FleetCheckCommand: ReportingCommand {
  static let page = ManualPage("check", PackageResources.fleet_check_txt)

  @OptionGroup var which: FleetSelectionArguments
  @OptionGroup var fleet: FleetArguments

  @OptionGroup(title: "Object store options")
  var store: StoreArguments

  @OptionGroup var reporting: ReportOptions

  func run() throws {
    let (which, options) = (which, store.options)
    let (checked, faults) = try fleet.ask { database in
      let archives = try await FleetArchives(
        database, options, StoreArguments.network(), cache: Host.cacheFolder)
      return try await archives.check(which.selection()) { did, reason in
        Self.report.printIfWanted((did, reason))
        if !Console.isJSON { Console.print("\(did): \(reason); it is due now") }
      }
    }
    common.say("\(Quantity.count(checked, "archive")) checked, \(faults) not as recorded")
    if faults > 0 { throw ExitStatus.incomplete }
  }

  static let report = Report<(did: String, reason: String)>(
    "fleet-check", "`carpack fleet check`: an account whose archive is not as recorded."
  ) {
    Field("did", "the account") { $0.did }
    Field("reason", "what is wrong") { $0.reason }
  }
}
