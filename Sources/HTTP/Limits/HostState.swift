/// What is known of one host: whether it is reachable, and how much it allows.
///
/// 1. It is away only if it has answered before, and until it answers again: one that never has may
///    not exist. While it is away one request after the other tries it.
/// 2. A request is sent only after the time that the host named, if any, and only if all windows
///    and the bucket have room for it.
/// 3. The number of places is halved when the host is overloaded, and grows by one after as
///    many answers in a row.
struct HostState {
  /// The result of a request, as far as the host is concerned.
  enum Outcome: Equatable {
    /// It answered.
    case answered
    /// There are too many requests; with the seconds to wait, if it named them.
    case refused(wait: Double?)
    /// It is overloaded, or just cannot do this.
    case busy
    /// It could not be connected to.
    case notConnected
    /// A proxy had no answer from it, or the transfer broke off or stalled: which may be about that
    /// one request.
    case failed
    /// Nothing is known: the request went to another host in the end, or was cancelled here.
    case unknown
  }

  /// What to do after a request has ended.
  enum Advice: Equatable {
    /// The host is not away and has refused nothing.
    case none
    /// Sent again, it will be let through when the host allows that.
    case whenAllowed(namesTime: Bool)
    /// Sent again, it will be let through when the host may be there again.
    case whenThere
  }

  /// A time to wait, in seconds.
  struct Wait {
    var seconds: Double
    /// How long the host allows nothing, or has been away.
    var whole = 0.0
    /// The reason, and the longest possible wait, the first time that requests wait for this.
    var why: String?
    var announced = 0.0
  }

  /// The host is left alone.
  struct Rest: Error {
    let reason: TransportError.Reason
    let end: Double
  }

  /// The statuses with which a proxy says that it has no answer from the host.
  static let gatewayFaults: Set = [502, 503, 504, 520, 521, 522, 523, 524, 527, 530]

  // MARK: Whether it is there

  private var hasAnswered = false
  /// How many requests in a row were not answered, and since when.
  private var failures = (count: 0, since: 0.0)
  /// Since when it has been away, and when it is tried next, with the pause after that.
  private var absence: (since: Double, nextTry: Double, pause: Double, isAnnounced: Bool)?
  private var rest: Rest?

  // MARK: How much it allows

  /// This program's own limit; nil for a host that is this machine.
  private var bucket: TokenBucket?
  /// Whether the bucket counts also when the host speaks of its own limits.
  private let bucketIsUsers: Bool
  private var windows: [Int: ServerWindow] = [:]
  private var heldUntil = 0.0
  private var announcedUntil = 0.0
  /// How many requests are running.
  var underWay = 0
  /// How many may be.
  private(set) var concurrency: Int
  private let maximum: Int
  /// How many answers in a row were not refusals.
  private var run = 0
  private var halvedAt = -Double.infinity
  /// How many overloads there were in a row and since when, and how many more of them are waited
  /// out.
  private var refusals = (count: 0, since: 0.0, patience: HostState.fullPatience)
  /// For how many seconds they are waited out in any case.
  private let overloadSeconds: Double

  /// How long to wait for an unreachable host, in seconds.
  static let patience = 150.0
  /// How many failures in a row are too many, if they have lasted for ``restLength``.
  private static let maximumFailures = 30
  /// After how many failures in a row a host counts as unreachable, if each could be about one
  /// request.
  private static let leastFailures = 8
  /// For how long a host is left alone, in seconds.
  private static let restLength = 60.0
  /// The shortest and the longest pause between two tries, in seconds.
  private static let pauses = (first: 0.5, last: 8.0)
  /// How many overloads in a row are waited out if the host names a time for each; a third of them
  /// if it does not.
  private static let fullPatience = 30
  /// How many kinds of windows are kept: servers have one or two.
  private static let maximumWindows = 4
  /// Waits are no shorter, in seconds, whatever rounding says.
  private static let shortestWait = 0.01
  /// The reference server's limit, 3,000 in five minutes.
  private static let defaultRate = (capacity: 3000.0, perSecond: 10.0)

  /// A host of which nothing is known.
  init(_ authority: Authority, _ options: NetworkOptions, now: Double) {
    maximum = max(1, options.connectionsPerHost)
    concurrency = maximum
    overloadSeconds = options.overloadSeconds
    bucketIsUsers = options.requestsPerSecond != nil || options.burst != nil
    if bucketIsUsers {
      let rate = options.requestsPerSecond ?? Self.defaultRate.perSecond
      let burst = options.burst.map(Double.init) ?? rate.rounded(.up)
      bucket = TokenBucket(capacity: burst, perSecond: rate, now: now)
    } else if !authority.isLoopback {
      bucket = TokenBucket(
        capacity: Self.defaultRate.capacity, perSecond: Self.defaultRate.perSecond, now: now)
    }
  }
}

// MARK: What may be sent

extension HostState {
  /// How long to wait for a host that is away; nil if it is there, or may be tried.
  mutating func waitForPresence(now: Double) throws(Rest) -> Wait? {
    try checkRest(now: now)
    guard var away = absence else { return nil }
    defer { absence = away }
    guard now < away.nextTry else {
      away.nextTry = now + away.pause
      away.pause = min(2 * away.pause, Self.pauses.last)
      return nil
    }
    defer { away.isAnnounced = true }
    return Wait(
      seconds: max(Self.pauses.first, away.nextTry - now), whole: now - away.since,
      why: away.isAnnounced ? nil : "it does not answer",
      announced: away.since + Self.patience - now)
  }

