import ATProtocol
import IPLD
import Testing

@Suite struct `The data model as JSON` {
  private static let cid = CID.example(codec: .raw)

  private func decode(_ json: String) throws -> IPLDValue {
    try DataModelJSON.decode(Array(json.utf8))
  }

  @Test func `keys come in the order of their bytes, whatever their lengths`() {
    let value = IPLDValue.map([
      "b": .null, "aa": .null, "é": .null, "Z": .null, "😀": .null, "": .null,
    ])
    #expect(value.json() == #"{"":null,"Z":null,"aa":null,"b":null,"é":null,"😀":null}"#)
  }

  @Test func `links and bytes are objects with one key`() throws {
    let value = IPLDValue.array([.link(Self.cid), .bytes([0xff, 0xfe, 0xfd, 0xfc]), .bytes([])])
    let json = #"[{"$link":"\#(Self.cid)"},{"$bytes":"//79/A"},{"$bytes":""}]"#
    #expect(value.json() == json)
    #expect(try decode(json) == value)
  }

  @Test func `pretty output reads back the same`() throws {
    let value = IPLDValue.map([
      "a": .array([.integer(1), .map([:]), .array([]), .link(Self.cid)]), "b": .bytes([1]),
    ])
    let expected = """
      {
        "a": [
          1,
          {},
          [],
          {
            "$link": "\(Self.cid)"
          }
        ],
        "b": {
          "$bytes": "AQ"
        }
      }
      """
    #expect(value.json(pretty: true) == expected)
    #expect(try decode(expected) == value)
  }

