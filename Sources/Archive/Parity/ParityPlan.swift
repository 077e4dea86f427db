/// Which ranges of a file the next footer is to protect, and with how much parity.
///
/// 1. What an append adds is protected, and nothing that is protected already, unless groups are
///    merged: eight of about the same size into one, so that their number stays small. Bytes that a
///    merged group held are protected by the new one, its parity among them.
/// 2. Where older bytes are remote, they are not read: groups stay small until a copy of the
///    archive is made.
struct ParityPlan {
  let percent: Int
  let ranges: [Range<UInt64>]

  /// How much parity is made where the file says that it is protected, and not how much.
  private static let usualPercent = 5
  /// How many groups of a size are there when they are merged into the next one.
  fileprivate static let mergedCount = 7
  /// The longest range that groups are merged into: each time their parity is rebuilt.
  fileprivate static let longestMerged: UInt64 = 64 << 20

  /// How much parity protects what is appended to a protected file.
  ///
  /// The page before the footer tells, or nothing does: for a generation that was written by a
  /// program without parity.
  static func percent(of generation: Generation, in file: MappedFile) -> Int {
    let end = Int(generation.footerOffset)
    let page = file.withBytes(reading: [max(0, end - usuallyRead)..<end]) {
      ParityGroup.page(endingAt: end, in: $0)
    }
    return page?.percent ?? usualPercent
  }

  /// How much is fetched before a footer in any case, in which an honest page lies.
  static let usuallyRead = 48 << 10

  /// The requested parity, instead of that which follows from the file.
  enum Request {
    /// This percentage for everything that is appended, from now on.
    case percent(Int)
    /// This percentage for these ranges.
    case ranges(Int, [Range<UInt64>])
  }

  /// Plans what the next footer protects.
  ///
  /// - Parameters:
  ///   - request: What is requested; nil if nothing is.
  ///   - previous: What is committed; nil if nothing is.
  ///   - end: Where what is new ends.
  ///   - file: The file.
  /// - Throws: ``ArchiveError`` if the library for parity is not installed.
  /// - Returns: nil if nothing is to be protected.
  init?(
    _ request: Request?, after previous: Generation?, to end: UInt64,
    in file: @autoclosure () throws -> MappedFile
  ) throws {
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
      file.isFetched ? start : try ParityHistory(file: file).start(mergingBefore: start, to: end)
    // The footer before is protected once more if there is nothing else.
    let lower = first < end ? first : previous?.footerOffset ?? 0
    ranges = lower < end ? [lower..<end] : []
  }
}

extension ParityPlan {
  /// The groups of the plan, one after the other from a place on; the last one protects the footer
  /// after it, too.
  func groups(at place: UInt64, footerLength: Int) -> [ParityGroup] {
    var (groups, place) = ([ParityGroup](), place)
    let pieces = ranges.flatMap { Self.pieces(of: $0, percent: percent) }
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
  static func pieces(of range: Range<UInt64>, percent: Int) -> [Range<UInt64>] {
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
struct ParityHistory {
  let file: MappedFile
  /// How many bytes lie around the frames of each group, before and after them; nil in an archive,
  /// where a footer follows on those of a generation.
  var around: (before: Int, behind: Int)?

  /// What ends with the footer that ends at a place: where it begins, and the groups that protect
  /// it, none if it is not protected; nil if that cannot be told.
  private func step(endingAt end: UInt64) -> (start: UInt64, groups: [ParityGroup])? {
    file.withBytes(reading: []) { bytes in
      let footer = around == nil ? Footer.frame(bytes, endingAt: Int(end)) : nil
      guard around != nil || footer != nil else { return nil }
      var groups: [ParityGroup] = []
      var place = (footer?.offset ?? Int(end)) - (around?.behind ?? 0)
      while let group = ParityGroup.page(endingAt: place, in: bytes),
        groups.last.map({ $0.range.lowerBound == group.range.upperBound }) ?? true
      {
        groups.append(group)
        place = Int(group.offset) - (around.map { $0.before + $0.behind } ?? 0)
      }
      if let first = groups.last { return (first.range.lowerBound, groups) }
      guard let footer else { return nil }
      // A footer that says what cannot be tells nothing of what came before it.
      guard let generation = try? Footer.read(bytes, footer) else { return nil }
      guard let before = generation.previousFooterOffset else { return (0, []) }
      return Footer.frame(bytes, at: Int(before)).map { (UInt64($0.end), []) }
    }
  }

  /// Where a group begins that ends at `end`: what is not protected yet before `start`, and groups
  /// that are merged, are in it.
  ///
  /// Damaged groups are not merged: only their own parity can heal them.
  ///
  /// - Throws: ``ArchiveError`` if the library for parity is not installed.
  func start(mergingBefore start: UInt64, to end: UInt64) throws -> UInt64 {
    var start = start
    while start > 0, let before = step(endingAt: start) {
      guard !before.groups.isEmpty else {
        start = before.start
        continue
      }
      let (size, limit) = (Self.magnitude(end - start), ParityPlan.longestMerged)
      var (first, count, groups) = (start, 0, [ParityGroup]())
      while first > 0, let older = step(endingAt: first), !older.groups.isEmpty,
        Self.magnitude(first - older.start) <= size, end - older.start <= limit
      {
        (first, count, groups) = (older.start, count + 1, groups + older.groups)
      }
      guard count >= ParityPlan.mergedCount else { break }
      let found = file.withBytes(reading: []) { bytes in groups.map { FoundParity($0, in: bytes) } }
      guard try ParityHealing.assess(file, found).damagedCount == 0 else { break }
      start = first
    }
    return start
  }

  /// The size class of a group: each is eight times the one before.
  private static func magnitude(_ length: UInt64) -> Int {
    (UInt64.bitWidth - length.leadingZeroBitCount) / 3
  }
}
