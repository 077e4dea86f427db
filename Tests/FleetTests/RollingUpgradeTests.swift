import ATProtocol
import Foundation
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import Fleet

/// A fleet as carpack 0.2.0 works on it: each statement that it sends, as PostgreSQL recorded them.
private struct FleetOf0_2: Sendable {
  /// The statements by their names.
  static let statements: [String: String] = {
    let path = "\(Command.packageRoot)/Fixtures/fleet-0.2.0.sql"
    let text = (try? String(contentsOf: URL(filePath: path), encoding: .utf8)) ?? ""
    let parts = text.components(separatedBy: "\n-- name: ").dropFirst()
    return Dictionary(
      uniqueKeysWithValues: parts.map { part in
        let lines = part.split(separator: "\n", maxSplits: 1)
        return (String(lines[0]), String(lines[1]))
      })
  }()

  let database: Database

  @discardableResult
  func ask(_ name: String, _ values: [String?] = []) async throws -> [Database.Row] {
    try await database.persistently(try #require(Self.statements[name], "\(name)"), values)
  }

  /// Makes tables, with settings and accounts.
  func make(_ dids: [DID]) async throws {
    try await ask("creation")
    let settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/")).values
    let names = settings.keys.sorted()
    try await ask("settings.write", [names.asArray, names.compactMap { settings[$0] }.asArray])
    try await ask("add", [dids.map(\.text).asArray, "86400", "false"])
  }

  /// Claims accounts, and returns their DIDs.
  func claim(_ count: Int, _ worker: String, knowing known: [String] = []) async throws -> [String]
  {
    try await ask("claim", ["\(count)", worker, known.asArray]).compactMap { $0[0] }
  }

  /// Records that a backup is complete.
  func end(_ did: String, _ worker: String) async throws {
    try await ask(
      "end",
      [
        did, worker, "complete", nil, nil, "3lkxag2qhdc2a", "head", "1000", "10", "active", nil,
        nil, "true", nil, "false", "10",
      ])
  }
}

@Suite(
  .ownThread, .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `Workers of two versions` {
  @Test func `keep what they hold while the tables are brought up to date, back and forth`()
    async throws
  {
    try await TestDatabase.with { database in
      let old = FleetOf0_2(database: Database(database.url))
      let dids = try TestFleet.dids(6)
      try await old.make(dids)
      try await old.ask("begin", ["old", "old", "600"])
      try await old.ask("add.host", ["https://pds.example.com", "3600"])
      let held = try await old.claim(2, "old")
      #expect(try await old.ask("claimHost", ["old"]).count == 1)
      for origin in ["https://a.handle.example.com", "https://plc.directory"] {
        try await old.ask("permits", [origin, "2", "10"])
      }
      try await old.database.persistently(
        "UPDATE carpack.host SET rate = 3 WHERE host = 'https://plc.directory'")

      let fleet = FleetDatabase(database.url)
      let settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
      try await fleet.initialize(settings)
      let hosts = try await fleet.database.persistently(
        "SELECT host FROM carpack.host WHERE host <> '' ORDER BY 1"
      ).map { $0[0] }
      #expect(hosts == ["https://pds.example.com", "https://plc.directory"])
      #expect(try await old.ask("renew", ["old", "600", "2", "0", "0"]).count == 1)
      #expect(try await fleet.status().running == 2)
      try await fleet.begin("new", "new", seconds: 600)
      #expect(try await fleet.claimHost("new") == nil)
      let claimed = try await fleet.claim(2, "new")
      #expect(claimed.count == 2 && Set(claimed.map(\.did.text)).isDisjoint(with: held))
      for did in held { try await old.end(did, "old") }
      try await old.ask("endListing", ["https://pds.example.com", "old", "6", nil])

      // An operator whose command is 0.2.0's may set the settings again.
      try await old.ask("creation")
      for lease in claimed { try await fleet.end(lease, FleetOutcome(.complete)) }
      #expect(try await old.claim(8, "old").count == 2)
      #expect(try await fleet.status().outcomes.first?.count == 4)
    }
  }

  /// Each statement once, with values that fit, in the order in which they are recorded.
  @Test func `understand the same tables, statement by statement`() async throws {
    try await TestFleet.with(3) { fleet, database in
      let old = FleetOf0_2(database: Database(database.url))
      let did = try TestFleet.dids(1)[0].text
      let (host, url) = ("https://pds.example.com", "wss://relay.example.com")
      try await fleet.add(host: host, every: 60)
      let chosen: [String?] = [[did].asArray, nil]
      let all: [(String, [String?])] = [
        ("creation", []), ("settings", []), ("begin", ["old", "old", "600"]),
        ("renew", ["old", "600", "1", "2", "3"]), ("add", [[did].asArray, "60", "true"]),
        ("add.recipients", [[did].asArray, "age1x"]), ("add.host", [host, nil]),
        ("add.firehose", [url]), ("claim", ["1", "old", "{}"]), ("locate", [did, host, "old"]),
        ("postpone", [did, "old", "5", host]), ("next", []), ("alarm", [did]),
        ("plan", [did, "old", "key"]), ("mayRemove", [did]), ("hosts", []),
        ("claimHost", ["old"]),
        ("list", [host, [did].asArray, "{3lkxag2qhdc2a}", "{active}", "60", "true", "old"]),
        ("endListing", [host, "old", "1", "it broke off"]), ("permits", [host, "2", "10"]),
        ("claimFirehose", ["old"]), ("revisions", [[did].asArray, "{3lkxag2qhdc2b}"]),
        ("changes", [[did].asArray]), ("cursor", [url, "old", "7", nil]),
        ("release", [url, "old", nil, "false"]), ("accounts", chosen + [""]), ("queues", []),
        ("retry", chosen), ("pause", chosen), ("pause.host", [host]), ("resume", chosen),
        ("resume.host", [host]), ("putAside", [did, "key"]), ("bringBack", [did]),
        ("absent", [did, "it is not there"]), ("status.all", []), ("status.outcomes", []),
        ("status.states", []), ("status.reasons", []), ("status.failures", []),
        ("status.sources", []), ("status.alarms", []), ("status.workers", []),
        ("remove", chosen), ("remove.host", [host]), ("leave", ["old"]),
      ]
      for (name, values) in all {
        do { try await old.ask(name, values) } catch { Issue.record("\(name): \(error)") }
      }
      let known = Set(FleetOf0_2.statements.keys)
      #expect(known.subtracting(all.map(\.0)) == ["settings.write", "end"], "others use them")
      #expect(try await fleet.status().accounts == 2)
    }
  }

  private final class Book: Sendable { let ended = Mutex<[String]>([]) }

  @Test func `share the work and the requests to a host`() async throws {
    try await TestFleet.with(40) { fleet, database in
      // One request, and no other for hours, whoever takes it.
      for origin in ["https://one", "https://other"] {
        try await fleet.database.persistently(
          "INSERT INTO carpack.host (host, rate) VALUES ($1, 0.0001)", [origin])
      }
      let old = FleetOf0_2(database: Database(database.url))
      func asked(_ origin: String) async throws -> Int {
        Int(try await old.ask("permits", [origin, "1", "10"]).first?[0] ?? "") ?? -1
      }
      #expect(try await asked("https://one") == 1)
      #expect(try await fleet.takeRequests(1, of: "https://one", rate: 10).granted == 0)
      #expect(try await fleet.takeRequests(1, of: "https://other", rate: 10).granted == 1)
      #expect(try await asked("https://other") == 0)

      let book = Book()
      let settings = try await fleet.settings()
      var tasks = FleetWorker.Tasks.simulated { _ in FleetOutcome(.complete) }
      tasks.backUp = { lease, located, _ in
        try await located("https://host")
        book.ended.withLock { $0.append(lease.did.text) }
        return FleetOutcome(.complete)
      }
      try await withThrowingDiscardingTaskGroup { [tasks] group in
        group.addTask {
          var options = FleetWorker.Options(name: "new")
          options.endsWhenIdle = true
          try await FleetWorker(
            FleetDatabase(database.url), settings, options: options, tasks: tasks
          ).run()
        }
        group.addTask {
          let old = FleetOf0_2(database: Database(database.url))
          try await old.ask("begin", ["old", "old", "600"])
          while book.ended.withLock({ $0.count }) < 40 {
            for did in try await old.claim(2, "old") {
              let isHeld = try await old.ask("locate", [did, "https://host", "old"])
              guard isHeld.first?.first == "t" else { continue }
              book.ended.withLock { $0.append(did) }
              try await old.end(did, "old")
            }
          }
        }
      }
      #expect(book.ended.withLock { Set($0).count == 40 && $0.count == 40 })
      #expect(try await fleet.status().outcomes.map(\.count) == [40])
    }
  }
}
