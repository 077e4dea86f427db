import IPLD
import TestSupport
import Testing

@Suite struct `A DAG-CBOR scan` {
  /// All tokens of `bytes`.
  private func tokens(_ bytes: [UInt8]) throws -> [DAGCBORScanner.Token] {
    var scanner = DAGCBORScanner()
    var tokens: [DAGCBORScanner.Token] = []
    while let token = try scanner.next(in: bytes.span) { tokens.append(token) }
    #expect(scanner.offset == bytes.count)
    #expect(scanner.depth == 0)
    return tokens
  }

  @Test func `gives tokens with the places of their content`() throws {
    let cid = CID(codec: .raw, hashing: [0].span)
    var bytes = try DAGCBOREncoder.encode(["a": .array([1, -1, .float(0.5), .boolean(true)])])
    #expect(
      try tokens(bytes) == [
        .map(1), .key(2..<3), .array(4), .unsigned(1), .negative(0), .float(0.5), .boolean(true),
        .end, .end,
      ])
    bytes = try DAGCBOREncoder.encode(.array(["abc", .bytes([1, 2]), .link(cid), .null, [:]]))
    #expect(
      try tokens(bytes) == [
        .array(5), .string(2..<5), .bytes(6..<8), .link(13..<49), .null, .map(0), .end, .end,
      ])
    #expect(Array(bytes[13..<49]) == cid.bytes)
    #expect(try tokens([0xf6]) == [.null])
  }

  @Test func `counts what is open`() throws {
    let bytes: [UInt8] = [0x81, 0xa1, 0x60, 0x00]
    var scanner = DAGCBORScanner()
    var depths: [Int] = []
    while try scanner.next(in: bytes.span) != nil { depths.append(scanner.depth) }
    #expect(depths == [1, 2, 2, 2, 1, 0])
  }

  /// A frame of an event stream is two items, one after the other.
  @Test func `tells where an item ends when another follows`() throws {
    let first = try DAGCBOREncoder.encode(["op": 1, "t": "#commit"])
    let second = try DAGCBOREncoder.encode(["seq": 1])
    let bytes = first + second
    #expect(throws: DAGCBORError(.trailingBytes, offset: first.count)) {
      try DAGCBORDecoder.decode(bytes.span)
    }
  }

  @Test func `can be started again for another item`() throws {
    var scanner = DAGCBORScanner()
    _ = try scanner.check([0x81, 0x00].span)
    #expect(throws: DAGCBORError(.truncated, offset: 3)) {
      try scanner.check([0x81, 0xa1, 0x60].span)
    }
    // After an error in the midst of things, nothing of it is left.
    _ = try scanner.check([0xa1, 0x60, 0xf6].span)
    #expect(scanner.offset == 3)
    scanner.restart()
    #expect(scanner.offset == 0)
    #expect(scanner.depth == 0)
    #expect(try scanner.next(in: [0xf5].span) == .boolean(true))
  }

  @Test func `says what it saw on the way`() throws {
    let link = IPLDValue.link(CID(codec: .raw, hashing: [0].span))
    let bytes = try DAGCBOREncoder.encode([
      "a": link, "b": .array([link, ["$type": "blob", "ref": link]]), "text": "$type",
    ])
    var scanner = DAGCBORScanner()
    let summary = try scanner.check(bytes.span, watching: ShortKey("$type"))
    #expect(summary.linkCount == 3)
    #expect(summary.hasWatchedKey)
    #expect(summary.isMap)
    #expect(try !scanner.check(bytes.span, watching: ShortKey("type")).hasWatchedKey)
    #expect(try !scanner.check(bytes.span).hasWatchedKey)
    let list = try DAGCBOREncoder.encode(.array([["text": 1]]))
    let other = try scanner.check(list.span, watching: ShortKey("$type"))
    #expect(other == DAGCBORSummary())
  }

  @Test func `recognises a watched key of every length`() throws {
    let keys: [(ShortKey, String)] = [
      (ShortKey("a"), "a"), (ShortKey("ab"), "ab"), (ShortKey("abc"), "abc"),
      (ShortKey("abcd"), "abcd"), (ShortKey("abcde"), "abcde"), (ShortKey("abcdef"), "abcdef"),
      (ShortKey("abcdefg"), "abcdefg"), (ShortKey("abcdefgh"), "abcdefgh"),
    ]
    for (key, text) in keys {
      for (_, other) in keys + [(key, "abcdefghi"), (key, ""), (key, "b"), (key, "abcdefgx")] {
        let bytes = try DAGCBOREncoder.encode([other: 1])
        var scanner = DAGCBORScanner()
        let found = try scanner.check(bytes.span, watching: key).hasWatchedKey
        #expect(found == (text == other), "\(text) in \(other)")
      }
    }
  }
}
