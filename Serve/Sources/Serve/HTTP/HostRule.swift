import NIOCore
import Synchronization

/// The names by which the server may be addressed.
///
/// A page of another website can make a name of its own resolve to this machine's addresses, and
/// then send requests under that name as if to that website (DNS rebinding). A request that names
/// neither an address nor a known host is refused.
struct HostRule: Sendable {
  private let names: Set<String>
  private let port: Int
  /// The address that is bound to; nil for all of the machine.
  private let address: String?

  /// - Parameters:
  ///   - host: the address that was bound to.
  ///   - port: the port.
  ///   - names: further names.
  init(host: String, port: Int, names: [String]) {
    let host = Self.normal(host)
    self.port = port
    address = ["0.0.0.0", "::"].contains(host) ? nil : host
    var known = Set(names.map(Self.name))
    if address == nil || Self.isLoopback(host) {
      known.formUnion(["localhost", "127.0.0.1", "::1"])
    }
    if let address { known.insert(address) }
    self.names = known
  }

  /// Whether an address is one that only this machine reaches.
  static func isLoopback(_ host: String) -> Bool {
    host == "localhost" || host == "::1" || host.hasPrefix("127.")
  }

  /// Whether a request may say that it is for this host.
  func allows(_ authority: String?) -> Bool {
    guard let authority, let (host, port) = Self.split(authority) else { return false }
    if names.contains(host) {
      // Behind another server that forwards what it is asked, the port is that one's.
      return port == nil || port == self.port || !Self.isAddress(host) && host != "localhost"
    }
    return address == nil && Self.isAddress(host)
  }

  /// Whether a request names this host, whatever the port.
  static func host(_ authority: String) -> String? { split(authority)?.host }

  private static func split(_ authority: String) -> (host: String, port: Int?)? {
    let text = authority.lowercased()
    if text.hasPrefix("[") {
      guard let end = text.firstIndex(of: "]") else { return nil }
      let host = String(text[text.index(after: text.startIndex)..<end])
      let rest = text[text.index(after: end)...]
      guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
      return (host, rest.isEmpty ? nil : Int(rest.dropFirst()))
    }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard parts.count <= 2, let host = parts.first, !host.isEmpty else { return nil }
    if parts.count == 2 {
      guard let port = Int(parts[1]) else { return nil }
      return (String(host), port)
    }
    return (String(host), nil)
  }

  private static func normal(_ host: String) -> String {
    let host = host.lowercased()
    return host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
  }

  private static func name(_ hostname: String) -> String {
    var text = hostname.lowercased()
    for scheme in ["https://", "http://"] where text.hasPrefix(scheme) {
      text = String(text.dropFirst(scheme.count))
    }
    return split(text)?.host ?? text
  }

  /// Whether a host is written as an address, which no other website can be.
  private static func isAddress(_ host: String) -> Bool {
    (try? SocketAddress(ipAddress: host, port: 0)) != nil
  }
}

/// The rule, which is known once the server is bound.
final class BoundHosts: Sendable {
  private let rule = Mutex<HostRule?>(nil)

  func bind(_ rule: HostRule) { self.rule.withLock { $0 = rule } }

  /// Whether a request may say that it is for this host.
  func allows(_ authority: String?) -> Bool { rule.withLock { $0 }?.allows(authority) ?? false }
}
