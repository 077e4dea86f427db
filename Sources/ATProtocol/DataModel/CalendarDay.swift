/// A day of the Gregorian calendar, which is taken to have been in force always.
package struct CalendarDay: Equatable, Sendable {
  /// The days from the beginning of 1970 to that of this day.
  package let number: Int64

  /// The day that begins this many days after 1970 does.
  package init(number: Int64) { self.number = number }

  /// A day by its date; nil if there is no such day.
  ///
  /// Years are taken to begin in March, so that the day that not every year has is the last of one.
  package init?(year: Int64, month: Int64, day: Int64) {
    let marchYear = month > 2 ? year : year - 1
    let marchMonth = (month + 9) % 12
    number =
      365 * marchYear + Self.floor(marchYear, 4) - Self.floor(marchYear, 100)
      + Self.floor(marchYear, 400) + (153 * marchMonth + 2) / 5 + day - 1 - 719_468
    guard date == (year, month, day) else { return nil }
  }

  /// The year, the month from 1 to 12, and the day from 1 to 31.
  package var date: (year: Int64, month: Int64, day: Int64) {
    // Counted from the first of March of the year 0; four hundred years have 146,097 days.
    let days = number + 719_468
    let era = Self.floor(days, 146_097)
    let dayOfEra = days - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let month = (5 * dayOfYear + 2) / 153
    let isPastDecember = month >= 10
    return (
      era * 400 + yearOfEra + (isPastDecember ? 1 : 0), isPastDecember ? month - 9 : month + 3,
      dayOfYear - (153 * month + 2) / 5 + 1
    )
  }

  /// The quotient, rounded down.
  package static func floor(_ number: Int64, _ divisor: Int64) -> Int64 {
    number / divisor - (number % divisor < 0 ? 1 : 0)
  }
}

extension CalendarDay: CustomStringConvertible {
  /// The date as RFC 3339 has it: `2025-03-22`.
  package var description: String {
    let (year, month, day) = date
    func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
    return "\(year)-\(two(month))-\(two(day))"
  }
}
