internal import CCurl

/// Permits or refuses each address that libcurl is about to connect to, and remembers what it
/// refused.
///
/// It belongs to the thread on which libcurl works.
final class AddressCheck {
  let target: ConnectionTarget
  /// An address that was refused, while no other was permitted.
  private var refused: IPAddress?
  /// Whether some address was permitted: its connection then decides how it ended.
  private var hasPermitted = false

  init(_ target: ConnectionTarget) { self.target = target }

  /// Whether an address may be connected to.
  func permits(_ address: IPAddress) -> Bool {
    // A proxy looks names up by itself.
    if target.proxy != nil { return true }
    let isPermitted = target.policy.permits(
      address, for: target.url, isRedirected: target.isRedirected)
    if isPermitted {
      hasPermitted = true
      refused = nil
    } else if !hasPermitted {
      refused = address
    }
    return isPermitted
  }

  /// Why libcurl failed with this code, if it failed because something was refused.
  func refusal(_ code: CURLcode) -> TransportError.Reason? {
    let url = target.url
    if let refused {
      // With a public address over http, the scheme is wrong.
      guard refused.scope == .global else { return .refusedAddress("\(refused)") }
      return target.isRedirected ? .refusedRedirect("\(url)") : .unusableURL
    }
    // Wherever the name leads, nothing public is asked over http.
    guard code == CURLE_COULDNT_RESOLVE_HOST, target.isRedirected, !url.isSecure else { return nil }
    return .refusedRedirect("\(url)")
  }
}
