import HTTP

extension Socket {
  /// Waits for a client that wants a WebSocket; nil if it goes away.
  ///
  /// - Returns: What it asks for, and what opens the WebSocket.
  func awaitOpening() -> (target: String, answer: [UInt8])? {
    var bytes: [UInt8] = []
    while !bytes.suffix(4).elementsEqual("\r\n\r\n".utf8) {
      guard case .bytes = receive(into: &bytes) else { return nil }
    }
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\r\n")
    let target = lines.first?.split(separator: " ").dropFirst().first ?? ""
    let key = lines.first { $0.lowercased().hasPrefix("sec-websocket-key: ") }?.dropFirst(19) ?? ""
    let answer =
      """
      HTTP/1.1 101 Switching Protocols\r
      Upgrade: websocket\r
      Connection: Upgrade\r
      Sec-WebSocket-Accept: \(WebSocketOpening.answer(to: String(key)))\r
      \r

      """
    return (String(target), Array(answer.utf8))
  }
}

/// A frame as a server sends it.
///
/// - Parameters:
///   - payload: what is in it.
///   - first: its first byte: an opcode, and 0x80 if it is the last of its message.
package func webSocketFrame(_ payload: [UInt8], first: UInt8 = 0x82) -> [UInt8] {
  let length: [UInt8] =
    switch payload.count {
    case ..<126: [UInt8(payload.count)]
    case ..<65536: [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xff)]
    default:
      [127] + (0..<8).reversed().map { UInt8(truncatingIfNeeded: payload.count >> ($0 * 8)) }
    }
  return [first] + length + payload
}
