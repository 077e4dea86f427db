import ATProtocol
import Files
import Foundation
import Snapshots
import TestSupport
import Testing

@Suite struct `A policy of what to keep` {
  /// Why each of these is kept, the oldest first.
  private func reasons(_ policy: RetentionPolicy, _ times: [String]) -> [Set<
    RetentionPolicy.Reason
  >] {
    policy.reasons(times.map { Moment($0) })
  }

  /// Which of these are kept.
  private func kept(_ policy: RetentionPolicy, _ times: [String]) -> [Int] {
    reasons(policy, times).enumerated().compactMap { $1.isEmpty ? nil : $0 }
  }

  @Test func `without a number keeps the newest alone`() {
    #expect(kept(RetentionPolicy(), ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"]) == [1])
    #expect(kept(RetentionPolicy(), []) == [])
    #expect(kept(RetentionPolicy(last: -3, daily: -1), ["2026-01-01T00:00:00Z"]) == [0])
  }

  @Test func `does not count what lacks records as kept, and keeps the newest that lacks none`() {
    let times = (1...4).map { "2026-01-0\($0)T00:00:00Z" }
    func reasons(_ policy: RetentionPolicy, _ complete: [Bool]) -> [Set<RetentionPolicy.Reason>] {
      policy.reasons(times.map { Moment($0) }, complete: complete)
    }
    #expect(
      reasons(RetentionPolicy(last: 1), [true, true, false, false])
        == [[], [.last], [], [.newest]])
    #expect(
      reasons(RetentionPolicy(daily: 2), [true, false, true, false])
        == [[.daily], [], [.daily], [.newest]])
    #expect(
      reasons(RetentionPolicy(), [true, false, false, false])
        == [[.newestComplete], [], [], [.newest]])
    // Where none is complete, all count.
    #expect(
      reasons(RetentionPolicy(last: 2), [false, false, false, false])
        == [[], [], [.last], [.newest, .last]])
  }

  @Test func `keeps the last so many, and of times that go back the later snapshots`() {
    let times = [
      "2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z",
      "2026-01-02T00:00:00Z",
    ]
    #expect(reasons(RetentionPolicy(last: 2), times) == [[], [.last], [], [.newest, .last]])
    #expect(kept(RetentionPolicy(last: 3), times) == [1, 2, 3])
    #expect(kept(RetentionPolicy(last: 100), times) == [0, 1, 2, 3])
    #expect(kept(RetentionPolicy(last: .max, yearly: .max), times.sorted()) == [0, 1, 2, 3])
  }

  @Test func `of equal times takes the later in the file for the newer`() {
    let times = [String](repeating: "2026-01-01T00:00:00Z", count: 4)
    #expect(kept(RetentionPolicy(last: 2), times) == [2, 3])
    #expect(reasons(RetentionPolicy(daily: 3), times) == [[], [], [], [.newest, .daily]])
  }

  @Test func `keeps the newest of a day, and counts days that have one`() {
    let times = [
      "2026-01-01T08:00:00Z", "2026-01-01T23:59:59.999Z", "2026-01-05T00:00:00Z",
      "2026-01-05T12:00:00Z", "2026-02-01T12:00:00Z",
    ]
    #expect(kept(RetentionPolicy(daily: 1), times) == [4])
    #expect(kept(RetentionPolicy(daily: 2), times) == [3, 4])
    #expect(kept(RetentionPolicy(daily: 3), times) == [1, 3, 4])
    #expect(kept(RetentionPolicy(daily: 9), times) == [1, 3, 4])
  }

  @Test func `reckons in UTC, whatever offset a time has`() {
    // In UTC: 31 December 23:30, 1 January 00:30, 1 January 22:00.
    let times = [
      "2026-01-01T01:30:00+02:00", "2025-12-31T19:30:00-05:00", "2026-01-01T23:00:00+01:00",
    ]
    #expect(kept(RetentionPolicy(daily: 5), times) == [0, 2])
    #expect(kept(RetentionPolicy(yearly: 5), times) == [0, 2])
  }

  @Test func `begins weeks on Monday, across the ends of years`() {
    // Sunday; Monday, which is in the same week as Sunday the 4th; Monday.
    let times = [
      "2025-12-28T23:59:59Z", "2025-12-29T00:00:00Z", "2026-01-04T23:59:59Z",
      "2026-01-05T00:00:00Z",
    ]
    #expect(kept(RetentionPolicy(weekly: 9), times) == [0, 2, 3])
    // Before 1970, too, where a week has a number below 0.
    #expect(
      kept(
        RetentionPolicy(weekly: 9),
        ["1969-12-28T12:00:00Z", "1969-12-29T12:00:00Z", "1970-01-04T12:00:00Z"]) == [0, 2])
  }

  @Test func `knows months of one name in different years, and leap days`() {
    let times = [
      "2024-02-28T00:00:00Z", "2024-02-29T23:00:00Z", "2024-03-01T00:00:00Z",
      "2025-02-28T00:00:00Z", "2025-03-01T00:00:00Z",
    ]
    #expect(kept(RetentionPolicy(monthly: 9), times) == [1, 2, 3, 4])
    #expect(kept(RetentionPolicy(yearly: 9), times) == [2, 4])
  }

  @Test func `keeps what any rule keeps, and says which`() {
    let times = ["2025-06-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]
    #expect(
      reasons(RetentionPolicy(last: 1, daily: 1, weekly: 2, monthly: 1, yearly: 2), times) == [
        [.weekly, .yearly], [], [.newest, .last, .daily, .weekly, .monthly, .yearly],
      ])
  }

  @Test func `never forgets what nobody can date`() {
    let times = [
      "yesterday", "2026-01-01T00:00:00Z", "", "2026-02-30T00:00:00Z", "2026-01-02T00:00:00Z",
    ]
    #expect(
      reasons(RetentionPolicy(last: 1), times) == [
        [.undated], [], [.undated], [.undated], [.newest, .last],
      ])
    // Nor does it count.
    #expect(kept(RetentionPolicy(last: 2), times) == [0, 1, 2, 3, 4])
  }

  /// Which times of snapshots, made in months of 2026 or as given, are wrong in June of that year.
  private func wrong(_ times: [String], revisions: [String] = []) throws -> [Int] {
    let revisions = try revisions.map { text throws in
      let seconds = try #require(Moment(text)).seconds
      return TID(integer: UInt64(seconds) * 1_000_000 << 10) as TID?
    }
    let found = SnapshotTimes(
      times.map { Moment($0) }, revisions: revisions, now: Moment("2026-06-30T00:00:00Z"))
    return found.areWrong.indices.filter { found.areWrong[$0] }
  }

  @Test func `takes a time after now for wrong, whichever snapshot has it`() throws {
    let months = (1...5).map { "2026-0\($0)-01T00:00:00Z" }
    #expect(try wrong(months) == [])
    for place in 0...5 {
      var times = months
      times.insert("2086-05-17T00:00:00Z", at: place)
      #expect(try wrong(times) == [place])
      times.insert("2026-06-30T00:00:01Z", at: place)
      #expect(try wrong(times) == [place, place + 1])
    }
    #expect(try wrong(["2026-06-30T00:00:00Z"]) == [])
  }

  @Test func `takes the fewest times for wrong that contradict the order`() throws {
    let months = (1...5).map { "2026-0\($0)-01T00:00:00Z" }
    for place in 0..<5 {
      // A clock that ran ahead, though not beyond now; then one that stood at its beginning.
      var (ahead, behind) = (months, months)
      ahead.insert("2026-06-29T00:00:00Z", at: place)
      behind.insert("1970-01-01T00:00:00Z", at: place + 1)
      #expect(try wrong(ahead) == [place])
      if place > 0 { #expect(try wrong(behind) == [place + 1]) }
    }
    #expect(
      try wrong(months + ["2001-01-01T00:00:00Z", "2001-01-02T00:00:00Z", "2026-06-01T00:00:00Z"])
        == [5, 6])
    // Several clocks, in both directions, and snapshots that nobody can date.
    #expect(
      try wrong([
        months[0], "2086-01-01T00:00:00Z", "never", months[1], "1970-01-01T00:00:00Z", months[2],
        "2026-06-01T00:00:00Z", months[3], "", months[4],
      ]) == [1, 4, 6])
  }

  @Test func `asks the revision where the order does not tell which time is wrong`() throws {
    let times = ["2026-03-01T00:00:00Z", "2001-01-01T00:00:00Z"]
    #expect(try wrong(times) == [0])
    #expect(try wrong(times, revisions: ["2026-02-28T00:00:00Z", "2026-03-02T00:00:00Z"]) == [1])
    // One that is itself after now tells nothing.
    #expect(try wrong(times, revisions: ["2026-02-28T00:00:00Z", "2086-03-02T00:00:00Z"]) == [0])
    // Where the order is right, no revision makes a time wrong: its clock may be the wrong one.
    #expect(
      try wrong(times.reversed(), revisions: ["2026-06-01T00:00:00Z", "2026-06-02T00:00:00Z"]) == []
    )
  }

  @Test func `gives a wrong time no place of any rule`() {
    let times = [
      "2026-02-21T00:00:00Z", "2026-03-23T00:00:00Z", "2026-04-22T00:00:00Z",
      "2086-05-17T00:00:00Z", "2026-05-22T00:00:00Z", "2026-06-01T00:00:00Z",
    ]
    func kept(_ policy: RetentionPolicy, _ times: [String]) -> [Int] {
      var policy = policy
      policy.now = Moment("2026-11-28T00:00:00Z")
      return self.kept(policy, times)
    }
    #expect(kept(RetentionPolicy(last: 2), times) == [4, 5])
    #expect(kept(RetentionPolicy(daily: 3), times) == [2, 4, 5])
    #expect(kept(RetentionPolicy(weekly: 2), times) == [4, 5])
    #expect(kept(RetentionPolicy(monthly: 4), times) == [1, 2, 4, 5])
    #expect(kept(RetentionPolicy(yearly: 1), times) == [5])
    // The newest is kept, and takes no place either.
    #expect(kept(RetentionPolicy(last: 2), Array(times.prefix(4))) == [1, 2, 3])
    // Where all are wrong, a rule chooses among them: the clock of this machine may be the wrong one.
    #expect(kept(RetentionPolicy(last: 2), (1...4).map { "2086-01-0\($0)T00:00:00Z" }) == [2, 3])
  }

  @Test func `keeps what a model keeps that looks at every period there is`() {
    var random = SeededGenerator()
    print("A policy of what to keep: \(random)")
    let formatter = ISO8601DateFormatter()
    for _ in 0..<300 {
      let spans: [Double] = [3600, 86_400 * 5, 86_400 * 400, 86_400 * 5000]
      let span = spans[Int.random(in: 0..<spans.count, using: &random)]
      var dates: [Date] = []
      for _ in 0..<Int.random(in: 1...40, using: &random) {
        let seconds = Double.random(in: 0...span, using: &random).rounded()
        // Every now and then the same time again.
        let again =
          Int.random(in: 0..<8, using: &random) == 0 ? dates.randomElement(using: &random) : nil
        dates.append(again ?? Date(timeIntervalSince1970: 1_600_000_000 + seconds))
      }
      func number() -> Int { Int.random(in: -1...6, using: &random) }
      let policy = RetentionPolicy(
        last: number(), daily: number(), weekly: number(), monthly: number(), yearly: number())
      let reasons = policy.reasons(
        dates.map { Moment(formatter.string(from: $0)) }, misdated: dates.map { _ in false })
      #expect(reasons.map { !$0.isEmpty } == Self.model(policy, dates), "\(policy) \(dates)")
    }
  }

  /// Which are kept: of each rule the newest of every period, and of these the newest.
  private static func model(_ policy: RetentionPolicy, _ dates: [Date]) -> [Bool] {
    var calendar = Calendar(identifier: .iso8601)
    calendar.timeZone = .gmt
    let rules: [(Int, (Int) -> [Int?])] = [
      (policy.last, { [$0] }),
      (policy.daily, { parts([.year, .month, .day], dates[$0]) }),
      (policy.weekly, { parts([.yearForWeekOfYear, .weekOfYear], dates[$0]) }),
      (policy.monthly, { parts([.year, .month], dates[$0]) }),
      (policy.yearly, { parts([.year], dates[$0]) }),
    ]
    func parts(_ components: Set<Calendar.Component>, _ date: Date) -> [Int?] {
      let found = calendar.dateComponents(components, from: date)
      return [
        components.contains(.yearForWeekOfYear) ? found.yearForWeekOfYear : found.year,
        components.contains(.month) ? found.month : nil,
        components.contains(.day) ? found.day : nil,
        components.contains(.weekOfYear) ? found.weekOfYear : nil,
      ]
    }
    var kept = [Bool](repeating: false, count: dates.count)
    kept[dates.count - 1] = true
    for (count, period) in rules where count > 0 {
      var newest: [[Int?]: Int] = [:]
      for index in dates.indices {
        if let known = newest[period(index)], dates[index] < dates[known] { continue }
        newest[period(index)] = index
      }
      let sorted = newest.values.sorted { (dates[$0], $0) > (dates[$1], $1) }
      for index in sorted.prefix(count) { kept[index] = true }
    }
    return kept
  }
}
