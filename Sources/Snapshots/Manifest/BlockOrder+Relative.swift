internal import Archive
internal import Repository

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
    let known = base.places
    // Sections of the base by their positions in it, and others by their ordinals.
    var pieces: [(range: Range<UInt64>, isKnown: Bool)] = []
    for run in runs {
      known.divide(run, by: \.ordinals) { part, run in
        guard let run else { return pieces.append((part, false)) }
        let first = run.position + (part.lowerBound - run.ordinals.lowerBound)
        pieces.append((first..<first + UInt64(part.count), true))
      }
    }
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

  /// Where the sections have their positions: runs of ordinals with the position of the first, by
  /// ordinals; of those that overlap, which is rare, one counts.
  private var places: [(ordinals: Range<UInt64>, position: UInt64)] {
    var position: UInt64 = 0
    var found: [(ordinals: Range<UInt64>, position: UInt64)] = []
    for run in runs {
      found.append((run, position))
      position += UInt64(run.count)
    }
    found.sort { $0.ordinals.lowerBound < $1.ordinals.lowerBound }
    var places: [(ordinals: Range<UInt64>, position: UInt64)] = []
    for run in found where run.ordinals.lowerBound >= places.last?.ordinals.upperBound ?? 0 {
      places.append(run)
    }
    return places
  }
}
