import Foundation
import StandIn
import Synchronization
import TestSupport
import Testing

@testable import Fleet
@testable import Postgres

/// Four workers and twelve hosts, three of them bad, each in a way of its own.
///
/// Meanwhile workers are killed and stopped, the database and the store fall silent, and the
/// database's connections are lost without a word.
///
/// `CARPACK_DRILL` says about how many minutes it takes, half of them without any trouble, and
/// `CARPACK_DRILL_ACCOUNTS` how many accounts there are: `make fleet-drill`.
@Suite(
  .ownThread,
  .enabled(
    if: Command.path != nil && TestDatabase.server != nil && FleetDrill.minutes != nil,
    "CARPACK_DRILL says how long it takes, and needs \(TestDatabase.absence)"))
struct `The workers of a fleet in trouble` {
  @Test func `back up each account of a good host once, in hardly more time, and remove nothing`()
    async throws
  {
    let minutes = try #require(FleetDrill.minutes)
    let drill = try FleetDrill(accounts: FleetDrill.count, seconds: minutes * 30)
    defer { drill.end() }
    let quiet = try await drill.run(inTrouble: false)
    let troubled = try await drill.run(inTrouble: true)
    print(
      """
      drill: \(FleetDrill.count) accounts; those of good hosts in \(Int(quiet)) s, in trouble in \
      \(Int(troubled)) s: \((troubled / quiet * 100).rounded() / 100) times as long
      """)
    #expect(troubled <= quiet * 1.3)
  }
}

/// The hosts, accounts, workers and troubles of a drill.
private final class FleetDrill {
  static let minutes = number("CARPACK_DRILL")
  static let count = number("CARPACK_DRILL_ACCOUNTS").map { Int($0) } ?? 600
  private static func number(_ name: String) -> Double? {
    ProcessInfo.processInfo.environment[name].flatMap { Double($0) }
  }

  private static let hostCount = 12
  private static let (silent, refusing, forgetful) = (9, 10, 11)
  private static let (workerCount, jobs) = (4, 8)
  /// How many requests a small account takes of its host.
  private static let requestsPerAccount = 6.0
  /// How long it takes until all troubles come again, in seconds.
  private static let round = 240.0
  /// How long a partner that falls silent does so, in seconds.
  private static let silence = 6.0

  private let accounts: [[StandInAccount]]
  private let hosts: [StandInPDS]
  /// Where the accounts of the forgetful host were before.
  private let before: StandInPDS
  private let directory: StandInPDS
  private let store: StandInStore
  private let command: Command
  private let seconds: Double
  private let rate: Double

  private var relays: (database: LoopbackRelay, store: LoopbackRelay)?
  private var workers: [RunningCommand] = []
  private var said = ""
  private var farewells: [Double] = []
  /// How many accounts may have been given up half-way.
  private var givenUp = 0

  init(accounts count: Int, seconds: Double) throws {
    self.seconds = seconds
    let each = max(1, count / Self.hostCount)
    rate = max(0.5, Double(each) * Self.requestsPerAccount / seconds)
    let made = try (0..<Self.hostCount).map { host in
      try (0..<each).map { try StandInAccount("account-\($0)-of-\(host)", posts: 3, blobs: 2) }
    }
    accounts = made
    hosts = try made.indices.map {
      try StandInPDS(accounts: $0 == Self.forgetful ? [] : made[$0])
    }
    before = try StandInPDS(accounts: made[Self.forgetful])
    directory = try StandInPDS(accounts: made.flatMap(\.self))
    hosts[Self.silent].play(FaultRule(.silent))
    hosts[Self.refusing].play(FaultRule(.tooManyRequests(retryAfter: 3600)))
    store = try StandInStore()
    command = try Command(in: TemporaryFolder())
    for (host, group) in made.enumerated() {
      for account in group { account.endpoint = hosts[host].url }
    }
  }

  func end() {
    for server in hosts + [before, directory] { server.stop() }
  }

  private var good: [StandInAccount] { accounts[..<Self.silent].flatMap(\.self) }

  // MARK: Commands

