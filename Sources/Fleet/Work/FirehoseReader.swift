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
  /// Whether each firehose is followed up to the present only, and then left.
  var endsAtPresent = false
  /// After how many seconds without a new event a firehose counts as read up to the present.
  var quiet = 2.0

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
      if let lease = try await fleet.claimFirehose(holder, isUnread: endsAtPresent) {
        // However it ends, it is followed again, by this worker or another.
        do {
          var end = try await follow(lease, from: lease.cursor)
          // Without a cursor nothing old comes, and from a quiet server nothing at all.
          if end == .present(reached: nil) { end = try await follow(lease, from: 0) }
          try await fleet.release(lease, fault: end.fault, forgetsCursor: end.forgetsCursor)
        } catch let error as TransportError {
          try await fleet.release(lease, fault: "\(error)")
        }
        // The next one has not been read yet.
        if endsAtPresent { continue }
      }
      try await Task.sleep(for: Self.interval)
    }
  }

  /// How following a firehose ended.
  private enum End: Equatable {
    /// It broke off: why.
    case broken(String)
    /// The server cannot use the cursor: its words.
    case futureCursor(String)
    /// Another worker has it.
    case taken
    /// It has come to the present, and to this cursor; nil if no event came.
    case present(reached: Int64?)

    /// Why it broke off.
    var fault: String? {
      switch self {
      case .broken(let words), .futureCursor(let words): words
      case .taken, .present: nil
      }
    }
    var forgetsCursor: Bool {
      if case .futureCursor = self { true } else { false }
    }
  }

  /// Follows a firehose until it breaks off, or has come to the present if that is enough.
  ///
  /// - Throws: ``TransportError`` if it could not be opened; `DatabaseError`;
  ///   `CancellationError`.
  private func follow(_ lease: FleetDatabase.FirehoseLease, from first: Int64?) async throws -> End
  {
    var network = network
    let origin = FirehoseAddress.origin(of: lease.url)
    // The user has named it: it may be anywhere.
    network.plainServers.append(origin)
    // The worker's other requests tell of a proxy.
    network.observer = { _ in }
    let cursor = first.map { "?cursor=\($0)" } ?? ""
    let stream = try WebSocketStream(
      origin, path: "/xrpc/com.atproto.sync.subscribeRepos\(cursor)", called: lease.url, network)
    let start = FleetWorker.now
    try await stream.open()
    var (reached, progress, newest) = (first, ContinuousClock.now, [UInt8]())
    var marks = FirehoseMarks()
    var begun = ContinuousClock.now
    var gap: String?
    while true {
      try Task.checkCancellation()
      var end: End?
      do {
        if let message = try await stream.next(waiting: Self.patience, silence) {
          counters.change { $0.events += 1 }
          newest = message
          switch marks.take(FirehoseEvent(message)) {
          case .outdatedCursor(let words) where lease.cursor != nil:
            gap = "events are lost (\(words))"
          case .futureCursor(let words): end = .futureCursor(words)
          case .failure(let words): end = .broken(words)
          default: break
          }
          if let cursor = marks.cursor, cursor > reached ?? -1 {
            (reached, progress) = (cursor, .now)
          }
        }
      } catch let error as TransportError {
        end = .broken("\(error)")
      }
      let isDue = begun.duration(to: .now) > .seconds(Self.patience)
      guard end != nil || marks.count >= Self.batch || isDue else { continue }
      // What has arrived before the end is recorded, too.
      guard try await fleet.note(marks, of: lease, gap: gap) else { return .taken }
      if let end { return end }
      // The time of one event in each batch is enough.
      if endsAtPresent,
        progress.duration(to: .now) >= .seconds(quiet)
          || FirehoseEvent.time(of: newest).map({ $0 >= start }) == true
      {
        return .present(reached: reached)
      }
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
