internal import Synchronization

/// The way to servers that everything in a run shares: connections, the budget of each host, what the user set.
public final class Network: Sendable {
  /// What the user set.
  public let options: NetworkOptions
  /// What carries requests.
  public let transport: any HTTPTransport

  let clock: any NetworkClock
  private let retryPolicy: RetryPolicy
  private let budgets = Mutex<[Authority: HostBudget]>([:])
  private let chance: @Sendable () -> Double

  /// The way to servers under these options.
  ///
  /// - Throws: ``TransportError`` if there is no usable libcurl, or an option cannot be used.
  public convenience init(_ options: NetworkOptions) throws {
    self.init(options, transport: try CurlTransport(options), clock: SystemClock())
  }

  /// With a transport, a time and luck of one's own.
  package init(
    _ options: NetworkOptions, transport: any HTTPTransport, clock: any NetworkClock,
    chance: @escaping @Sendable () -> Double = { .random(in: 0...1) }
  ) {
    self.options = options
    self.transport = transport
    self.clock = clock
    self.chance = chance
    retryPolicy = RetryPolicy(attempts: options.attempts)
  }

  /// How a request came out in the end.
  public struct Delivery: Sendable {
    /// The head of the answer.
    public var response: HTTPResponse
    /// The body, or the beginning of it, of an answer that is not one of success.
    public var errorBody: [UInt8]
    /// How often it was tried.
    public var attempts: Int
  }

  /// Fetches a small document.
  ///
  /// - Parameters:
  ///   - url: where it is.
  ///   - limit: how many bytes it may have, decompressed.
  ///   - accept: the media types to ask for.
  ///   - retries: whether what fails for a reason that may pass is tried again.
  /// - Returns: The head of the answer and its body, whatever the status is; the body of an answer that is not one of success is cut at ``maximumErrorBody`` bytes.
  /// - Throws: ``TransportError`` if no whole answer came or it is too long; `CancellationError`.
  public func get(_ url: String, limit: Int, accept: String? = nil, retries: Bool = true)
    async throws -> (HTTPResponse, [UInt8])
  {
    let sink = DocumentSink(limit: limit, url: "\(try HTTPURL(url))")
    let fields = accept.map { [(name: "Accept", value: $0)] } ?? []
    let delivery = try await send(
      HTTPRequest(.get, url, fields: fields), to: sink, attempts: retries ? nil : 1)
    return (
      delivery.response, delivery.response.isSuccess ? sink.bytes : delivery.errorBody
    )
  }

  /// Sends a request when the host's budget allows it, and again if it fails for a reason that may pass.
  ///
  /// The same sink gets every attempt; it goes on from its `resumableOffset` if the server can. A server that names a time, or that answers others in the
  /// meantime, is waited for without that counting as an attempt, though not for ever.
  ///
  /// - Parameters:
  ///   - request: what is asked.
  ///   - sink: where the body of an answer of success goes.
  ///   - maximum: how often it is tried at most; nil for as often as the user set.
  /// - Returns: The last answer, whatever its status is.
  /// - Throws: ``TransportError`` of the last attempt, or because the host has refused everything for a while; what the sink threw, which is not tried again; `CancellationError`.
  public func send(
    _ request: HTTPRequest, to sink: any ResponseSink, attempts maximum: Int? = nil
  ) async throws -> Delivery {
    let maximum = maximum ?? retryPolicy.attempts
    let url = try HTTPURL(request.url)
    let budget = budget(for: url.authority)
    var attempts = 0
    var failures = 0
    var waits = 0
    var stalls = 0
    while true {
      let permission = try await budget.acquire(for: url)
      attempts += 1
      let attempt = await attempt(request, url: url, sink: sink)
      let hold = await budget.release(
        permission, attempt.result, attempt.said, chance: chance())
      if attempt.isStall { stalls += 1 }
      let mayRetry = maximum > 1 && attempt.isTransient && stalls < Self.maximumStalls
      var delay = 0.0
      if mayRetry {
        let hasProgressed = await budget.successCount > permission.successes
        if waits < retryPolicy.maximumWaits, hold > 0,
          attempt.said.wait != nil || (attempt.isRefusal && hasProgressed)
        {
          waits += 1
          delay = hold
        } else {
          failures += 1
          delay = max(hold, retryPolicy.delay(failures: failures, chance: chance()))
        }
      }
      guard mayRetry, failures < maximum else {
        return try attempt.delivery(attempts: attempts)
      }
      options.observer(.retry(host: url.authority.host, seconds: delay, why: attempt.why))
      // For how long the host is left alone, all who ask it wait.
      if delay > hold { try await clock.sleep(delay) }
    }
  }

  /// How often something is tried that stands still each time, for each of these takes long.
  private static let maximumStalls = 3

  /// The budget of a host, which all requests to it share.
  package func budget(for authority: Authority) -> HostBudget {
    budgets.withLock { budgets in
      if let budget = budgets[authority] { return budget }
      let budget = HostBudget(of: authority, options: options, clock: clock)
      budgets[authority] = budget
      return budget
    }
  }

  /// One attempt, and its line for the observer.
  private func attempt(_ request: HTTPRequest, url: HTTPURL, sink: any ResponseSink) async
    -> Attempt
  {
    let start = clock.now
    let attempt: Attempt
    do {
      let (response, errorBody) = try await transport.send(request, to: sink)
      attempt = .answer(
        response, errorBody, RateLimit(response, unixTime: clock.unixTime))
    } catch {
      sink.suspend()
      attempt = .failure(error)
    }
    options.observer(
      .request(
        method: request.method.rawValue, url: url.text, outcome: attempt.why,
        seconds: clock.now - start))
    return attempt
  }
}

/// How one attempt came out.
private enum Attempt {
  case answer(HTTPResponse, [UInt8], RateLimit)
  case failure(any Error)

  /// What it says of the host's load.
  var result: HostBudget.Result {
    switch self {
    case .answer(let response, _, _) where response.status == 429: .refused
    case .answer(let response, _, _) where response.status == 503: .unavailable
    case .answer: .answered
    case .failure(let error as TransportError) where error.isTransient: .failed
    case .failure: .unknown
    }
  }

  var said: RateLimit {
    switch self {
    case .answer(_, _, let said): said
    case .failure: RateLimit()
    }
  }

  /// Whether the server said that there were too many requests.
  var isRefusal: Bool {
    if case .answer(let response, _, _) = self { return response.status == 429 }
    return false
  }

  /// Whether another attempt may come out otherwise.
  var isTransient: Bool {
    switch self {
    case .answer(let response, _, _): RetryPolicy.isTransient(status: response.status)
    case .failure(let error): (error as? TransportError)?.isTransient ?? false
    }
  }

  /// Whether it stood still.
  var isStall: Bool {
    if case .failure(let error as TransportError) = self, case .stalled = error.reason {
      return true
    }
    return false
  }

  /// How it came out, in words.
  var why: String {
    switch self {
    case .answer(let response, _, _): "status \(response.status)"
    case .failure(let error as TransportError): error.what
    case .failure(is CancellationError): "cancelled"
    case .failure(let error): "\(error)"
    }
  }

  /// The outcome, when it is the last attempt.
  func delivery(attempts: Int) throws -> Network.Delivery {
    switch self {
    case .answer(let response, let errorBody, _):
      return Network.Delivery(response: response, errorBody: errorBody, attempts: attempts)
    case .failure(var error as TransportError):
      error.attempts = attempts
      throw error
    case .failure(let error): throw error
    }
  }
}
