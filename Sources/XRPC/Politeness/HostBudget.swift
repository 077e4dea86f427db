/// What may be asked of one host, shared by all who ask it.
///
/// Invariants:
/// 1. No more than `concurrency` requests hold a place, or as many as did when that number was lowered. It is halved when the host has too much to do, and grows
///    by one after as many successes in a row.
/// 2. A request is sent only when no time was named before which none may be, and all windows and the bucket have room for it.
/// 3. Whoever waits for a place gets it in the order of asking.
package actor HostBudget {
  /// The permission for one request, which has to be given back.
  package struct Permission: Sendable {
    /// When it was given.
    let at: Double
    /// How many successes the host had had by then.
    package let successes: Int
  }

  /// How a request came out, as far as the host's budget is concerned.
  package enum Result: Sendable {
    /// The host answered.
    case answered
    /// The host said that there were too many requests: 429.
    case refused
    /// The host, or a proxy before it, said that it cannot answer now: 503, which may be about that one request.
    case unavailable
    /// No whole answer came.
    case failed
    /// The transfer was ended from here.
    case unknown
  }

  /// The host's name, for messages.
  private let host: String
  private let clock: any NetworkClock
  private let observer: @Sendable (NetworkEvent) -> Void
  private let maximumConcurrency: Int
  /// What this program allows itself; nil for a host that is this machine.
  private var bucket: TokenBucket?
  /// Whether the bucket counts also when the host speaks of its own limits.
  private let bucketIsUsers: Bool
  private var windows: [Int: ServerWindow] = [:]
  private var heldUntil = 0.0
  private var announcedUntil = 0.0

  private var concurrency: Int
  private var places = 0
  private var underWay = 0
  private var waiting: [(id: Int, continuation: CheckedContinuation<Void, any Error>)] = []
  private var lastID = 0
  private var run = 0
  private var halvedAt = -Double.infinity
  /// How many overloads there were in a row.
  private var refusals = 0
  private var patience = HostBudget.fullPatience
  /// How many requests in a row were not answered, and since when.
  private var failures = 0
  private var failingSince = 0.0
  /// The time for which nothing is asked, and why: it would have every request wait for what the ones before have waited for.
  private var rest: (until: Double, why: TransportError.Reason)?
  private var successes = 0

  /// How many overloads in a row are waited out if the host names a time for each; a third of them if it does not.
  private static let fullPatience = 30
  /// How long a host is left alone that has used up all patience, in seconds, and how long it has to come back before.
  private static let restLength = 60.0
  /// How many kinds of windows are kept: servers have one or two.
  private static let maximumWindows = 4
  /// Naps are no shorter, in seconds, whatever rounding says.
  private static let shortestNap = 0.01
  /// A wait from here on is announced, in seconds.
  private static let announcedWait = 2.0
  /// The reference server's limit, 3,000 in five minutes.
  private static let defaultRate = (capacity: 3000.0, perSecond: 10.0)

  /// The budget of a host.
  package init(of authority: Authority, options: NetworkOptions, clock: any NetworkClock) {
    host = authority.host
    self.clock = clock
    observer = options.observer
    maximumConcurrency = max(1, options.connectionsPerHost)
    concurrency = maximumConcurrency
    bucketIsUsers = options.requestsPerSecond != nil || options.burst != nil
    if bucketIsUsers {
      let rate = options.requestsPerSecond ?? Self.defaultRate.perSecond
      let burst = options.burst.map(Double.init) ?? rate.rounded(.up)
      bucket = TokenBucket(capacity: burst, perSecond: rate, now: clock.now)
    } else if !authority.isLoopback {
      bucket = TokenBucket(
        capacity: Self.defaultRate.capacity, perSecond: Self.defaultRate.perSecond, now: clock.now)
    }
  }

  /// Waits until a request may be sent.
  ///
  /// - Throws: ``TransportError`` if the host has refused so much that it is left alone; `CancellationError`.
  package func acquire(for url: HTTPURL) async throws -> Permission {
    try await takePlace()
    do {
      while true {
        if let rest, clock.now < rest.until { throw TransportError(rest.why, url: "\(url)") }
        let wait = waitForRoom()
        guard wait > 0 else { break }
        announce(wait)
        try await clock.sleep(max(Self.shortestNap, min(wait, RateLimit.longestWait)))
      }
    } catch {
      givePlaceBack()
      throw error
    }
    underWay += 1
    bucket?.take(now: clock.now)
    return Permission(at: clock.now, successes: successes)
  }

  /// Gives a permission back, and takes in what the answer says.
  ///
  /// - Parameters:
  ///   - permission: what ``acquire()`` gave.
  ///   - result: how the request came out.
  ///   - said: what the answer's head says of limits.
  ///   - chance: a random number from 0 to 1.
  /// - Returns: For how many seconds the host is left alone because of this; 0 if it is not.
  @discardableResult
  func release(
    _ permission: Permission, _ result: Result, _ said: RateLimit = RateLimit(), chance: Double = 1
  ) -> Double {
    let now = clock.now
    underWay -= 1
    if let window = ServerWindow(said, now: now) { learn(window) }
    var hold = 0.0
    switch result {
    case .answered: noteAnswer()
    case .refused: hold = noteRefusal(permission, wait: said.wait, chance: chance)
    case .unavailable:
      if let wait = said.wait {
        hold = noteRefusal(permission, wait: wait, chance: chance)
      } else {
        slowDown(permission, least: maximumConcurrency / 4)
        noteFailure(.overloaded)
      }
    case .failed: noteFailure(.silent)
    case .unknown: run = 0
    }
    givePlaceBack()
    return hold
  }

  /// How many requests have been answered well or at least decidedly.
  package var successCount: Int { successes }
  /// How many may be under way at a time at present.
  package var currentConcurrency: Int { concurrency }
}

