internal import Archive

/// Numbers none of which is less than the one before, in four bytes each.
///
/// Kept are their lower halves; the upper ones change so seldom that they are kept where they do.
struct AscendingNumbers: RandomAccessCollection, Sendable {
  private var lowerHalves: [UInt32] = []
  /// From which index on the numbers have which upper half; before the first it is 0.
  private var upperHalves: [(first: Int, half: UInt32)] = []
  /// The number that came last; 0 before the first.
  private(set) var end: UInt64 = 0

  var startIndex: Int { 0 }
  var endIndex: Int { lowerHalves.count }

  /// Makes room for this many.
  mutating func reserveCapacity(_ count: Int) { lowerHalves.reserveCapacity(count) }

  /// Adds a number.
  ///
  /// - Precondition: it is not less than the last.
  mutating func append(_ number: UInt64) {
    precondition(number >= end)
    if number >> 32 != end >> 32 { upperHalves.append((count, UInt32(number >> 32))) }
    lowerHalves.append(UInt32(truncatingIfNeeded: number))
    end = number
  }

  /// The number at an index.
  @inline(__always)
  subscript(index: Int) -> UInt64 {
    let lower = UInt64(lowerHalves[index])
    return upperHalves.isEmpty ? lower : upperHalf(index) << 32 | lower
  }

  private func upperHalf(_ index: Int) -> UInt64 {
    // How many changes there have been up to there.
    let changes = upperHalves.partitioningIndex { $0.first > index }
    return changes > 0 ? UInt64(upperHalves[changes - 1].half) : 0
  }
}

extension [Range<UInt64>] {
  /// Everything that is in some of these, once, in ascending order.
  package var united: [Range<UInt64>] {
    var united: [Range<UInt64>] = []
    for run in sorted(by: { $0.lowerBound < $1.lowerBound }) where !run.isEmpty {
      if let last = united.last, run.lowerBound <= last.upperBound {
        united[united.count - 1] = last.lowerBound..<Swift.max(last.upperBound, run.upperBound)
      } else {
        united.append(run)
      }
    }
    return united
  }

  /// Divides a range by these, which are in order and apart from one another.
  ///
  /// - Parameters:
  ///   - range: what is divided.
  ///   - body: receives each part in order, with the index of the range that it lies in; nil if it
  ///     lies in none.
  package func divide(
    _ range: Range<UInt64>, _ body: (_ part: Range<UInt64>, _ index: Int?) throws -> Void
  ) rethrows {
    var start = range.lowerBound
    var index = partitioningIndex { $0.upperBound > start }
    while start < range.upperBound {
      guard index < endIndex, self[index].lowerBound < range.upperBound else {
        return try body(start..<range.upperBound, nil)
      }
      let shared = self[index].clamped(to: start..<range.upperBound)
      if start < shared.lowerBound { try body(start..<shared.lowerBound, nil) }
      if !shared.isEmpty { try body(shared, index) }
      start = shared.upperBound
      index += 1
    }
  }
}
