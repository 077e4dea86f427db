internal import ATProtocol
internal import CCurl
internal import LibC

/// A WebSocket that is read from: libcurl makes the connection, with TLS, and the rest is done
/// here, for the libcurl of many systems knows no WebSockets.
///
/// Its functions block, and are called from one thread.
///
/// Source: RFC 6455.
package final class WebSocket {
  private let easy: CurlEasy
  private let library: CurlLibrary
  private let url: String
  private let descriptor: CInt
  private var frames = WebSocketFrames()
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)

  /// How long the server's answer to the opening may be, in bytes.
  private static let longestHead = 16 << 10
  /// How long it may take, in seconds.
  private static let patience = 30

  /// Opens it.
  ///
  /// - Parameters:
  ///   - origin: the server, as a URL of `https` or `http`, without a path. The user has named it:
  ///     it may be anywhere.
  ///   - path: what is asked for.
  ///   - options: what the user set about the network.
  /// - Throws: ``TransportError``.
  package init(_ origin: String, path: String, _ options: NetworkOptions) throws(TransportError) {
    url = origin
    library = try CurlLibrary.forURL(origin)
    guard let easy = CurlEasy(library) else {
      throw TransportError(.unavailable("there is no memory"), url: origin)
    }
    self.easy = easy
    easy.set(CURLOPT_URL, origin)
    easy.set(CURLOPT_PROTOCOLS_STR, "http,https")
    easy.set(CURLOPT_CONNECT_ONLY, 1)
    easy.set(CURLOPT_NOSIGNAL, 1)
    easy.set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    easy.set(CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2)
    easy.set(CURLOPT_CONNECTTIMEOUT, options.connectSeconds)
    if let caFile = options.caFile { easy.set(CURLOPT_CAINFO, caFile) }
    let code = unsafe library.easyPerform(easy.handle)
    guard code == CURLE_OK, let socket = easy.activeSocket else {
      throw TransportError(.notConnected(easy.explanation(of: code)), url: origin)
    }
    descriptor = socket
    try open(path, options)
  }

  private func open(_ path: String, _ options: NetworkOptions) throws(TransportError) {
    let key = Self.padded((0..<16).map { _ in UInt8.random(in: 0...255) })
    let host = url.split(separator: "/", maxSplits: 2).last.map(String.init) ?? ""
    try send(
      Array(
        """
        GET \(path) HTTP/1.1\r
        Host: \(host)\r
        User-Agent: \(options.userAgent)\r
        Upgrade: websocket\r
        Connection: Upgrade\r
        Sec-WebSocket-Key: \(key)\r
        Sec-WebSocket-Version: 13\r
        \r

        """.utf8))
    var head: [UInt8] = []
    let end = Array("\r\n\r\n".utf8)
    let deadline = ContinuousClock.now + .seconds(Self.patience)
    var place: Int?
    while place == nil {
      guard ContinuousClock.now < deadline, head.count < Self.longestHead else {
        throw TransportError(.malformedAnswer("it is no opening of a WebSocket"), url: url)
      }
      head += try receive(waiting: 1) ?? []
      place = head.indices.first { head[$0...].starts(with: end) }
    }
    let lines = String(decoding: head[..<(place ?? 0)], as: UTF8.self).split(
      whereSeparator: \.isNewline)
    guard lines.first?.split(separator: " ").dropFirst().first == "101" else {
      let status = lines.first.map { Excerpt.of(String($0)) } ?? ""
      throw TransportError(.malformedAnswer("it opens no WebSocket: \(status)"), url: url)
    }
    let accept = lines.dropFirst().first { $0.lowercased().hasPrefix("sec-websocket-accept:") }
    guard let value = accept?.split(separator: ":").last,
      value.trimmingBlanks == Self.answer(to: key)
    else { throw TransportError(.malformedAnswer("it answers another opening"), url: url) }
    frames.take(head[((place ?? 0) + end.count)...])
  }

  /// What a server answers to a key.
  package static func answer(to key: String) -> String {
    padded(SHA1.digest(of: Array("\(key)258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8)))
  }

  /// Base64 with the padding that the AT Protocol leaves out.
  private static func padded(_ bytes: [UInt8]) -> String {
    Base64.encode(bytes) + String(repeating: "=", count: (3 - bytes.count % 3) % 3)
  }

  /// The next message; nil if none came in so many seconds.
  ///
  /// - Throws: ``TransportError`` if the connection has ended, or what came is malformed.
  package func next(waiting seconds: Double) throws(TransportError) -> [UInt8]? {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      switch try message() {
      case .message(let bytes): return bytes
      case .ping(let payload): try send(WebSocketFrames.control(10, payload))
      case .close: throw TransportError(.cutOff("the server has closed the stream"), url: url)
      case nil:
        let left = ContinuousClock.now.duration(to: deadline) / .seconds(1)
        guard left > 0 else { return nil }
        guard let bytes = try receive(waiting: left) else { return nil }
        frames.take(bytes)
      }
    }
  }

  private func message() throws(TransportError) -> WebSocketFrames.Message? {
    do throws(WebSocketFrames.Malformed) {
      return try frames.next()
    } catch {
      throw TransportError(.malformedAnswer(error.why), url: url)
    }
  }

  /// Asks whether the server is there: it has to answer something.
  ///
  /// - Throws: ``TransportError`` if the connection has ended.
  package func ping() throws(TransportError) { try send(WebSocketFrames.control(9)) }

  // MARK: Bytes

  private func receive(waiting seconds: Double) throws(TransportError) -> [UInt8]? {
    let deadline = ContinuousClock.now + .seconds(seconds)
    while true {
      var count = 0
      let code = unsafe library.easyReceive(easy.handle, &buffer, buffer.count, &count)
      switch code {
      case CURLE_OK where count > 0: return Array(buffer[..<count])
      case CURLE_OK: throw TransportError(.cutOff("the server has ended it"), url: url)
      case CURLE_AGAIN:
        let left = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
        guard left > 0 else { return nil }
        wait(CInt(POLLIN), milliseconds: CInt(min(left, 60_000)) + 1)
      default: throw TransportError(.cutOff(easy.explanation(of: code)), url: url)
      }
    }
  }

  private func send(_ bytes: [UInt8]) throws(TransportError) {
    var rest = bytes[...]
    let deadline = ContinuousClock.now + .seconds(Self.patience)
    while !rest.isEmpty {
      var count = 0
      let piece = Array(rest)
      let code = unsafe library.easySend(easy.handle, piece, piece.count, &count)
      guard code == CURLE_OK || code == CURLE_AGAIN, ContinuousClock.now < deadline else {
        throw TransportError(.cutOff(easy.explanation(of: code)), url: url)
      }
      rest = rest.dropFirst(count)
      if code == CURLE_AGAIN { wait(CInt(POLLOUT), milliseconds: 1000) }
    }
  }

  private func wait(_ events: CInt, milliseconds: CInt) {
    var place = pollfd(fd: descriptor, events: CShort(events), revents: 0)
    // Whatever ends the wait, the next attempt shows what is there.
    _ = unsafe poll(&place, 1, milliseconds)
  }
}

extension Substring {
  fileprivate var trimmingBlanks: String {
    String(drop { $0 == " " }.reversed().drop { $0 == " " }.reversed())
  }
}
