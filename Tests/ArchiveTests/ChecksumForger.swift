import Archive

/// Makes content whose XXH64 is whatever is wanted: the function is not cryptographic, and every
/// step of it can be undone.
enum ChecksumForger {
  private static let prime1: UInt64 = 0x9e37_79b1_85eb_ca87
  private static let prime2: UInt64 = 0xc2b2_ae3d_27d4_eb4f
  private static let prime3: UInt64 = 0x1656_67b1_9e37_79f9
  private static let prime4: UInt64 = 0x85eb_ca77_c2b2_ae63
  private static let prime5: UInt64 = 0x27d4_eb2f_1656_67c5

  /// `beginning`, eight bytes, and `tail`, such that the lower half of the XXH64 continues spelling
  /// `word` where `tail` ends.
  ///
  /// - Precondition: `beginning` has a multiple of 32 bytes, and `tail` 12 to 15.
  static func content(_ beginning: [UInt8], tail: [UInt8], spelling word: [UInt8]) -> [UInt8] {
    let rest = Array(word[tail.count...]) + [0, 0, 0, 0]
    var hash = (0..<4).reduce(UInt64(0)) { $0 | UInt64(rest[$1]) << (8 * UInt64($1)) }
    // The final mix, backwards.
    hash ^= hash >> 32
    hash &*= inverse(prime3)
    hash ^= hash >> 29 ^ hash >> 58
    hash &*= inverse(prime2)
    hash ^= hash >> 33
    // The bytes after the last whole word, backwards; then a word of four, then one of eight.
    for byte in tail[12...].reversed() {
      hash = rotate(hash &* inverse(prime1), 64 - 11) ^ UInt64(byte) &* prime5
    }
    let four = (0..<4).reduce(UInt64(0)) { $0 | UInt64(tail[8 + $1]) << (8 * UInt64($1)) }
    hash = rotate((hash &- prime3) &* inverse(prime2), 64 - 23) ^ four &* prime1
    let eight = (0..<8).reduce(UInt64(0)) { $0 | UInt64(tail[$1]) << (8 * UInt64($1)) }
    hash = rotate((hash &- prime4) &* inverse(prime1), 64 - 27) ^ round(0, eight)
    // The word before it is free: it is what takes the hash of the beginning there.
    let before = state(beginning) &+ UInt64(beginning.count + 8 + tail.count)
    let wanted = rotate((hash &- prime4) &* inverse(prime1), 64 - 27) ^ before
    let free = rotate(wanted &* inverse(prime1), 64 - 31) &* inverse(prime2)
    return beginning + (0..<8).map { UInt8(truncatingIfNeeded: free >> (8 * UInt64($0))) } + tail
  }

  /// The hash after the stripes of 32 bytes, before the length is added.
  private static func state(_ bytes: [UInt8]) -> UInt64 {
    var lanes = [prime1 &+ prime2, prime2, 0, 0 &- prime1]
    for start in stride(from: 0, to: bytes.count, by: 8) {
      let word = (0..<8).reduce(UInt64(0)) { $0 | UInt64(bytes[start + $1]) << (8 * UInt64($1)) }
      lanes[start / 8 % 4] = round(lanes[start / 8 % 4], word)
    }
    var hash =
      rotate(lanes[0], 1) &+ rotate(lanes[1], 7) &+ rotate(lanes[2], 12) &+ rotate(lanes[3], 18)
    for lane in lanes { hash = (hash ^ round(0, lane)) &* prime1 &+ prime4 }
    return hash
  }

  private static func round(_ lane: UInt64, _ word: UInt64) -> UInt64 {
    rotate(lane &+ word &* prime2, 31) &* prime1
  }

  private static func rotate(_ value: UInt64, _ bits: UInt64) -> UInt64 {
    value << bits | value >> (64 - bits)
  }

  /// The number that undoes a multiplication by an odd one, by Newton's method.
  private static func inverse(_ value: UInt64) -> UInt64 {
    var result = value
    for _ in 0..<6 { result &*= 2 &- value &* result }
    return result
  }
}
