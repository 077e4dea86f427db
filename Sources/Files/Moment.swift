internal import ATProtocol

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

  /// Reads a moment; nil for text that is none.
  package init?(_ text: String) {
    var reader = Reader(Array(text.utf8.prefix(Self.maximumLength + 1)))
    guard let year = reader.number(4), reader.skip("-"), let month = reader.number(2),
      reader.skip("-"), let day = reader.number(2),
      let days = CalendarDay(year: year, month: month, day: day)?.number
    else { return nil }
    guard !reader.isAtEnd else {
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
    guard let offset = reader.offset(), reader.isAtEnd else { return nil }
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
    var reader = Reader(Array(text.utf8.prefix(Self.maximumLength + 1)))
    guard let year = reader.number(4) else { return nil }
    var (month, end) = (Int64(1), (year: year + 1, month: Int64(1)))
    if !reader.isAtEnd {
      guard reader.skip("-"), let number = reader.number(2), reader.isAtEnd else { return nil }
      month = number
      end = month == 12 ? (year + 1, 1) : (year, month + 1)
    }
    guard let first = CalendarDay(year: year, month: month, day: 1)?.number,
      let last = CalendarDay(year: end.year, month: end.month, day: 1)?.number
    else { return nil }
    self.init(
      seconds: first * 86_400, nanoseconds: 0, length: (last - first) * 86_400 * Self.second)
  }

  /// The second that was so many seconds before.
  package func earlier(by seconds: Int64) -> Moment {
    Moment(seconds: self.seconds - seconds, nanoseconds: nanoseconds, length: Self.second)
  }

  private init(seconds: Int64, nanoseconds: Int64, length: Int64) {
    self.seconds = seconds
    self.nanoseconds = nanoseconds
    self.length = length
  }

  /// Whether it begins before the other has ended: on the day, in the minute, or earlier.
  package func isUpTo(_ other: Moment) -> Bool { !other.ends(before: self) }

  /// Whether it begins before the other begins.
  package func begins(before other: Moment) -> Bool {
    (seconds, nanoseconds) < (other.seconds, other.nanoseconds)
  }

  private func ends(before other: Moment) -> Bool {
    let end = nanoseconds + length
    return (seconds + end / Self.second, end % Self.second) <= (other.seconds, other.nanoseconds)
  }

  /// The year in which so many seconds since the beginning of 1970 lie, in UTC.
  package static func year(ofSeconds seconds: Int64) -> Int {
    Int(CalendarDay(number: CalendarDay.floor(seconds, 86_400)).date.year)
  }
}

/// Steps through the text.
private struct Reader {
  private let bytes: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { place == bytes.count }

  mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard place < bytes.count, bytes[place] == UInt8(ascii: character) else { return false }
    place += 1
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
    if isAtEnd || skip("Z") || skip("z") { return 0 }
    let isWest = skip("-")
    guard isWest || skip("+"), let hours = number(2), hours < 24, skip(":"),
      let minutes = number(2), minutes < 60
    else { return nil }
    let offset = hours * 3600 + minutes * 60
    return isWest ? -offset : offset
  }

  private mutating func digit() -> Int64? {
    guard place < bytes.count, UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[place] else {
      return nil
    }
    defer { place += 1 }
    return Int64(bytes[place] - UInt8(ascii: "0"))
  }
}
