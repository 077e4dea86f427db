/// Which ranges of a file the next footer is to protect, and with how much parity.
///
/// 1. What an append adds is protected, and nothing that is protected already, unless groups are
///    merged: eight of about the same size into one, so that their number stays small. Bytes that a
///    merged group held are protected by the new one, its parity among them.
/// 2. Where older bytes lie elsewhere, they are not read: groups stay small until a copy of the
///    archive is made.
struct ParityPlan {
  let percent: Int
  let ranges: [Range<UInt64>]

  /// How much parity is made where the file says that it is protected, and not how much.
  private static let usualPercent = 5
  /// How many groups of a size are there when they are merged into the next one.
  fileprivate static let mergedCount = 7
  /// The longest range that groups are merged into: each time their parity is made anew.
  fileprivate static let longestMerged: UInt64 = 64 << 20

  /// How much parity protects what is appended to a protected file.
  ///
  /// The page before the footer tells, or nothing does: of a generation that was written by a
  /// program which knows no parity.
  static func percent(of generation: Generation, in file: MappedFile) -> Int {
    let end = Int(generation.footerOffset)
    let page = file.withBytes(reading: [max(0, end - longestPage)..<end]) {
      ParityGroup.page(endingAt: end, in: $0)
    }
    return page?.percent ?? usualPercent
  }

  /// No page is longer.
  private static let longestPage = 48 << 10

  /// What is asked for, instead of what follows from the file.
  enum Request {
    /// This percentage for everything that is appended, from now on.
    case percent(Int)
    /// This percentage for these ranges.
    case ranges(Int, [Range<UInt64>])
  }

  /// Plans what the next footer protects.
  ///
  /// - Parameters:
  ///   - request: What is asked for; nil if nothing is.
  ///   - previous: What is committed; nil if nothing is.
  ///   - end: Where what is new ends.
  ///   - file: The file.
  /// - Returns: nil if nothing is to be protected.
  init?(
    _ request: Request?, after previous: Generation?, to end: UInt64,
    in file: @autoclosure () throws -> MappedFile
  ) rethrows {
    let start = previous?.committedLength ?? 0
    if case .ranges(let percent, let ranges) = request {
      (self.percent, self.ranges) = (percent, ranges)
      return
    }
    guard request != nil || previous?.features.isProtected == true else { return nil }
    let file = try file()
    if case .percent(let asked) = request {
      percent = asked
    } else {
      percent = previous.map { Self.percent(of: $0, in: file) } ?? Self.usualPercent
    }
    let first =
      file.isFetched ? start : ParityHistory(file: file).start(mergingBefore: start, to: end)
    // The footer before is protected once more if there is nothing else.
    let lower = first < end ? first : previous?.footerOffset ?? 0
    ranges = lower < end ? [lower..<end] : []
  }
}

extension ParityPlan {
  /// The groups of the plan, one after the other from a place on; the last one protects the footer
  /// behind it, too.
  func groups(at place: UInt64, footerLength: Int) -> [ParityGroup] {
    var (groups, place) = ([ParityGroup](), place)
    let pieces = ranges.flatMap(pieces)
    for (number, piece) in pieces.enumerated() {
      let group = ParityGroup(
        protecting: piece, footerLength: number == pieces.count - 1 ? footerLength : 0,
        percent: percent, at: place)
      groups.append(group)
      place = group.end
    }
    return groups
  }

  /// A range in as few pieces as can be, of about equal length.
  private func pieces(of range: Range<UInt64>) -> [Range<UInt64>] {
    let count = Int(range.upperBound - range.lowerBound).divided(
      by: Int(ParityGroup.longestRange(percent)))
    let step = UInt64(range.count.divided(by: count).divided(by: 4096) * 4096)
    return (0..<UInt64(count)).compactMap { number in
      let start = range.lowerBound + number * step
      let end = min(start + step, range.upperBound)
      return start < end ? start..<end : nil
    }
  }
}

/// What was protected before a place of the file, group by group and generation by generation, from
/// the newest back.
private struct ParityHistory {
  let file: MappedFile

  /// What ends with the footer that ends at a place: where it begins, and whether it is protected;
  /// nil if that cannot be told.
  private func step(endingAt end: UInt64) -> (start: UInt64, isProtected: Bool)? {
    file.withBytes(reading: []) { bytes in
      guard let footer = Footer.frame(bytes, endingAt: Int(end)) else { return nil }
      if let group = ParityGroup.page(endingAt: footer.offset, in: bytes) {
        var (start, place) = (group.range.lowerBound, group.offset)
        while let other = ParityGroup.page(endingAt: Int(place), in: bytes),
          other.range.upperBound == start
        {
          (start, place) = (other.range.lowerBound, other.offset)
        }
        return (start, true)
      }
      // A footer that says what cannot be tells nothing of what came before it.
      guard let generation = try? Footer.read(bytes, footer) else { return nil }
      guard let before = generation.previousFooterOffset else { return (0, false) }
      return Footer.frame(bytes, at: Int(before)).map { (UInt64($0.end), false) }
    }
  }

  /// Where a group begins that ends at `end`: what is not protected yet before `start`, and groups
  /// that are merged, are in it.
  func start(mergingBefore start: UInt64, to end: UInt64) -> UInt64 {
    var start = start
    while start > 0, let before = step(endingAt: start) {
      guard before.isProtected else {
        start = before.start
        continue
      }
      let (size, limit) = (Self.magnitude(end - start), ParityPlan.longestMerged)
      var (first, count) = (start, 0)
      while first > 0, let group = step(endingAt: first), group.isProtected,
        Self.magnitude(first - group.start) <= size, end - group.start <= limit
      {
        (first, count) = (group.start, count + 1)
      }
      guard count >= ParityPlan.mergedCount else { break }
      start = first
    }
    return start
  }

  /// The size class of a group: each is eight times the one before.
  private static func magnitude(_ length: UInt64) -> Int {
    (UInt64.bitWidth - length.leadingZeroBitCount) / 3
  }
}
