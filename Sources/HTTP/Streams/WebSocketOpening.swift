internal import ATProtocol

/// How a client opens a WebSocket: its request, and whether the server's answer accepts it.
///
/// Source: RFC 6455, section 4.1.
package struct WebSocketOpening {
  /// What the server has to answer to.
  private let key = padded((0..<16).map { _ in UInt8.random(in: 0...255) })
  private var head: [UInt8] = []

  /// How long the head of an answer may be, in bytes.
  static let longestHead = 16 << 10

  private static let end = Array("\r\n\r\n".utf8)

  /// What is asked.
  ///
  /// - Parameters:
  ///   - path: for what, with the query.
  ///   - host: of which host, with the port where it is not the default.
  ///   - userAgent: the client's name.
  func request(path: String, host: String, userAgent: String) -> [UInt8] {
    Array(
      """
      GET \(path) HTTP/1.1\r
      Host: \(host)\r
      User-Agent: \(userAgent)\r
      Upgrade: websocket\r
      Connection: Upgrade\r
      Sec-WebSocket-Key: \(key)\r
      Sec-WebSocket-Version: 13\r
      \r

      """.utf8)
  }

  /// Takes bytes that have arrived.
  ///
  /// - Throws: ``WebSocketError`` if the answer is too long, or does not accept this request.
  /// - Returns: What has arrived after the answer; nil if the answer is incomplete.
  mutating func take(_ bytes: some Sequence<UInt8>) throws(WebSocketError) -> ArraySlice<UInt8>? {
    // The end may have begun with what came before.
    let start = max(0, head.count - Self.end.count + 1)
    head += bytes
    guard let place = (start..<head.count).first(where: { head[$0...].starts(with: Self.end) })
    else {
      guard head.count <= Self.longestHead else {
        throw WebSocketError(why: "its head is longer than \(Self.longestHead) bytes")
      }
      return nil
    }
    try check(head[..<place])
    return head[(place + Self.end.count)...]
  }

  private func check(_ head: ArraySlice<UInt8>) throws(WebSocketError) {
    let lines = String(decoding: head, as: UTF8.self).split(whereSeparator: \.isNewline)
    guard lines.first?.split(separator: " ").dropFirst().first == "101" else {
      let status = lines.first.map { Excerpt.of(String($0)) } ?? ""
      throw WebSocketError(why: "it does not open a WebSocket: \(status)")
    }
    let accept = lines.dropFirst().first { $0.lowercased().hasPrefix("sec-websocket-accept:") }
    let value = accept?.split(separator: ":", maxSplits: 1).last?.filter { !$0.isWhitespace }
    guard value == Self.answer(to: key) else {
      throw WebSocketError(why: "it answers another handshake")
    }
  }

  /// What a server answers to a key.
  package static func answer(to key: String) -> String {
    padded(SHA1.digest(of: Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)))
  }

  /// Base64 with the padding that the AT Protocol leaves out.
  private static func padded(_ bytes: [UInt8]) -> String {
    Base64.encode(bytes) + String(repeating: "=", count: (3 - bytes.count % 3) % 3)
  }
}

/// What a server sent breaks the WebSocket protocol.
struct WebSocketError: Error, Equatable {
  let why: String
}
