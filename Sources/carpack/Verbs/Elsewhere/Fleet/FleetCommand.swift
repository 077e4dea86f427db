internal import ATProtocol
internal import ArgumentParser
internal import Fleet
internal import ObjectStore
internal import Terminal

/// `carpack fleet`: many accounts, many machines.
struct FleetCommand: Verb {
  static let page = ManualPage(
    "fleet", PackageResources.fleet_txt,
    subcommands: [
      FleetInitCommand.self, FleetAddCommand.self, FleetWorkCommand.self, FleetStatusCommand.self,
      FleetListCommand.self, FleetHistoryCommand.self, FleetPlainChangeCommand<FleetRetry>.self,
      FleetPlainChangeCommand<FleetPause>.self, FleetPlainChangeCommand<FleetResume>.self,
      FleetRemoveCommand.self, FleetCheckCommand.self,
    ])
}

/// The address of a fleet's database.
struct FleetArguments: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The database, postgres://host/name (CARPACK_DATABASE). Put the password into PGPASSWORD or ~/.pgpass.",
      valueName: "url"))
  var database: String?

  /// Runs a query on the fleet, once the database can be reached and has the tables.
  ///
  /// That is waited for as long as a person waits. A database that is away later is waited for as
  /// long as a worker waits.
  ///
  /// - Throws: ``Failure`` if none was named; `DatabaseError`; what `body` throws.
  func ask<Result: Sendable>(
    _ body: @escaping @Sendable (FleetDatabase) async throws -> Result
  ) throws -> Result {
    let fleet = FleetDatabase(try url())
    return try runBlocking {
      _ = try await fleet.settings()
      return try await body(fleet)
    }
  }

  /// Where it is.
  ///
  /// - Throws: ``Failure`` if it was not given.
  func url() throws -> String {
    guard let url = database ?? Host.environment("CARPACK_DATABASE")?.value else {
      throw Failure(
        "no database was named", hint: "--database postgres://… or CARPACK_DATABASE names it",
        status: .usage)
    }
    return url
  }
}

/// `carpack fleet init`: the tables, and the settings of all workers.
struct FleetInitCommand: Verb {
  static let page = ManualPage("init", PackageResources.fleet_init_txt)

  @Option(help: ArgumentHelp("Where archives go: s3://bucket/prefix/.", valueName: "address"))
  var store: String

  @Option(
    help: ArgumentHelp("The interval between two backups of an account.", valueName: "age"))
  var every = Age(seconds: 86_400)

  @Flag(help: "Also back up an account as soon as a host or a firehose shows a new revision.")
  var onChange = false

  @Option(
    help: ArgumentHelp(
      "Requests per second to one host, from all workers together.", valueName: "n"))
  var hostRate = 10.0

  @Flag(
    help:
      "Move an account's archive aside when its deletion is proven, --deletion-grace after the deletion, and delete it after the same time again."
  )
  var followDeletions = false

  @Option(
    help: ArgumentHelp(
      "With --follow-deletions: how long each of the two steps waits.", valueName: "age"))
  var deletionGrace = Age(seconds: 30 * 86_400)

  @Option(
    name: .customLong("witness"),
    help: ArgumentHelp(
      "With --follow-deletions: a relay or mirror that is asked whether an account was deleted, as the fleet's firehoses are; may be repeated.",
      valueName: "url"))
  var witnesses: [String] = []

  @OptionGroup var fleet: FleetArguments

  @OptionGroup(title: "Object store options")
  var place: StoreArguments

  @OptionGroup var common: CommonOptions

  func validate() throws {
    try require(hostRate > 0 && hostRate.isFinite, "--host-rate must be greater than 0")
    try require(every.seconds > 0, "--every must be greater than 0")
    try require(witnesses.isEmpty || followDeletions, "--witness goes with --follow-deletions")
  }

  func run() throws {
    let address = try BucketAddress(store)
    guard address.isFolder else {
      throw Failure(
        "\(store) names an object", hint: "a prefix ends in a slash: \(store)/", status: .usage)
    }
    var settings = FleetSettings(store: address)
    settings.every = Int(every.seconds)
    settings.onChange = onChange
    settings.requestsPerSecond = hostRate
    settings.followsDeletionsAfter = followDeletions ? Int(deletionGrace.seconds) : nil
    settings.witnesses = try witnesses.map { try ServerOrigin($0).text }
    settings.endpoint =
      place.endpointURL
      ?? Host.environment("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL").map(\.value)
    settings.region = place.region
    settings.namesBucketInPath = place.pathStyle
    let database = FleetDatabase(try fleet.url())
    try runBlocking { [settings] in try await database.initialize(settings) }
    common.say("the fleet's archives go to \(address)")
  }
}
