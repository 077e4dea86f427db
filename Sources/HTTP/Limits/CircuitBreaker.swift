internal import Synchronization

/// A transport that waits for a host that is away, and does not ask one again and again that stays
/// away.
///
/// A server that is restarted refuses connections for a while, or the proxy before it says that it
/// has no answer. What is asked of it then waits, as long as
/// `patience`, while one request after the other tries. A host that has never answered in this
/// run is not waited for: it may not exist.
package final class CircuitBreaker: HTTPTransport {
  private let next: any HTTPTransport
  private let clock: any NetworkClock
  private let observer: @Sendable (NetworkEvent) -> Void
  private let hosts = Mutex<[Authority: HostState]>([:])

  /// How long a host is waited for, in seconds.
  static let patience = 150.0

  /// A breaker before another transport.
  package init(
    _ next: any HTTPTransport, clock: any NetworkClock,
    observer: @escaping @Sendable (NetworkEvent) -> Void
  ) {
    self.next = next
    self.clock = clock
    self.observer = observer
  }

  /// Sends a request, if need be when its host is there again.
  ///
  /// - Throws: ``TransportError`` also if the host has been away for so long that it is not asked
  ///   for now.
  package func send(_ request: HTTPRequest) async throws -> HTTPResponse {
    let url = try request.target()
    while true {
      let isTry = try await admit(url, waits: request.attempts != 1)
      let result = await attempt(request)
      var outcome = HostState.Outcome(result, of: url)
      // The service behind the host failed, which the host itself need not have.
      if request.isForwarded, outcome == .failed { outcome = .unknown }
      let isWaitedFor = change(url) { $0.note(outcome, isTry: isTry, now: clock.now) }
      guard isWaitedFor, request.attempts != 1 else { return try result.get() }
    }
  }

  private func attempt(_ request: HTTPRequest) async -> Result<HTTPResponse, any Error> {
    do { return .success(try await next.send(request)) } catch { return .failure(error) }
  }

  /// Waits until the host may be asked; answers whether the request tries whether it is there
  /// again.
  private func admit(_ url: HTTPURL, waits: Bool) async throws -> Bool {
    while true {
      let now = clock.now
      switch change(url, { $0.admission(now: now) }) {
      case .granted(let isTry): return isTry
      case .refused: throw TransportError(.silent, url: "\(url)")
      case .later(let seconds, let atMost):
        guard waits else { return false }
        if let atMost {
          observer(.wait(host: url.authority.host, seconds: atMost, why: "it does not answer"))
        }
        try await clock.sleep(seconds)
      }
    }
  }

  private func change<Value>(_ url: HTTPURL, _ body: (inout HostState) -> Value) -> Value {
    hosts.withLock { body(&$0[url.authority, default: HostState()]) }
  }
}

/// What is known of one host's being there.
///
/// 1. While it is away, one request at a time tries it.
/// 2. It is away only if it has answered before, and until it answers again.
struct HostState {
  /// How a request came out, as far as the host's being there is concerned.
  enum Outcome {
    /// It answered.
    case answered
    /// It could not be connected to.
    case notConnected
    /// A proxy had no answer from it, or it broke off, or stood still: which may be about that one
    /// request.
    case failed
    /// Nothing is known: the request was not for this host in the end, or was broken off here.
    case unknown
  }

  /// Whether a request may be sent.
  enum Admission: Equatable {
    /// It may; and whether it is the one that tries a host which is away.
    case granted(isTry: Bool)
    /// It may in so many seconds be asked for again; with how long the host is waited for at most,
    /// once for each time it is away.
    case later(Double, announcing: Double?)
    /// Not for now.
    case refused
  }

  private var hasAnswered = false
  /// How many requests in a row were not answered, and since when.
  private var failures = 0
  private var failingSince = 0.0
  private var away: Absence?
  private var restsUntil = 0.0

  /// The time in which a host is away.
  private struct Absence {
    let since: Double
    /// When it may be tried next.
    var nextTry: Double
    var pause = HostState.pauses.first
    /// Whether a request is trying it.
    var isTried = false
    var isAnnounced = false
  }

  /// How many failures in a row are too many, if they have lasted for ``restLength``.
  private static let maximumFailures = 30
  /// How many failures in a row make a host that is away, where each by itself could be about one
  /// request.
  private static let leastFailures = 8
  /// For how long a host is left alone, in seconds.
  private static let restLength = 60.0
  /// The shortest and the longest pause between two tries, in seconds.
  private static let pauses = (first: 0.5, last: 8.0)

  /// Decides about a request.
  mutating func admission(now: Double) -> Admission {
    if now < restsUntil { return .refused }
    guard let away else { return .granted(isTry: false) }
    guard away.isTried || now < away.nextTry else {
      self.away?.isTried = true
      return .granted(isTry: true)
    }
    self.away?.isAnnounced = true
    return .later(
      max(Self.pauses.first, away.nextTry - now),
      announcing: away.isAnnounced ? nil : away.since + CircuitBreaker.patience - now)
  }

  /// Takes in how a request came out.
  ///
  /// - Parameters:
  ///   - outcome: how.
  ///   - isTry: whether it was the one that tried a host which is away.
  ///   - now: the time.
  /// - Returns: Whether the host is waited for, so that the request should be sent once more.
  mutating func note(_ outcome: Outcome, isTry: Bool, now: Double) -> Bool {
    if isTry { away?.isTried = false }
    switch outcome {
    case .unknown: return false
    case .answered:
      self = HostState()
      hasAnswered = true
      return false
    case .notConnected, .failed: break
    }
    if failures == 0 { failingSince = now }
    failures += 1
    if var away {
      guard now - away.since < CircuitBreaker.patience else {
        leaveAlone(now: now)
        return false
      }
      if isTry {
        away.pause = min(2 * away.pause, Self.pauses.last)
        away.nextTry = now + away.pause
        self.away = away
      }
      return true
    }
    if hasAnswered, outcome == .notConnected || failures >= Self.leastFailures {
      away = Absence(since: now, nextTry: now + Self.pauses.first)
      return true
    }
    if failures >= Self.maximumFailures, now - failingSince >= Self.restLength {
      leaveAlone(now: now)
    }
    return false
  }

  private mutating func leaveAlone(now: Double) {
    away = nil
    restsUntil = now + Self.restLength
  }
}

extension HostState.Outcome {
  /// How a request to a URL came out.
  init(_ result: Result<HTTPResponse, any Error>, of url: HTTPURL) {
    switch result {
    case .success(let response):
      self =
        [502, 503, 504, 520, 521, 522, 523, 524, 527, 530].contains(response.status)
        ? .failed : .answered
    case .failure(let error as TransportError) where error.isTransient:
      // A redirection may have led elsewhere.
      guard let failed = Self.authority(error.url), failed == url.authority else {
        self = .unknown
        return
      }
      switch error.reason {
      case .notConnected, .unknownHost: self = .notConnected
      default: self = .failed
      }
    case .failure: self = .unknown
    }
  }

  private static func authority(_ url: String) -> Authority? {
    do throws(TransportError) { return try HTTPURL(url).authority } catch { return nil }
  }
}
