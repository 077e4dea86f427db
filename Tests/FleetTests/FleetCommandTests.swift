import ATProtocol
import Foundation
import HTTP
import IPLD
import Postgres
import StandIn
import TestSupport
import Testing

@testable import Fleet

@Suite(
  .ownThread, .serialized,
  .enabled(
    if: Command.path != nil && TestDatabase.server != nil,
    "\(Command.absence), or \(TestDatabase.absence)"))
struct `The commands of a fleet` {
  /// A server with accounts, a store, a database, and a folder in which the command runs.
  private struct Scene {
    let server: StandInPDS
    let accounts: [StandInAccount]
    let store: StandInStore
    let command: Command
    let database: TestDatabase

    init(_ count: Int, _ database: TestDatabase) throws {
      accounts = try (0..<count).map {
        try StandInAccount("account-\($0)", posts: 3, blobs: 2, blobSize: 5000)
      }
      server = try StandInPDS(accounts: accounts)
      store = try StandInStore()
      command = try Command(in: TemporaryFolder())
      self.database = database
    }

    func start(
      _ line: String, through url: String? = nil, of program: String = "carpack fleet"
    ) throws -> RunningCommand {
      var variables = store.environment
      variables["CARPACK_DATABASE"] = url ?? database.url
      variables["XDG_CACHE_HOME"] = command.folder.file("cache")
      variables["CARPACK_PLC_URL"] = server.url
      variables["CARPACK_HANDLE_RESOLVER"] = server.url
      return try command.start("\(program) \(line)", environment: variables)
    }

