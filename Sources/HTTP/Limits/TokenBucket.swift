/// A token bucket: a number of requests that may be sent at once, which fills up again as time
/// passes.
struct TokenBucket {
  /// How many tokens it holds.
  let capacity: Double
  /// How many tokens come back in a second.
  let perSecond: Double
  private var tokens: Double
  private var filledAt: Double

  /// A full bucket.
  init(capacity: Double, perSecond: Double, now: Double) {
    self.capacity = max(1, capacity)
    self.perSecond = max(1e-3, perSecond)
    tokens = self.capacity
    filledAt = now
  }

  /// How many seconds it takes until there is a token.
  mutating func wait(now: Double) -> Double {
    tokens = min(capacity, tokens + max(0, now - filledAt) * perSecond)
    filledAt = max(filledAt, now)
    // What is missing by rounding alone is not waited for.
    return tokens >= 1 - 1e-9 ? 0 : (1 - tokens) / perSecond
  }

  /// Takes a token; what is not there is owed no further than to nothing.
  mutating func take(now: Double) {
    _ = wait(now: now)
    tokens = max(0, tokens - 1)
  }
}
