internal import Synchronization

/// What may be asked of one host, by all who ask it.
///
/// 1. No more requests are under way than there are places, but for slow ones, which leave theirs
///    to others. Their number is halved when the host has too much to do, and grows by one after as
///    many answers in a row.
/// 2. A request is sent only when no time was named before which none may be, and all windows and
///    the bucket have room for it.
package final class HostLimits: Sendable {
  /// The permission for one request, which has to be given back.
  package struct Permission: Sendable {
    /// When it was given.
    let at: Double
    /// The place that was taken for it.
    let seat: Places.Seat
  }

  fileprivate struct State {
    /// What this program allows itself; nil for a host that is this machine.
    var bucket: TokenBucket?
    /// Whether the bucket counts also when the host speaks of its own limits.
    var bucketIsUsers: Bool
    var windows: [Int: ServerWindow] = [:]
    var heldUntil = 0.0
    var announcedUntil = 0.0
    var underWay = 0
    /// How many answers came in a row that were no refusals.
    var run = 0
    var halvedAt = -Double.infinity
    /// How many overloads there were in a row.
    var refusals = 0
    var patience = HostLimits.fullPatience
    /// Until when nothing is asked: it would have every request wait for what the ones before have
    /// waited for.
    var restsUntil = 0.0
  }

  /// The host's name, for messages.
  private let host: String
  private let clock: any NetworkClock
  private let observer: @Sendable (NetworkEvent) -> Void
  private let backoff: Retry
  private let maximum: Int
  private let places: Places
  private let state: Mutex<State>

  /// How many overloads in a row are waited out if the host names a time for each; a third of them
  /// if it does not.
  private static let fullPatience = 30
  /// How long a host is left alone that has used up all patience, in seconds.
  private static let restLength = 60.0
  /// How many kinds of windows are kept: servers have one or two.
  fileprivate static let maximumWindows = 4
  /// Naps are no shorter, in seconds, whatever rounding says.
  private static let shortestNap = 0.01
  /// The reference server's limit, 3,000 in five minutes.
  private static let defaultRate = (capacity: 3000.0, perSecond: 10.0)

  init(
    of authority: Authority, options: NetworkOptions, clock: any NetworkClock,
    chance: @escaping @Sendable () -> Double
  ) {
    host = authority.host
    self.clock = clock
    observer = options.observer
    backoff = Retry(attempts: 1, clock: clock, chance: chance)
    maximum = max(1, options.connectionsPerHost)
    places = Places(maximum)
    var state = State(
      bucketIsUsers: options.requestsPerSecond != nil || options.burst != nil)
    if state.bucketIsUsers {
      let rate = options.requestsPerSecond ?? Self.defaultRate.perSecond
      let burst = options.burst.map(Double.init) ?? rate.rounded(.up)
      state.bucket = TokenBucket(capacity: burst, perSecond: rate, now: clock.now)
    } else if !authority.isLoopback {
      state.bucket = TokenBucket(
        capacity: Self.defaultRate.capacity, perSecond: Self.defaultRate.perSecond, now: clock.now)
    }
    self.state = Mutex(state)
  }

  /// How many requests may be under way at a time at present.
  package var concurrency: Int { places.count }

  /// Waits until a request may be sent.
  ///
  /// - Throws: ``TransportError`` if the host has refused so much that it is left alone;
  ///   `CancellationError`.
  func acquire(for url: HTTPURL) async throws -> Permission {
    let seat = try await places.take()
    do {
      while let wait = try admit(url) {
        try await clock.sleep(max(Self.shortestNap, min(wait, RateLimitFields.longestWait)))
      }
    } catch {
      seat.giveBack()
      throw error
    }
    return Permission(at: clock.now, seat: seat)
  }

  /// Gives a permission back, when the transfer has ended.
  func release(_ permission: Permission) {
    state.withLock { $0.underWay -= 1 }
    permission.seat.giveBack()
  }

  /// Takes in what the head of an answer says.
  ///
  /// - Returns: Whether the request was refused for its being too much, and may be sent again when
  ///   the host allows it.
  func learn(_ permission: Permission, from status: Int, _ fields: RateLimitFields) -> Bool {
    let now = clock.now
    let (isRefused, concurrency) = state.withLock { state -> (Bool, Int) in
      if let window = ServerWindow(fields, now: now) { state.learn(window) }
      if status == 429 || status == 503 && fields.wait != nil {
        return (true, noteRefusal(&state, permission, wait: fields.wait, now: now))
      }
      guard status == 503 else { return (false, noteAnswer(&state)) }
      // It may be about that one request.
      let fewer = slowDown(&state, permission, least: maximum / 4, now: now)
      return (false, fewer ?? places.count)
    }
    places.resize(concurrency)
    return isRefused
  }
}

extension HostLimits {
  /// Lets a request through, or says for how many seconds not.
  private func admit(_ url: HTTPURL) throws -> Double? {
    let now = clock.now
    let (wait, why) = try state.withLock { state -> (Double, String?) in
      guard now >= state.restsUntil else { throw TransportError(.overloaded, url: "\(url)") }
      let wait = state.waitForRoom(now: now)
      guard wait > 0 else {
        state.underWay += 1
        state.bucket?.take(now: now)
        return (0, nil)
      }
      // Said once for each wait, not by everybody who waits.
      guard wait >= NetworkEvent.leastWait, now >= state.announcedUntil else { return (wait, nil) }
      state.announcedUntil = now + wait
      return (
        wait,
        now < state.heldUntil ? "it has too much to do" : "no more requests are allowed until then"
      )
    }
    if let why { observer(.wait(host: host, seconds: wait, why: why)) }
    return wait > 0 ? wait : nil
  }

  private func noteAnswer(_ state: inout State) -> Int {
    state.refusals = 0
    state.patience = Self.fullPatience
    state.run += 1
    let concurrency = places.count
    guard state.run >= concurrency, concurrency < maximum else { return concurrency }
    state.run = 0
    return concurrency + 1
  }

  /// The host wants fewer requests: it is left alone for the time it names, or for longer and
  /// longer.
  private func noteRefusal(
    _ state: inout State, _ permission: Permission, wait: Double?, now: Double
  ) -> Int {
    let fewer = slowDown(&state, permission, least: 1, now: now)
    if fewer != nil {
      state.refusals += 1
      state.patience -= wait == nil ? 3 : 1
    }
    let hold = max(Retry.shortest, wait ?? backoff.delay(failures: state.refusals))
    state.heldUntil = max(state.heldUntil, now + hold)
    if state.patience <= 0 { state.restsUntil = now + max(Self.restLength, hold) }
    return fewer ?? places.count
  }

  /// How many requests should be under way at a time from now on; nil if that was changed since
  /// this one was sent: many that are refused together are one overload.
  private func slowDown(
    _ state: inout State, _ permission: Permission, least: Int, now: Double
  ) -> Int? {
    state.run = 0
    guard permission.at >= state.halvedAt else { return nil }
    state.halvedAt = now
    return min(places.count, max(1, least, places.count / 2))
  }
}

extension HostLimits.State {
  /// How many seconds it takes until there is room for one more request.
  fileprivate mutating func waitForRoom(now: Double) -> Double {
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

  fileprivate mutating func learn(_ window: ServerWindow) {
    if windows[window.limit] == nil {
      if windows.count >= HostLimits.maximumWindows { windows.removeAll() }
      windows[window.limit] = window
    } else {
      windows[window.limit]?.update(window)
    }
  }
}
