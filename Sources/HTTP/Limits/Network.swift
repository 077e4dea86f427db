internal import Synchronization

/// The way to servers that everything in a run shares: connections, the limits of each host, what
/// the user set.
///
/// A request goes through `Retry` (again, if it fails for a reason that may pass),
/// `CircuitBreaker` (waits for a host that is away), `RateLimit` (no more than
/// its host allows) and the transport.
public final class Network: Sendable {
  /// What the user set.
  package let options: NetworkOptions

  package let clock: any NetworkClock
  package let limits: RateLimit
  private let transport: any HTTPTransport
  private let chance: @Sendable () -> Double

  /// How often something is tried that stands still each time, for each of these takes long.
  private static let maximumStalls = 2

  /// The way to servers under these options.
  ///
  /// - Throws: ``TransportError`` if there is no usable libcurl, or an option cannot be used.
  public convenience init(_ options: NetworkOptions) throws {
    self.init(
      options, transport: try CurlTransport(options), clock: SystemClock(),
      maximumTransfers: DescriptorLimit.raise())
  }

  /// With a transport, a time and luck of one's own.
  package init(
    _ options: NetworkOptions, transport: any HTTPTransport, clock: any NetworkClock,
    maximumTransfers: Int = 1024,
    chance: @escaping @Sendable () -> Double = { .random(in: 0...1) }
  ) {
    self.options = options
    self.clock = clock
    self.chance = chance
    limits = RateLimit(
      RequestLog(transport, clock: clock, observer: options.observer), options: options,
      maximumTransfers: maximumTransfers, clock: clock, chance: chance)
    self.transport = CircuitBreaker(limits, clock: clock, observer: options.observer)
  }

  /// How a request came out in the end.
  package struct Delivery: Sendable {
    /// The head of the answer.
    package var response: HTTPResponse
    /// The body, or the beginning of it, of an answer that is not one of success.
    package var errorBody: [UInt8]
    /// How often it was tried.
    package var attempts: Int
    /// After how many seconds the server wants to be asked again, a day at most; nil if it does not
    /// say.
    package var wait: Double?
  }

  /// Fetches a small document.
  ///
  /// - Parameters:
  ///   - url: where it is.
  ///   - limit: how many bytes it may have, decompressed.
  ///   - accept: the media types to ask for.
  ///   - retries: whether what fails for a reason that may pass is tried again.
  /// - Returns: The head of the answer and its body, whatever the status is; the body of an answer
  ///   that is not one of success is cut at ``maximumErrorBody`` bytes.
  /// - Throws: ``TransportError`` if no whole answer came or it is too long; `CancellationError`.
  package func get(_ url: String, limit: Int, accept: String? = nil, retries: Bool = true)
    async throws -> (HTTPResponse, [UInt8])
  {
    let fields = accept.map { [(name: "Accept", value: $0)] } ?? []
    let request = HTTPRequest(.get, url, fields: fields, attempts: retries ? nil : 1)
    let shown = "\(try request.target())"
    let (delivery, body) = try await send(request) { response in
      try await response.body.collect(upTo: limit, of: shown)
    }
    return (delivery.response, body ?? delivery.errorBody)
  }

  /// Sends a request, and again if it fails for a reason that may pass.
  ///
  /// - Parameters:
  ///   - request: what is asked.
  ///   - offset: how much of the body need not be sent again, asked before each attempt.
  ///   - receive: reads an answer of success. What fails on the way there, and may pass, is asked
  ///   for once more, and received by another call.
  /// - Returns: The last answer, whatever its status is, and what was received of one of success.
  /// - Throws: ``TransportError`` of the last attempt, or because the host has refused everything
  ///   for a while; what `receive` throws otherwise, which is not tried
  ///   again; `CancellationError`.
  package func send<Value>(
    _ request: HTTPRequest, from offset: () -> UInt64 = { 0 },
    receive: (HTTPResponse) async throws -> Value
  ) async throws -> (Delivery, Value?) {
    var request = request
    try request.resolveTarget()
    let host = try request.target().authority.host
    let attempts = request.attempts ?? options.attempts
    request.attempts = attempts
    let retry = Retry(attempts: attempts, clock: clock, chance: chance)
    var stalls = 0
    let (result, made) = try await retry.run(
      {
        request.offset = offset()
        let result = await attempt(request, receive)
        if case .failure = result { request.wantsNewConnection = true }
        return result
      },
      mayPass: { result in
        if Self.isStall(result) { stalls += 1 }
        return stalls < Self.maximumStalls ? Self.whyTransient(result) : nil
      },
      waiting: { options.observer(.retry(host: host, seconds: $0, why: $1)) })
    do {
      var (delivery, value) = try result.get()
      delivery.attempts = made
      return (delivery, value)
    } catch var error as TransportError {
      error.attempts = made
      throw error
    }
  }

  private func attempt<Value>(
    _ request: HTTPRequest, _ receive: (HTTPResponse) async throws -> Value
  ) async -> Result<(Delivery, Value?), any Error> {
    do {
      let response = try await transport.send(request)
      guard response.isSuccess else {
        let body = try await response.body.beginning(maximumErrorBody)
        let wait = RateLimitFields(
          response, unixTime: clock.unixTime, longest: RateLimitFields.longestWindow
        ).wait
        return .success(
          (Delivery(response: response, errorBody: body, attempts: 1, wait: wait), nil))
      }
      let value = try await receive(response)
      return .success((Delivery(response: response, errorBody: [], attempts: 1), value))
    } catch {
      return .failure(error)
    }
  }

  /// Why an attempt may come out otherwise the next time; nil if it stays.
  private static func whyTransient<Value>(
    _ result: Result<(Delivery, Value?), any Error>
  ) -> String? {
    switch result {
    case .success((let delivery, _)):
      let status = delivery.response.status
      // One that says that there are too many requests has been waited for.
      return status != 429 && Retry.isTransient(status: status) ? "status \(status)" : nil
    case .failure(let error as TransportError): return error.isTransient ? error.what : nil
    case .failure: return nil
    }
  }

  private static func isStall<Value>(_ result: Result<Value, any Error>) -> Bool {
    guard case .failure(let error as TransportError) = result else { return false }
    switch error.reason {
    case .stalled, .tooSlow: return true
    default: return false
    }
  }
}
