package import ATProtocol

/// The address of a stream of events: `wss://host`, or `ws://host` for one that is not on
/// the public internet.
package struct FirehoseAddress: Equatable, Sendable {
  /// As it is kept: scheme, host and port.
  package let text: String

  /// Reads an address; `https` and `http` are taken for `wss` and `ws`.
  ///
  /// - Throws: `ServerOriginError` if it is not one.
  package init(_ text: String) throws(ServerOriginError) {
    var web = text
    if web.hasPrefix("ws") { web = "http" + web.dropFirst(2) }
    let origin = try ServerOrigin(web).text
    self.text = "ws" + origin.dropFirst(4)
  }

  /// The URL of HTTP of an address as it is kept.
  static func origin(of text: String) -> String { "http" + text.dropFirst(2) }
}