  @Test func `floats stay floats unless they are integers`() throws {
    #expect(IPLDValue.array([.float(1), .float(0.1), .float(1e300)]).json() == "[1.0,0.1,1e+300]")
    #expect(
      try decode("[1.0,0.1,1e300,-1e2,1E+2,-0,-0.0,5e-324,9007199254740993.0]")
        == .array([
          .integer(1), .float(0.1), .float(1e300), .integer(-100), .integer(100), .integer(0),
          .integer(0), .float(.leastNonzeroMagnitude), .integer(9_007_199_254_740_992),
        ]))
  }

  @Test func `integers are exact to 64 bits`() throws {
    #expect(try decode("9223372036854775807") == .integer(Int128(Int64.max)))
    #expect(try decode("-9223372036854775808") == .integer(Int128(Int64.min)))
    #expect(IPLDValue.integer(Int128(UInt64.max)).json() == "18446744073709551615")
  }

  @Test(arguments: [
    ("\"\\u0041\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "Aé😀\"\\/\u{8}\u{c}\n\r\t"),
    ("\"a\\u0000b\"", "a\0b"), (" \t\r\n\"é\" ", "é"), ("\"\u{7f}\"", "\u{7f}"), ("\"\"", ""),
  ])
  func `strings come out of their escapes`(_ json: String, _ text: String) throws {
    #expect(try decode(json) == .string(text))
  }

  @Test(
    arguments: [
      ("", .truncated, 0), ("{", .truncated, 1), ("[1", .truncated, 2), ("\"a", .truncated, 2),
      ("tru", .truncated, 3), ("{\"a\"", .truncated, 4), ("-", .truncated, 1),
      ("1.", .truncated, 2), ("1e", .truncated, 2), ("\"\\", .truncated, 2),
      ("\"\\u00", .truncated, 5), ("nulL", .unexpectedByte, 3), ("[1,]", .unexpectedByte, 3),
      ("[,1]", .unexpectedByte, 1), ("{\"a\":1,}", .unexpectedByte, 7),
      ("{a:1}", .unexpectedByte, 1), ("{\"a\" 1}", .unexpectedByte, 5),
      ("{1:1}", .unexpectedByte, 1), ("[1}", .unexpectedByte, 2), ("{\"a\":1]", .unexpectedByte, 6),
      ("[1 2]", .unexpectedByte, 3), ("'a'", .unexpectedByte, 0), ("\u{feff}1", .unexpectedByte, 0),
      ("NaN", .unexpectedByte, 0), ("Infinity", .unexpectedByte, 0), ("+1", .unexpectedByte, 0),
      (".5", .unexpectedByte, 0), ("/**/1", .unexpectedByte, 0), ("]", .unexpectedByte, 0),
      ("1 1", .trailingText, 2), ("{}x", .trailingText, 2), ("0x1", .trailingText, 1),
      ("1\u{a0}", .trailingText, 1), ("01", .malformedNumber, 0), ("-01", .malformedNumber, 0),
      ("-a", .malformedNumber, 0), ("1.e1", .malformedNumber, 0), ("1ea", .malformedNumber, 0),
      ("1e+-1", .malformedNumber, 0), ("9223372036854775808", .integerOutOfRange, 0),
      ("[-9223372036854775809]", .integerOutOfRange, 1), ("1e999", .numberOutOfRange, 0),
      ("\"\n\"", .controlCharacter, 1), ("\"\\n\0\"", .controlCharacter, 3),
      ("\"\\x\"", .malformedEscape, 1), ("\"\\u00g0\"", .malformedEscape, 1),
      ("\"\\ud800\"", .loneSurrogate, 1), ("\"\\udc00\"", .loneSurrogate, 1),
      ("\"\\ud800\\u0041\"", .loneSurrogate, 1), ("\"\\ud800x\"", .loneSurrogate, 1),
      ("{\"a\":1,\"b\":2,\"a\":3}", .duplicateKey, 13),
      ("{\"a\":1,\"\\u0061\":3}", .duplicateKey, 7),
    ] as [(String, JSONError.Reason, Int)])
  func `refuses what is not JSON, and says where`(
    _ json: String, _ reason: JSONError.Reason, _ offset: Int
  ) {
    #expect(throws: JSONError(reason, offset: offset)) { try decode(json) }
  }

  @Test(
    arguments: [
      ("[{\"$link\":1}]", .malformedLink), ("[{\"$link\":\"\"}]", .malformedLink),
      ("[{\"$link\":\"\(cid)\",\"a\":1}]", .malformedLink),
      ("[{\"a\":1,\"$link\":\"\(cid)\"}]", .malformedLink),
      ("[{\"$link\":\"\(cid)=\"}]", .malformedLink),
      ("[{\"$link\":{\"$link\":\"\(cid)\"}}]", .malformedLink),
      ("[{\"$link\":\"zb2rhe5P4gXftAwvA4eXQ5HJwsER2owDyS9sKaQRRVQPn93bA\"}]", .malformedLink),
      ("[{\"$bytes\":[1]}]", .malformedBytes), ("[{\"$bytes\":\"AQ\",\"a\":1}]", .malformedBytes),
      ("[{\"$bytes\":\"A\"}]", .malformedBytes), ("[{\"$bytes\":\"AQ=\"}]", .malformedBytes),
      ("[{\"$bytes\":\"AR\"}]", .malformedBytes), ("[{\"$bytes\":\"A===\"}]", .malformedBytes),
      ("[{\"$bytes\":\"-_79\"}]", .malformedBytes), ("[{\"$bytes\":\"AQ \"}]", .malformedBytes),
      ("[{\"$bytes\":\"AQI=A\"}]", .malformedBytes),
    ] as [(String, JSONError.Reason)])
  func `refuses links and bytes that are not quite`(_ json: String, _ reason: JSONError.Reason) {
    #expect(throws: JSONError(reason, offset: 1)) { try decode(json) }
  }

  @Test(arguments: [("", 0), ("AQ", 1), ("AQ==", 1), ("AQI", 2), ("AQI=", 2), ("AQID", 3)])
  func `bytes may be padded or not`(_ base64: String, _ count: Int) throws {
    let value = try decode("{\"$bytes\":\"\(base64)\"}")
    #expect(value == .bytes(Array([1, 2, 3].prefix(count))))
  }

  @Test func `bytes of every length and value come back`() throws {
    for count in 0..<300 {
      let value = IPLDValue.bytes((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 7) })
      #expect(try decode(value.json()) == value)
    }
  }

  @Test func `text that is not UTF-8 is refused`() {
    #expect(throws: JSONError(.notUTF8, offset: 1)) {
      try DataModelJSON.decode([0x22, 0xff, 0x22])
    }
    // A surrogate that hides in three bytes.
    #expect(throws: JSONError(.notUTF8, offset: 1)) {
      try DataModelJSON.decode([0x22, 0xed, 0xa0, 0x80, 0x22])
    }
  }

  @Test func `keys that only look the same are two`() throws {
    let value = try decode("{\"\u{e9}\":1,\"e\u{301}\":2}")
    #expect(value.map?.entries.count == 2)
    #expect(value["\u{e9}"] == .integer(1))
    #expect(value["e\u{301}"] == .integer(2))
  }

  @Test func `nesting is as deep as DAG-CBOR's, and a million brackets do no harm`() throws {
    let limit = DAGCBORScanner.maximumDepth
    func nested(_ depth: Int) -> String {
      String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }
    #expect(try decode(nested(limit)).json() == nested(limit))
    #expect(throws: JSONError(.tooDeep, offset: limit)) { try decode(nested(limit + 1)) }
    #expect(throws: JSONError(.tooDeep, offset: limit)) {
      try decode(String(repeating: "[", count: 1_000_000))
    }
  }

  @Test func `writing a value of any depth needs no stack`() {
    var value = IPLDValue.array([])
    for _ in 0..<2000 { value = .array([value]) }
    #expect(value.json().utf8.count == 2 * 2001)
  }

  @Test(.timeLimit(.minutes(15)))
  func `a long array and a map of many keys take time in proportion`() throws {
    let array = "[" + Array(repeating: "1", count: 200_000).joined(separator: ",") + "]"
    #expect(try decode(array).array?.count == 200_000)
    let map = "{" + (0..<100_000).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
    #expect(try decode(map).map?.entries.count == 100_000)
  }
}