    @discardableResult
    func expect(
      _ line: String, _ status: Int32 = 0, of program: String = "carpack fleet",
      location: SourceLocation = #_sourceLocation
    ) throws -> Command.Result {
      let result = try start(line, of: program).wait()
      #expect(
        result.status == status, "\(line): \(result.text)\(result.errors)", sourceLocation: location
      )
      return result
    }
  }

  /// How long something is waited for, however busy the machine is.
  private static let patience: Duration = .seconds(600)

  /// Waits until something is so; without a task's sleep, which other suites may hold up for long.
  private func wait(until isSo: () throws -> Bool, location: SourceLocation = #_sourceLocation)
    throws
  {
    let end = ContinuousClock.now + Self.patience
    while try !isSo() {
      guard .now < end else {
        Issue.record("it took too long", sourceLocation: location)
        return
      }
      usleep(20_000)
    }
  }

  /// Waits until all of this many accounts have a complete backup.
  private func waitForComplete(_ count: Int, in fleet: FleetDatabase) async throws {
    let end = ContinuousClock.now + Self.patience
    while .now < end {
      let outcomes = try await fleet.status().outcomes
      if outcomes.map(\.name) == ["complete"], outcomes[0].count == count { return }
      usleep(50_000)
    }
    Issue.record("not all backups were made in time")
  }

  @Test func `back up what a host lists, and say how it stands`() async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(6, database)
      try scene.expect("status", 66)
      try scene.expect("init --store s3://\(StandInStore.bucket)/fleet/")
      let added = try scene.expect("add --host \(scene.server.url) --json")
      #expect(OutputSchema.faults(in: added.text).isEmpty)
      try scene.expect("add \(scene.accounts[0].did)")
      let before = try scene.expect("status --json", 10)
      #expect(OutputSchema.faults(in: before.text).isEmpty)
      let running = try scene.start("work --metrics 127.0.0.1:0")
      try await waitForComplete(6, in: FleetDatabase(database.url))
      // Counted after it is noted.
      usleep(500_000)
      let said = try running.errorsSoFar()
      let port = try #require(
        said.split(separator: "127.0.0.1:").dropFirst().first?.prefix { $0.isNumber }, "\(said)")
      var options = NetworkOptions(userAgent: "tests")
      options.namedServers = ["http://127.0.0.1:\(port)"]
      let (_, bytes) = try await Network(options).get(
        "http://127.0.0.1:\(port)/metrics", limit: 1 << 16)
      let metrics = String(decoding: bytes, as: UTF8.self)
      #expect(metrics.contains("carpack_fleet_backups_total{outcome=\"complete\"} 6"), "\(metrics)")
      running.signal(SIGTERM)
      #expect(try running.wait().status == 143)
      #expect(scene.store.keys == scene.accounts.map { "fleet/\($0.did).car.zst" }.sorted())
      let status = try scene.expect("status --json")
      #expect(OutputSchema.faults(in: status.text).isEmpty)
      #expect(status.text.contains("\"accounts\":6"))
      #expect(try scene.expect("status").text.contains("6 accounts: 6 complete"))
    }
  }

  @Test func `seal each archive to the worker and to the owner of the account`() async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(2, database)
      func recipient(_ name: String) throws -> String {
        try scene.expect("key new -o \(name).age", of: "carpack")
        let lines = try scene.command.folder.read("\(name).age").split(separator: 10)
        let line = try #require(
          lines.map { String(decoding: $0, as: UTF8.self) }.first { $0.contains("age1") })
        return String(try #require(line.split(separator: " ").last))
      }
      let (worker, owner) = (try recipient("worker"), try recipient("owner"))
      let (owned, other) = (scene.accounts[0].did, scene.accounts[1].did)
      try scene.expect("init --store s3://\(StandInStore.bucket)/")
      try scene.expect("add \(owned) --recipient age1nothing", 64)
      try scene.expect("add --host \(scene.server.url) --recipient \(owner)", 64)
      try scene.expect("add \(owned) --recipient \(owner)")
      // A worker without a recipient could not append to it.
      let refused = try scene.expect("work --until-idle")
      #expect(refused.errors.contains("has no recipient"), "\(refused.errors)")
      #expect(scene.store.keys.isEmpty)
      try scene.expect("add \(other)")
      try scene.expect("retry --failed")
      try scene.expect("work --until-idle --recipient \(worker)")
      #expect(scene.store.keys.count == 2)
      func verify(_ did: String, _ key: String, _ status: Int32) throws {
        try scene.expect(
          "verify s3://\(StandInStore.bucket)/\(did).car.zst --age-identity \(key).age", status,
          of: "carpack")
      }
      try verify(owned, "owner", 0)
      try verify(owned, "worker", 0)
      try verify(other, "worker", 0)
      try verify(other, "owner", 77)
    }
  }

  @Test func `add the other accounts where a handle leads to none`() async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(3, database)
      try scene.expect("init --store s3://\(StandInStore.bucket)/")
      let names = scene.accounts.map(\.handle) + ["nobody.example.com", "", "not-a-name"]
      let list = names.map { $0 + "\n" }.joined()
      try scene.command.folder.write("list.txt", Array(list.utf8))
      let added = try scene.expect("add --accounts list.txt other.example.com --json", 69)
      #expect(OutputSchema.faults(in: added.text).isEmpty)
      #expect(added.text.contains("\"accounts\":5,\"new\":3,\"unresolved\":2"), "\(added.text)")
      for name in ["nobody.example.com", "other.example.com", "list.txt, line 6"] {
        #expect(added.errors.contains(name), "\(added.errors)")
      }
      // A verb that changes accounts changes none.
      try scene.expect("pause \(scene.accounts[0].handle) nobody.example.com", 69)
      let accounts = try await FleetDatabase(database.url).accounts(FleetSelection(), after: "")
      #expect(accounts.count == 3 && accounts.allSatisfy { $0.wait != "it is paused" })
    }
  }

  @Test func `make their tables though several do so at once`() async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(0, database)
      let line = "init --store s3://\(StandInStore.bucket)/"
      let all = try (0..<6).map { _ in try scene.start(line) }
      for running in all {
        let result = try running.wait()
        #expect(result.status == 0, "\(result.errors)")
      }
    }
  }

  @Test func `end when nothing is due, and name what failed`() async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(2, database)
      try scene.expect("init --store s3://\(StandInStore.bucket)/")
      #expect(try !scene.expect("status").text.contains("oldest backup"), "there is no account")
      try scene.command.folder.write(
        "list.txt", Array("\(scene.accounts[0].handle)\ndid:web:nowhere.invalid\n".utf8))
      try scene.expect("add --accounts list.txt")
      let worked = try scene.expect("work --until-idle --json")
      #expect(OutputSchema.faults(in: worked.text).isEmpty)
      #expect(worked.text.split(separator: "\n").count == 2)
      let status = try scene.expect("status", 10)
      #expect(status.text.contains("1 complete, 1 failed"))
      #expect(status.text.contains("did:web:nowhere.invalid: "))
      #expect(status.text.contains("next try") && status.text.contains("1 backup, 1 failure"))
      let history = try scene.expect("history did:web:nowhere.invalid --json").text
      #expect(OutputSchema.faults(in: history).isEmpty)
      #expect(history.contains("\"outcome\":\"failed\""), "\(history)")
      let line = try scene.expect("history \(scene.accounts[0].handle)").text
      #expect(line.contains(": complete, ") && line.contains(" added, by "), "\(line)")
      try scene.expect("history \(scene.accounts[1].handle)", 66)
    }
  }

  @Test func `get everything done while the store fails now and then and a worker is killed`()
    async throws
  {
    try await TestDatabase.with { database in
      let scene = try Scene(12, database)
      scene.store.behaviour.faultRate = 0.05
      try scene.expect("init --store s3://\(StandInStore.bucket)/ --host-rate 500")
      try scene.expect("add --host \(scene.server.url)")
      let killed = try scene.start("work --lease 10s --jobs 2")
      let other = try scene.start("work --lease 10s --jobs 2")
      try wait { scene.store.keys.count >= 3 }
      killed.signal(SIGKILL)
      _ = try killed.wait()
      try await waitForComplete(12, in: FleetDatabase(database.url))
      other.signal(SIGTERM)
      _ = try other.wait()
      scene.store.behaviour.faultRate = 0
      #expect(try scene.expect("status").text.contains("12 accounts: 12 complete"))
      for account in scene.accounts {
        let bytes = try #require(scene.store["\(account.did).car.zst"])
        try scene.command.folder.write("copy.car.zst", bytes)
        #expect(try scene.command.run("carpack verify copy.car.zst").status == 0)
      }
    }
  }

  @Test func `end when what a host lists and a firehose tells is backed up`() async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(2, database)
      let firehose = try StandInFirehose()
      defer { firehose.stop() }
      try scene.expect("init --store s3://\(StandInStore.bucket)/ --on-change")
      try scene.expect("add --host \(scene.server.url)")
      try scene.expect("add --firehose ws://127.0.0.1:1")
      try scene.expect("work --until-idle")
      #expect(scene.store.keys == scene.accounts.map { "\($0.did).car.zst" }.sorted())
      let fleet = FleetDatabase(database.url)
      // The pause after a backup is over.
      try await fleet.database.persistently(
        "UPDATE carpack.account SET tried = now() - interval '1 hour'")
      let (account, key) = (scene.accounts[0], "\(scene.accounts[0].did).car.zst")
      let first = try #require(scene.store[key])
      try account.commit([account.post("3lkxag2qhdd2a", "new", showing: [])])
      firehose.send(
        5,
        try StandInFirehose.message(
          "#commit",
          [
            ("seq", .integer(5)), ("repo", .string("\(account.did)")),
            ("rev", .string(account.rev.text)), ("time", .string("2999-01-01T00:00:00.000Z")),
          ]))
      try scene.expect("add --firehose \(firehose.url)")
      try scene.expect("work --until-idle")
      #expect(try #require(scene.store[key]).count > first.count)
      // One that cannot be reached holds up no end, and is named.
      let status = try scene.expect("status").text
      #expect(status.contains("retried: ws://127.0.0.1:1: "), "\(status)")
    }
  }

  // MARK: Deletions

  /// Writes the scene's accounts into a list, and has them backed up.
  private func backUpAll(_ scene: Scene, _ options: String) throws {
    try scene.expect("init --store s3://\(StandInStore.bucket)/ --host-rate 1000 \(options)")
    let list = scene.accounts.map { $0.did + "\n" }.joined()
    try scene.command.folder.write("list.txt", Array(list.utf8))
    try scene.expect("add --accounts list.txt")
    try scene.expect("work --until-idle")
    try scene.expect("status")
    #expect(scene.store.keys.count == scene.accounts.count)
  }

  @Test func `remove nothing of a host that forgets its accounts, and raise one alarm`()
    async throws
  {
    try await TestDatabase.with { database in
      let scene = try Scene(22, database)
      try backUpAll(scene, "--follow-deletions --deletion-grace 1s")
      let empty = try StandInPDS(accounts: [])
      defer { empty.stop() }
      for account in scene.accounts { account.endpoint = empty.url }
      let fleet = FleetDatabase(database.url)
      var alarms = 0
      for _ in 0..<3 {
        try await fleet.database.persistently(
          "UPDATE carpack.account SET identified = NULL, due = now()")
        let errors = try scene.expect("work --until-idle").errors
        alarms += errors.components(separatedBy: "accounts are gone within a day").count - 1
        usleep(1_100_000)
      }
      #expect(alarms == 1)
      let status = try scene.expect("status", 10).text
      #expect(status.contains("missing: 22 accounts") && status.contains("ALARM: \(empty.url)"))
      #expect(try !scene.expect("list").text.contains("is not known"), "it has answered")
      #expect(scene.store.keys == scene.accounts.map { "\($0.did).car.zst" }.sorted())
      try scene.expect("resume --host \(empty.url)")
      #expect(try !scene.expect("status").text.contains("ALARM"))
    }
  }

  @Test(arguments: DeletionEvidence.allCases)
  func `put an archive aside whose account was deleted, and bring it back`(
    evidence: DeletionEvidence
  ) async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(2, database)
      let relayed = try StandInAccount("account-0")
      let relay = try StandInPDS(accounts: [relayed])
      defer { relay.stop() }
      try scene.expect("init --store s3://\(StandInStore.bucket)/ --witness \(relay.url)", 64)
      try backUpAll(scene, "--follow-deletions --deletion-grace 1h --witness \(relay.url)")
      relayed.status = .deleted
      let (gone, key) = (scene.accounts[0], "\(scene.accounts[0].did).car.zst")
      let archive = try #require(scene.store[key])
      gone.status = .deleted
      scene.server.setAuditLog(
        evidence == .server ? try gone.auditLog(on: scene.server.url) : try gone.tombstonedLog(),
        for: gone.did)
      let fleet = FleetDatabase(database.url)
      try await fleet.database.persistently("UPDATE carpack.account SET due = now()")
      try scene.expect("work --until-idle")
      #expect(scene.store[key] == archive, "it has just been said")
      let listed = try scene.expect("list \(gone.did) --json")
      #expect(OutputSchema.faults(in: listed.text).isEmpty)
      #expect(listed.text.contains("\"state\":\"deleted\""))
      try await fleet.database.persistently(
        "UPDATE carpack.account SET due = now(), state_since = state_since - interval '1 hour'")
      try scene.expect("work --until-idle")
      #expect(scene.store[key] == nil)
      let aside = try #require(scene.store.keys.first { $0.hasPrefix("removed/2") })
      #expect(aside.hasSuffix(key) && scene.store[aside] == archive)
      let undone = try scene.expect("remove --undo \(gone.did) --json")
      #expect(OutputSchema.faults(in: undone.text).isEmpty)
      #expect(scene.store[key] == archive && scene.store[aside] == nil)
      gone.status = .active
      scene.server.setAuditLog(nil, for: gone.did)
      try scene.expect("work --until-idle")
      #expect(try scene.expect("status").text.contains("2 accounts: 2 complete"))
      try scene.expect("remove --archives \(gone.did)")
      #expect(scene.store[key] == nil && scene.store[aside] == archive)
      try scene.expect("work --until-idle")
      #expect(scene.store[key] == nil)
      try scene.expect("remove --undo \(gone.did)")
      #expect(scene.store[key] == archive)
    }
  }

  // MARK: Hosts

  @Test(arguments: [Fault.silent, .tooManyRequests(retryAfter: 3600)])
  func `have accounts of a good host done while another is bad`(fault: Fault) async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(10, database)
      let others = try (0..<30).map { try StandInAccount("other-\($0)", posts: 1) }
      let bad = try StandInPDS(accounts: others)
      defer { bad.stop() }
      bad.play(FaultRule(fault))
      for account in others {
        account.endpoint = bad.url
        scene.server.add(account)
      }
      try scene.expect("init --store s3://\(StandInStore.bucket)/ --host-rate 1000")
      let list = (others + scene.accounts).map { $0.did + "\n" }.joined()
      try scene.command.folder.write("list.txt", Array(list.utf8))
      try scene.expect("add --accounts list.txt")
      let running = try scene.start("work --jobs 4")
      // Where each account of the bad host has its turn, that takes hours.
      try wait { scene.store.keys.count == 10 }
      let hosts = try scene.expect("list --hosts --json").text
      #expect(OutputSchema.faults(in: hosts).isEmpty && hosts.contains(bad.url), "\(hosts)")
      running.signal(SIGTERM)
      #expect(try running.wait().status == 143)
    }
  }

  @Test func `ask the server alone of what has not changed, and make again what is not there`()
    async throws
  {
    try await TestDatabase.with { database in
      let scene = try Scene(3, database)
      try backUpAll(scene, "")
      let fleet = FleetDatabase(database.url)
      try await fleet.database.persistently("UPDATE carpack.account SET due = now()")
      scene.server.server.forgetLog()
      scene.store.server.forgetLog()
      try scene.expect("work --until-idle --exclusive")
      #expect(
        scene.server.server.log.map(\.path)
          == [String](repeating: "/xrpc/com.atproto.sync.getLatestCommit", count: 3))
      #expect(scene.store.server.log.isEmpty)
      // One has news: its identity is not looked up again.
      let account = scene.accounts[1]
      try account.commit([account.post("3lkxag2qhdd2a", "new", showing: [])])
      try await fleet.database.persistently("UPDATE carpack.account SET due = now()")
      scene.server.server.forgetLog()
      try scene.expect("work --until-idle")
      let paths = scene.server.server.log.map(\.path)
      #expect(paths.count { $0.hasSuffix("getLatestCommit") } == 3 && paths.count <= 6, "\(paths)")
      #expect(!paths.contains { $0.contains("did:plc") }, "\(paths)")
      let key = "\(account.did).car.zst"
      try scene.expect("check")
      scene.store[key] = nil
      let checked = try scene.expect("check --json", 10)
      #expect(OutputSchema.faults(in: checked.text).isEmpty && checked.text.contains(account.did))
      try scene.expect("work --until-idle")
      #expect(scene.store[key] != nil)
      try scene.expect("check")
    }
  }

  @Test func `follow a firehose from where the last worker has left it`() async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(1, database)
      let account = scene.accounts[0]
      let firehose = try StandInFirehose()
      defer { firehose.stop() }
      try scene.expect("init --store s3://\(StandInStore.bucket)/ --on-change")
      try scene.expect("add \(account.did)")
      try scene.expect("work --until-idle")
      try scene.expect("add --firehose \(firehose.url)")
      let key = "\(account.did).car.zst"
      let first = try #require(scene.store[key])
      // The pause after a backup is over.
      let fleet = FleetDatabase(database.url)
      try await fleet.database.persistently(
        "UPDATE carpack.account SET tried = now() - interval '1 hour'")
      let running = try scene.start("work")
      try wait { !firehose.cursors.isEmpty }
      try account.commit([account.post("3lkxag2qhdd2a", "new", showing: [])])
      firehose.send(
        5,
        try StandInFirehose.message(
          "#commit",
          [
            ("seq", .integer(5)), ("repo", .string("\(account.did)")),
            ("rev", .string(account.rev.text)),
          ]))
      try wait { scene.store[key] != first }
      let last = try #require(scene.store[key])
      #expect(last.starts(with: first) && last.count > first.count, "\(last.count) bytes")
      firehose.cutOff()
      try wait { firehose.cursors.count >= 2 }
      #expect(firehose.cursors == [nil, 5])
      running.signal(SIGTERM)
      _ = try running.wait()
      // What one worker releases the next one takes, at once.
      let next = try scene.start("work")
      try wait { firehose.cursors.count >= 3 }
      #expect(firehose.cursors == [nil, 5, 5])
      next.signal(SIGTERM)
      _ = try next.wait()
    }
  }

  @Test(
    arguments: [
      .accepts, .opens, .floods(webSocketFrame([1], first: 0x89)),
      .trickles([UInt8](repeating: 0, count: 100)),
    ] as [HostileFirehose.Behaviour])
  func `end at once while a firehose holds them up, and leave it to the next`(
    behaviour: HostileFirehose.Behaviour
  ) async throws {
    try await TestDatabase.with { database in
      let scene = try Scene(0, database)
      let firehose = try HostileFirehose(behaviour)
      defer { firehose.stop() }
      try scene.expect("init --store s3://\(StandInStore.bucket)/")
      try scene.expect("add --firehose ws://127.0.0.1:\(firehose.port)")
      for number in 1...2 {
        let running = try scene.start("work --lease 1h")
        // The lease is an hour's: it was given up.
        try wait { firehose.connectionCount >= number }
        usleep(1_500_000)
        try expectEnd(of: running)
      }
    }
  }

  /// How long a command may take to end after a signal: two seconds, on a machine that has nothing
  /// else to do.
  private static let farewell: Duration = .seconds(30)

  /// Ends a command by SIGTERM, which is once.
  private func expectEnd(of running: RunningCommand, location: SourceLocation = #_sourceLocation)
    throws
  {
    let begin = ContinuousClock.now
    running.signal(SIGTERM)
    while running.isRunning, begin.duration(to: .now) < Self.farewell { usleep(10_000) }
    running.signal(SIGKILL)
    let result = try running.wait()
    #expect(result.status == 143, "\(result.text)\(result.errors)", sourceLocation: location)
  }

  @Test(arguments: ["work", "status", "add did:web:account.example.com"])
  func `end when told to while the database says nothing`(line: String) async throws {
    let relay = try LoopbackRelay(to: nil)
    defer { relay.stop() }
    let command = try Command(in: TemporaryFolder())
    let running = try command.start(
      "carpack fleet \(line) --database postgres://x@127.0.0.1:\(relay.port)/x")
    try wait { relay.connectionCount > 0 }
    usleep(200_000)
    try expectEnd(of: running)
  }

  @Test func `end when told to in the middle of work while the database has fallen silent`()
    async throws
  {
    try await SilentDatabase.withRelay { database, url, relay in
      let scene = try Scene(12, database)
      let firehose = try StandInFirehose()
      defer { firehose.stop() }
      try scene.expect("init --store s3://\(StandInStore.bucket)/ --host-rate 20")
      try scene.expect("add --host \(scene.server.url) --firehose \(firehose.url)")
      let running = try scene.start("work --lease 3s --jobs 2", through: url)
      try wait { scene.store.keys.count >= 2 && !firehose.cursors.isEmpty }
      relay.isSilent = true
      usleep(300_000)
      try expectEnd(of: running)
      // What it could not release comes free by itself.
      let fleet = FleetDatabase(database.url)
      let end = ContinuousClock.now + Self.patience
      while try await fleet.status().running > 0, .now < end { usleep(50_000) }
      try scene.expect("work --until-idle")
      #expect(try scene.expect("status").text.contains("12 accounts: 12 complete"))
      #expect(scene.store.keys == scene.accounts.map { "\($0.did).car.zst" }.sorted())
    }
  }
}
