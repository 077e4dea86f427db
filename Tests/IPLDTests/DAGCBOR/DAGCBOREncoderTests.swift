import IPLD
import TestSupport
import Testing

@Suite struct `DAG-CBOR encoding` {
  private static let two64 = Int128(1) << 64

  /// Appendix A of RFC 8949, where DAG-CBOR agrees with it, and the edges of every head.
  private static let examples: [(IPLDValue, String)] = [
    (.null, "f6"), (.boolean(false), "f4"), (.boolean(true), "f5"),
    (0, "00"), (10, "0a"), (23, "17"), (24, "1818"), (255, "18ff"), (256, "190100"),
    (65535, "19ffff"), (65536, "1a00010000"), (4_294_967_295, "1affffffff"),
    (4_294_967_296, "1b0000000100000000"), (.integer(two64 - 1), "1bffffffffffffffff"),
    (-1, "20"), (-24, "37"), (-25, "3818"), (-256, "38ff"), (-257, "390100"),
    (-65536, "39ffff"), (-65537, "3a00010000"), (-4_294_967_296, "3affffffff"),
    (-4_294_967_297, "3b0000000100000000"), (.integer(-two64), "3bffffffffffffffff"),
    (.float(0), "fb0000000000000000"), (.float(-0.0), "fb8000000000000000"),
    (.float(1.1), "fb3ff199999999999a"), (.float(-4.1), "fbc010666666666666"),
    (.float(.leastNonzeroMagnitude), "fb0000000000000001"),
    (.float(.greatestFiniteMagnitude), "fb7fefffffffffffff"),
    ("", "60"), ("a", "6161"), ("\u{fc}", "62c3bc"), ("\u{10151}", "64f0908591"),
    (.bytes([]), "40"), (.bytes([1, 2, 3, 4]), "4401020304"),
    (.array([]), "80"), (.array([1, .array([2, 3])]), "8201820203"),
    ([:], "a0"), (["a": 1, "b": .array([2, 3])], "a26161016162820203"),
  ]

  @Test func `has one spelling for each value`() throws {
    for (value, hex) in Self.examples {
      #expect(Hex.encode(try DAGCBOREncoder.encode(value)) == hex)
      let bytes = try [UInt8](hex: hex)
      #expect(try DAGCBORDecoder.decode(bytes.span) == value)
    }
  }

  @Test(arguments: [0, 23, 24, 255, 256, 65535, 65536])
  func `writes lengths as short as they go`(length: Int) throws {
    let head = length < 24 ? 1 : length < 256 ? 2 : length < 65536 ? 3 : 5
    let content = [UInt8](repeating: 0x61, count: length)
    let text = String(decoding: content, as: UTF8.self)
    for value: IPLDValue in [
      .bytes(content), .string(text), .array(Array(repeating: .null, count: length)),
    ] {
      let bytes = try DAGCBOREncoder.encode(value)
      #expect(bytes.count == head + length)
      #expect(DAGCBORReading(bytes).inconsistency == nil)
    }
  }

  @Test func `writes a link as tag 42, a zero byte and the CID`() throws {
    let cid = CID(codec: .dagCBOR, hashing: [0xa0].span)
    let bytes = try DAGCBOREncoder.encode(.link(cid))
    #expect(bytes == [0xd8, 42, 0x58, 37, 0] + cid.bytes)
    #expect(try DAGCBORDecoder.decode(bytes.span) == .link(cid))
  }

  @Test func `refuses floats that are not finite`() {
    for float in [Double.nan, .infinity, -.infinity, .signalingNaN] {
      #expect(throws: DAGCBORError(.notFinite, offset: 2)) {
        try DAGCBOREncoder.encode(.array([0, .float(float)]))
      }
    }
  }

  @Test func `refuses integers of more than 64 bits and a sign`() {
    for integer in [Self.two64, -Self.two64 - 1, .max, .min] {
      #expect(throws: DAGCBORError(.integerOutOfRange, offset: 0)) {
        try DAGCBOREncoder.encode(.integer(integer))
      }
    }
  }

  @Test func `appends to what is there`() throws {
    var bytes: [UInt8] = [0xff]
    try DAGCBOREncoder.append("a", to: &bytes)
    try DAGCBOREncoder.append(1, to: &bytes)
    #expect(bytes == [0xff, 0x61, 0x61, 0x01])
  }

  @Test func `can be put together from its parts`() throws {
    let cid = CID(codec: .raw, hashing: [0].span)
    var bytes: [UInt8] = []
    DAGCBOREncoder.appendMapHead(4, to: &bytes)
    DAGCBOREncoder.appendString("a", to: &bytes)
    DAGCBOREncoder.appendArrayHead(1, to: &bytes)
    DAGCBOREncoder.appendNull(to: &bytes)
    DAGCBOREncoder.appendString("b", to: &bytes)
    DAGCBOREncoder.appendUnsigned(.max, to: &bytes)
    DAGCBOREncoder.appendString("c", to: &bytes)
    DAGCBOREncoder.appendBytes([1, 2][...], to: &bytes)
    DAGCBOREncoder.appendString("d", to: &bytes)
    DAGCBOREncoder.appendLink(cid, to: &bytes)
    let value: IPLDValue = [
      "a": .array([.null]), "b": .integer(Int128(UInt64.max)), "c": .bytes([1, 2]), "d": .link(cid),
    ]
    #expect(bytes == (try DAGCBOREncoder.encode(value)))
  }
}
