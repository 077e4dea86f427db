/// The requests of the current window, of all clients together: they all come from loopback.
struct RateWindow {
  private var began = 0.0
  private var count = 0

  /// Counts a request; returns whether it is within the limit, and writes header fields that say
  /// so.
  mutating func admit(
    _ limit: Behaviour.RateLimit, now: Double, _ response: LoopbackResponse
  ) -> Bool {
    if now >= began + limit.seconds {
      began = now
      count = 0
    }
    count += 1
    let left = began + limit.seconds - now
    let isWithin = count <= limit.requests
    if limit.isAnnounced {
      let reset = limit.reset == .absolute ? began + limit.seconds : left
      response.fields += [
        ("RateLimit-Limit", "\(limit.requests)"),
        ("RateLimit-Remaining", "\(max(0, limit.requests - count))"),
        ("RateLimit-Reset", "\(Int(reset.rounded(.up)))"),
        ("RateLimit-Policy", "\(limit.requests);w=\(Int(limit.seconds.rounded(.up)))"),
      ]
    }
    if !isWithin && limit.hasRetryAfter {
      response.fields.append(("Retry-After", "\(Int(left.rounded(.up)))"))
    }
    return isWithin
  }
}
