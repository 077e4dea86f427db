package import ATProtocol
internal import HTTP
internal import Synchronization

/// Takes accounts that are due, and has them backed up, some at a time.
///
/// A worker keeps nothing: it may be ended at any moment, and what it held is taken by others when
/// its leases have run out.
package struct FleetWorker: Sendable {
  /// How a worker works.
  package struct Options: Sendable {
    /// How many accounts are backed up at a time.
    package var jobs = 4
    /// How long an account is held without a sign of life, in seconds.
    package var leaseSeconds = 120
    /// Whether it ends when no account is due.
    package var endsWhenIdle = false
    /// What it is called in the database.
    package var name: String

    /// Options.
    package init(name: String) { self.name = name }
  }

  /// What is done with accounts.
  package struct Tasks: Sendable {
    /// Backs one up.
    package var backUp: @Sendable (DID) async throws -> FleetOutcome
    /// Removes the archive of one that was deleted.
    package var remove: @Sendable (DID) async throws -> Void
    /// Lists the accounts of a host, page by page.
    package var list:
      @Sendable (_ host: String, _ page: ([FleetListed]) async throws -> Bool) async throws -> Void

    /// Tasks.
    package init(
      backUp: @escaping @Sendable (DID) async throws -> FleetOutcome,
      remove: @escaping @Sendable (DID) async throws -> Void,
      list:
        @escaping @Sendable (_ host: String, _ page: ([FleetListed]) async throws -> Bool)
        async throws -> Void
    ) {
      (self.backUp, self.remove, self.list) = (backUp, remove, list)
    }
  }

  private let fleet: FleetDatabase
  private let settings: FleetSettings
  private let options: Options
  private let tasks: Tasks
  private let counters: FleetCounters
  private let observer: @Sendable (DID, FleetOutcome) -> Void
  /// How the leases of this run begin, as no other's.
  private let holder: String

  /// How long nothing that is due is waited for before the database is asked again, in seconds.
  private static let longestPause = 5.0
  /// How often a worker says that it is at work.
  private static let reportInterval: Duration = .seconds(10)

  /// A worker.
  ///
  /// - Parameters:
  ///   - fleet: whose.
  ///   - settings: what all workers go by.
  ///   - options: how it works.
  ///   - tasks: what is done with accounts.
  ///   - counters: what is counted.
  ///   - observer: is told what came of each account.
  package init(
    _ fleet: FleetDatabase, _ settings: FleetSettings, options: Options, tasks: Tasks,
    counters: FleetCounters = FleetCounters(),
    observer: @escaping @Sendable (DID, FleetOutcome) -> Void = { _, _ in }
  ) {
    (self.fleet, self.settings, self.options) = (fleet, settings, options)
    (self.tasks, self.counters, self.observer) = (tasks, counters, observer)
    holder = "\(options.name)/\(UInt64.random(in: 0 ... .max))/"
  }

  /// Works until it is cancelled, or nothing is due any more; then it lets go of what it holds.
  ///
  /// - Throws: ``DatabaseError`` if the database is gone for longer than a moment;
  ///   `CancellationError`.
  package func run() async throws {
    do {
      try await withThrowingTaskGroup { group in
        group.addTask { try await report() }
        group.addTask { try await listHosts() }
        group.addTask { try await work() }
        defer { group.cancelAll() }
        // The others go on for ever.
        try await group.next()
      }
    } catch {
      try await letGo()
      throw error
    }
    try await letGo()
    try await sayOnce()
  }

  /// Lets go of all that it holds, so that nobody waits for what it does not do: of what it was
  /// stopped at, and of what it had done and could not say, since the database was away.
  private func letGo() async throws {
    try await fleet.letGo { [holder] in try await $0.release(heldBy: holder, for: $1) }
  }

  private func report() async throws {
    while true {
      try await sayOnce()
      try await Task.sleep(for: Self.reportInterval)
    }
  }

  private func sayOnce() async throws {
    do {
      try await fleet.report(options.name, counters.values)
    } catch let error as DatabaseError where error.kind == .connection {
      // It is said again soon.
    }
  }

  // MARK: Accounts

  private func work() async throws {
    let places = Places(options.jobs)
    try await withThrowingDiscardingTaskGroup { group in
      var number = 0
      while true {
        let first = try await places.take()
        number += 1
        let leases = try await taken(number)
        guard let lease = leases.first else {
          first.giveBack()
          if options.endsWhenIdle, counters.values.running == 0 { return }
          let next = try await fleet.secondsToNext() ?? Self.longestPause
          try await Task.sleep(for: .seconds(max(0.05, min(next, Self.longestPause))))
          continue
        }
        counters.change { $0.running += 1 }
        group.addTask {
          defer {
            counters.change { $0.running -= 1 }
            first.giveBack()
          }
          try await work(on: lease)
        }
      }
    }
  }

  private func taken(_ number: Int) async throws -> [FleetDatabase.Lease] {
    try await fleet.take(1, holder: holder + "\(number)", seconds: options.leaseSeconds)
  }

  private func work(on lease: FleetDatabase.Lease) async throws {
    let outcome = try await whileHolding(lease) { try await self.outcome(of: lease) }
    guard let outcome else {
      counters.change { $0.lost += 1 }
      return
    }
    try await fleet.end(lease, outcome)
    counters.change { values in
      values.ended += 1
      values.added += outcome.added
      switch outcome.verdict {
      case .complete: values.complete += 1
      case .incomplete: values.incomplete += 1
      case .failed: values.failed += 1
      }
    }
    observer(lease.did, outcome)
  }

  /// Backs an account up, or removes its archive if it is gone for long enough.
  private func outcome(of lease: FleetDatabase.Lease) async throws -> FleetOutcome {
    var outcome: FleetOutcome
    do {
      outcome = try await tasks.backUp(lease.did)
    } catch let error where !(error is CancellationError) {
      // What fails because this worker is stopped says nothing of the account.
      try Task.checkCancellation()
      outcome = FleetOutcome(error)
    }
    guard outcome.state == .deleted, lease.state == .deleted,
      let grace = settings.followsDeletionsAfter, lease.stateAge >= Double(grace)
    else { return outcome }
    do {
      try await tasks.remove(lease.did)
      outcome.state = .removed
    } catch let error where !(error is CancellationError) {
      // It is tried again with the account.
      outcome.reason = "its archive could not be removed: \(error)"
    }
    return outcome
  }

  /// Does something while a lease is renewed; nil if the lease was lost, and the rest of it was
  /// given up.
  ///
  /// - Throws: `CancellationError`; what `body` throws.
  private func whileHolding<Value: Sendable>(
    _ lease: FleetDatabase.Lease, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value? {
    try await withThrowingTaskGroup(of: Value?.self) { group in
      group.addTask { try await body() }
      group.addTask {
        try await holds(lease)
        return nil
      }
      defer { group.cancelAll() }
      return try await group.next() ?? nil
    }
  }

  /// Renews a lease until it is lost, or was not renewed in time, by this machine's clock: whether
  /// the database answers or not.
  private func holds(_ lease: FleetDatabase.Lease) async throws {
    let length = Duration.seconds(options.leaseSeconds)
    var end = ContinuousClock.now + length
    var pause = length / 3
    while true {
      try await Task.sleep(for: min(pause, ContinuousClock.now.duration(to: end)))
      let asked = ContinuousClock.now
      guard asked < end else { return }
      do {
        let limit = min(Database.answerLimit, asked.duration(to: end))
        guard try await fleet.renew(lease, seconds: options.leaseSeconds, within: limit) else {
          return
        }
        (end, pause) = (asked + length, length / 3)
      } catch let error as DatabaseError where error.kind == .connection {
        // It is asked again for as long as the lease runs.
        pause = min(.seconds(1), length / 10)
      }
    }
  }

  // MARK: Hosts

  private func listHosts() async throws {
    while true {
      if let lease = try await fleet.takeHost(
        holder: holder + "host", seconds: options.leaseSeconds)
      {
        try await list(lease)
      } else {
        try await Task.sleep(for: .seconds(Self.longestPause))
      }
    }
  }

  private func list(_ lease: FleetDatabase.HostLease) async throws {
    let count = Mutex(0)
    var fault: String?
    do {
      try await tasks.list(lease.host) { page in
        count.withLock { $0 += page.count }
        return try await fleet.note(page, of: lease, seconds: options.leaseSeconds)
      }
    } catch let error where !(error is DatabaseError || error is CancellationError) {
      fault = "\(error)"
    }
    try await fleet.end(lease, count: count.withLock { $0 }, fault: fault)
    counters.change { $0.listed += 1 }
  }
}
