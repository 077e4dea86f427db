internal import Synchronization

/// The network access that everything in a run shares: connections, the limits of each host, the
/// user's settings.
///
/// A request is sent when the gate before its host lets it through (``HostGate``), and again if it
/// fails for a temporary reason.
public final class Network: Sendable {
  /// What the user set.
  package let options: NetworkOptions

  package let clock: any NetworkClock
  private let transport: any HTTPTransport
  private let chance: @Sendable () -> Double
  private let gates = Mutex<[Authority: HostGate]>([:])
  /// The places for transfers to all hosts together: each takes a descriptor or two.
  private let transfers: Places

  /// How often a request that stalls each time is tried: every attempt takes long.
  private static let maximumStalls = 2
  /// How often one request waits for a time that its host names.
  private static let maximumRefusals = 30
  /// How many more bytes have to be there for attempts to be counted anew: a server that sends a
  /// few bytes at a time is not asked for ever.
  private static let leastProgress: UInt64 = 64 << 10

  /// The way to servers under these options.
  ///
  /// - Throws: ``TransportError`` if there is no usable libcurl, or an option cannot be used.
  public convenience init(_ options: NetworkOptions) throws {
    self.init(
      options, transport: try CurlTransport(options), clock: SystemClock(),
      maximumTransfers: DescriptorLimit.raise())
  }

  /// Injects transport, clock and jitter (tests).
  package init(
    _ options: NetworkOptions, transport: any HTTPTransport, clock: any NetworkClock,
    maximumTransfers: Int = 1024,
    chance: @escaping @Sendable () -> Double = { .random(in: 0...1) }
  ) {
    self.options = options
    self.transport = transport
    self.clock = clock
    self.chance = chance
    transfers = Places(maximumTransfers)
  }

  /// The gate before a host.
  package func gate(to authority: Authority) -> HostGate {
    gates.withLock { gates in
      if let gate = gates[authority] { return gate }
      let gate = HostGate(to: authority, options: options, clock: clock, chance: chance)
      gates[authority] = gate
      return gate
    }
  }

