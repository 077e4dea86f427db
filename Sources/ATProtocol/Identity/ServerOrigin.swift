/// The origin of a server: scheme, host and port, and nothing else.
///
/// What a DID document may name as an account's server: `https`, or `http` where the host is this
/// machine, for development. Source: [DID](https://atproto.com/specs/did), "DID documents": "the
/// URL scheme, a hostname, and an optional port number".
package struct ServerOrigin: Hashable, Sendable, CustomStringConvertible {
  /// The longest text that is accepted.
  static let maximumLength = 512

  /// The origin, its host in lower case, without a port where the scheme's own is meant and without
  /// a slash at the end.
  package let text: String
  /// Whether requests to it are encrypted.
  package let isSecure: Bool
  /// The host: a name, an IPv4 address, or an IPv6 address in brackets.
  package let host: String
  /// The port, the scheme's own if none is named.
  package let port: Int

  /// Parses an origin; a slash at the end is allowed.
  ///
  /// - Throws: ``ServerOriginError``.
  package init(_ text: String) throws(ServerOriginError) {
    guard text.utf8.count <= Self.maximumLength else { throw .notAnOrigin }
    let lower = text.lowercased()
    guard let scheme = ["https://", "http://"].first(where: lower.hasPrefix) else {
      throw .notHTTP
    }
    isSecure = scheme == "https://"
    var authority = lower.dropFirst(scheme.count)
    if authority.last == "/" { authority.removeLast() }
    let name: Substring
    if authority.first == "[", let end = authority.firstIndex(of: "]") {
      name = authority[...end]
    } else {
      name = authority.prefix { $0 != ":" }
    }
    guard Self.isHost(name) else { throw .notAnOrigin }
    host = String(name)
    let rest = authority.dropFirst(name.count)
    let usual = isSecure ? 443 : 80
    if rest.isEmpty {
      port = usual
    } else {
      let digits = rest.dropFirst()
      guard rest.first == ":", (1...5).contains(digits.utf8.count),
        digits.utf8.allSatisfy(\.isASCIIDigit), let number = Int(digits),
        (1...0xffff).contains(number)
      else { throw .notAnOrigin }
      port = number
    }
    self.text = scheme + host + (port == usual ? "" : ":\(port)")
    guard isSecure || isLoopback else { throw .notSecure }
  }

  /// Splits a URL into the origin and what follows it, which begins with `/` or `?` if there
  /// is anything.
  ///
  /// - Throws: ``ServerOriginError``.
  package static func split(_ url: String) throws(ServerOriginError) -> (
    origin: ServerOrigin, path: Substring
  ) {
    let authority = url.firstRange(of: "://")?.upperBound ?? url.startIndex
    let end = url[authority...].firstIndex { "/?#".contains($0) } ?? url.endIndex
    guard url[end...].utf8.allSatisfy({ 0x21...0x7e ~= $0 && $0 != UInt8(ascii: "#") }) else {
      throw .notAnOrigin
    }
    return (try ServerOrigin(String(url[..<end])), url[end...])
  }

  /// Whether the host names this machine: `localhost`, a name under it, or an address of the
  /// loopback interface.
  package var isLoopback: Bool {
    host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]"
      || host.hasPrefix("127.") && Self.isIPv4(host)
  }

  /// The origin's text.
  package var description: String { text }

  private static func isHost(_ name: Substring) -> Bool {
    let bytes = Array(name.utf8)
    if bytes.first == UInt8(ascii: "[") {
      // Whether it is an address the transport finds out; here it is one in its characters.
      return bytes.count >= 4 && bytes.last == UInt8(ascii: "]")
        && bytes[1..<bytes.count - 1].allSatisfy {
          $0.isASCIIDigit || UInt8(ascii: "a")...UInt8(ascii: "f") ~= $0 || $0 == UInt8(ascii: ":")
            || $0 == UInt8(ascii: ".")
        }
    }
    guard (1...253).contains(bytes.count) else { return false }
    var start = 0
    while true {
      let end = bytes.span.end(before: DomainLabel.separator, from: start)
      if DomainLabel.fault(in: bytes.span, at: start..<end, mayStartWithDigit: true) != nil {
        return false
      }
      if end == bytes.count {
        // A host that ends in a number is an address, in one of several notations that resolvers
        // read differently (`127.1`, `0177.0.0.1`).
        return !bytes[start].isASCIIDigit || isIPv4(name)
      }
      start = end + 1
    }
  }

  /// Four numbers without leading zeros, which some take for octal ones.
  private static func isIPv4(_ host: some StringProtocol) -> Bool {
    let parts = host.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4
      && parts.allSatisfy { UInt8($0) != nil && ($0.utf8.count == 1 || $0.utf8.first != 0x30) }
  }
}

/// Why a text is not the origin of a server.
package enum ServerOriginError: String, Error, CustomStringConvertible {
  /// The scheme is neither `https` nor `http`.
  case notHTTP = "it is not an https URL"
  /// The scheme is `http`, and the host is not this machine.
  case notSecure = "http is used for servers on this machine only"
  /// What follows is not just a host with an optional port.
  case notAnOrigin = "it must be a scheme, a host and optionally a port, and nothing else"

  /// The message for people.
  package var description: String { rawValue }
}
