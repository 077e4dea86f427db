/// A server's own account of how many requests it will still answer before it begins to count from
/// the start.
struct ServerWindow {
  private(set) var limit: Int
  /// The fewest that any answer in this window said were left.
  private(set) var remaining: Int
  private(set) var resetAt: Double
  private let length: Double
  /// Whether the window began by this program's clock, and no answer has confirmed it.
  private var isAssumed = false

  /// The assumed length of a window if the server does not give it.
  private static let assumedLength: Double = 60
  /// Resets that lie no further apart than this are one: servers round them, and answers take time.
  private static let tolerance: Double = 2

  /// The window that an answer speaks of; nil if it does not.
  init?(_ said: RateLimitFields, now: Double) {
    guard let limit = said.limit, let remaining = said.remaining else { return nil }
    self.limit = limit
    self.remaining = min(remaining, limit)
    length = max(1, said.window ?? said.reset ?? Self.assumedLength)
    // A server that is asked to wait for says so in the same answer as when the window ends; the
    // wait is meant for this client.
    resetAt = now + (said.retryAfter ?? said.reset ?? length)
  }

  /// Records what a later answer says of the same limit.
  ///
  /// Responses may overtake each other; in one window the fewest count.
  mutating func update(_ other: ServerWindow) {
    let isSame = !isAssumed && abs(other.resetAt - resetAt) <= Self.tolerance
    let fewest = min(remaining, other.remaining)
    self = other
    if isSame { remaining = fewest }
  }

  /// How many seconds it takes until another request will be answered, with this many on their way;
  /// nil if nothing is known any more.
  mutating func wait(now: Double, underWay: Int) -> Double? {
    if now >= resetAt {
      guard !isAssumed else { return nil }
      isAssumed = true
      remaining = limit
      resetAt = now + length
    }
    return underWay < remaining ? 0 : resetAt - now
  }
}
