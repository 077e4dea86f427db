/// What an answer says about how much may be asked, and when.
///
/// `RateLimit-Limit`, `-Remaining`, `-Reset` and `-Policy` as the reference server sends them (the
/// earlier drafts of the IETF's "RateLimit header fields"), and `Retry-After` (RFC 9110, section
/// 10.2.3).
struct RateLimitFields: Equatable {
  /// How many requests a window has.
  var limit: Int?
  /// How many of them are left.
  var remaining: Int?
  /// In how many seconds the next window begins.
  var reset: Double?
  /// How many seconds a window lasts.
  var window: Double?
  /// How many seconds to wait.
  var retryAfter: Double?

  /// The longest wait that a server can cause; then it is asked again.
  static let longestWait: Double = 330
  /// The longest window that is accepted, a day: if the reset is farther away, what the answer says
  /// of the window is ignored.
  static let longestWindow: Double = 86_400
  /// A reset from here on is a moment, in seconds since 1970, and one below a time to wait, for no
  /// window lasts thirty years.
  private static let leastMoment: Double = 1e9

  /// Nothing was said.
  init() {}

  /// Reads an answer's head.
  ///
  /// - Parameters:
  ///   - response: the head.
  ///   - unixTime: the present, for servers that do not send theirs (`Date`).
  ///   - longest: the longest wait that is taken from it, in seconds.
  init(_ response: HTTPResponse, unixTime: Double, longest: Double = longestWait) {
    let present = response["date"].flatMap { HTTPDate.unixTime($0) } ?? unixTime
    func field(_ name: String) -> Double? { response[name].flatMap { Self.number($0[...]) } }
    func capped(_ seconds: Double) -> Double { min(max(0, seconds), longest) }

    limit = field("ratelimit-limit").flatMap { Int(exactly: $0.rounded(.down)) }
    remaining = field("ratelimit-remaining").flatMap { Int(exactly: $0.rounded(.down)) }
    let distance = field("ratelimit-reset").map { $0 >= Self.leastMoment ? $0 - present : $0 }
    if let distance, distance > Self.longestWindow {
      remaining = nil
    } else {
      reset = distance.map(capped)
    }
    if let policy = response["ratelimit-policy"] {
      let parameter = policy.split { ";, ".contains($0) }.first { $0.hasPrefix("w=") }
      window = parameter.flatMap { Self.number($0.dropFirst(2)) }.flatMap {
        $0 > 0 ? capped($0) : nil
      }
    }
    if let text = response["retry-after"] {
      let seconds = field("retry-after") ?? HTTPDate.unixTime(text).map { $0 - present }
      retryAfter = seconds.map(capped)
    }
  }

  /// A number in decimal digits, with or without a fraction; nil for anything else.
  private static func number(_ text: Substring) -> Double? {
    let isPlain = text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || $0 == 0x2e }
    guard isPlain, let number = Double(text), number.isFinite else { return nil }
    return number
  }

  /// How long to wait after a refusal; nil if the server does not name a time.
  var wait: Double? { retryAfter ?? (remaining == 0 ? reset : nil) }
}
