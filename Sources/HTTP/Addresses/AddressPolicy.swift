/// Which addresses may be connected to: a server that is asked for an account must not make
/// this machine ask its own network.
///
/// Addresses of the public internet are permitted; others only if the user wants that. The check is
/// of the address that is being connected to, so it does not matter what DNS said before.
package struct AddressPolicy: Sendable {
  /// Whether any host may be this machine itself: true once the user has named a server here.
  package var allowsLoopback: Bool
  /// The servers that the user has named, or given an address to; they may be anywhere.
  package var named: Set<Authority>
  /// Of these, the hosts to which http is allowed if they are not on the public internet.
  package var plain: Set<Authority> = []

  /// A policy.
  package init(allowsLoopback: Bool = false, named: Set<Authority> = []) {
    self.allowsLoopback = allowsLoopback
    self.named = named
  }

  /// The policy that follows from what the user has set.
  ///
  /// - Throws: ``TransportError`` if a URL or a pin in `options` cannot be used.
  package init(_ options: NetworkOptions) throws(TransportError) {
    let others = [
      options.plcDirectory, options.dnsOverHTTPS, options.handleResolver, options.pds,
    ]
    var named: Set<Authority> = []
    for url in others.compactMap(\.self) + options.namedServers {
      named.insert(try HTTPURL(url).authority)
    }
    var plain: Set<Authority> = []
    for url in options.plainServers { plain.insert(try HTTPURL(url).authority) }
    named.formUnion(plain)
    let allowsLoopback = options.allowsLoopback || named.contains { $0.isLoopback }
    for pin in options.hostPins { named.insert(try HostPin(pin).authority) }
    self.init(allowsLoopback: allowsLoopback, named: named)
    self.plain = plain
  }

  /// Whether a request for a URL may be sent, judged by its host alone; the address is checked
  /// later.
  ///
  /// - Parameters:
  ///   - url: the requested URL.
  ///   - isRedirected: whether a server of another origin pointed there.
  package func permits(_ url: HTTPURL, isRedirected: Bool) -> Bool {
    if let address = url.authority.address {
      return permits(address, for: url, isRedirected: isRedirected)
    }
    return !url.authority.isPrivate || (allowsLoopback && url.authority.isLoopback)
      || (!isRedirected && named.contains(url.authority))
  }

  /// Whether a request for a URL may be sent to an address.
  ///
  /// - Parameters:
  ///   - address: what is connected to.
  ///   - url: the requested URL.
  ///   - isRedirected: whether a server of another origin pointed there, so that the user did not
  ///     name it.
  package func permits(_ address: IPAddress, for url: HTTPURL, isRedirected: Bool) -> Bool {
    let scope = address.scope
    let mayBePlain = !isRedirected && plain.contains(url.authority) && scope != .global
    guard url.isSecure || scope == .loopback || mayBePlain else { return false }
    switch scope {
    case .global: return true
    case .loopback where allowsLoopback: return true
    default: return !isRedirected && named.contains(url.authority)
    }
  }
}
