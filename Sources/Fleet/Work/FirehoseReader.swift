internal import ATProtocol
internal import HTTP
internal import IPLD
internal import Live

/// Follows the firehoses of a fleet, each of which one worker follows at a time, and marks accounts
/// as due.
///
/// 1. A cursor is kept only when everything before it is noted in the database: what a reader that
///    ends has not noted comes again.
/// 2. Of an account that is not in the fleet nothing is noted.
struct FirehoseReader: Sendable {
  let fleet: FleetDatabase
  let options: FleetWorker.Options
  let network: NetworkOptions
  let counters: FleetCounters

  /// How often a firehose that no worker follows is looked for.
  private static let interval: Duration = .seconds(5)
  /// How many events are noted at a time, at the most.
  private static let batch = 500
  /// How long events wait to be noted, in seconds.
  private static let patience = 1.0
  /// After how many seconds of silence the server is asked whether it is there, and after how many
  /// the connection is given up.
  private static let silence = (ping: 30.0, end: 90.0)

  /// Follows whatever is there to follow, until it is cancelled.
  ///
  /// - Throws: `CancellationError`; ``DatabaseError`` if the database is gone for long.
  func run() async throws {
    let holder = "\(options.name)/\(UInt64.random(in: 0 ... .max))"
    while true {
      if let lease = try await fleet.takeFirehose(holder: holder, seconds: options.leaseSeconds) {
        // However it ends, it is followed again from the cursor, by this worker or another.
        let result: Result<Void, any Error>
        do {
          result = .success(try await follow(lease))
        } catch {
          result = .failure(error)
        }
        var fault: String?
        if case .failure(let error as TransportError) = result { fault = "\(error)" }
        try await Task.detached { [fleet, fault] in try await fleet.release(lease, fault: fault) }
          .value
        if fault == nil { try result.get() }
      }
      try await Task.sleep(for: Self.interval)
    }
  }

  private func follow(_ lease: FleetDatabase.FirehoseLease) async throws {
    let stream = FirehoseStream()
    let cursor = lease.cursor.map { "?cursor=\($0)" } ?? ""
    try await stream.open(
      FirehoseAddress.origin(of: lease.url), "/xrpc/com.atproto.sync.subscribeRepos\(cursor)",
      network)
    var marks = FirehoseMarks()
    var begun = ContinuousClock.now
    var heard = ContinuousClock.now
    var isAsked = false
    while true {
      try Task.checkCancellation()
      if let message = try await stream.next(waiting: Self.patience) {
        (heard, isAsked) = (.now, false)
        if case .unusableCursor = marks.take(FirehoseEvent(message)) {
          try await fleet.forgetCursor(lease)
          return
        }
        counters.change { $0.events += 1 }
      } else {
        let silence = heard.duration(to: .now) / .seconds(1)
        guard silence < Self.silence.end else { return }
        if silence > Self.silence.ping, !isAsked {
          try await stream.ping()
          isAsked = true
        }
      }
      let isDue = begun.duration(to: .now) > .seconds(Self.patience)
      guard marks.count >= Self.batch || isDue else { continue }
      guard try await fleet.note(marks, of: lease, seconds: options.leaseSeconds) else { return }
      marks = FirehoseMarks()
      begun = .now
    }
  }
}

/// What some events come to.
struct FirehoseMarks: Sendable {
  private(set) var revisions: [DID: String] = [:]
  private(set) var states: [DID: FleetOutcome.State] = [:]
  private(set) var cursor: Int64?
  /// How many events there were.
  private(set) var count = 0

  /// Takes an event; nil is one that could not be read.
  mutating func take(_ event: FirehoseEvent?) -> FirehoseEvent? {
    count += 1
    switch event {
    case .revision(let did, let rev, let sequence):
      // They come in order, and revisions only grow.
      revisions[did] = max(revisions[did] ?? "", rev)
      cursor = sequence
    case .state(let did, let state, let sequence):
      states[did] = state
      cursor = sequence
    case .other(let sequence): cursor = sequence ?? cursor
    case .unusableCursor, nil: break
    }
    return event
  }
}

/// A firehose's WebSocket in a queue of its own, for it blocks.
private actor FirehoseStream {
  private let queue = OwnQueue("firehose")
  private var socket: WebSocket?

  nonisolated var unownedExecutor: UnownedSerialExecutor {
    unsafe queue.asUnownedSerialExecutor()
  }

  func open(_ origin: String, _ path: String, _ network: NetworkOptions) throws {
    socket = try WebSocket(origin, path: path, network)
  }

  func next(waiting seconds: Double) throws -> [UInt8]? { try socket?.next(waiting: seconds) }

  func ping() throws { try socket?.ping() }
}
