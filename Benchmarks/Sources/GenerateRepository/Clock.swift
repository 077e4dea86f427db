import ATProtocol

/// The time at which the account writes, which only ever advances.
struct Clock {
  /// 2023-05-01T00:00:00Z, when the first record is written, in microseconds.
  private static let start: UInt64 = 1_682_899_200_000_000
  /// 28 months, over which the records are spread, in microseconds.
  private static let span: UInt64 = 28 * 30 * 86_400 * 1_000_000

  /// Microseconds since 1970.
  private(set) var now = Clock.start
  private let averageStep: Int
  /// Which of its writer's clocks told the time.
  private var identifier: UInt64 = 0

  /// A clock for so many records.
  init(recordCount: Int) {
    averageStep = max(4, Int(Self.span) / max(1, recordCount))
  }

  /// Goes on to the time of the next record: soon, for people like and write several things in one
  /// sitting, or much later.
  mutating func advance(_ random: inout SeededRandom) {
    now += UInt64(1 + random.below(random.chance(80) ? averageStep / 4 : averageStep * 9))
    // A client keeps its clock identifier for as long as it runs.
    if random.chance(2) { identifier = UInt64(random.below(1024)) }
  }

  /// The time as a record key or a revision.
  var tid: TID { TID(integer: now << 10 | identifier) }

  /// A time within the last thirty days, as somebody else's record key.
  func earlierTID(_ random: inout SeededRandom) -> TID {
    let age = random.ranked(below: 30 * 86_400_000) * 1000 + random.below(1000)
    return TID(integer: (now - UInt64(age)) << 10 | UInt64(random.below(1024)))
  }

  /// The time as clients write it: `2024-03-17T12:34:56.789Z`.
  var text: String {
    let milliseconds = Int(now / 1000)
    let (days, time) = (milliseconds / 86_400_000, milliseconds % 86_400_000)
    let (year, month, day) = Self.date(days)
    func digits(_ number: Int, _ width: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: width - text.count) + text
    }
    return """
      \(year)-\(digits(month, 2))-\(digits(day, 2))T\
      \(digits(time / 3_600_000, 2)):\(digits(time / 60_000 % 60, 2)):\(digits(time / 1000 % 60, 2))\
      .\(digits(time % 1000, 3))Z
      """
  }

  /// The date so many days after 1970-01-01, by counting in eras of 400 years that begin in March.
  private static func date(_ days: Int) -> (year: Int, month: Int, day: Int) {
    let shifted = days + 719_468
    let (era, dayOfEra) = (shifted / 146_097, shifted % 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let day = dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, day)
  }
}
