import IPLD

// Values in tests are written as they would be in JSON.

extension IPLDValue: ExpressibleByStringLiteral {
  init(stringLiteral text: String) { self = .string(text) }
}

extension IPLDValue: ExpressibleByIntegerLiteral {
  init(integerLiteral number: Int64) { self = .integer(Int128(number)) }
}

extension IPLDValue: ExpressibleByDictionaryLiteral {
  init(dictionaryLiteral elements: (String, IPLDValue)...) {
    var map = IPLDMap()
    for (key, value) in elements { map[key] = value }
    self = .map(map)
  }
}
