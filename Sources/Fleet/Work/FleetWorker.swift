package import ATProtocol
internal import HTTP
internal import IPLD
internal import Live
internal import Postgres
internal import Synchronization

/// Claims accounts that are due, and backs them up, several at a time.
///
/// 1. A worker keeps no state: it may be ended at any moment, and others take its accounts when its
///    lease has run out.
/// 2. A worker that cannot renew its lease ends all its work before the lease runs out, and
///    continues under a new one.
package struct FleetWorker: Sendable {
  /// How a worker works.
  package struct Options: Sendable {
    /// How many accounts are backed up at a time.
    package var jobs = 4
    /// How long the lease runs without being renewed, in seconds.
    package var leaseSeconds = 120
    /// Whether it ends when no account and no list is due, and the firehoses were read up to the
    /// present.
    package var endsWhenIdle = false
    /// Its name in the database.
    package var name: String
    /// How long it may take to give up its lease when it ends.
    var farewell: Duration = .seconds(1)

    /// Options.
    package init(name: String) { self.name = name }
  }

  /// What is done with accounts.
  package struct Tasks: Sendable {
    /// Backs one up, and calls `located` with its server before that is asked.
    var backUp:
      @Sendable (
        FleetDatabase.Lease, _ located: @escaping @Sendable (_ server: String) async throws -> Void,
        @escaping @Sendable (BackupEvent) -> Void
      ) async throws -> FleetOutcome
    /// What proves that one was deleted, and who agrees.
    var deletion: @Sendable (DID) async throws -> Deletion?
    /// The key to which its archive is moved aside on a day.
    var keyAside: @Sendable (DID, _ day: String) -> String
    /// Moves its archive aside.
    var putAside: @Sendable (DID, _ key: String) async throws -> Void
    /// Brings its archive back.
    var bringBack: @Sendable (DID, _ key: String) async throws -> Void
    /// Deletes an archive that was moved aside.
    var removeAside: @Sendable (_ key: String) async throws -> Void
    /// Lists the accounts of a host, page by page.
    var list:
      @Sendable (_ host: String, _ page: ([FleetListed]) async throws -> Bool) async throws -> Void
  }

  /// What a worker tells.
  package enum Event: Sendable {
    /// The result for an account.
    case ended(DID, FleetOutcome)
    /// None of the archives of a host is removed until an operator has looked at it: why.
    case alarm(host: String, reason: String)
  }

  /// The account's server has no room for it now: it waits in that server's queue.
  struct Moved: Error {}

  private let fleet: FleetDatabase
  private let pulse: FleetDatabase
  private let settings: FleetSettings
  private let options: Options
  private let tasks: Tasks
  private let counters: FleetCounters
  private let beside: @Sendable (_ holder: String) async throws -> Void
  private let observer: @Sendable (Event) -> Void

  /// The longest pause before the database is asked again whether something is due, in seconds.
  private static let longestPause = 5.0
  /// The shortest one, and the longest while something is due that other workers leave no room for.
  private static let (shortestPause, pauseForRoom) = (0.05, 1.0)
  /// If claimed accounts are used up sooner than this, more are claimed ahead.
  private static let quick: Duration = .milliseconds(500)
  /// How often the lease is renewed at the least.
  private static let pulseInterval: Duration = .seconds(10)

  /// A worker.
  ///
  /// - Parameters:
  ///   - fleet: whose.
  ///   - pulse: the same database by a connection that nothing holds up for long; nil for the same
  ///     connection.
  ///   - settings: the settings of all workers.
  ///   - options: how it works.
  ///   - tasks: what is done with accounts.
  ///   - counters: what is counted.
  ///   - beside: what else is done under the worker's lease; does not return.
  ///   - observer: called with what happens.
  init(
    _ fleet: FleetDatabase, pulse: FleetDatabase? = nil, _ settings: FleetSettings,
    options: Options, tasks: Tasks, counters: FleetCounters = FleetCounters(),
    beside: @escaping @Sendable (_ holder: String) async throws -> Void = { _ in
      try await Task.sleep(for: .seconds(Int32.max))
    }, observer: @escaping @Sendable (Event) -> Void = { _ in }
  ) {
    (self.fleet, self.pulse, self.settings) = (fleet, pulse ?? fleet, settings)
    (self.options, self.tasks, self.counters) = (options, tasks, counters)
    (self.beside, self.observer) = (beside, observer)
  }

  /// Works until it is cancelled, or nothing is due any more.
  ///
  /// - Throws: `DatabaseError` if the database refuses, or cannot be reached for long;
  ///   `CancellationError`.
  package func run() async throws {
    var isDone = false
    while !isDone {
      let holder = "\(options.name)/\(UInt64.random(in: 0 ... .max))"
      do {
        let begin = ContinuousClock.now
        try await fleet.begin(holder, options.name, seconds: options.leaseSeconds)
        isDone = try await withThrowingTaskGroup(of: Bool.self) { group in
          group.addTask { try await work(holder) }
          group.addTask { try await listHosts(holder) }
          group.addTask {
            try await beside(holder)
            return true
          }
          group.addTask { try await keepLease(holder, since: begin) }
          defer { group.cancelAll() }
          return try await group.next() ?? true
        }
      } catch {
        try await leave(holder)
        throw error
      }
      // A lease that could not be renewed runs out by itself.
      if isDone || Task.isCancelled { try await leave(holder) }
      try Task.checkCancellation()
    }
  }

  private func leave(_ holder: String) async throws {
    try await fleet.leave(
      holder, within: Task.isCancelled ? options.farewell : FleetDatabase.shortPatience)
  }

  /// How long work under a lease may go on, so that writes have time to end.
  static func usable(_ lease: Duration) -> Duration { lease - min(lease / 5, .seconds(10)) }

  /// Renews the lease until it is lost, or until too little of it is left for writes to end, by
  /// this machine's clock, whether the database answers or not.
  ///
  /// - Returns: false: there is more to do.
  private func keepLease(_ holder: String, since begin: ContinuousClock.Instant) async throws
    -> Bool
  {
    let length = Duration.seconds(options.leaseSeconds)
    let usable = Self.usable(length)
    var end = begin + usable
    var pause = min(length / 3, Self.pulseInterval)
    while true {
      try await Task.sleep(for: min(pause, ContinuousClock.now.duration(to: end)))
      let asked = ContinuousClock.now
      guard asked < end else { break }
      do {
        let limit = min(Database.answerLimit, asked.duration(to: end))
        let seconds = options.leaseSeconds
        let running = counters.values.running
        guard try await pulse.renew(holder, running: running, seconds: seconds, within: limit)
        else { break }
        (end, pause) = (asked + usable, min(length / 3, Self.pulseInterval))
        counters.change { $0.renewed = .now }
        counters.queues = try await pulse.queues()
        try await pulse.forgetPermits(rate: settings.requestsPerSecond)
      } catch let error as DatabaseError where error.kind == .connection {
        // It is asked again for as long as the lease runs.
        pause = min(.seconds(1), length / 10)
      }
    }
    counters.change { $0.lost += $0.running }
    return false
  }

  // MARK: Accounts

  /// - Returns: true: nothing is due any more.
  private func work(_ holder: String) async throws -> Bool {
    let places = Places(options.jobs)
    let known = Known()
    return try await withThrowingDiscardingTaskGroup { group in
      var claimed: ArraySlice<FleetDatabase.Lease> = []
      var pause = Self.shortestPause
      // Where accounts end quickly, some are claimed ahead.
      var (ahead, last) = (0, ContinuousClock.now)
      while true {
        let seat = try await places.take()
        let ended = Awaited<Void>()
        known.ended.withLock { $0 = ended }
        if claimed.isEmpty {
          ahead = last.duration(to: .now) < Self.quick ? min(2 * ahead + 1, options.jobs) : 0
          last = .now
          let free = max(0, places.count - places.taken) + ahead
          claimed = try await fleet.claim(1 + free, holder, knowing: known.dids.withLock { $0 })[
            ...]
          known.dids.withLock { $0.formUnion(claimed.map(\.did)) }
        }
        guard let lease = claimed.popFirst() else {
          seat.giveBack()
          // Lists and firehoses first: what they bring is due.
          let isFed = options.endsWhenIdle ? try await fleet.hasUnreadSources(holder) : false
          let next = try await fleet.secondsToNext()
          if options.endsWhenIdle, counters.values.running == 0, !isFed, (next ?? 1) > 0 {
            return true
          }
          // An account that is due and could not be claimed may be claimed in a moment.
          pause = if let next, next > 0, !isFed { next } else { min(2 * pause, Self.pauseForRoom) }
          pause = min(pause, Self.longestPause)
          do {
            try await ended.value(within: .seconds(pause), else: DatabaseError.noAnswer) {}
          } catch is DatabaseError {}
          continue
        }
        pause = Self.shortestPause
        counters.change { $0.running += 1 }
        group.addTask {
          defer {
            counters.change { $0.running -= 1 }
            known.dids.withLock { _ = $0.remove(lease.did) }
            seat.giveBack()
            known.ended.withLock { $0?.give(.success(())) }
          }
          try await work(on: lease, seat)
        }
      }
    }
  }

  /// The accounts that the worker holds, and the waiter for the next end.
  private final class Known: Sendable {
    let dids = Mutex<Set<DID>>([])
    let ended = Mutex<Awaited<Void>?>(nil)
  }

  private func work(on lease: FleetDatabase.Lease, _ seat: Places.Seat) async throws {
    let pace = StallDetector()
    let watch = pace.leaving(seat)
    defer { watch.cancel() }
    let found: (FleetOutcome, Deletion?)
    do {
      found = try await self.outcome(of: lease) { pace.note($0) }
    } catch is Moved {
      return
    } catch {
      guard let (seconds, url) = HostFault.postponement(error) else { throw error }
      return try await fleet.putOff(lease, for: seconds, HTTPURL(url).origin)
    }
    let (outcome, deletion) = found
    try await fleet.end(
      lease, outcome, rate: settings.requestsPerSecond, grace: settings.followsDeletionsAfter)
    counters.change { $0.count(outcome) }
    observer(.ended(lease.did, outcome))
    if outcome.state == .missing || outcome.state == .deleted {
      let isFollowed = settings.followsDeletionsAfter != nil
      _ = try await decide(
        lease.did, isFollowed ? deletion : nil, isNew: lease.state != .deleted)
    }
  }

  /// Backs an account up, or removes its archive if it was deleted long enough ago.
  ///
  /// - Throws: ``Moved``; a `TransportError` that says when to ask again; `DatabaseError`;
  ///   `CancellationError`.
  private func outcome(
    of lease: FleetDatabase.Lease, _ note: @escaping @Sendable (BackupEvent) -> Void
  ) async throws -> (FleetOutcome, Deletion?) {
    var lease = lease
    do {
      if let key = lease.trash {
        if lease.state == .removed, let deletion = try await tasks.deletion(lease.did) {
          return (try await purge(lease, key, deletion), deletion)
        }
        try await tasks.bringBack(lease.did, key)
        lease.trash = nil
      }
      let host = Mutex(lease.host)
      let locate = { @Sendable [lease] server in
        guard host.withLock({ $0 != server }) else { return }
        guard try await fleet.locate(lease, at: server) else { throw Moved() }
        host.withLock { $0 = server }
      }
      var outcome = try await tasks.backUp(lease, locate, note)
      outcome.trash = lease.trash
      return (outcome, nil)
    } catch let error
      where !(error is CancellationError || error is DatabaseError || error is Moved)
    {
      // What fails because this worker is stopped says nothing of the account.
      try Task.checkCancellation()
      if HostFault.postponement(error) != nil { throw error }
      var outcome = FleetOutcome(error)
      outcome.trash = lease.trash
      if lease.state == .removed, lease.trash != nil {
        (outcome.state, outcome.isHostFault) = (.removed, false)
      }
      guard outcome.state == .missing else { return (outcome, nil) }
      var deletion: Deletion?
      do {
        deletion = try await tasks.deletion(lease.did)
      } catch let error where !(error is DatabaseError) {
        try Task.checkCancellation()
        outcome.reason = "\(outcome.reason ?? ""); whether it was deleted is not known: \(error)"
      }
      guard let deletion else { return (outcome, nil) }
      (outcome.state, outcome.evidence) = (.deleted, deletion.evidence)
      if case .agreed(let witness) = deletion.testimony { outcome.witness = witness }
      return (try await removed(lease, outcome, deletion), deletion)
    }
  }

  // MARK: Deletions

  /// Decides about an account that is gone, and raises the alarm of its host if that is decided.
  private func decide(_ did: DID, _ deletion: Deletion?, isNew: Bool = false) async throws
    -> DeletionRule.Decision
  {
    let losses = try await fleet.losses(about: did)
    let decision = DeletionRule.decide(deletion, losses, isNew: isNew)
    if case .alarm(let reason) = decision, try await fleet.raiseAlarm(losses.host, reason) {
      observer(.alarm(host: losses.host, reason: reason))
    }
    return decision
  }

  /// Moves the archive of a deleted account aside, if that is wanted, the account has been deleted
  /// for long enough and still is, and ``DeletionRule`` permits it.
  private func removed(
    _ lease: FleetDatabase.Lease, _ outcome: FleetOutcome, _ deletion: Deletion
  ) async throws -> FleetOutcome {
    guard lease.state == .deleted, let grace = settings.followsDeletionsAfter,
      lease.stateAge >= Double(grace)
    else { return outcome }
    var outcome = outcome
    switch try await decide(lease.did, deletion) {
    case .move(let witness): outcome.witness = witness
    case .keep(let why):
      if let why { outcome.reason = "its archive is kept: \(why)" }
      return outcome
    case .alarm: return outcome
    }
    // Where it is going is known before it goes.
    let key = lease.trash ?? tasks.keyAside(lease.did, Self.today)
    outcome.trash = key
    try await fleet.plan(lease, aside: key)
    do {
      try await tasks.putAside(lease.did, key)
      outcome.state = .removed
    } catch let error where !(error is CancellationError) {
      // It is tried again with the account.
      outcome.reason = "its archive could not be moved aside: \(error)"
    }
    return outcome
  }

  /// Deletes an archive that was moved aside long enough ago, if ``DeletionRule`` permits it.
  private func purge(_ lease: FleetDatabase.Lease, _ key: String, _ deletion: Deletion) async throws
    -> FleetOutcome
  {
    var outcome = FleetOutcome(.failed, .unavailable, reason: "the account was deleted")
    (outcome.state, outcome.trash, outcome.evidence) = (.removed, key, deletion.evidence)
    guard let grace = settings.followsDeletionsAfter, lease.stateAge >= Double(grace),
      case .move = try await decide(lease.did, deletion)
    else { return outcome }
    try await tasks.removeAside(key)
    (outcome.state, outcome.trash) = (.purged, nil)
    return outcome
  }

  static var now: UnixTime { UnixTime(microseconds: Int64(SystemClock().unixTime * 1e6)) }
  static var today: String { String("\(now)".prefix(10)) }

  // MARK: Hosts

  private func listHosts(_ holder: String) async throws -> Bool {
    while true {
      if let host = try await fleet.claimHost(holder) {
        try await list(host, holder)
      } else {
        try await Task.sleep(for: .seconds(Self.longestPause))
      }
    }
  }

  private func list(_ host: String, _ holder: String) async throws {
    let count = Mutex(0)
    var fault: String?
    do {
      try await tasks.list(host) { page in
        count.withLock { $0 += page.count }
        return try await fleet.note(page, of: host, holder)
      }
    } catch let error where !(error is DatabaseError || error is CancellationError) {
      try Task.checkCancellation()
      fault = "\(error)"
    }
    try await fleet.endListing(of: host, holder, count: count.withLock { $0 }, fault: fault)
    counters.change { $0.listed += 1 }
  }
}
