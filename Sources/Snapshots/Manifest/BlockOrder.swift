internal import Archive
internal import IPLD
internal import Repository

/// The order of the sections of a CAR, as runs of successive positions.
///
/// A position is an ordinal of the archive; or, in an order relative to that of an earlier
/// snapshot, a place in that one, after which the sections that are new have theirs. Two varints a
/// run: the zigzag encoding of its first position less the expected one, and its length. A
/// repository that was packed from its CAR is one run, however many blocks it has; one that has
/// changed a little since is a few runs relative to what it was. See `Docs/FORMAT.md`, section 6.1.
package struct BlockOrder: Equatable, Sendable {
  /// Runs up to this length lie in the manifest itself; longer ones in pages.
  static let maximumInline = 1024
  /// The longest page, in bytes.
  static let maximumPage = 1 << 20
  /// The most runs of an order of an archive with this many sections.
  ///
  /// An order that has each section once cannot have more runs than sections. There is room for
  /// some that a CAR repeats.
  static func maximumRuns(ofSections count: UInt64) -> Int {
    Int(min(count, 1 << 24)) * 2 + 1 << 16
  }

  /// The most bytes that are read of an order of this many runs.
  ///
  /// A page may come twice, so a small archive could name any amount.
  static func maximumLength(ofRuns count: Int) -> Int { min(count * 20, 64 << 20) }
  /// How many orders may be relative to one another before one is absolute again.
  static let maximumDepth = 31

  /// The runs.
  package private(set) var runs: [Range<UInt64>] = []

  /// An empty order.
  package init() {}

  /// How many sections there are.
  ///
  /// Saturated: hostile runs over the same positions may add up to more than a number can be.
  package private(set) var count: UInt64 = 0

  /// Adds the position of the next section.
  package mutating func append(_ position: UInt64) { append(position..<position + 1) }

  /// Adds the positions of the next sections.
  package mutating func append(_ run: Range<UInt64>) {
    count = count.addingSaturated(run.upperBound - run.lowerBound)
    if let last = runs.indices.last, runs[last].upperBound == run.lowerBound {
      runs[last] = runs[last].lowerBound..<run.upperBound
    } else if !run.isEmpty {
      runs.append(run)
    }
  }

  /// Adds the positions of another order, except for some that are sorted.
  package mutating func append(_ other: BlockOrder, except removed: [UInt64]) {
    for run in other.runs {
      var start = run.lowerBound
      var place = removed.partitioningIndex { $0 >= start }
      while place < removed.count, removed[place] < run.upperBound {
        append(start..<removed[place])
        start = removed[place] + 1
        place += 1
      }
      append(start..<run.upperBound)
    }
  }

  /// The runs as pairs of varints.
  package var encoded: [UInt8] {
    var bytes: [UInt8] = []
    var expected: UInt64 = 0
    for run in runs {
      let delta = Int64(run.lowerBound) - Int64(expected)
      Varint.append(UInt64(bitPattern: delta << 1 ^ delta >> 63), to: &bytes)
      Varint.append(run.upperBound - run.lowerBound, to: &bytes)
      expected = run.upperBound
    }
    return bytes
  }

  /// The blocks that hold the bytes of an order too long for a manifest.
  static func pages(_ encoded: [UInt8]) -> [Block] {
    stride(from: 0, to: encoded.count, by: maximumPage).map { start in
      let bytes = Array(encoded[start..<min(start + maximumPage, encoded.count)])
      return Block(cid: CID(codec: .raw, hashing: bytes.span), bytes: bytes)
    }
  }

  /// Reads at most `maximumRuns` runs of positions below `limit`.
  ///
  /// - Throws: ``SnapshotError`` for bytes that are not pairs of varints, an empty run, a position
  ///   outside `0..<limit`, or too many runs.
  package init(_ bytes: [UInt8], limit: UInt64, maximumRuns: Int = .max) throws(SnapshotError) {
    let span = bytes.span
    let limit = min(limit, UInt64(Int64.max))
    var offset = 0
    var expected: UInt64 = 0
    while offset < span.count {
      guard case .value(let start) = Varint.read(span, at: &offset),
        case .value(let length) = Varint.read(span, at: &offset), length > 0
      else { throw .malformedOrder }
      let delta = Int64(bitPattern: start >> 1) ^ -Int64(bitPattern: start & 1)
      let (first, overflow) = Int64(expected).addingReportingOverflow(delta)
      guard !overflow, first >= 0, UInt64(first) < limit, length <= limit - UInt64(first) else {
        throw .malformedOrder
      }
      guard runs.count < maximumRuns else { throw .tooManyRuns(limit: maximumRuns) }
      expected = UInt64(first) + length
      runs.append(UInt64(first)..<expected)
      count = count.addingSaturated(length)
    }
  }
}

/// Orders relative to that of an earlier snapshot (FORMAT 6.1).
///
/// Servers give a repository in nearly the order of the last time, but now and then in another:
/// then an absolute order takes a run for every block that is out of place, in every later
/// snapshot, and a relative one only in the first.
extension BlockOrder {
  /// This order, whose positions are ordinals, relative to `base`.
  ///
  /// - Returns: The relative order, and the ordinal that the position after the last one of `base`
  ///   stands for.
  package func relative(to base: BlockOrder) -> (order: BlockOrder, first: UInt64) {
    let (known, places) = base.places
    // Sections of the base by their positions in it, and others by their ordinals.
    var pieces: [(range: Range<UInt64>, isKnown: Bool)] = []
    for run in runs {
      known.divide(run) { part, index in
        guard let index else { return pieces.append((part, false)) }
        let first = places[index] + (part.lowerBound - known[index].lowerBound)
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

  /// Maps ordinals to positions: runs of ordinals, ascending, and the position of each's first.
  ///
  /// If runs overlap, which is rare, one counts.
  private var places: (ordinals: [Range<UInt64>], positions: [UInt64]) {
    var position: UInt64 = 0
    var found: [(ordinals: Range<UInt64>, position: UInt64)] = []
    for run in runs {
      found.append((run, position))
      position += UInt64(run.count)
    }
    found.sort { $0.ordinals.lowerBound < $1.ordinals.lowerBound }
    var places: (ordinals: [Range<UInt64>], positions: [UInt64]) = ([], [])
    for run in found where run.ordinals.lowerBound >= places.ordinals.last?.upperBound ?? 0 {
      places.ordinals.append(run.ordinals)
      places.positions.append(run.position)
    }
    return places
  }
}
