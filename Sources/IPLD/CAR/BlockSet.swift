/// A set of blocks that are numbered, or of places in a table: one bit each.
package struct BlockSet: Sendable {
  private var words: [UInt64]

  /// An empty set, for this many blocks.
  package init(count: Int) { words = [UInt64](repeating: 0, count: (count + 63) / 64) }

  /// Whether a block is in it.
  @inline(__always)
  package func contains(_ index: Int) -> Bool { words[index >> 6] >> UInt64(index & 63) & 1 == 1 }

  /// How many blocks are in it.
  package var count: Int { words.reduce(0) { $0 + $1.nonzeroBitCount } }

  /// Calls `body` with each block, in their order, and keeps what it returns.
  package func map<Value>(_ body: (Int) -> Value) -> [Value] {
    var values: [Value] = []
    values.reserveCapacity(count)
    for (place, word) in words.enumerated() {
      var rest = word
      while rest != 0 {
        values.append(body(place << 6 + rest.trailingZeroBitCount))
        rest &= rest - 1
      }
    }
    return values
  }

  /// Adds a block.
  @inline(__always)
  package mutating func insert(_ index: Int) { words[index >> 6] |= 1 << UInt64(index & 63) }

  /// Removes a block.
  @inline(__always)
  package mutating func remove(_ index: Int) { words[index >> 6] &= ~(1 << UInt64(index & 63)) }

  /// Adds blocks that follow one another.
  package mutating func insert(_ range: Range<Int>) {
    guard !range.isEmpty else { return }
    let (first, last) = (range.lowerBound >> 6, (range.upperBound - 1) >> 6)
    let head = UInt64.max << UInt64(range.lowerBound & 63)
    let tail = UInt64.max >> UInt64(63 - (range.upperBound - 1) & 63)
    guard first < last else {
      words[first] |= head & tail
      return
    }
    words[first] |= head
    for word in first + 1..<last { words[word] = .max }
    words[last] |= tail
  }

  /// Adds the blocks of another set for as many.
  package mutating func formUnion(_ other: BlockSet) {
    for place in words.indices { words[place] |= other.words[place] }
  }

  /// Makes room for this many blocks.
  package mutating func grow(to count: Int) {
    words += repeatElement(0, count: max((count + 63) / 64 - words.count, 0))
  }

  /// The blocks that are in another set, too, or those that are not.
  package func filter(_ other: BlockSet, areIn: Bool) -> BlockSet {
    var result = self
    for place in words.indices {
      let word = place < other.words.count ? other.words[place] : 0
      result.words[place] &= areIn ? word : ~word
    }
    return result
  }

  /// Whether all of its blocks are in another set for as many.
  package func isSubset(of other: BlockSet) -> Bool {
    for place in words.indices where words[place] & ~other.words[place] != 0 { return false }
    return true
  }
}