  /// The final result of a request.
  package struct Delivery: Sendable {
    /// The head of the answer.
    package var response: HTTPResponse
    /// The body, or its beginning, of an answer that is not successful.
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
  ///   - retries: whether temporary failures are tried again.
  /// - Returns: The head of the answer and its body, whatever the status is; the body of an answer
  ///   other than a success is cut at ``maximumErrorBody`` bytes.
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

  /// Sends a request, and again if it fails for a temporary reason.
  ///
  /// Only attempts that bring nothing are counted: a long body arrives over any number of broken
  /// connections, as long as the server can continue it.
  ///
  /// - Parameters:
  ///   - request: what is asked.
  ///   - offset: how much of the body need not be sent again, asked before each attempt.
  ///   - explain: says why an answer other than a success may pass whose status does not say so; nil
  ///     if it does not.
  ///   - receive: reads a successful answer. After a temporary failure while it reads, or a
  ///     ``LateFailure``, the request is sent again, and another call reads the answer.
  /// - Returns: The last answer, whatever its status is, and what was received of a successful one.
  /// - Throws: ``TransportError`` of the last attempt, because the host has refused everything for
  ///   a while, or because it could not be asked within the request's time; what `receive` throws
  ///   otherwise, which is not tried again; `CancellationError`.
  package func send<Value>(
    _ request: HTTPRequest, from offset: () -> UInt64 = { 0 },
    explain: (HTTPResponse, [UInt8]) -> String? = { _, _ in nil },
    receive: (HTTPResponse) async throws -> Value
  ) async throws -> (Delivery, Value?) {
    var request = request
    try request.resolveTarget()
    let attempts = max(1, request.attempts ?? options.attempts)
    request.attempts = attempts
    request.deadline = request.seconds.map { clock.now + $0 }
    let url = try request.target()
    let gate = gate(to: url.authority)
    var moment = clock.now
    // In all; and of them, those since the last that brought something.
    var (made, failures, stalls, refusals) = (0, 0, 0, 0)
    var held = offset()
    // Until when the host may be overloaded or broken, from the first answer that says so.
    var overloadEnd: Double?
    func isWaitedOut() -> Bool { attempts > 1 && overloadEnd.map { clock.now < $0 } == true }
    do {
      while true {
        let permission = try await gate.enter(request, notBefore: moment)
        request.offset = offset()
        request.secondsLeft = request.deadline.map { max(1, Int(($0 - clock.now).rounded(.up))) }
        let (answer, advice) = await begin(request, at: url.origin, gate, permission)
        if case .failure = answer { request.wantsNewConnection = true }
        if let response = try? answer.get(), HTTPStatus.mayPass(response.status) {
          overloadEnd = overloadEnd ?? clock.now + options.overloadSeconds
        }
        // Waiting at the gate is not an attempt.
        switch advice {
        case .whenThere where attempts > 1: continue
        case .whenAllowed(let namesTime)
        where refusals < (namesTime && attempts > 1 ? Self.maximumRefusals : attempts - 1)
          || isWaitedOut():
          refusals += 1
          continue
        case .none, .whenThere, .whenAllowed: break
        }
        let result = await finish(answer, receive)
        made += 1
        if offset() >= held + Self.leastProgress {
          (failures, stalls, held, overloadEnd) = (0, 0, offset(), nil)
        } else {
          failures += 1
          if Self.isStall(result) { stalls += 1 }
        }
        let why = Self.whyAgain(result, explain)
        if why != nil, !Self.isBroken(result) {
          overloadEnd = overloadEnd ?? clock.now + options.overloadSeconds
        }
        guard failures < attempts || isWaitedOut(), stalls < Self.maximumStalls, let why else {
          var (delivery, value) = try result.get()
          delivery.attempts = made
          return (delivery, value)
        }
        // The last attempt is made when the time is over.
        let rest = failures < attempts ? .infinity : (overloadEnd ?? clock.now) - clock.now
        let delay = min(Backoff.delay(failures, chance), max(Backoff.shortest, rest))
        options.observer(.retry(host: url.authority.host, seconds: delay, why: why))
        moment = clock.now + delay
      }
    } catch var error as TransportError {
      error.attempts = max(1, made)
      throw error
    } catch let late as LateFailure {
      throw late.cause
    }
  }

  /// Sends a request once; the gate learns how it came out, and has its permission back when the
  /// transfer has ended.
  private func begin(
    _ request: HTTPRequest, at origin: String, _ gate: HostGate, _ permission: HostGate.Permission
  ) async -> (Result<HTTPResponse, any Error>, HostState.Advice) {
    let start = clock.now
    let ended = { @Sendable [self] (outcome: String) in
      gate.leave(permission)
      options.observer(
        .request(
          method: request.method.rawValue, url: request.url, outcome: outcome,
          seconds: clock.now - start))
    }
    do {
      let seat = try await transfers.take()
      let response: HTTPResponse
      do {
        response = try await transport.send(request)
      } catch {
        seat.giveBack()
        throw error
      }
      let advice = gate.note(response, to: request, permission)
      if request.isStreamed { Self.watch(response.body.pipe, permission.seat) }
      response.body.pipe.whenEnded { error in
        seat.giveBack()
        ended(error.map(Self.words) ?? "status \(response.status)")
      }
      return (.success(response), advice)
    } catch {
      ended(Self.words(error))
      return (.failure(error), gate.note(error, to: request, at: origin, permission))
    }
  }

  /// Makes a transfer that turns out to be slow leave its place to others.
  private static func watch(_ pipe: BodyPipe, _ seat: Places.Seat) {
    let watch = Task { [weak pipe] in
      try await Task.sleep(for: slowAfter)
      if (pipe?.receivedCount ?? .max) < slowCount { seat.leave() }
    }
    pipe.whenEnded { _ in watch.cancel() }
  }

  /// A transfer that has brought less than this many bytes after so long is slow.
  private static let slowAfter: Duration = .seconds(10)
  private static let slowCount = 128 << 10

  /// Reads the body of an answer.
  private func finish<Value>(
    _ answer: Result<HTTPResponse, any Error>, _ receive: (HTTPResponse) async throws -> Value
  ) async -> Result<(Delivery, Value?), any Error> {
    do {
      let response = try answer.get()
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

  /// Why another attempt may succeed; nil if the failure is permanent.
  private static func whyAgain<Value>(
    _ result: Result<(Delivery, Value?), any Error>,
    _ explain: (HTTPResponse, [UInt8]) -> String?
  ) -> String? {
    switch result {
    case .success((let delivery, _)):
      let status = delivery.response.status
      // One that says that there are too many requests has been waited for.
      if HTTPStatus.mayPass(status) { return status == 429 ? nil : "status \(status)" }
      return delivery.response.isSuccess ? nil : explain(delivery.response, delivery.errorBody)
    case .failure(let late as LateFailure): return "\(late.cause)"
    case .failure(let error as TransportError): return error.isTransient ? error.what : nil
    case .failure: return nil
    }
  }

  /// Whether no whole answer came.
  private static func isBroken<Value>(_ result: Result<Value, any Error>) -> Bool {
    if case .failure(_ as TransportError) = result { true } else { false }
  }

  private static func isStall<Value>(_ result: Result<Value, any Error>) -> Bool {
    guard case .failure(let error as TransportError) = result else { return false }
    switch error.reason {
    case .stalled, .tooSlow: return true
    default: return false
    }
  }

  private static func words(_ error: any Error) -> String {
    switch error {
    case let error as TransportError: error.what
    case is CancellationError: "cancelled"
    default: "\(error)"
    }
  }
}

/// What `receive` throws for an answer that began as a success and turned out to be a temporary
/// failure of the server: its request is sent again.
package struct LateFailure: Error {
  /// What is thrown after the last attempt.
  let cause: any Error

  /// A failure.
  package init(_ cause: any Error) { self.cause = cause }
}
