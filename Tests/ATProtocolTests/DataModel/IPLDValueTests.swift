import IPLD
import Testing

@Suite struct `Values of the data model` {
  /// One look, three encodings: composed, decomposed, and the Ångström sign.
  private static let spellings = ["\u{c5}", "A\u{30a}", "\u{212b}"]

  @Test func `texts are equal when their bytes are, not when they look the same`() {
    for left in Self.spellings {
      for right in Self.spellings {
        let areSame = left.utf8.elementsEqual(right.utf8)
        #expect((IPLDValue.string(left) == .string(right)) == areSame)
        #expect((IPLDValue.map([left: .null]) == .map([right: .null])) == areSame)
      }
    }
    #expect(Set(Self.spellings.map(IPLDValue.string)).count == 3)
  }

  @Test func `a map tells keys apart by their bytes`() {
    for spelling in Self.spellings {
      let map: IPLDMap = [spelling: .integer(1)]
      let others = Self.spellings.filter { !$0.utf8.elementsEqual(spelling.utf8) }
      #expect(map[spelling] == .integer(1))
      for other in others {
        #expect(map[other] == nil)
        var changed = map
        changed[other] = .integer(2)
        #expect(changed.entries.count == 2)
        changed[spelling] = nil
        #expect(changed[other] == .integer(2))
      }
    }
  }

  @Test func `floats are equal when their bytes are`() {
    #expect(IPLDValue.float(0) != .float(-0.0))
    #expect(IPLDValue.float(1) == .float(1))
    #expect(IPLDValue.float(1) != .integer(1))
  }

  @Test func `a map of entries in any order has them in DAG-CBOR's`() {
    let keys = ["bb", "a", "", "b", "aa", "é"]
    let map = IPLDMap(unsorted: keys.map { IPLDMap.Entry(key: $0, value: .null) })
    #expect(map?.keys == ["", "a", "b", "aa", "bb", "é"])
    #expect(IPLDMap(unsorted: (keys + ["a"]).map { .init(key: $0, value: .null) }) == nil)
    #expect(IPLDMap(unsorted: Self.spellings.map { .init(key: $0, value: .null) }) != nil)
  }
}
