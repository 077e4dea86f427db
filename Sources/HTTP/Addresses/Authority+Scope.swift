/// What a host's name shows before it is looked up.
extension Authority {
  /// The address that the host is, if it is not a name.
  package var address: IPAddress? { IPAddress(host) }

  /// Whether the host's name or address is this machine itself (RFC 6761, section 6.3).
  package var isLoopback: Bool {
    host == "localhost" || host.hasSuffix(".localhost") || address?.scope == .loopback
  }

  /// Whether the host cannot be on the public internet: an address that is not global, or a name
  /// that only a local network or machine knows.
  ///
  /// If a proxy looks names up, nothing more can be known.
  var isPrivate: Bool {
    if let address { return address.scope != .global }
    guard host.contains(".") else { return true }
    return Self.privateSuffixes.contains { host.hasSuffix($0) }
  }

  /// RFC 6761, RFC 6762 (multicast DNS), RFC 8375 (home networks), and ICANN's top level for
  /// private use.
  private static let privateSuffixes = [".localhost", ".local", ".home.arpa", ".internal"]
}
