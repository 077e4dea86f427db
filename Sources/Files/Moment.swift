package import ATProtocol
internal import LibC

/// A point in time, to the nanosecond, and how exactly it was told.
///
/// Read from RFC 3339, or from the beginning of it: `2026-11-21`, `2026-11-21T10:00`,
/// `2026-11-21T10:00:05.5+01:00`. What is left out makes it as long as the day, minute or second
/// that it names. A time without an offset from UTC is in UTC.
package struct Moment: Equatable, Sendable {
  /// The seconds since the beginning of 1970, without leap seconds.
  package let seconds: Int64
  /// The nanoseconds after these.
  package let nanoseconds: Int64
  /// How many nanoseconds it may be later than that: what was named lasts so long.
  package let length: Int64

  private static let second: Int64 = 1_000_000_000
  /// The longest text that is looked at: all of RFC 3339 with nine digits of a second has 35
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

  /// The second that was so many seconds before.
  package func earlier(by seconds: Int64) -> Moment {
    Moment(seconds: self.seconds - seconds, nanoseconds: nanoseconds, length: Self.second)
  }

  /// The day in UTC, as `2025-03-22`.
  package var day: String { CalendarDay(number: CalendarDay.floor(seconds, 86_400)).description }

  /// The day and the minute in UTC, as `2025-03-22 14:05`.
  package var minute: String { "\(day) \(text.suffix(9).prefix(5))" }

  /// In the form of RFC 3339, to the second.
  package var text: String {
    func padded(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
    let second = seconds - CalendarDay.floor(seconds, 86_400) * 86_400
    return
      "\(day)T\(padded(second / 3600)):\(padded(second / 60 % 60)):\(padded(second % 60))Z"
  }

  /// Gives it to an open file, where the file system allows that.
  package func set(_ descriptor: CInt) {
    let time = timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds))
    // It says nothing about the content, so a file without it is as good.
    _ = unsafe futimens(descriptor, [time, time])
  }
}

extension Moment {
  /// The time that a TID tells.
  package init(_ tid: TID) {
    let microseconds = Int64(tid.microseconds)
    self.init(
      seconds: microseconds / 1_000_000, nanoseconds: microseconds % 1_000_000 * 1000, length: 1000)
  }

  /// Reads a moment; nil for text that is none.
  package init?(_ text: String) {
    var reader = Reader(rest: Array(text.utf8.prefix(Self.maximumLength + 1))[...])
    guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2),
      reader.skip("-"), let day = reader.number(2),
      let days = CalendarDay(year: year, month: month, day: day)?.number
    else { return nil }
    guard !reader.rest.isEmpty else {
      self.init(seconds: days * 86_400, nanoseconds: 0, length: 86_400 * Self.second)
      return
    }
    guard reader.skip("T") || reader.skip("t") || reader.skip(" "),
      let hour = reader.number(2), hour < 24, reader.skip(":"), let minute = reader.number(2),
      minute < 60
    else { return nil }
    var (second, nanoseconds, length) = (Int64(0), Int64(0), 60 * Self.second)
    if reader.skip(":") {
      // A leap second is the first of the minute that follows.
      guard let number = reader.number(2), number <= 60 else { return nil }
      (second, length) = (number, Self.second)
      if reader.skip(".") {
        guard let fraction = reader.fraction() else { return nil }
        (nanoseconds, length) = fraction
      }
    }
    guard let offset = reader.offset(), reader.rest.isEmpty else { return nil }
    self.init(
      seconds: days * 86_400 + hour * 3600 + minute * 60 + second - offset,
      nanoseconds: nanoseconds, length: length)
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

/// Steps through the text.
private struct Reader {
  var rest: ArraySlice<UInt8>

  mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard rest.first == UInt8(ascii: character) else { return false }
    rest.removeFirst()
    return true
  }

  /// A number of exactly so many digits.
  mutating func number(_ count: Int) -> Int64? {
    var value: Int64 = 0
    for _ in 0..<count {
      guard let digit = digit() else { return nil }
      value = value * 10 + digit
    }
    return value
  }

  /// One to nine digits behind the point, in nanoseconds, and how long the last of them lasts.
  mutating func fraction() -> (Int64, length: Int64)? {
    var (value, length): (Int64, Int64) = (0, 1_000_000_000)
    while let digit = digit() {
      guard length > 1 else { return nil }
      length /= 10
      value += digit * length
    }
    return length < 1_000_000_000 ? (value, length) : nil
  }

  /// The offset from UTC in seconds: `Z`, `+01:00`, or nothing, which says 0; nil for anything
  /// else.
  mutating func offset() -> Int64? {
    if rest.isEmpty || skip("Z") || skip("z") { return 0 }
    let isWest = skip("-")
    guard isWest || skip("+"), let hours = number(2), hours < 24, skip(":"),
      let minutes = number(2), minutes < 60
    else { return nil }
    let offset = hours * 3600 + minutes * 60
    return isWest ? -offset : offset
  }

  private mutating func digit() -> Int64? {
    guard let byte = rest.first, UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return nil }
    rest.removeFirst()
    return Int64(byte - UInt8(ascii: "0"))
  }
}
