internal import ATProtocol
internal import HTTP
internal import Postgres
internal import XRPC

/// Follows the firehoses of a fleet, each of which one worker follows at a time, and marks accounts
/// as due.
///
/// 1. A cursor is kept only when everything before it is noted in the database: what a reader has
///    not noted when it ends comes again.
/// 2. Nothing is noted of an account that is not in the fleet.
struct FirehoseReader: Sendable {
  let fleet: FleetDatabase
  let network: NetworkOptions
  let counters: FleetCounters

  /// After how many seconds of silence the server is sent a ping, and after how many the connection
  /// is given up.
  var silence = (ping: 30, end: 90)

  /// How often a firehose that no worker follows is looked for.
  private static let interval: Duration = .seconds(5)
  /// How many events are noted at a time, at most.
  private static let batch = 500
  /// How long events wait to be noted, in seconds.
  private static let patience = 1.0

  /// Follows firehoses until it is cancelled.
  ///
  /// - Parameter holder: the worker's lease.
  /// - Throws: `CancellationError`; `DatabaseError` if the database is gone for long.
  func run(_ holder: String) async throws {
    while true {
      if let lease = try await fleet.claimFirehose(holder) {
        // However it ends, it is followed again, by this worker or another.
        do {
          let (fault, forgetsCursor) = try await follow(lease)
          try await fleet.release(lease, fault: fault, forgetsCursor: forgetsCursor)
        } catch let error as TransportError {
          try await fleet.release(lease, fault: "\(error)")
        }
      }
      try await Task.sleep(for: Self.interval)
    }
  }

  /// Follows a firehose until it breaks off.
  ///
  /// - Throws: ``TransportError`` if it could not be opened; `DatabaseError`;
  ///   `CancellationError`.
  /// - Returns: Why it broke off, nil if another worker has it; whether the server cannot use the
  ///   cursor.
  private func follow(_ lease: FleetDatabase.FirehoseLease) async throws -> (String?, Bool) {
    var network = network
    let origin = FirehoseAddress.origin(of: lease.url)
    // The user has named it: it may be anywhere.
    network.plainServers.append(origin)
    // The worker's other requests tell of a proxy.
    network.observer = { _ in }
    let cursor = lease.cursor.map { "?cursor=\($0)" } ?? ""
    let stream = try WebSocketStream(
      origin, path: "/xrpc/com.atproto.sync.subscribeRepos\(cursor)", called: lease.url, network)
    try await stream.open()
    var marks = FirehoseMarks()
    var begun = ContinuousClock.now
    var gap: String?
    while true {
      try Task.checkCancellation()
      var fault: String?
      var isFutureCursor = false
      do {
        if let message = try await stream.next(waiting: Self.patience, silence) {
          counters.change { $0.events += 1 }
          switch marks.take(FirehoseEvent(message)) {
          case .outdatedCursor(let words): gap = "events are lost (\(words))"
          case .futureCursor(let words): (fault, isFutureCursor) = (words, true)
          case .failure(let words): fault = words
          default: break
          }
        }
      } catch let error as TransportError {
        fault = "\(error)"
      }
      let isDue = begun.duration(to: .now) > .seconds(Self.patience)
      guard fault != nil || marks.count >= Self.batch || isDue else { continue }
      // What has arrived before the end is recorded, too.
      guard try await fleet.note(marks, of: lease, gap: gap) else { return (nil, false) }
      if let fault { return (fault, isFutureCursor) }
      marks = FirehoseMarks()
      begun = .now
    }
  }
}

/// The combined result of some events.
struct FirehoseMarks: Sendable {
  private(set) var revisions: [DID: String] = [:]
  private(set) var changed: Set<DID> = []
  private(set) var cursor: Int64?
  /// How many events there were.
  private(set) var count = 0

  /// Takes an event; nil is one that could not be read.
  mutating func take(_ event: FirehoseEvent?) -> FirehoseEvent? {
    count += 1
    switch event {
    case .revision(let did, let rev, let sequence):
      // Revisions only grow.
      revisions[did] = max(revisions[did] ?? "", rev)
      move(to: sequence)
    case .change(let did, let sequence):
      changed.insert(did)
      move(to: sequence)
    case .other(let sequence): move(to: sequence)
    case .outdatedCursor, .futureCursor, .failure, nil: break
    }
    return event
  }

  /// Numbers only grow; one that does not is not a place to continue from.
  private mutating func move(to sequence: Int64?) {
    guard let sequence, sequence >= 0 else { return }
    cursor = max(cursor ?? sequence, sequence)
  }
}