  /// How long to wait until there is room for one more request; nil if there is, which is taken.
  mutating func waitForRoom(now: Double) throws(Rest) -> Wait? {
    try checkRest(now: now)
    var seconds = max(0, heldUntil - now)
    var hasWindow = false
    for limit in windows.keys {
      if let time = windows[limit]?.wait(now: now, underWay: underWay) {
        seconds = max(seconds, time)
        hasWindow = true
      } else {
        windows[limit] = nil
      }
    }
    // What the host says of its limits is better than what is supposed of hosts in general.
    if bucketIsUsers || !hasWindow, let time = bucket?.wait(now: now) {
      seconds = max(seconds, time)
    }
    guard seconds > 0 else {
      underWay += 1
      bucket?.take(now: now)
      return nil
    }
    var wait = Wait(
      seconds: max(Self.shortestWait, min(seconds, RateLimitFields.longestWait)),
      whole: seconds)
    // Reported once for each wait, not by each waiting request.
    if seconds >= NetworkEvent.leastWait, now >= announcedUntil {
      announcedUntil = now + seconds
      wait.announced = seconds
      wait.why =
        now < heldUntil
        ? "it is overloaded" : "no more requests are allowed until then"
    }
    return wait
  }

  private func checkRest(now: Double) throws(Rest) {
    if let rest, now < rest.end { throw rest }
  }
}

// MARK: What is learned

extension HostState {
  /// Records what an answer says of the host's limits.
  mutating func learn(_ fields: RateLimitFields, now: Double) {
    guard let window = ServerWindow(fields, now: now) else { return }
    if windows[window.limit] == nil {
      if windows.count >= Self.maximumWindows { windows.removeAll() }
      windows[window.limit] = window
    } else {
      windows[window.limit]?.update(window)
    }
  }

  /// Records the result of a request.
  ///
  /// - Parameters:
  ///   - outcome: how.
  ///   - sentAt: when it was let through.
  ///   - now: the time.
  ///   - chance: a random number from 0 to 1.
  mutating func note(
    _ outcome: Outcome, sentAt: Double, now: Double, chance: () -> Double
  ) -> Advice {
    switch outcome {
    case .unknown: return .none
    case .answered:
      isThere()
      refusals = (0, 0, Self.fullPatience)
      run += 1
      if run >= concurrency, concurrency < maximum { (run, concurrency) = (0, concurrency + 1) }
      return .none
    case .refused(let wait):
      isThere()
      noteRefusal(wait, sentAt: sentAt, now: now, chance: chance)
      return .whenAllowed(namesTime: wait != nil)
    case .busy:
      // It may be about that one request.
      _ = slowDown(least: maximum / 4, sentAt: sentAt, now: now)
      return noteFailure(outcome, now: now)
    case .notConnected, .failed:
      return noteFailure(outcome, now: now)
    }
  }

  private mutating func isThere() {
    hasAnswered = true
    (failures.count, absence) = (0, nil)
    if rest?.reason == .silent { rest = nil }
  }

  private mutating func noteFailure(_ outcome: Outcome, now: Double) -> Advice {
    if failures.count == 0 { failures.since = now }
    failures.count += 1
    if let absence {
      if now - absence.since < Self.patience { return .whenThere }
      leaveAlone(.silent, now: now)
    } else if hasAnswered, outcome == .notConnected || failures.count >= Self.leastFailures {
      absence = (now, now + Self.pauses.first, Self.pauses.first, false)
      return .whenThere
    } else if failures.count >= Self.maximumFailures,
      now - failures.since >= max(Self.restLength, overloadSeconds)
    {
      leaveAlone(.silent, now: now)
    }
    return .none
  }

  /// The host wants fewer requests: it is left alone for the time that it names, or for increasing
  /// times.
  private mutating func noteRefusal(
    _ wait: Double?, sentAt: Double, now: Double, chance: () -> Double
  ) {
    if slowDown(least: 1, sentAt: sentAt, now: now) {
      if refusals.count == 0 { refusals.since = now }
      refusals.count += 1
      refusals.patience -= wait == nil ? 3 : 1
    }
    let hold = max(Backoff.shortest, wait ?? Backoff.delay(refusals.count, chance))
    heldUntil = max(heldUntil, now + hold)
    if refusals.patience <= 0, now >= refusals.since + overloadSeconds {
      leaveAlone(.overloaded, now: now, atLeast: hold)
    }
  }

  /// Halves the number of places, unless that was done since this request was sent: many that are
  /// refused together are one overload.
  private mutating func slowDown(least: Int, sentAt: Double, now: Double) -> Bool {
    run = 0
    guard sentAt >= halvedAt else { return false }
    halvedAt = now
    concurrency = min(concurrency, max(1, least, concurrency / 2))
    return true
  }

  private mutating func leaveAlone(
    _ reason: TransportError.Reason, now: Double, atLeast seconds: Double = 0
  ) {
    absence = nil
    rest = Rest(reason: reason, end: now + max(Self.restLength, seconds))
  }
}
