/// A client that connects and then does nothing, or has said a little before.
package final class LoopbackIdler: Sendable {
  private let socket: Socket

  /// Connects to a port of 127.0.0.1.
  ///
  /// - Throws: if there is no connection.
  package init(port: UInt16, saying text: String = "") throws {
    socket = try Socket.connecting(to: port)
    _ = socket.send(Array(text.utf8).span)
  }

  deinit { socket.close() }
}
