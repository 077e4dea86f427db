/// What a host's name says about where it is, before it is looked up.
extension Authority {
  /// Whether nobody on the public internet can have the host: an address that is not global, or a name that only one's own network or machine knows.
  ///
  /// Where a proxy looks names up, this is all that can be known.
  var isPrivate: Bool {
    if let address { return address.scope != .global }
    guard host.contains(".") else { return true }
    return Self.privateSuffixes.contains { host.hasSuffix($0) }
  }

  /// `localhost` (RFC 6761), multicast DNS (RFC 6762), home networks (RFC 8375), and what ICANN keeps for private use.
  private static let privateSuffixes = [".localhost", ".local", ".home.arpa", ".internal"]
}
