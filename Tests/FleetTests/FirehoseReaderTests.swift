import ATProtocol
import Foundation
import HTTP
import IPLD
import ObjectStore
import Postgres
import StandIn
import Testing

@testable import Fleet

@Suite(
  .serialized, .timeLimit(.minutes(15)),
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `A reader of a firehose` {
  private static let did = "did:web:account-0.example.com"

  private static func commit(_ sequence: Int64, _ rev: String) throws -> [UInt8] {
    try StandInFirehose.message(
      "#commit",
      [("seq", .integer(Int128(sequence))), ("repo", .string(did)), ("rev", .string(rev))])
  }

  private static func error(_ name: String) throws -> [UInt8] {
    try StandInFirehose.message(nil, [("error", .string(name)), ("message", .string("so it is"))])
  }

  /// A fleet of one account whose firehose is at a URL, from a cursor on.
  private func withFleet(
    _ url: String, cursor: Int64?, _ body: (FleetDatabase) async throws -> Void
  ) async throws {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      try await fleet.initialize(FleetSettings(store: try BucketAddress("s3://archives/fleet/")))
      _ = try await fleet.add([DID(Self.did)])
      try await fleet.add(firehose: url)
      try await fleet.database.persistently(
        "UPDATE carpack.firehose SET cursor = $1::bigint", [cursor.map { "\($0)" }])
      try await body(fleet)
    }
  }

  /// The cursor that is kept, the reason why the firehose broke off, and the revision that an
  /// account is said to have.
  private func state(of fleet: FleetDatabase) async throws -> [String?] {
    try await fleet.database.persistently(
      "SELECT f.cursor, f.reason, a.seen_rev FROM carpack.firehose f, carpack.account a"
    ).first ?? []
  }

  /// Has the firehoses followed until something is so, and then ends that, which nothing else ends.
  private func follow(
    _ fleet: FleetDatabase, silence: (ping: Int, end: Int) = (1000, 2000),
    until isSo: () async throws -> Bool
  ) async throws {
    var reader = FirehoseReader(
      fleet: fleet, network: NetworkOptions(userAgent: "tests"), counters: FleetCounters())
    reader.silence = silence
    let holder = "\(UInt64.random(in: 0 ... .max))"
    try await fleet.begin(holder, "w", seconds: 600)
    let task = Task { [reader] in try await reader.run(holder) }
    let patience = ContinuousClock.now + .seconds(600)
    while try await !isSo() {
      guard .now < patience else {
        Issue.record("it took too long: \(try await state(of: fleet))")
        break
      }
      try await Task.sleep(for: .milliseconds(20))
    }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    try await fleet.leave(holder, within: .seconds(600))
  }

  @Test(
    arguments: [
      ("ConsumerTooSlow", "8"), ("SomethingNew", "8"), ("FutureCursor", nil),
    ] as [(String, String?)])
  func `notes what came before an error, and the error`(name: String, cursor: String?) async throws
  {
    let firehose = try StandInFirehose()
    defer { firehose.stop() }
    firehose.send(8, try Self.commit(8, "3lkxag2qhdd2a"))
    firehose.send(9, try Self.error(name))
    try await withFleet(firehose.url, cursor: 7) { fleet in
      try await follow(fleet) { try await state(of: fleet)[1] != nil }
      #expect(try await state(of: fleet) == [cursor, "\(name): so it is", "3lkxag2qhdd2a"])
      #expect(
        try await fleet.status().sources == [.init(url: firehose.url, reason: "\(name): so it is")])
    }
    #expect(firehose.cursors == [7])
  }

  @Test func `notes what came before the connection ended`() async throws {
    let firehose = try StandInFirehose()
    defer { firehose.stop() }
    try await withFleet(firehose.url, cursor: nil) { fleet in
      var isSent = false
      try await follow(fleet) {
        if !firehose.cursors.isEmpty, !isSent {
          firehose.send(8, try Self.commit(8, "3lkxag2qhdd2a"))
          firehose.cutOff()
          isSent = true
        }
        return try await state(of: fleet)[1] != nil
      }
      let noted = try await state(of: fleet)
      #expect(noted[0] == "8" && noted[2] == "3lkxag2qhdd2a")
      #expect(noted[1]?.contains("the server ended it") == true)
    }
  }

  @Test func `goes on where the server does if the cursor is too old`() async throws {
    let firehose = try StandInFirehose()
    defer { firehose.stop() }
    firehose.send(
      98, try StandInFirehose.message("#info", [("name", .string("OutdatedCursor"))]))
    firehose.send(99, try Self.commit(99, "3lkxag2qhdd2a"))
    try await withFleet(firehose.url, cursor: 7) { fleet in
      try await follow(fleet) { try await state(of: fleet)[0] == "99" }
      #expect(
        try await state(of: fleet) == ["99", "events are lost (OutdatedCursor)", "3lkxag2qhdd2a"])
    }
    #expect(firehose.cursors == [7])
  }

  @Test func `does not go back behind what is noted, and sends no cursor that cannot be`()
    async throws
  {
    let firehose = try StandInFirehose()
    defer { firehose.stop() }
    firehose.send(100, try Self.commit(100, "3lkxag2qhdd2a"))
    try await withFleet(firehose.url, cursor: 50) { fleet in
      try await follow(fleet) { try await state(of: fleet)[0] == "100" }
      // Each on its own: what is noted in one go is another test's.
      firehose.send(1000, try Self.commit(3, "3lkxag2qhdd3a"))
      firehose.send(1001, try Self.commit(-5, "3lkxag2qhdd4a"))
      try await follow(fleet) { try await state(of: fleet)[2] == "3lkxag2qhdd3a" }
      #expect(try await state(of: fleet)[0] == "100")
      try await fleet.database.persistently("UPDATE carpack.firehose SET cursor = -5")
      #expect(try await fleet.claimFirehose("v")?.cursor == nil)
    }
    #expect(firehose.cursors == [50, 100])
  }

  @Test(
    arguments: [
      .accepts, .opensSlowly, .opens, .floods(webSocketFrame([1], first: 0x89)),
      .floods(webSocketFrame([0xa0, 0xa0])), .trickles([UInt8](repeating: 0, count: 100)),
    ] as [HostileFirehose.Behaviour])
  func `ends when it is told to, whatever the server does`(behaviour: HostileFirehose.Behaviour)
    async throws
  {
    let server = try HostileFirehose(behaviour)
    defer { server.stop() }
    try await withFleet("ws://127.0.0.1:\(server.port)", cursor: nil) { fleet in
      let start = ContinuousClock.now
      try await follow(fleet) {
        server.connectionCount > 0 && start.duration(to: .now) > .seconds(1.5)
      }
      #expect(try await fleet.claimFirehose("v") != nil)
    }
  }

  @Test func `leaves a server that is silent and does not answer`() async throws {
    let server = try HostileFirehose(.opens)
    defer { server.stop() }
    let url = "ws://127.0.0.1:\(server.port)"
    try await withFleet(url, cursor: nil) { fleet in
      let start = ContinuousClock.now
      try await follow(fleet, silence: (1, 3)) { try await state(of: fleet)[1] != nil }
      #expect(try await state(of: fleet)[1] == "\(url): nothing arrived for 3 seconds")
      #expect(start.duration(to: .now) > .seconds(2.9))
    }
  }
}
