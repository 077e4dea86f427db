import Testing

@testable import HTTP

@Suite struct `Frames of a WebSocket` {
  @Test func `answers the key of the RFC as the RFC does`() {
    #expect(WebSocket.answer(to: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
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
      [0x82, 3, 1, 2, 3] + [0x89, 1, 9] + [0x02, 1, 4] + [0x8a, 0] + [0x80, 1, 5]
      + [0x82, 126, 1, 44] + long + [0x88, 0]
    #expect(
      try messages(bytes, pieces: pieces) == [
        .message([1, 2, 3]), .ping([9]), .message([4, 5]), .message(long), .close,
      ])
  }

  @Test(
    arguments: [
      [0xc2, 0], [0x82, 0x80, 0, 0, 0, 0], [0x83, 0], [0x80, 0], [0x02, 1, 1, 0x82, 1, 1],
      [0x09, 0], [0x89, 126, 0, 200],
      [0x82, 127, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    ] as [[UInt8]])
  func `that no server may send are refused`(bytes: [UInt8]) {
    #expect(throws: WebSocketFrames.Malformed.self) { try messages(bytes, pieces: 1000) }
  }

  @Test func `of a client are masked`() {
    let frame = WebSocketFrames.control(10, [1, 2, 3])
    #expect(frame.prefix(2) == [0x8a, 0x83] && frame.count == 9)
    #expect((0..<3).map { frame[6 + $0] ^ frame[2 + $0] } == [1, 2, 3])
  }
}
