internal import XRPC

/// stub
struct FirehoseReader: Sendable {
  init(
    _ fleet: FleetDatabase, options: FleetWorker.Options, network: NetworkOptions,
    counters: FleetCounters
  ) {}
  func run() async throws {}
}
