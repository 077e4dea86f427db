/// A host with its port and the addresses to use for it, whatever DNS says: `host:port:address`,
/// several addresses with commas between.
package struct HostPin: Sendable {
  /// The host and the port.
  package let authority: Authority
  /// The addresses, in the order in which they are tried.
  package let addresses: [IPAddress]

  /// Parses a pin.
  ///
  /// - Throws: ``TransportError`` if it is not of that form.
  package init(_ text: String) throws(TransportError) {
    let parts = text.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, !parts[0].isEmpty, let port = UInt16(parts[1]), port > 0 else {
      throw TransportError(.unusablePin, url: text)
    }
    authority = Authority(host: String(parts[0]), port: port)
    var addresses: [IPAddress] = []
    for part in parts[2].split(separator: ",", omittingEmptySubsequences: false) {
      guard let address = Self.address(part) else {
        throw TransportError(.unusablePin, url: text)
      }
      addresses.append(address)
    }
    self.addresses = addresses
  }

  /// Splits a list of pins at white space, and at commas if it is clear what follows.
  ///
  /// A comma is followed by another pin, or by another address of the pin before it.
  ///
  /// - Throws: ``TransportError`` if a part is neither, or may be both.
  package static func list(_ text: String) throws(TransportError) -> [String] {
    var pins: [String] = []
    for word in text.split(whereSeparator: \.isWhitespace) {
      var isFirst = true
      for part in word.split(separator: ",") {
        // What is not a pin may be an address.
        let isPin = (try? HostPin(String(part))) != nil
        let isAddress = !isFirst && address(part) != nil
        guard isPin != isAddress else {
          throw TransportError(.unusablePin, url: Excerpt.of(String(word)))
        }
        if isPin { pins.append(String(part)) } else { pins[pins.count - 1] += "," + part }
        isFirst = false
      }
    }
    return pins
  }

  /// An address, with brackets or without.
  private static func address(_ text: Substring) -> IPAddress? {
    let isBracketed = text.hasPrefix("[") && text.hasSuffix("]")
    return IPAddress(String(isBracketed ? text.dropFirst().dropLast() : text))
  }

  /// As libcurl wants it (`CURLOPT_RESOLVE`).
  var resolveEntry: String {
    let list = addresses.map { $0.isIPv4 ? "\($0)" : "[\($0)]" }.joined(separator: ",")
    return "\(authority.host):\(authority.port):\(list)"
  }
}
