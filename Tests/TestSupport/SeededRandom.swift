/// Random numbers that come again: the same seed gives the same numbers (SplitMix64).
///
/// The seed is printed, so that a failure can be had again by pasting it.
public struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  /// A generator.
  public init(seed: UInt64, _ purpose: String = #function) {
    state = seed
    print("seed 0x\(String(seed, radix: 16)) for \(purpose)")
  }

  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }

  /// Bytes that no compressor shrinks.
  public mutating func bytes(_ count: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      var word = next()
      for _ in 0..<8 {
        bytes.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }

  /// Bytes that every compressor shrinks.
  public mutating func text(_ count: Int) -> [UInt8] {
    let words = [
      "section ", "frame ", "archive ", "index ", "footer ", "the ", "of ", "and ", "\n",
    ]
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      bytes.append(contentsOf: words[Int(next() % UInt64(words.count))].utf8)
    }
    bytes.removeLast(bytes.count - count)
    return bytes
  }
}
