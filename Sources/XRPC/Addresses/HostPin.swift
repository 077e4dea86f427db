/// A host with its port and the addresses to use for it, whatever DNS says: `host:port:address`, several addresses with commas between.
public struct HostPin: Sendable {
  /// The host and the port.
  public let authority: Authority
  /// The addresses, in the order in which they are tried.
  public let addresses: [IPAddress]

  /// Parses a pin.
  ///
  /// - Throws: ``TransportError`` if it is not of that form.
  public init(_ text: String) throws(TransportError) {
    let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, let port = UInt16(parts[1]), port > 0 else {
      throw TransportError(.unusablePin, url: text)
    }
    authority = Authority(host: String(parts[0]), port: port)
    var addresses: [IPAddress] = []
    for part in parts[2].split(separator: ",", omittingEmptySubsequences: false) {
      let bare = part.hasPrefix("[") && part.hasSuffix("]") ? part.dropFirst().dropLast() : part
      guard let address = IPAddress(String(bare)) else {
        throw TransportError(.unusablePin, url: text)
      }
      addresses.append(address)
    }
    self.addresses = addresses
  }

  /// As libcurl wants it (`CURLOPT_RESOLVE`).
  var resolveEntry: String {
    let list = addresses.map { $0.isIPv4 ? "\($0)" : "[\($0)]" }.joined(separator: ",")
    return "\(authority.host):\(authority.port):\(list)"
  }
}
