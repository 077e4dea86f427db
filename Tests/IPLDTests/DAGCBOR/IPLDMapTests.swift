import IPLD
import Testing

@Suite struct `A map` {
  /// The letter é as one scalar, and as an e with an accent to follow: equal to `String`, different
  /// as bytes.
  private let composed = "\u{e9}"
  private let decomposed = "e\u{301}"

  @Test func `keeps its keys in DAG-CBOR's order`() {
    let map: IPLDMap = ["bb": 1, "a": 2, "": 3, "aaa": 4, "b": 5, "ab": 6, "\u{e9}": 7, "zz": 8]
    // é takes two bytes, and both are greater than any letter's.
    #expect(map.keys == ["", "a", "b", "ab", "bb", "zz", "\u{e9}", "aaa"])
    #expect(map.entries.map(\.value) == [3, 2, 5, 6, 1, 8, 7, 4])
  }

  @Test func `orders by length in bytes, not in characters`() {
    let map: IPLDMap = ["👋": 1, "abc": 2, "é": 3]
    #expect(map.keys == ["é", "abc", "👋"])
  }

  @Test func `does not depend on the order of insertion`() {
    var backwards = IPLDMap()
    for key in ["c", "b", "aa", "a"] { backwards[key] = .string(key) }
    let forwards: IPLDMap = ["a": "a", "aa": "aa", "b": "b", "c": "c"]
    #expect(backwards == forwards)
    #expect(backwards.hashValue == forwards.hashValue)
  }

  @Test func `has a key once, with the value it was given last`() {
    var map: IPLDMap = ["a": 1, "b": 2, "a": 3]
    #expect(map.keys == ["a", "b"])
    #expect(map["a"] == 3)
    map["a"] = 4
    #expect(map.entries.map(\.value) == [4, 2])
  }

  @Test func `loses an entry that is set to nil`() {
    var map: IPLDMap = ["a": 1, "b": 2, "c": 3]
    map["b"] = nil
    #expect(map == ["a": 1, "c": 3])
    map["missing"] = nil
    #expect(map == ["a": 1, "c": 3])
    map["a"] = nil
    map["c"] = nil
    #expect(map == IPLDMap())
    #expect(map.entries.isEmpty)
  }

  @Test func `keeps null, which is not the absence of a value`() {
    var map: IPLDMap = ["a": .null]
    #expect(map["a"] == .null)
    #expect(map["b"] == nil)
    map["b"] = .some(.null)
    #expect(map.keys == ["a", "b"])
  }

  @Test func `finds every key it has and none that it has not`() {
    let keys = (0..<200).map { String($0 * 2, radix: 7) }
    var map = IPLDMap()
    for key in keys.shuffled() { map[key] = .string(key) }
    #expect(map.entries.count == keys.count)
    for key in keys { #expect(map[key] == .string(key)) }
    for key in (0..<200).map({ String($0 * 2 + 1, radix: 7) }) { #expect(map[key] == nil) }
  }

  @Test func `tells keys apart by their bytes, as DAG-CBOR does`() throws {
    #expect(composed == decomposed, "or this test has no subject")
    var map: IPLDMap = [decomposed: 1]
    #expect(map[composed] == nil)
    map[composed] = 2
    #expect(map.entries.map(\.value) == [2, 1])
    map[decomposed] = nil
    #expect(map[composed] == 2)
    #expect(map.entries.count == 1)
  }

  @Test func `with both spellings of a letter survives encoding`() throws {
    let value = IPLDValue.map([composed: 1, decomposed: 2])
    let bytes = try DAGCBOREncoder.encode(value)
    #expect(bytes == [0xa2, 0x62, 0xc3, 0xa9, 1, 0x63, 0x65, 0xcc, 0x81, 2])
    let decoded = try DAGCBORDecoder.decode(bytes.span)
    #expect(decoded == value)
    #expect(decoded[composed] == 1)
    #expect(decoded[decomposed] == 2)
  }

  @Test func `differs from one that is written with other bytes`() {
    #expect([composed: 1] as IPLDMap != [decomposed: 1])
    #expect(IPLDValue.map([composed: 1]) != IPLDValue.map([decomposed: 1]))
    #expect(IPLDValue.string(composed) != IPLDValue.string(decomposed))
    #expect(Set([IPLDValue.string(composed), .string(decomposed)]).count == 2)
  }
}

@Suite struct `A value` {
  @Test func `gives what it is asked for, or nil`() {
    let cid = CID(codec: .raw, hashing: [0].span)
    let value: IPLDValue = [
      "text": "t", "bytes": .bytes([1]), "link": .link(cid), "list": .array([1]), "number": 7,
      "flag": .boolean(true), "map": [:],
    ]
    #expect(value["text"]?.string == "t")
    #expect(value["bytes"]?.bytes == [1])
    #expect(value["link"]?.link == cid)
    #expect(value["list"]?.array == [1])
    #expect(value["number"]?.integer == 7)
    #expect(value["map"]?.map == IPLDMap())
    #expect(value["nothing"] == nil)
    for other in ["flag", "text"] {
      #expect(value[other]?.bytes == nil)
      #expect(value[other]?.link == nil)
      #expect(value[other]?.array == nil)
      #expect(value[other]?.integer == nil)
      #expect(value[other]?.map == nil)
      #expect(value[other]?["key"] == nil)
    }
    #expect(value["flag"]?.string == nil)
  }

  @Test func `is equal to another when they encode to the same bytes`() throws {
    let values: [IPLDValue] = [
      .null, .boolean(false), .boolean(true), 0, 1, .float(0), .float(-0.0), .float(1), "", "0",
      "a\u{301}\u{323}", "a\u{323}\u{301}", .bytes([]), .bytes([0]), .array([]), .array([0]), [:],
      ["a": 0], ["b": 0], ["a": 1], .link(CID(codec: .raw, hashing: [0].span)),
      .link(CID(codec: .dagCBOR, hashing: [0].span)),
    ]
    for (index, left) in values.enumerated() {
      for (other, right) in values.enumerated() {
        #expect((left == right) == (index == other), "\(left) and \(right)")
        let same = try DAGCBOREncoder.encode(left) == DAGCBOREncoder.encode(right)
        #expect((left == right) == same, "\(left) and \(right)")
        if left == right { #expect(left.hashValue == right.hashValue) }
      }
    }
  }

  @Test func `gives an integer only when it fits`() {
    #expect(IPLDValue.integer(Int128(Int.max)).integer == .max)
    #expect(IPLDValue.integer(Int128(Int.min)).integer == .min)
    #expect(IPLDValue.integer(Int128(Int.max) + 1).integer == nil)
    #expect(IPLDValue.integer(Int128(Int.min) - 1).integer == nil)
    #expect(IPLDValue.float(1).integer == nil)
  }
}
