import IPLD
import TestSupport
import Testing

@Suite struct `DAG-CBOR that claims too much` {
  private let limit = DAGCBORScanner.maximumDepth

  /// `depth` containers of one entry, one in the other, around an integer.
  private func nested(_ depth: Int, in head: [UInt8]) -> [UInt8] {
    Array(repeatElement(head, count: depth).joined()) + [0]
  }

  @Test(arguments: DAGCBORProfile.allCases)
  func `nests as deep as the limit and no deeper`(profile: DAGCBORProfile) {
    for head: [UInt8] in [[0x81], [0xa1, 0x61, 0x61]] {
      let reading = DAGCBORReading(nested(limit, in: head), profile)
      #expect(reading.error == nil)
      #expect(reading.inconsistency == nil)
      let deeper = DAGCBORReading(nested(limit + 1, in: head), profile)
      #expect(deeper.error == DAGCBORError(.tooDeep, offset: limit * head.count))
      #expect(deeper.inconsistency == nil)
    }
  }

  @Test func `may be as wide as it likes at the limit`() {
    // The limit counts what is open, not what has been.
    let leaf = [0x82] + nested(limit - 1, in: [0x81]) + nested(limit - 1, in: [0x81])
    let reading = DAGCBORReading(leaf)
    #expect(reading.error == nil)
    #expect(reading.inconsistency == nil)
  }

  @Test func `is refused however deep it nests`() {
    for head: [UInt8] in [[0x81], [0xa1, 0x60], [0x82, 0x00]] {
      let reading = DAGCBORReading(nested(100_000, in: head))
      #expect(reading.error == DAGCBORError(.tooDeep, offset: limit * head.count))
      #expect(reading.inconsistency == nil)
    }
  }

  @Test func `is not written deeper than it can be read`() throws {
    var value = IPLDValue.null
    for _ in 0..<limit { value = .array([value]) }
    #expect(DAGCBORReading(try DAGCBOREncoder.encode(value)).inconsistency == nil)
    #expect(throws: DAGCBORError(.tooDeep, offset: limit)) {
      try DAGCBOREncoder.encode(.array([value]))
    }
    // "a" and its head make a level of three bytes, the outermost of them.
    #expect(throws: DAGCBORError(.tooDeep, offset: limit + 2)) {
      try DAGCBOREncoder.encode(["a": value])
    }
  }

  @Test(arguments: [
    "9b 40 00 00 00 00 00 00 00 00",  // an array of 2^62 items
    "9b ff ff ff ff ff ff ff ff 00",
    "9a ff ff ff ff 00 00 00",
    "ba 3b 9a ca 00 61 61 00",  // a map of a billion entries
    "bb 7f ff ff ff ff ff ff ff 61 61 00",
    "bb 80 00 00 00 00 00 00 00 61 61 00",
    "7b 7f ff ff ff ff ff ff ff 61",  // a string of almost 2^63 bytes
    "7b 7f ff ff ff ff ff ff f6 61",
    "7b 80 00 00 00 00 00 00 00 61",
    "5b ff ff ff ff ff ff ff ff 00",
    "a1 7b 7f ff ff ff ff ff ff ff 61",
    "d8 2a 5b 7f ff ff ff ff ff ff ff 00",
    "84 00 00 00",  // one item short
    "a2 61 61 00 61",  // half an entry short
  ])
  func `is refused before anything is made of it`(hex: String) throws {
    let bytes = try [UInt8](hex: hex)
    for profile in DAGCBORProfile.allCases {
      let reading = DAGCBORReading(bytes, profile)
      #expect(reading.error == DAGCBORError(.truncated, offset: bytes.count))
      #expect(reading.inconsistency == nil)
    }
  }

  @Test func `is refused wherever it is cut`() throws {
    let digest = SHA256.digest(of: [1].span)
    let value: IPLDValue = [
      "": .null, "a": .boolean(true), "bytes": .bytes(Array(0..<30)),
      "float": .float(.pi), "integers": .array([0, 23, 24, -257, 65536, -4_294_967_297]),
      "link": .link(CID(codec: .dagCBOR, digest: digest)), "text": "h\u{e9}llo, 世界 👋",
      "map": ["nested": .array([[:], .array([])])],
    ]
    let bytes = try DAGCBOREncoder.encode(value)
    #expect(try DAGCBORDecoder.decode(bytes.span) == value)
    for length in 0..<bytes.count {
      let reading = DAGCBORReading(Array(bytes.prefix(length)))
      #expect(reading.error == DAGCBORError(.truncated, offset: length))
      #expect(reading.inconsistency == nil)
    }
  }

  @Test func `is read in one go when it is large and honest`() throws {
    let items = [IPLDValue](repeating: .integer(7), count: 300_000)
    let bytes = try DAGCBOREncoder.encode(.array(items))
    #expect(try DAGCBORDecoder.decode(bytes.span) == .array(items))
  }
}
