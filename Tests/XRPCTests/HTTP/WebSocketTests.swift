import StandIn
import Testing

@testable import HTTP

@Suite struct `Frames of a WebSocket` {
  private func messages(_ bytes: [UInt8], pieces: Int) throws -> [WebSocketFrames.Message] {
    var frames = WebSocketFrames()
    var found: [WebSocketFrames.Message] = []
    var rest = bytes[...]
    while !rest.isEmpty {
      frames.take(rest.prefix(pieces))
      rest = rest.dropFirst(pieces)
      while let message = try frames.next() { found.append(message) }
    }
    return found
  }

  @Test(arguments: [1, 2, 3, 1000])
  func `are put together however they come`(pieces: Int) throws {
    let long = [UInt8](repeating: 7, count: 300)
    let bytes: [UInt8] =
      [0x82, 3, 1, 2, 3] + [0x89, 1, 9] + [0x02, 1, 4] + [0x8a, 0] + [0x00, 0] + [0x89, 0]
      + [0x80, 1, 5] + [0x82, 126, 1, 44] + long + [0x81, 0] + [0x88, 4, 3, 0xf0, 0x6e, 0x6f]
    #expect(
      try messages(bytes, pieces: pieces) == [
        .message([1, 2, 3]), .ping([9]), .pong, .ping([]), .message([4, 5]), .message(long),
        .message([]), .close("no"),
      ])
  }

  @Test(
    arguments: [
      [0xc2, 0], [0x82, 0x80, 0, 0, 0, 0], [0x83, 0], [0x8b, 0], [0x80, 0],
      [0x02, 1, 1, 0x82, 1, 1], [0x09, 0], [0x89, 126, 0, 200],
      [0x82, 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
      [0x82, 127, 0, 0, 0, 0, 1, 0, 0, 1],
    ] as [[UInt8]])
  func `that no server may send are refused`(bytes: [UInt8]) {
    #expect(throws: WebSocketError.self) { try messages(bytes, pieces: 1000) }
  }

  /// A message in this many frames of this many bytes.
  private func message(_ count: Int, of length: Int) -> [UInt8] {
    let payload = [UInt8](repeating: 1, count: length)
    var bytes: [UInt8] = []
    for number in 1...count {
      bytes += webSocketFrame(payload, first: (number == 1 ? 2 : 0) | (number == count ? 0x80 : 0))
    }
    return bytes
  }

  @Test func `are joined without copying what came before for each`() throws {
    let count = WebSocketFrames.maximumFragments
    let length = WebSocketFrames.longestMessage / count
    let bytes = message(count, of: length)
    let start = ContinuousClock.now
    let found = try messages(bytes, pieces: 64 << 10)
    // 16 MiB; if each frame copied what came before it, 32 GiB.
    #expect(start.duration(to: .now) < .seconds(15))
    #expect(found == [.message([UInt8](repeating: 1, count: count * length))])
  }

  @Test(arguments: [1, 4096]) func `make no message that is too long`(count: Int) {
    #expect(throws: WebSocketError.self) {
      try messages(message(count, of: WebSocketFrames.longestMessage / count + 1), pieces: 64 << 10)
    }
  }

  @Test func `make no message of too many parts`() throws {
    let most = WebSocketFrames.maximumFragments
    #expect(try messages(message(most, of: 1), pieces: 1000).count == 1)
    #expect(throws: WebSocketError.self) { try messages(message(most + 1, of: 0), pieces: 1000) }
    // It does not have to come to its end for that.
    let endless = message(most + 1, of: 1).dropLast(3) + [0, 1, 1]
    #expect(throws: WebSocketError.self) { try messages(Array(endless), pieces: 1000) }
  }

  @Test(arguments: [[0x89, 0], [0x8a, 1, 7]] as [[UInt8]])
  func `of control are refused if there are too many in a while`(frame: [UInt8]) throws {
    var frames = WebSocketFrames()
    let start = ContinuousClock.now
    for window in 0..<3 {
      let time = start + WebSocketFrames.controlWindow * window
      for _ in 0..<WebSocketFrames.maximumControlFrames {
        frames.take(frame)
        #expect(try frames.next(at: time) != nil)
      }
    }
    frames.take(frame)
    let error = #expect(throws: WebSocketError.self) {
      try frames.next(at: start + WebSocketFrames.controlWindow * 2.5)
    }
    #expect(error?.why == "more than 100 control frames in 10.0 seconds")
  }

  @Test func `of a client are masked`() {
    let frame = WebSocketFrames.control(10, [1, 2, 3])
    #expect(frame.prefix(2) == [0x8a, 0x83] && frame.count == 9)
    let content: [UInt8] = zip(frame[6...], frame[2...]).map { $0 ^ $1 }
    #expect(content == [1, 2, 3])
  }
}

@Suite struct `The opening of a WebSocket` {
  @Test func `answers the key of the RFC as the RFC does`() {
    #expect(
      WebSocketOpening.answer(to: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
  }

  @Test(arguments: [
    ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
    ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
    (
      "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
    ),
    (String(repeating: "a", count: 64), "0098ba824b5c16427bd7a1122a5a442a25ec644d"),
  ])
  func `has the digests of SHA-1`(text: String, digest: String) {
    let hexadecimal = SHA1.digest(of: Array(text.utf8)).map { byte in
      (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
    #expect(hexadecimal == digest)
  }

  /// An opening, and what a server answers to it.
  private func opening() throws -> (WebSocketOpening, accept: String) {
    let opening = WebSocketOpening()
    let request = String(
      decoding: opening.request(path: "/p?q=1", host: "a.test:8", userAgent: "tests"),
      as: UTF8.self)
    #expect(request.hasPrefix("GET /p?q=1 HTTP/1.1\r\nHost: a.test:8\r\n"))
    #expect(request.hasSuffix("\r\n\r\n"))
    let field = try #require(
      request.split(separator: "\r\n").first { $0.hasPrefix("Sec-WebSocket-Key: ") })
    return (opening, WebSocketOpening.answer(to: String(field.dropFirst(19))))
  }

  @Test(arguments: [1, 3, 1000]) func `ends where the frames begin`(pieces: Int) throws {
    var (opening, accept) = try opening()
    let answer = Array(
      "HTTP/1.1 101 Switching\r\nsec-websocket-ACCEPT:\(accept) \r\nUpgrade: x\r\n\r\n".utf8)
    let bytes = answer + [0x82, 0]
    var (rest, came): (ArraySlice<UInt8>?, Int) = (nil, 0)
    while rest == nil, came < bytes.count {
      rest = try opening.take(bytes.dropFirst(came).prefix(pieces))
      came += pieces
    }
    #expect(rest.map { $0 + bytes.dropFirst(came) } == [0x82, 0])
  }

  @Test(arguments: [
    "HTTP/1.1 403 No\r\n\r\n", "HTTP/1.1 101 Yes\r\n\r\n", "\r\n\r\n",
    "HTTP/1.1 101 Yes\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
    String(repeating: "x", count: WebSocketOpening.longestHead + 1),
  ])
  func `is refused if the answer is another`(answer: String) throws {
    var (opening, _) = try opening()
    #expect(throws: WebSocketError.self) { try opening.take(answer.utf8) }
  }
}
