package import ATProtocol
internal import LibC

/// A point in time, to the nanosecond, and its precision.
///
/// Read from RFC 3339, or from the beginning of it: `2026-11-21`, `2026-11-21T10:00`,
/// `2026-11-21T10:00:05.5+01:00`. What is left out makes it as long as the day, minute or second
/// that it names. A time without an offset from UTC is in UTC.
package struct Moment: Equatable, Sendable {
  /// The seconds since the beginning of 1970, without leap seconds.
  package let seconds: Int64
  /// The nanoseconds after these.
  package let nanoseconds: Int64
  /// How many nanoseconds it may be later than that: the named day, minute or second lasts that
  /// long.
  package let length: Int64

  private static let second: Int64 = 1_000_000_000
  /// The longest text that is examined: all of RFC 3339 with nine digits of a second has 35
  /// characters.
  package static let maximumLength = 40

  /// The seconds that all file systems can keep: from the beginning of 1980, before which FAT and
  /// exFAT know no time, to the end of 2107.
  package static let ofFiles: ClosedRange<Int64> = 315_532_800...4_354_819_199

  /// Whether it begins before the other has ended: on the day, in the minute, or earlier.
  package func isUpTo(_ other: Moment) -> Bool {
    let end = other.nanoseconds + other.length
    return (seconds, nanoseconds) < (other.seconds + end / Self.second, end % Self.second)
  }

  /// Whether it begins before the other begins.
  package func begins(before other: Moment) -> Bool {
    (seconds, nanoseconds) < (other.seconds, other.nanoseconds)
  }

  /// The moment this many seconds earlier.
  package func earlier(by seconds: Int64) -> Moment {
    Moment(seconds: self.seconds - seconds, nanoseconds: nanoseconds, length: Self.second)
  }

  /// The day in UTC, as `2025-03-22`.
  package var day: String { calendarDay.description }
  /// The year in UTC.
  package var year: Int { Int(calendarDay.date.year) }

  private var calendarDay: CalendarDay { CalendarDay(number: CalendarDay.floor(seconds, 86_400)) }

  /// The day and the minute in UTC, as `2025-03-22 14:05`.
  package var minute: String { "\(day) \(text.suffix(9).prefix(5))" }

  /// In the form of RFC 3339, to the second.
  package var text: String {
    func padded(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
    let second = seconds - CalendarDay.floor(seconds, 86_400) * 86_400
    return
      "\(day)T\(padded(second / 3600)):\(padded(second / 60 % 60)):\(padded(second % 60))Z"
  }

  /// Sets it as the modification time of an open file, where the file system allows that.
  package func set(_ descriptor: CInt) {
    let time = timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds))
    // It says nothing about the content, so a file without it is as good.
    _ = unsafe futimens(descriptor, [time, time])
  }
}

extension Moment {
  /// The time in a TID.
  package init(_ tid: TID) {
    let microseconds = Int64(tid.microseconds)
    self.init(
      seconds: microseconds / 1_000_000, nanoseconds: microseconds % 1_000_000 * 1000, length: 1000)
  }

  /// Reads a moment; nil for any other text.
  package init?(_ text: String) {
    var rest = Array(text.utf8.prefix(Self.maximumLength + 1))[...]
    func skip(_ characters: String) -> Bool {
      guard let byte = rest.first, characters.utf8.contains(byte) else { return false }
      rest.removeFirst()
      return true
    }
    func digit() -> Int64? {
      guard let byte = rest.first, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return nil }
      rest.removeFirst()
      return Int64(byte - UInt8(ascii: "0"))
    }
    func twoDigits(below limit: Int64 = 100) -> Int64? {
      guard let tens = digit(), let ones = digit(), tens * 10 + ones < limit else { return nil }
      return tens * 10 + ones
    }
    guard let century = twoDigits(), let year = twoDigits(), skip("-"), let month = twoDigits(),
      skip("-"), let day = twoDigits(),
      let days = CalendarDay(year: century * 100 + year, month: month, day: day)?.number
    else { return nil }
    var (seconds, nanoseconds, length) = (days * 86_400, Int64(0), 86_400 * Self.second)
    if !rest.isEmpty {
      guard skip("Tt "), let hour = twoDigits(below: 24), skip(":"),
        let minute = twoDigits(below: 60)
      else { return nil }
      (seconds, length) = (seconds + hour * 3600 + minute * 60, 60 * Self.second)
      if skip(":") {
        // A leap second is the first of the minute that follows.
        guard let second = twoDigits(below: 61) else { return nil }
        (seconds, length) = (seconds + second, Self.second)
        if skip(".") {
          // One to nine digits; the last tells how exact it is.
          while length > 1, let digit = digit() {
            length /= 10
            nanoseconds += digit * length
          }
          guard length < Self.second else { return nil }
        }
      }
      if !rest.isEmpty, !skip("Zz") {
        let isWest = skip("-")
        guard isWest || skip("+"), let hours = twoDigits(below: 24), skip(":"),
          let minutes = twoDigits(below: 60)
        else { return nil }
        seconds -= (isWest ? -1 : 1) * (hours * 3600 + minutes * 60)
      }
      guard rest.isEmpty else { return nil }
    }
    self.init(seconds: seconds, nanoseconds: nanoseconds, length: length)
  }

  /// Reads a time as people write it: what ``init(_:)`` reads, or a year, or a month.
  package init?(written text: String) {
    if let moment = Moment(text) {
      self = moment
      return
    }
    let isYear = text.utf8.count == 4
    guard isYear || text.utf8.count == 7, let first = Moment(text + (isYear ? "-01-01" : "-01"))
    else { return nil }
    // So many days later it is the next year, or month.
    let day = CalendarDay.floor(first.seconds, 86_400)
    let next = CalendarDay(number: day + (isYear ? 366 : 31)).date
    guard let end = CalendarDay(year: next.year, month: isYear ? 1 : next.month, day: 1) else {
      return nil
    }
    self.init(
      seconds: first.seconds, nanoseconds: 0, length: (end.number - day) * 86_400 * Self.second)
  }
}
