extension RandomAccessCollection where Index == Int {
  /// The first index whose element satisfies `predicate`, which all that follow do too; the end if
  /// none does.
  @inlinable
  package func partitioningIndex(_ predicate: (Element) -> Bool) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = low + (high - low) / 2
      if predicate(self[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}

extension Array {
  /// Whether one of these ranges, which ascend and do not overlap, holds a value.
  package func has<Bound: Comparable>(_ value: Bound) -> Bool where Element == Range<Bound> {
    let place = partitioningIndex { $0.upperBound > value }
    return place < count && self[place].contains(value)
  }

  /// Adds a number that is not below the last range: to that, if no more than this many lie
  /// between.
  mutating func extend<Bound: FixedWidthInteger>(by number: Bound, across gap: Bound = 0)
  where Element == Range<Bound> {
    if let last, number - last.upperBound <= gap {
      self[count - 1] = last.lowerBound..<number + 1
    } else {
      append(number..<number + 1)
    }
  }

  /// These ranges in ascending order, those that touch or overlap as one.
  package func merged<Bound: Comparable>() -> [Range<Bound>] where Element == Range<Bound> {
    var merged: [Range<Bound>] = []
    for range in sorted(by: { $0.lowerBound < $1.lowerBound }) {
      if let last = merged.last, last.upperBound >= range.lowerBound {
        merged[merged.count - 1] = last.lowerBound..<Swift.max(last.upperBound, range.upperBound)
      } else {
        merged.append(range)
      }
    }
    return merged
  }

  /// What of a range none of these has, which ascend and do not overlap.
  package func gaps<Bound: Comparable>(in whole: Range<Bound>) -> [Range<Bound>]
  where Element == Range<Bound> {
    var (gaps, next) = ([Range<Bound>](), whole.lowerBound)
    for range in self where range.upperBound > next && range.lowerBound < whole.upperBound {
      if range.lowerBound > next { gaps.append(next..<range.lowerBound) }
      next = range.upperBound
    }
    return next < whole.upperBound ? gaps + [next..<whole.upperBound] : gaps
  }
}
