import IPLD

/// A stream of pseudo-random numbers that is the same for the same seed, on every machine and with
/// every toolchain.
///
/// xoshiro256** of Blackman and Vigna, its state filled by SplitMix64. The standard library's ways
/// of turning bits into numbers may change, so those used here are its own.
struct SeededRandom {
  private var state: (UInt64, UInt64, UInt64, UInt64)

  /// The stream of a seed.
  init(seed: UInt64) {
    var word = seed
    func split() -> UInt64 {
      word &+= 0x9e37_79b9_7f4a_7c15
      var mixed = word
      mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
      mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
      return mixed ^ mixed >> 31
    }
    state = (split(), split(), split(), split())
  }

  /// The next 64 bits.
  mutating func next() -> UInt64 {
    let product = state.1 &* 5
    let result = (product << 7 | product >> 57) &* 9
    let shifted = state.1 << 17
    state.2 ^= state.0
    state.3 ^= state.1
    state.1 ^= state.2
    state.0 ^= state.3
    state.2 ^= shifted
    state.3 = state.3 << 45 | state.3 >> 19
    return result
  }

  /// A number from 0 up to `bound`, each as likely as the others.
  mutating func below(_ bound: Int) -> Int {
    Int(next().multipliedFullWidth(by: UInt64(bound)).high)
  }

  /// A number in `range`.
  mutating func number(in range: ClosedRange<Int>) -> Int {
    range.lowerBound + below(range.count)
  }

  /// True so many times in a hundred.
  mutating func chance(_ percent: Int) -> Bool { below(100) < percent }

  /// A number from 0 up to `bound`, small ones more often: about as likely as one over itself, as
  /// words and accounts are.
  mutating func ranked(below bound: Int) -> Int {
    let magnitude = below(Int.bitWidth - (bound + 1).leadingZeroBitCount)
    let number = (1 << magnitude) + below(1 << magnitude) - 1
    return number < bound ? number : below(bound)
  }

  /// Any of these.
  mutating func pick<Element>(_ elements: [Element]) -> Element { elements[below(elements.count)] }

  /// One of these, the first ones more often.
  mutating func pickRanked<Element>(_ elements: [Element]) -> Element {
    elements[ranked(below: elements.count)]
  }

  /// So many bytes.
  mutating func bytes(_ count: Int) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(count + 7)
    while result.count < count {
      var word = next()
      for _ in 0..<8 {
        result.append(UInt8(truncatingIfNeeded: word))
        word >>= 8
      }
    }
    result.removeLast(result.count - count)
    return result
  }

  /// A CID of something that is not here.
  mutating func cid(_ codec: Codec) -> CID {
    CID(codec: codec, digest: SHA256Digest(bytes(32).span))
  }

  /// Letters and digits of base 32, as in a `did:plc`.
  mutating func base32(_ count: Int) -> String {
    let alphabet = Array("abcdefghijklmnopqrstuvwxyz234567".utf8)
    return String(decoding: (0..<count).map { _ in pick(alphabet) }, as: UTF8.self)
  }
}
