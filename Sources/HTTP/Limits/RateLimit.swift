internal import Synchronization

/// A transport that asks no host for more than it allows.
///
/// Each host has its own limits, which all requests to it share: how many are under way at a time,
/// how many may be sent in a while, and for how long it wants to be
/// left alone. A request that is refused for its being too much (429, or a status with
/// `Retry-After`) is sent again when the host allows it.
package final class RateLimit: HTTPTransport {
  private let next: any HTTPTransport
  private let options: NetworkOptions
  private let clock: any NetworkClock
  private let chance: @Sendable () -> Double
  private let hosts = Mutex<[Authority: HostLimits]>([:])
  /// The places for transfers to all hosts together: each takes a descriptor or two.
  private let all: Places
  private let slowTransfers = SlowTransfers()

  /// How often a host's naming a time is obeyed for one request.
  private static let maximumWaits = 30

  /// Limits for what goes to another transport.
  ///
  /// - Parameters:
  ///   - next: the other.
  ///   - options: what the user allows.
  ///   - maximumTransfers: how many may be under way at a time, to all hosts together.
  ///   - clock: the time.
  ///   - chance: random numbers from 0 to 1.
  package init(
    _ next: any HTTPTransport, options: NetworkOptions, maximumTransfers: Int = 1024,
    clock: any NetworkClock, chance: @escaping @Sendable () -> Double
  ) {
    self.next = next
    self.options = options
    self.clock = clock
    self.chance = chance
    all = Places(maximumTransfers)
  }

  /// The limits of a host.
  package func limits(of authority: Authority) -> HostLimits {
    hosts.withLock { hosts in
      if let limits = hosts[authority] { return limits }
      let limits = HostLimits(of: authority, options: options, clock: clock, chance: chance)
      hosts[authority] = limits
      return limits
    }
  }

  /// Sends a request when its host allows it.
  ///
  /// - Throws: ``TransportError`` also if the host has refused so much that it is left alone.
  package func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    let url = try request.target()
    let limits = limits(of: url.authority)
    var waits = 0
    while true {
      try await options.admission?(url.authority.host)
      let permission = try await limits.acquire(for: url)
      let response: HTTPResponse
      do {
        response = try await receive(request)
      } catch {
        limits.release(permission)
        throw error
      }
      // What is said of a method's own limit says nothing of other requests.
      let fields =
        request.hasOwnLimit || request.isForwarded
        ? RateLimitFields() : RateLimitFields(response, unixTime: clock.unixTime)
      if request.hasOwnLimit && response.status == 429
        || request.isForwarded && !response.isSuccess
      {
        response.body.whenEnded { _ in limits.release(permission) }
        return response
      }
      let isRefused = limits.learn(permission, from: response.status, fields)
      if request.isStreamed { slowTransfers.watch(response.body.pipe, permission.seat) }
      response.body.whenEnded { _ in limits.release(permission) }
      let maximum = fields.wait == nil ? (request.attempts ?? 1) - 1 : Self.maximumWaits
      guard isRefused, request.attempts != 1, waits < maximum else { return response }
      waits += 1
    }
  }

  /// Sends a request when there is a place among all transfers, which it keeps to the end of the
  /// body.
  private func receive(_ request: HTTPRequest) async throws -> HTTPResponse {
    let seat = try await all.take()
    do {
      let response = try await next.send(request)
      response.body.whenEnded { _ in seat.giveBack() }
      return response
    } catch {
      seat.giveBack()
      throw error
    }
  }
}
