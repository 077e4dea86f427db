import IPLD

extension IPLDValue {
  /// Any value that DAG-CBOR can say, often a small one, with preference for what lies at an edge.
  static func random(depth: Int = 5, using generator: inout some RandomNumberGenerator) -> IPLDValue
  {
    switch Int.random(in: 0..<(depth > 0 ? 13 : 9), using: &generator) {
    case 0: .null
    case 1: .boolean(.random(using: &generator))
    case 2, 3: .integer(randomInteger(using: &generator))
    case 4: .float(randomFloat(using: &generator))
    case 5: .bytes(randomBytes(using: &generator))
    case 6, 7: .string(randomText(using: &generator))
    case 8: .link(.random(using: &generator))
    case 9, 10: .array(randomArray(depth: depth - 1, using: &generator))
    default: .map(randomMap(depth: depth - 1, using: &generator))
    }
  }

  private static func randomInteger(using generator: inout some RandomNumberGenerator) -> Int128 {
    let magnitude = Int128(UInt64.random(in: .min ... .max, using: &generator))
    let number = magnitude >> Int128(Int.random(in: 0...64, using: &generator))
    return Bool.random(using: &generator) ? number : -1 - number
  }

  private static func randomFloat(using generator: inout some RandomNumberGenerator) -> Double {
    let float = Double(bitPattern: .random(in: .min ... .max, using: &generator))
    return float.isFinite ? float : -0.0
  }

  private static func randomBytes(using generator: inout some RandomNumberGenerator) -> [UInt8] {
    let length = [0, 1, 2, 23, 24, 33, 255, 256].randomElement(using: &generator) ?? 0
    return (0..<length).map { _ in .random(in: .min ... .max, using: &generator) }
  }

  private static func randomText(using generator: inout some RandomNumberGenerator) -> String {
    var text = ""
    for _ in 0..<Int.random(in: 0...12, using: &generator) {
      // Letters, their accents on their own, and anything else that Unicode has.
      let range: ClosedRange<UInt32> =
        switch Int.random(in: 0..<4, using: &generator) {
        case 0, 1: 0x61...0x66
        case 2: 0x2fe...0x303
        default: 0...0x10ffff
        }
      let scalar = Unicode.Scalar(UInt32.random(in: range, using: &generator))
      text.unicodeScalars.append(scalar ?? "\u{fffd}")
    }
    return text
  }

  private static func randomArray(depth: Int, using generator: inout some RandomNumberGenerator)
    -> [IPLDValue]
  {
    (0..<Int.random(in: 0...6, using: &generator)).map { _ in
      random(depth: depth, using: &generator)
    }
  }

  private static func randomMap(depth: Int, using generator: inout some RandomNumberGenerator)
    -> IPLDMap
  {
    var map = IPLDMap()
    for _ in 0..<Int.random(in: 0...6, using: &generator) {
      map[randomText(using: &generator)] = random(depth: depth, using: &generator)
    }
    return map
  }
}

extension CID {
  /// Any CID that can be read, every other one of AT Protocol's kind.
  static func random(using generator: inout some RandomNumberGenerator) -> CID {
    if Bool.random(using: &generator) {
      let bytes = [UInt8.random(in: .min ... .max, using: &generator)]
      return CID(codec: Bool.random(using: &generator) ? .dagCBOR : .raw, hashing: bytes.span)
    }
    let code = UInt64.random(in: 0..<1 << 63, using: &generator)
    let function = HashFunction(rawValue: code >> UInt64.random(in: 0...63, using: &generator))
    let codec = Codec(rawValue: code >> UInt64.random(in: 0...63, using: &generator))
    let length = [0, 1, 20, 31, 32, 64, 127, 128].randomElement(using: &generator) ?? 0
    let digest = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    return CID(codec: codec, multihash: Multihash(function: function, digest: digest))
  }
}
