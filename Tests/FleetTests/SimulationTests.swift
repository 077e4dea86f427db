import ATProtocol
import Files
import Foundation
import HTTP
import ObjectStore
import Postgres
import Synchronization
import Testing
import XRPC

@testable import Fleet

/// Workers with accounts that take no work, to see what the database does: 400 accounts, or as many
/// as `CARPACK_SIMULATED` says.
@Suite(
  .serialized,
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

  // MARK: Deletions

  /// What the tasks of a deletion find and do.
  private final class Account: Sendable {
    struct Facts {
      var error: (any Error)?
      var evidence: DeletionEvidence?
      var testimony = Deletion.Testimony.agreed("https://relay.example.com")
      /// Whether nothing can be found out about that.
      var isUnanswered = false
      var done: [String] = []
    }
    let facts = Mutex(
      Facts(error: BackupError.accountUnavailable("it", .unknown, "it is not there")))

    var tasks: FleetWorker.Tasks {
      var tasks = FleetWorker.Tasks.simulated { [self] _ in
        facts.withLock { $0.done.append("back up") }
        if let error = facts.withLock({ $0.error }) { throw error }
        return FleetOutcome(.complete)
      }
      tasks.deletion = { [self] _ in
        guard !facts.withLock({ $0.isUnanswered }) else { throw Unanswered() }
        return facts.withLock { facts in
          facts.evidence.map { Deletion(evidence: $0, testimony: facts.testimony) }
        }
      }
      tasks.putAside = { [self] _, key in facts.withLock { $0.done.append("put aside \(key)") } }
      tasks.bringBack = { [self] _, key in facts.withLock { $0.done.append("bring back \(key)") } }
      tasks.removeAside = { [self] key in facts.withLock { $0.done.append("delete \(key)") } }
      return tasks
    }

    /// What was done since this was asked last.
    func done() -> [String] {
      facts.withLock { facts in
        defer { facts.done = [] }
        return facts.done
      }
    }
  }

  /// A fleet of one account that follows deletions after an hour; `work` has it worked on this many
  /// hours later, and returns what it is then, and what was done.
  private func withAccount(
    _ body: (
      FleetDatabase, Account, _ work: (_ hours: Int) async throws -> [String]
    ) async throws -> Void
  ) async throws {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      var settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
      settings.followsDeletionsAfter = 3600
      try await fleet.initialize(settings)
      _ = try await fleet.add([try DID("did:web:gone.example.com")])
      let account = Account()
      try await body(fleet, account) { hours in
        var options = FleetWorker.Options(name: "w")
        options.endsWhenIdle = true
        try await fleet.database.persistently(
          "UPDATE carpack.account SET due = now() WHERE due < 'infinity'")
        try await fleet.database.persistently(
          "UPDATE carpack.account SET state_since = state_since - make_interval(hours => $1::integer)",
          ["\(hours)"])
        try await FleetWorker(fleet, settings, options: options, tasks: account.tasks).run()
        let state = try await fleet.accounts(FleetSelection(), after: "")[0].state
        return [state] + account.done()
      }
    }
  }

  @Test func `never removes the archive of an account that its server just does not know`()
    async throws
  {
    try await withAccount { _, _, work in
      for _ in 0..<4 {
        let done = try await work(1000)
        #expect(done == ["missing", "back up"])
      }
    }
  }

  @Test(arguments: DeletionEvidence.allCases)
  func `puts an archive aside on evidence that holds after the grace, and deletes it after another`(
    evidence: DeletionEvidence
  ) async throws {
    try await withAccount { fleet, account, work in
      account.facts.withLock { $0.evidence = evidence }
      for _ in 0..<2 { #expect(try await work(0) == ["deleted", "back up"]) }
      let removed = try await work(2)
      #expect(removed.prefix(2) == ["removed", "back up"])
      #expect(removed.last?.hasPrefix("put aside aside/2") == true && removed.count == 3)
      #expect(try await work(0) == ["removed"])
      let purged = try await work(2)
      #expect(purged.first == "purged" && purged.count == 2)
      #expect(purged.last?.hasPrefix("delete aside/2") == true)
      #expect(try await fleet.secondsToNext() == nil)
    }
  }

  @Test func `keeps an archive whose evidence has gone after the grace`() async throws {
    try await withAccount { _, account, work in
      account.facts.withLock { $0.evidence = .server }
      let before = try await work(0)
      #expect(before == ["deleted", "back up"])
      account.facts.withLock { $0.evidence = nil }
      #expect(try await work(2) == ["missing", "back up"])
      account.facts.withLock { $0.evidence = .server }
      #expect(try await work(2) == ["deleted", "back up"], "the grace begins again")
    }
  }

  @Test func `changes nothing, and says so, while nothing is found out about a deletion`()
    async throws
  {
    try await withAccount { fleet, account, work in
      account.facts.withLock { $0.isUnanswered = true }
      #expect(try await work(0) == ["missing", "back up"])
      let reason = try await fleet.accounts(FleetSelection(), after: "")[0].reason
      #expect(reason?.hasSuffix("whether it was deleted is not known: no answer") == true)
      account.facts.withLock { ($0.isUnanswered, $0.evidence) = (false, .tombstone) }
      #expect(try await work(0).first == "deleted")
      #expect(try await work(2).first == "removed")
      account.facts.withLock { $0.isUnanswered = true }
      for _ in 0..<2 { #expect(try await work(2) == ["removed"]) }
      account.facts.withLock { $0.isUnanswered = false }
      #expect(try await work(0).first == "purged")
    }
  }

  private struct Unanswered: Error, CustomStringConvertible { let description = "no answer" }

  @Test func `brings an archive back whose account is there again`() async throws {
    try await withAccount { _, account, work in
      account.facts.withLock { $0.evidence = .tombstone }
      _ = try await work(0)
      #expect(try await work(2).first == "removed")
      account.facts.withLock { ($0.evidence, $0.error) = (nil, nil) }
      let back = try await work(2)
      #expect(back.count == 3 && back[0] == "active" && back[2] == "back up")
      #expect(back[1].hasPrefix("bring back aside/2"))
    }
  }

  @Test func `removes nothing that only the host calls deleted until an operator has seen it`()
    async throws
  {
    try await withAccount { fleet, account, work in
      account.facts.withLock { ($0.evidence, $0.testimony) = (.server, .none) }
      for _ in 0..<2 { #expect(try await work(1000) == ["deleted", "back up"]) }
      let alarm = try await fleet.status().alarms.first
      #expect(alarm?.reason.hasPrefix("1 of 0 accounts are deleted by its word alone") == true)
      var host = FleetSelection()
      host.host = ""
      #expect(try await fleet.pause(host, false) == 1)
      // A relay that does not answer changes nothing about what the operator has said.
      account.facts.withLock { $0.testimony = .unanswered("no answer") }
      #expect(try await work(0).first == "removed")
      #expect(try await work(2).first == "purged")
    }
  }

  @Test(
    arguments: [
      (.denied("https://relay"), true), (.unanswered("no answer"), false),
    ] as [(Deletion.Testimony, Bool)])
  func `removes nothing that a witness does not agree to`(
    testimony: Deletion.Testimony, isAlarm: Bool
  ) async throws {
    try await withAccount { fleet, account, work in
      account.facts.withLock { ($0.evidence, $0.testimony) = (.server, testimony) }
      #expect(try await work(0) == ["deleted", "back up"])
      #expect(try await fleet.status().alarms.isEmpty, "it may hear of it later")
      #expect(try await work(1000) == ["deleted", "back up"])
      let alarms = try await fleet.status().alarms
      #expect(alarms.isEmpty != isAlarm)
      let reason = try await fleet.accounts(FleetSelection(), after: "")[0].reason
      #expect((reason == "its archive is kept: no answer") != isAlarm)
    }
  }

  @Test func `removes nothing of a host with an alarm`() async throws {
    try await withAccount { fleet, account, work in
      account.facts.withLock { $0.evidence = .server }
      #expect(try await work(0).first == "deleted")
      try await fleet.database.persistently("UPDATE carpack.host SET alarm_since = now()")
      #expect(try await work(2) == ["deleted", "back up"])
      try await fleet.database.persistently("UPDATE carpack.host SET alarm_since = NULL")
      #expect(try await work(0).first == "removed")
      try await fleet.database.persistently("UPDATE carpack.host SET alarm_since = now()")
      #expect(try await work(2) == ["removed"])
    }
  }

  // MARK: Workers

  @Test func `lets go of an account whose end it could not say when it was stopped`() async throws {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      let settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
      try await fleet.initialize(settings)
      _ = try await fleet.add([try DID("did:web:done.example.com")])
      let (done, isDone) = AsyncStream.makeStream(of: Void.self)
      let tasks = FleetWorker.Tasks.simulated { _ in
        // It comes to its end although the worker was stopped, and the connection broke then.
        isDone.finish()
        while !Task.isCancelled { await Task.yield() }
        try await Task.detached { try await database.cutOff() }.value
        return FleetOutcome(.complete)
      }
      var options = FleetWorker.Options(name: "w")
      options.farewell = .seconds(600)
      let worker = FleetWorker(
        FleetDatabase(database.url), settings, options: options, tasks: tasks)
      await withThrowingTaskGroup { group in
        group.addTask { try await worker.run() }
        for await _ in done {}
        group.cancelAll()
      }
      #expect(try await fleet.status().running == 0)
      try await fleet.begin("next", "next", seconds: 60)
      #expect(try await fleet.claim(1, "next").count == 1)
    }
  }

  @Test func `has good hosts done while others are silent, refuse, or forget`() async throws {
    try await TestDatabase.with { database in
      let fleet = FleetDatabase(database.url)
      let settings = FleetSettings(store: try BucketAddress("s3://archives/fleet/"))
      try await fleet.initialize(settings)
      // The bad hosts have twice as many accounts as the good one, and come first.
      let hosts = ["silent", "refusing", "forgetful", "good"]
      let count = max(40, Self.count / 10)
      for host in hosts {
        _ = try await fleet.add(
          (0..<(host == "good" ? count : 2 * count)).map { try DID("did:web:a\($0).\(host).com") })
      }
      let book = Book()
      var tasks = FleetWorker.Tasks.simulated { _ in FleetOutcome(.complete) }
      tasks.backUp = { lease, located, _ in
        let host = String(lease.did.text.split(separator: ".")[1])
        try await located("https://\(host).com")
        switch host {
        case "silent":
          try await Task.sleep(for: .seconds(600))
          throw TransportError(.stalled(seconds: 60), url: "https://silent.com/")
        case "refusing":
          throw TransportError(.postponed(seconds: 3600), url: "https://refusing.com/x")
        case "forgetful":
          throw BackupError.accountUnavailable(lease.did.text, .unknown, "it is not there")
        default:
          try await Task.sleep(for: .milliseconds(5))
          book.entries.withLock { _ = $0.ended.insert(lease.did) }
          return FleetOutcome(.complete)
        }
      }
      let alarms = Book()
      try await withThrowingTaskGroup { [tasks] group in
        for number in 0..<2 {
          group.addTask {
            var options = FleetWorker.Options(name: "w\(number)")
            options.jobs = 8
            let worker = FleetWorker(
              FleetDatabase(database.url), settings, options: options, tasks: tasks,
              observer: { event in
                if case .alarm = event { alarms.entries.withLock { $0.doubles += 1 } }
              })
            try await worker.run()
          }
        }
        let start = ContinuousClock.now
        while book.entries.withLock({ $0.ended.count }) < count {
          guard start.duration(to: .now) < .seconds(600) else { break }
          try await Task.sleep(for: .milliseconds(20))
        }
        print(
          "simulation: \(count) accounts of a good host behind \(6 * count) of bad ones in \(start.duration(to: .now))"
        )
        // The forgetful host is gone through, too.
        while alarms.entries.withLock({ $0.doubles }) == 0, start.duration(to: .now) < .seconds(600)
        {
          try await Task.sleep(for: .milliseconds(20))
        }
        group.cancelAll()
        do { try await group.waitForAll() } catch is CancellationError {}
      }
      #expect(book.entries.withLock { $0.ended.count } == count)
      #expect(alarms.entries.withLock { $0.doubles } == 1)
      #expect(try await fleet.status().alarms.map(\.url) == ["https://forgetful.com"])
      let refused = try #require(try await fleet.queues().first { $0.host.contains("refusing") })
      #expect(refused.waitSeconds > 3000)
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
      let tasks = FleetWorker.Tasks.simulated { lease in
        let did = lease.did
        book.entries.withLock { entries in
          if !entries.running.insert(did).inserted { entries.doubles += 1 }
        }
        defer { book.entries.withLock { _ = $0.running.remove(did) } }
        try await Task.sleep(for: .milliseconds(5))
        book.entries.withLock { _ = $0.ended.insert(did) }
        var outcome = FleetOutcome(.complete)
        outcome.bytes = 1000
        return outcome
      }
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

extension FleetWorker.Tasks {
  /// Tasks that do nothing but back accounts up, in a way of the test's own.
  static func simulated(
    _ backUp: @escaping @Sendable (FleetDatabase.Lease) async throws -> FleetOutcome
  ) -> FleetWorker.Tasks {
    FleetWorker.Tasks(
      backUp: { lease, _, _ in try await backUp(lease) }, deletion: { _ in nil },
      keyAside: { did, day in "aside/\(day)/\(did)" }, putAside: { _, _ in },
      bringBack: { _, _ in }, removeAside: { _ in }, list: { _, _ in })
  }
}
