import TestSupport

extension RandomFaults {
  /// The numbers that decide about one request: they follow from the seed, from what is requested,
  /// and how often it was before.
  func generator(_ target: String, _ attempt: UInt64) -> SeededGenerator {
    // FNV-1a, for Swift's own hashes are others in each process.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in target.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    var first = SeededGenerator(seed: seed)
    var second = SeededGenerator(seed: first.next() ^ hash)
    return SeededGenerator(seed: second.next() &+ attempt)
  }
}
