internal import ATProtocol
package import HTTP
package import Live
package import ObjectStore
internal import Postgres
internal import Remote
package import SystemPackage

/// A worker with all that it needs, from a fleet's settings and its own machine.
package enum FleetWork {
  /// Finds out now what is wrong with the store, rather than once for each account.
  ///
  /// An unreachable store does not prevent the start: accounts are tried again.
  private static func check(_ destination: BucketDestination) async throws {
    do {
      try await destination.check()
    } catch let error where error.mayPass {
    }
  }

  /// Where the archives of a fleet are.
  ///
  /// - Throws: `StoreError` if the store's address cannot be used.
  static func destination(
    _ settings: FleetSettings, _ store: StoreOptions, _ network: NetworkOptions,
    isExclusive: Bool = false, cache: FilePath
  ) throws -> BucketDestination {
    var store = store
    store.endpoint = store.endpoint ?? settings.endpoint
    store.region = store.region ?? settings.region
    store.namesBucketInPath = store.namesBucketInPath ?? settings.namesBucketInPath
    return try BucketDestination(
      settings.store, store, network: network, isExclusive: isExclusive, cache: cache)
  }

  /// Works until it is cancelled, or nothing is due any more.
  ///
  /// - Parameters:
  ///   - url: where the database is.
  ///   - options: how it works.
  ///   - network: what the user set about the network.
  ///   - store: how the store is asked; what is not set here comes from the fleet's settings.
  ///   - backup: how an account is backed up.
  ///   - isExclusive: whether nothing else writes to the store, so that it need not support
  ///     conditional writes.
  ///   - cache: the folder for files that are kept between runs.
  ///   - counters: what is counted.
  ///   - observer: called with what happens.
  /// - Throws: `DatabaseError`; `StoreError` if the store's address cannot be used;
  ///   `TransportError`; `CancellationError`.
  package static func run(
    _ url: String, options: FleetWorker.Options, network: NetworkOptions, store: StoreOptions,
    backup: AccountBackup.Options, isExclusive: Bool, cache: FilePath, counters: FleetCounters,
    observer: @escaping @Sendable (FleetWorker.Event) -> Void
  ) async throws {
    let fleet = FleetDatabase(url)
    let settings = try await fleet.settings(waiting: Database.patience)
    let destination = try Self.destination(
      settings, store, network, isExclusive: isExclusive, cache: cache)
    try await check(destination)
    // Connections of their own: what waits for budgets, and firehoses, keeps nothing else waiting.
    let (pulse, events) = (FleetDatabase(url), FleetDatabase(url))
    let budgets = HostBudgets(pulse, requestsPerSecond: settings.requestsPerSecond)
    var shared = network
    shared.longestWait = MultiAccountBackup.longestWait
    shared.observer = { [observer = network.observer] event in
      counters.note(event)
      observer(event)
    }
    let witnesses =
      settings.followsDeletionsAfter == nil
      ? [] : try await settings.witnesses + fleet.firehoseOrigins()
    shared.namedServers += try await fleet.hosts() + witnesses
    // The limit of a host applies to all workers together.
    shared.requestsPerSecond = network.requestsPerSecond ?? 1000
    shared.admission = { origin in try await budgets.admit(origin) }
    let way = try Network(shared)
    var firehoses = FirehoseReader(fleet: events, network: network, counters: counters)
    firehoses.endsAtPresent = options.endsWhenIdle
    let worker = FleetWorker(
      fleet, pulse: pulse, settings, options: options,
      tasks: .live(way, backup, into: destination, asking: witnesses), counters: counters,
      beside: { [firehoses] in try await firehoses.run($0) }, observer: observer)
    try await worker.run()
  }
}