  private func start(_ line: String, cache: Int = 0) throws -> RunningCommand {
    guard let relays else { throw CancellationError() }
    var variables = store.environment
    variables["AWS_ENDPOINT_URL"] = "http://127.0.0.1:\(relays.store.port)"
    variables["CARPACK_DATABASE"] = url
    variables["XDG_CACHE_HOME"] = command.folder.file("cache-\(cache)")
    variables["CARPACK_PLC_URL"] = directory.url
    variables["CARPACK_HANDLE_RESOLVER"] = directory.url
    return try command.start("carpack fleet \(line)", environment: variables)
  }
  private var url = ""

  private func run(_ line: String) throws {
    let result = try start(line).wait()
    #expect(result.status == 0, "\(line): \(result.text)\(result.errors)")
  }

  private func add(_ accounts: [StandInAccount]) throws {
    try command.folder.write("list.txt", Array(accounts.map { $0.did + "\n" }.joined().utf8))
    try run("add --accounts list.txt")
  }

  private func startWorker(_ number: Int) throws -> RunningCommand {
    try start("work --jobs \(Self.jobs) --lease 15s", cache: number)
  }

  /// Kills a worker, or has it end, and starts another in its place.
  private func replaceWorker(by signal: Int32) throws {
    let number = Int.random(in: workers.indices)
    try stop(workers[number], by: signal)
    workers[number] = try startWorker(number)
    givenUp += Self.jobs
  }

  private func stop(_ worker: RunningCommand, by signal: Int32) throws {
    let begin = ContinuousClock.now
    worker.signal(signal)
    let result = try worker.wait()
    said += result.errors
    guard signal == SIGTERM else { return }
    let time = begin.duration(to: .now) / .seconds(1)
    farewells.append(time)
    #expect(time < 2, "a worker took \(time) s to end")
    #expect(result.status == 143, "\(result.errors)")
  }

  // MARK: Troubles

  /// What happens, and after which part of a round.
  private func troubles() throws -> [(part: Double, name: String, happen: () throws -> Void)] {
    guard let relays else { return [] }
    return [
      (0.05, "a worker is killed", { try self.replaceWorker(by: SIGKILL) }),
      (0.15, "a worker is stopped", { try self.replaceWorker(by: SIGTERM) }),
      (
        0.25, "the database is silent, and a worker is stopped",
        {
          relays.database.isSilent = true
          usleep(UInt32(Self.silence / 2 * 1e6))
          // One that is started now waits for the database.
          try self.replaceWorker(by: SIGTERM)
          usleep(UInt32(Self.silence / 2 * 1e6))
          relays.database.isSilent = false
        }
      ),
      (
        0.45, "the store is silent",
        {
          relays.store.isSilent = true
          usleep(UInt32(Self.silence * 1e6))
          relays.store.isSilent = false
        }
      ),
      (0.6, "the database's connections are lost", { relays.database.loseConnections() }),
    ]
  }

  /// Has the good accounts backed up, and returns how many seconds that took.
  func run(inTrouble: Bool) async throws -> Double {
    try await TestDatabase.with { database in
      var address = try #require(URLComponents(string: database.url))
      let storePort = try #require(URLComponents(string: store.server.url)?.port)
      let relays = (
        database: try LoopbackRelay(to: UInt16(address.port ?? 5432)),
        store: try LoopbackRelay(to: UInt16(storePort))
      )
      self.relays = relays
      defer {
        relays.database.stop()
        relays.store.stop()
      }
      (address.host, address.port) = ("127.0.0.1", Int(relays.database.port))
      url = try #require(address.string)
      let fleet = FleetDatabase(database.url)
      let prefix = inTrouble ? "troubled/" : "quiet/"
      try run(
        "init --store s3://\(StandInStore.bucket)/\(prefix) --host-rate 1000 --follow-deletions"
          + " --deletion-grace 1s")
      if inTrouble {
        try await prepareForgetfulHost(fleet)
        try add(accounts[Self.silent...].flatMap(\.self))
      }
      // The hosts decide how long it takes, and not the directory.
      try await fleet.database.persistently(
        "UPDATE carpack.setting SET value = '\(rate)' WHERE name = 'rate'")
      try await fleet.database.persistently(
        "INSERT INTO carpack.host (host, rate) VALUES ('\(directory.url)', 1000) ON CONFLICT (host) "
          + "DO UPDATE SET rate = 1000")
      try add(good)
      for host in hosts { host.server.forgetLog() }
      let begin = ContinuousClock.now
      workers = try (0..<Self.workerCount).map(startWorker)
      try await waitForGood(fleet, since: begin, inTrouble ? troubles() : [])
      let time = begin.duration(to: .now) / .seconds(1)
      if inTrouble { try await waitForAlarm(fleet) }
      for worker in workers { try stop(worker, by: SIGTERM) }
      if inTrouble {
        try await check(fleet, prefix)
      }
      return time
    }
  }

