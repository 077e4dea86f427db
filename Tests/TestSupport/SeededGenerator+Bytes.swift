extension SeededGenerator {
  /// The numbers that follow from `seed`, which is printed, so that a failure can be reproduced.
  package init(printing seed: UInt64, _ purpose: String = #function) {
    self.init(seed: seed)
    print("\(self) for \(purpose)")
  }

  /// Bytes that no compressor shrinks.
  package mutating func bytes(_ count: Int) -> [UInt8] {
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
  package mutating func text(_ count: Int) -> [UInt8] {
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
