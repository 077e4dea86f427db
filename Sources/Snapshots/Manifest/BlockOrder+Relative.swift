internal import Archive

/// Orders relative to that of an earlier snapshot (FORMAT 6.1).
///
/// Servers give a repository in nearly the order of the last time, but now and then in another:
/// then an absolute order takes a run for every block that is out of place, in every later
/// snapshot, and a relative one only in the first.
extension BlockOrder {
  /// The same order, whose positions are ordinals, relative to `base`.
  ///
  /// - Returns: The relative order, and the ordinal that the position behind the last one of `base`
  ///   stands for.
  package func relative(to base: BlockOrder) -> (order: BlockOrder, first: UInt64) {
    let known = Places(base)
    var pieces: [Places.Piece] = []
    for run in runs { known.appendPieces(of: run, to: &pieces) }
    let first = pieces.lazy.filter { !$0.isKnown }.map(\.range.lowerBound).min() ?? 0
    var relative = BlockOrder()
    for (range, isKnown) in pieces {
      let start = isKnown ? range.lowerBound : base.count + (range.lowerBound - first)
      relative.append(start..<start + UInt64(range.count))
    }
    return (relative, first)
  }

  /// The order whose positions are ordinals, of this one that is relative to `base`.
  ///
  /// - Throws: ``SnapshotError`` if there are more than `maximumRuns`.
  package func resolved(
    over base: BlockOrder, first: UInt64, maximumRuns: Int = .max
  ) throws(SnapshotError) -> BlockOrder {
    // Where each run of the base begins, and where the last ends.
    var starts: [UInt64] = [0]
    for run in base.runs { starts.append(starts[starts.count - 1] + UInt64(run.count)) }
    let count = starts[starts.count - 1]
    var resolved = BlockOrder()
    for run in runs {
      var position = run.lowerBound
      if position < min(run.upperBound, count) {
        var index = starts.partitioningIndex { $0 > position } - 1
        while position < min(run.upperBound, count) {
          let end = min(run.upperBound, starts[index + 1])
          let first = base.runs[index].lowerBound + (position - starts[index])
          resolved.append(first..<first + (end - position))
          position = end
          index += 1
          guard resolved.runs.count <= maximumRuns else { throw .tooManyRuns(limit: maximumRuns) }
        }
      }
      if position < run.upperBound {
        resolved.append(position - count + first..<run.upperBound - count + first)
      }
    }
    return resolved
  }
}

/// Where the sections of an order have their positions.
private struct Places {
  /// A part of a run of ordinals: sections of the order, by their positions in it, or others, by
  /// their ordinals.
  typealias Piece = (range: Range<UInt64>, isKnown: Bool)

  /// Runs of ordinals with the position of the first, by ordinals; of those that overlap, which is
  /// rare, one counts.
  private var runs: [(ordinals: Range<UInt64>, position: UInt64)] = []

  init(_ order: BlockOrder) {
    var position: UInt64 = 0
    var found: [(ordinals: Range<UInt64>, position: UInt64)] = []
    for run in order.runs {
      found.append((run, position))
      position += UInt64(run.count)
    }
    found.sort { $0.ordinals.lowerBound < $1.ordinals.lowerBound }
    for run in found where run.ordinals.lowerBound >= runs.last?.ordinals.upperBound ?? 0 {
      runs.append(run)
    }
  }

  func appendPieces(of ordinals: Range<UInt64>, to pieces: inout [Piece]) {
    var start = ordinals.lowerBound
    var index = runs.partitioningIndex { $0.ordinals.upperBound > start }
    while start < ordinals.upperBound {
      guard index < runs.count, runs[index].ordinals.lowerBound < ordinals.upperBound else {
        return pieces.append((start..<ordinals.upperBound, false))
      }
      let (known, position) = runs[index]
      if start < known.lowerBound { pieces.append((start..<known.lowerBound, false)) }
      let shared = known.clamped(to: start..<ordinals.upperBound)
      let first = position + (shared.lowerBound - known.lowerBound)
      pieces.append((first..<first + UInt64(shared.count), true))
      start = shared.upperBound
      index += 1
    }
  }
}