  /// The forgetful host is one on whose word archives would be removed.
  private func prepareForgetfulHost(_ fleet: FleetDatabase) async throws {
    for account in accounts[Self.forgetful] { account.endpoint = before.url }
    try add(accounts[Self.forgetful])
    try run("work --until-idle")
    for account in accounts[Self.forgetful] { account.endpoint = hosts[Self.forgetful].url }
    try await fleet.database.persistently(
      "UPDATE carpack.account SET identified = NULL, due = now()")
  }

  private func waitForGood(
    _ fleet: FleetDatabase, since begin: ContinuousClock.Instant,
    _ troubles: [(part: Double, name: String, happen: () throws -> Void)]
  ) async throws {
    let dids = good.map(\.did).asArray
    var next = 0
    while true {
      let row = try await fleet.database.persistently(
        "SELECT count(*) FROM carpack.account WHERE outcome = 'complete' AND did = ANY($1::text[])",
        [dids]
      ).first
      if row == ["\(good.count)"] { return }
      let time = begin.duration(to: .now) / .seconds(1)
      guard time < 3 * seconds + 300 else {
        Issue.record("it takes too long: \(row ?? []) of \(good.count) accounts")
        return
      }
      let (turn, place) = (next / max(1, troubles.count), next % max(1, troubles.count))
      if !troubles.isEmpty, time > (Double(turn) + troubles[place].part) * Self.round {
        print("drill: after \(Int(time)) s \(troubles[place].name)")
        try troubles[place].happen()
        next += 1
      }
      usleep(200_000)
    }
  }

  /// Waits until the forgetful host was asked for enough accounts, some of them twice.
  private func waitForAlarm(_ fleet: FleetDatabase) async throws {
    let end = ContinuousClock.now + .seconds(600)
    while try await fleet.status().alarms.isEmpty, .now < end { usleep(500_000) }
    let forgotten = accounts[Self.forgetful].map(\.did).asArray
    try await fleet.database.persistently(
      "UPDATE carpack.account SET due = now() WHERE did = ANY($1::text[])", [forgotten])
    usleep(5_000_000)
  }

  // MARK: What is there at the end

  private func check(_ fleet: FleetDatabase, _ prefix: String) async throws {
    let status = try await fleet.status()
    #expect(status.alarms.map(\.url) == [hosts[Self.forgetful].url])
    #expect(said.components(separatedBy: "accounts are gone within a day").count == 2)
    #expect(status.running == 0 && status.workers.isEmpty)
    let expected = (good + accounts[Self.forgetful]).map { "\(prefix)\($0.did).car.zst" }
    #expect(store.keys.filter { $0.hasPrefix(prefix) } == expected.sorted())
    #expect(store.toldUploads == 0)
    // Each repository was fetched once, but those that a worker had when it was ended; and by one
    // worker at a time.
    var fetched: [String: [(begin: Double, end: Double)]] = [:]
    for exchange in hosts[..<Self.silent].flatMap(\.server.log)
    where exchange.path.hasSuffix("getRepo") && exchange.status == 200 {
      let time = (exchange.arrived, exchange.ended ?? exchange.arrived)
      fetched[exchange.parameter("did") ?? "", default: []].append(time)
    }
    #expect(fetched.count == good.count)
    let again = fetched.values.reduce(0) { $0 + $1.count - 1 }
    #expect(again <= givenUp, "\(again) repositories were fetched again, and \(givenUp) given up")
    for (did, times) in fetched {
      let isTwice = zip(times, times.dropFirst()).contains { $0.end > $1.begin }
      #expect(!isTwice, "\(did) was fetched by two")
    }
    let longest = farewells.max() ?? 0
    print(
      "drill: \(again) fetched again of \(givenUp) that workers had at their end; ends after SIGTERM: \(farewells.count), the longest \(longest) s"
    )
  }
}
