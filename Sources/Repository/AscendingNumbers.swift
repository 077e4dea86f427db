/// Numbers none of which is less than the one before, in four bytes each.
///
/// Kept are their lower halves; the upper ones change so seldom that they are kept where they do.
struct AscendingNumbers {
  private var lowerHalves: [UInt32] = []
  /// From which index on the numbers have which upper half; before the first it is 0.
  private var upperHalves: [(first: Int, half: UInt32)] = []
  /// The number that came last; 0 before the first.
  private(set) var last: UInt64 = 0

  /// How many there are.
  var count: Int { lowerHalves.count }

  /// Makes room for so many.
  mutating func reserveCapacity(_ count: Int) { lowerHalves.reserveCapacity(count) }

  /// Adds a number.
  ///
  /// - Precondition: it is not less than the last.
  mutating func append(_ number: UInt64) {
    precondition(number >= last)
    if number >> 32 != last >> 32 { upperHalves.append((count, UInt32(number >> 32))) }
    lowerHalves.append(UInt32(truncatingIfNeeded: number))
    last = number
  }

  /// The number at an index.
  @inline(__always)
  subscript(index: Int) -> UInt64 {
    let lower = UInt64(lowerHalves[index])
    return upperHalves.isEmpty ? lower : upperHalf(index) << 32 | lower
  }

  private func upperHalf(_ index: Int) -> UInt64 {
    // How many changes there have been up to there.
    var (low, high) = (0, upperHalves.count)
    while low < high {
      let middle = (low + high) / 2
      if upperHalves[middle].first <= index { low = middle + 1 } else { high = middle }
    }
    return low > 0 ? UInt64(upperHalves[low - 1].half) : 0
  }
}
