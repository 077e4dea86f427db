import ATProtocol
import Files
import Foundation
import ObjectStore
import Synchronization
import Testing
import XRPC

@testable import Fleet

/// Workers with accounts that take no work, to see what the database does: 400 accounts, or as many
/// as `CARPACK_SIMULATED` says.
@Suite(
  .enabled(if: TestDatabase.server != nil, Comment(rawValue: TestDatabase.absence)))
struct `A simulated fleet` {
  static let count =
    ProcessInfo.processInfo.environment["CARPACK_SIMULATED"].flatMap { Int($0) } ?? 400

  private final class Book: Sendable {
    struct Entries {
      var running: Set<DID> = []
      var ended: Set<DID> = []
      var doubles = 0
    }
    let entries = Mutex(Entries())
  }

  @Test func `removes the archive of an account that is gone for long, if that is wanted`()
    async throws
  {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      var settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
      settings.followsDeletionsAfter = 3600
      try await fleet.initialize(settings)
      let did = try DID("did:web:gone.example.com")
      _ = try await fleet.add([did])
      let book = Book()
      let tasks = FleetWorker.Tasks(
        backUp: { did in
          throw BackupError.accountUnavailable(did.text, RepoError.notFound.sentence)
        },
        remove: { did in book.entries.withLock { _ = $0.ended.insert(did) } },
        list: { _, _ in })
      func work() async throws {
        var options = FleetWorker.Options(name: "w")
        options.endsWhenIdle = true
        try await fleet.database.ask(
          "UPDATE carpack.account SET due = now() WHERE due < 'infinity'")
        try await FleetWorker(fleet, settings, options: options, tasks: tasks).run()
      }
      // It is found to be gone, and is, but not for long.
      for _ in 0..<2 {
        try await work()
        #expect(try await fleet.status().states.map(\.name) == ["deleted"])
      }
      #expect(book.entries.withLock { $0.ended.isEmpty })
      try await fleet.database.ask(
        "UPDATE carpack.account SET state_since = now() - interval '2 hours'")
      try await work()
      #expect(book.entries.withLock { $0.ended } == [did])
      #expect(try await fleet.status().states.map(\.name) == ["removed"])
      #expect(try await fleet.secondsToNext() == nil)
    }
  }

  @Test func `lets go of an account whose end it could not say when it was stopped`() async throws {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      let settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
      try await fleet.initialize(settings)
      _ = try await fleet.add([try DID("did:web:done.example.com")])
      let (done, isDone) = AsyncStream.makeStream(of: Void.self)
      let tasks = FleetWorker.Tasks(
        backUp: { _ in
          // It comes to its end although the worker was stopped, and the connection broke then.
          isDone.finish()
          while !Task.isCancelled { await Task.yield() }
          try await Task.detached { try await database.cutOff() }.value
          return FleetOutcome(.complete)
        }, remove: { _ in }, list: { _, _ in })
      let worker = FleetWorker(
        FleetDatabase(database.url), settings, options: FleetWorker.Options(name: "w"), tasks: tasks
      )
      await withThrowingTaskGroup { group in
        group.addTask { try await worker.run() }
        for await _ in done {}
        group.cancelAll()
      }
      #expect(try await fleet.status().running == 0)
      #expect(try await fleet.take(1, holder: "next", seconds: 60).count == 1)
    }
  }

  @Test func `backs every account up, and none twice at a time, while workers die`() async throws {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      try await fleet.initialize(FleetSettings(store: try BucketAddress("s3://archives/fleet/")))
      let dids = try (0..<Self.count).map { try DID("did:web:account-\($0).example.com") }
      let begin = ContinuousClock.now
      #expect(try await fleet.add(dids) == Self.count)
      let added = begin.duration(to: .now)
      let book = Book()
      let tasks = FleetWorker.Tasks(
        backUp: { did in
          book.entries.withLock { entries in
            if !entries.running.insert(did).inserted { entries.doubles += 1 }
          }
          defer { book.entries.withLock { _ = $0.running.remove(did) } }
          try await Task.sleep(for: .milliseconds(5))
          book.entries.withLock { _ = $0.ended.insert(did) }
          var outcome = FleetOutcome(.complete)
          outcome.bytes = 1000
          return outcome
        }, remove: { _ in }, list: { _, _ in })
      @Sendable func worker(_ number: Int) async throws {
        var options = FleetWorker.Options(name: "w\(number)")
        (options.jobs, options.leaseSeconds, options.endsWhenIdle) = (16, 120, number >= 4)
        let settings = try await FleetDatabase(database.url).settings()
        try await FleetWorker(
          FleetDatabase(database.url), settings, options: options, tasks: tasks
        ).run()
      }
      let start = ContinuousClock.now
      try await withThrowingTaskGroup { group in
        // Two that are stopped in the midst of it, and four that go on to the end.
        for number in 0..<2 {
          group.addTask {
            try await withThrowingTaskGroup { inner in
              inner.addTask { try await worker(number) }
              try await Task.sleep(for: .milliseconds(300))
              inner.cancelAll()
            }
          }
        }
        for number in 4..<8 { group.addTask { try await worker(number) } }
        try await Task.sleep(for: .milliseconds(150))
        try await database.cutOff()
        try await group.waitForAll()
      }
      let seconds = start.duration(to: .now) / .seconds(1)
      let entries = book.entries.withLock { $0 }
      #expect(entries.ended.count == Self.count)
      #expect(entries.doubles == 0)
      let status = try await fleet.status()
      #expect(status.outcomes.map(\.name) == ["complete"] && status.running == 0)
      print(
        "simulation: \(Self.count) accounts added in \(added), worked on in \(seconds) s: \(Int(Double(Self.count) / seconds)) a second"
      )
    }
  }
}