/// What becomes of the budget when a request comes out one way or another.
extension HostBudget {
  private func noteAnswer() {
    successes += 1
    refusals = 0
    patience = Self.fullPatience
    failures = 0
    run += 1
    if run >= concurrency, concurrency < maximumConcurrency {
      concurrency += 1
      run = 0
    }
  }

  /// The host wants fewer requests: it is left alone for the time it names, or for longer and longer.
  private func noteRefusal(_ permission: Permission, wait: Double?, chance: Double) -> Double {
    let now = clock.now
    failures = 0
    if slowDown(permission, least: 1) {
      refusals += 1
      patience -= wait == nil ? 3 : 1
    }
    let hold = max(
      RetryPolicy.shortest,
      wait ?? RetryPolicy(attempts: 1).delay(failures: refusals, chance: chance))
    heldUntil = max(heldUntil, now + hold)
    if patience <= 0 { rest = (now + max(Self.restLength, hold), .overloaded) }
    return hold
  }

  /// Has fewer requests under way at a time; false if that was done since this one was sent: many that are refused together are one overload.
  @discardableResult
  private func slowDown(_ permission: Permission, least: Int) -> Bool {
    run = 0
    guard permission.at >= halvedAt else { return false }
    halvedAt = clock.now
    concurrency = min(concurrency, max(1, least, concurrency / 2))
    return true
  }

  private func noteFailure(_ why: TransportError.Reason) {
    let now = clock.now
    run = 0
    if failures == 0 { failingSince = now }
    failures += 1
    if failures >= Self.fullPatience, now - failingSince >= Self.restLength {
      rest = (now + Self.restLength, why)
    }
  }
}

extension HostBudget {
  /// How many seconds it takes until there is room for one more request.
  private func waitForRoom() -> Double {
    let now = clock.now
    var wait = max(0, heldUntil - now)
    var hasWindow = false
    for limit in windows.keys {
      if let time = windows[limit]?.wait(now: now, underWay: underWay) {
        wait = max(wait, time)
        hasWindow = true
      } else {
        windows[limit] = nil
      }
    }
    // What the host says of its limits is better than what is supposed of hosts in general.
    if bucketIsUsers || !hasWindow, let time = bucket?.wait(now: now) { wait = max(wait, time) }
    return wait
  }

  private func learn(_ window: ServerWindow) {
    if windows[window.limit] == nil, windows.count >= Self.maximumWindows { windows.removeAll() }
    if windows[window.limit] == nil {
      windows[window.limit] = window
    } else {
      windows[window.limit]?.update(window)
    }
  }

  /// Says once for each long wait that it is waited, and why.
  private func announce(_ wait: Double) {
    let now = clock.now
    guard wait >= Self.announcedWait, now >= announcedUntil else { return }
    announcedUntil = now + wait
    let why =
      now < heldUntil ? "it has too much to do" : "no more requests are allowed until then"
    observer(.retry(host: host, seconds: wait, why: why))
  }

  private func takePlace() async throws {
    try Task.checkCancellation()
    if places < concurrency, waiting.isEmpty {
      places += 1
      return
    }
    lastID += 1
    let id = lastID
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { waiting.append((id, $0)) }
    } onCancel: {
      Task { await stopWaiting(id) }
    }
  }

  private func stopWaiting(_ id: Int) {
    guard let index = waiting.firstIndex(where: { $0.id == id }) else { return }
    waiting.remove(at: index).continuation.resume(throwing: CancellationError())
  }

  private func givePlaceBack() {
    places -= 1
    while places < concurrency, !waiting.isEmpty {
      places += 1
      waiting.removeFirst().continuation.resume()
    }
  }
}
