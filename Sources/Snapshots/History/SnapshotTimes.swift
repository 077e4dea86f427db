package import ATProtocol
internal import Archive
package import Files

/// When an account's snapshots were made, in the order in which they were added, and which of these
/// times a clock that was wrong has written.
///
/// A time after now is wrong. Of the others, the fewest are taken for wrong that leave times which
/// do not go back from one snapshot to the next: so one clock that ran ahead or behind costs its
/// own snapshots their times, and no others. Where that leaves a choice, a time long before its
/// snapshot's own revision is wrong, and else the time of the snapshot that was added earlier. When
/// a snapshot was added that no footer leads to is not known, so its time contradicts no other.
package struct SnapshotTimes {
  /// How many seconds a snapshot may be dated before its revision, which has the server's clock.
  private static let tolerance: Int64 = 86_400

  /// How good the best choice of times is that ends with a certain snapshot.
  private struct Choice: Comparable {
    var count = 0
    var plausibleCount = 0
    var index = -1

    static func < (left: Choice, right: Choice) -> Bool {
      (left.count, left.plausibleCount, left.index)
        < (right.count, right.plausibleCount, right.index)
    }
  }

  /// When each was made; nil where that cannot be read.
  package let moments: [Moment?]
  /// The time in each one's revision; nil without one.
  private let revisions: [Moment?]
  /// Those of which it is not known when they were added.
  private let unordered: Set<Int>
  /// What time it is; nil if that is not known.
  private let now: Moment?

  /// The times of these snapshots, which are of one account and in the order of adding, as far as
  /// that is known.
  package init(
    _ moments: [Moment?], revisions: [TID?] = [], unordered: Set<Int> = [], now: Moment?
  ) {
    (self.moments, self.unordered, self.now) = (moments, unordered, now)
    self.revisions = moments.indices.map { index in
      revisions.indices.contains(index) ? revisions[index].map { Moment($0) } : nil
    }
  }

  /// Of each snapshot whether its time is known and wrong.
  package var areWrong: [Bool] {
    var areWrong = moments.map { $0 != nil }
    for index in chosen { areWrong[index] = false }
    for index in unordered { areWrong[index] = moments[index].map(isAfterNow) ?? false }
    return areWrong
  }

  private func isAfterNow(_ moment: Moment) -> Bool { now?.begins(before: moment) ?? false }

  /// Whether the time is not long before the revision; one after now tells nothing.
  private func isPlausible(_ index: Int, _ moment: Moment) -> Bool {
    guard let revision = revisions[index], !isAfterNow(revision) else { return true }
    return !moment.begins(before: revision.earlier(by: Self.tolerance))
  }

  /// The snapshots whose times count: the best choice that does not go back.
  private var chosen: [Int] {
    let candidates = moments.indices.filter { !unordered.contains($0) }.compactMap { index in
      moments[index].flatMap { isAfterNow($0) ? nil : (index: index, moment: $0) }
    }
    let sorted = candidates.map(\.moment).sorted { $0.begins(before: $1) }
    // The best choices that end with one of the earliest 2^k times: a Fenwick tree.
    var best = [Choice](repeating: Choice(), count: sorted.count + 1)
    var previous: [Int: Int] = [:]
    var last = Choice()
    for (index, moment) in candidates {
      let rank = sorted.partitioningIndex { moment.begins(before: $0) }
      var found = Choice()
      var place = rank
      while place > 0 {
        found = max(found, best[place])
        place &= place - 1
      }
      previous[index] = found.index
      found.count += 1
      if isPlausible(index, moment) { found.plausibleCount += 1 }
      found.index = index
      last = max(last, found)
      place = rank
      while place < best.count {
        best[place] = max(best[place], found)
        place += place & -place
      }
    }
    var chosen: [Int] = []
    var index = last.index
    while index >= 0 {
      chosen.append(index)
      index = previous[index] ?? -1
    }
    return chosen
  }
}
