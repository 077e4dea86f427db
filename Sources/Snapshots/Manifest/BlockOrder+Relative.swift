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
    let count = base.count
    let known = Places(base)
    var pieces: [Places.Piece] = []
    var first = UInt64.max
    for run in runs {
      known.forEachPiece(of: run) { piece in
        if case .new(let ordinals) = piece { first = min(first, ordinals.lowerBound) }
        pieces.append(piece)
      }
    }
    if first == .max { first = 0 }
    var relative = BlockOrder()
    for piece in pieces {
      switch piece {
      case .known(let positions): relative.append(positions)
      case .new(let ordinals):
        relative.append(
          count + (ordinals.lowerBound - first)..<count + (ordinals.upperBound - first))
      }
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
  /// A part of a run of ordinals.
  enum Piece {
    /// Sections of the order, by their positions in it.
    case known(Range<UInt64>)
    /// Sections that are none of the order's, by their ordinals.
    case new(Range<UInt64>)
  }

  /// Runs of ordinals with the position of the first, by ordinals; of those that overlap, which is
  /// rare, one counts.
  private var runs: [(ordinals: Range<UInt64>, position: UInt64)] = []

  package init(_ order: BlockOrder) {
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

  func forEachPiece(of ordinals: Range<UInt64>, _ body: (Piece) -> Void) {
    var start = ordinals.lowerBound
    var index = runs.partitioningIndex { $0.ordinals.upperBound > start }
    while start < ordinals.upperBound {
      guard index < runs.count, runs[index].ordinals.lowerBound < ordinals.upperBound else {
        body(.new(start..<ordinals.upperBound))
        return
      }
      let (known, position) = runs[index]
      if start < known.lowerBound {
        body(.new(start..<known.lowerBound))
        start = known.lowerBound
      }
      let end = min(known.upperBound, ordinals.upperBound)
      let offset = start - known.lowerBound
      body(.known(position + offset..<position + offset + (end - start)))
      start = end
      index += 1
    }
  }
}
