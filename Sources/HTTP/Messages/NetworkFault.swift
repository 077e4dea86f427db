/// An error of the network, of a server, a directory or a store: it says itself whether asking again
/// later may help, and callers ask it.
public protocol NetworkFault: Error {
  /// Whether the same question may be answered some time later.
  var mayPass: Bool { get }
}

extension Error {
  /// Whether it is an error of the network that may pass.
  package var mayPass: Bool { (self as? any NetworkFault)?.mayPass ?? false }
}

/// What the status of an answer says.
package enum HTTPStatus {
  /// Whether another attempt may have another result than an answer of this status.
  ///
  /// The reference server always answers 500 for a blob that it has lost, so attempts are counted.
  package static func mayPass(_ status: Int) -> Bool {
    [408, 425, 429, 500].contains(status) || HostState.gatewayFaults.contains(status)
  }
}

extension HTTPResponse {
  /// The statuses of pages that stand before a server rather than come from it.
  private static let statusesOfPages: Set = [401, 403, 429, 503, 511]

  /// Whether it is a page that wants a browser, from something that stands before the server: the
  /// challenge of a proxy, or the page with which one logs in to a network.
  ///
  /// - Parameter beginning: the beginning of the body.
  package func isForBrowsers(_ beginning: [UInt8]) -> Bool {
    if self["cf-mitigated"] != nil { return true }
    guard isSuccess || Self.statusesOfPages.contains(status) else { return false }
    let blanks: Set<UInt8> = [0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf]
    let text = String(
      decoding: beginning.drop { blanks.contains($0) }.prefix(15), as: UTF8.self
    ).lowercased()
    if text.hasPrefix("<!doctype html") || text.hasPrefix("<html") { return true }
    // A CAR may come as text/html, too, and may begin with this byte.
    let isHTML = self["content-type"]?.lowercased().contains("html") == true
    return isHTML && ["<!", "<?"].contains(where: text.hasPrefix)
  }
}
