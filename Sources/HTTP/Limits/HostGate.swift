internal import Synchronization

/// The gate before one host, through which all requests to it pass.
///
/// 1. No more requests run than there are places, except for slow ones, which leave theirs to
///    others.
/// 2. All waits for a host happen here: while it is unreachable, and until it allows one more
///    request. Each wait ends with the request's deadline, and when the task is cancelled.
package final class HostGate: Sendable {
  /// The permission for one request, which has to be given back.
  struct Permission: Sendable {
    /// When it was given.
    let at: Double
    /// The place that was taken for it.
    let seat: Places.Seat
  }

  private let authority: Authority
  private let clock: any NetworkClock
  private let options: NetworkOptions
  private let chance: @Sendable () -> Double
  private let places: Places
  private let state: Mutex<HostState>

  init(
    to authority: Authority, options: NetworkOptions, clock: any NetworkClock,
    chance: @escaping @Sendable () -> Double
  ) {
    self.authority = authority
    self.clock = clock
    self.options = options
    self.chance = chance
    places = Places(options.connectionsPerHost)
    state = Mutex(HostState(authority, options, now: clock.now))
  }

  /// How many requests may run at a time at present.
  package var concurrency: Int { places.count }

  /// Waits until a request may be sent.
  ///
  /// - Parameters:
  ///   - request: the request.
  ///   - moment: when, at the earliest.
  /// - Throws: ``TransportError`` if the host has refused so much, or been silent for so long, that
  ///   it is left alone, if the wait would be longer than the options allow, or if the request's
  ///   deadline comes first; `CancellationError`.
  func enter(_ request: HTTPRequest, notBefore moment: Double) async throws -> Permission {
    try await wait(for: request) { _, now in
      now < moment ? HostState.Wait(seconds: moment - now) : nil
    }
    // A request that need not wait for an absent host must not wait for the place of one that does.
    if request.attempts != 1 {
      try await wait(for: request) { state, now throws(HostState.Rest) in
        try state.waitForPresence(now: now)
      }
    }
    if let admission = options.admission { try await admission(request.target().origin) }
    let seat = try await places.take()
    do {
      try await wait(for: request) { state, now throws(HostState.Rest) in
        try state.waitForRoom(now: now)
      }
      return Permission(at: clock.now, seat: seat)
    } catch {
      seat.giveBack()
      throw error
    }
  }

  /// Waits until the host's state requires no more waiting.
  private func wait(
    for request: HTTPRequest,
    _ ask: (inout HostState, Double) throws(HostState.Rest) -> HostState.Wait?
  ) async throws {
    while true {
      let now = clock.now
      let wait: HostState.Wait?
      do throws(HostState.Rest) {
        wait = try state.withLock { state throws(HostState.Rest) in try ask(&state, now) }
      } catch {
        throw TransportError(error.reason, url: "\(try request.target())")
      }
      guard let wait else { return }
      if let longest = options.longestWait, wait.whole > longest {
        throw TransportError(
          .postponed(seconds: wait.whole.rounded(.up)), url: "\(try request.target())")
      }
      if let why = wait.why {
        options.observer(.wait(host: authority.host, seconds: wait.announced, why: why))
      }
      try request.checkDeadline(now + wait.seconds)
      try await clock.sleep(wait.seconds)
    }
  }

  /// Gives a permission back, when the transfer has ended.
  func leave(_ permission: Permission) {
    state.withLock { $0.underWay -= 1 }
    permission.seat.giveBack()
  }

  /// Records the head of an answer.
  ///
  /// - Returns: Whether the request should be sent again when the gate lets it through.
  func note(_ response: HTTPResponse, to request: HTTPRequest, _ permission: Permission)
    -> HostState.Advice
  {
    let status = response.status
    // The service behind the host failed, which the host itself need not have; and what is said of
    // a method's own limit says nothing of other requests.
    if request.isForwarded && !response.isSuccess || request.hasOwnLimit && status == 429 {
      return note(HostState.gatewayFaults.contains(status) ? .unknown : .answered, permission)
    }
    let fields =
      request.hasOwnLimit || request.isForwarded
      ? RateLimitFields()
      : RateLimitFields(
        response, unixTime: clock.unixTime,
        // What is not waited for here is planned elsewhere, and may be far away.
        longest: options.longestWait == nil
          ? RateLimitFields.longestWait : RateLimitFields.longestWindow)
    let outcome: HostState.Outcome =
      switch status {
      case 429: .refused(wait: fields.wait)
      case 503: fields.wait.map { .refused(wait: $0) } ?? .busy
      case _ where HostState.gatewayFaults.contains(status): .failed
      default: .answered
      }
    return note(outcome, permission, fields: fields)
  }

  /// Records why no answer came.
  ///
  /// - Returns: Whether the request should be sent again when the gate lets it through.
  func note(
    _ error: any Error, to request: HTTPRequest, at origin: String, _ permission: Permission
  ) -> HostState.Advice {
    // A redirection may have led elsewhere.
    guard !request.isForwarded, let error = error as? TransportError, error.isTransient,
      error.url.hasPrefix(origin + "/")
    else { return note(.unknown, permission) }
    switch error.reason {
    case .notConnected, .unknownHost: return note(.notConnected, permission)
    default: return note(.failed, permission)
    }
  }

  private func note(
    _ outcome: HostState.Outcome, _ permission: Permission,
    fields: RateLimitFields = RateLimitFields()
  ) -> HostState.Advice {
    let now = clock.now
    let (advice, concurrency) = state.withLock { state in
      state.learn(fields, now: now)
      let advice = state.note(outcome, sentAt: permission.at, now: now, chance: chance)
      return (advice, state.concurrency)
    }
    places.resize(concurrency)
    return advice
  }
}
