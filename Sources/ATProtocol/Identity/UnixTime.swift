/// A point in time: microseconds since the beginning of 1970 in UTC.
///
/// TIDs and the PLC directory use it. The caller passes the current time; nothing here reads a
/// clock.
package struct UnixTime: Hashable, Comparable, Sendable {
  /// The microseconds; never negative.
  package let microseconds: Int64

  /// The last microsecond of the year 9999, beyond which RFC 3339 has no spelling.
  private static let latest: Int64 = 253_402_300_799_999_999

  /// A time; one outside of 1970 to 9999 becomes the nearest within.
  package init(microseconds: Int64) {
    self.microseconds = min(max(microseconds, 0), Self.latest)
  }

  /// The time that a TID claims.
  package init(_ tid: TID) {
    self.init(microseconds: Int64(clamping: tid.microseconds))
  }

  /// Reads RFC 3339 in UTC, `2023-04-12T04:53:57.057Z`, the fraction being optional; nil for
  /// anything else.
  ///
  /// Digits beyond the microsecond are dropped.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard (20...40).contains(bytes.count), bytes.last == UInt8(ascii: "Z") else { return nil }
    let form = Array("0000-00-00T00:00:00".utf8)
    for (byte, expected) in zip(bytes, form) {
      guard expected == UInt8(ascii: "0") ? byte.isASCIIDigit : byte == expected else { return nil }
    }
    func number(_ range: Range<Int>) -> Int64 {
      bytes[range].reduce(0) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    }
    let (year, month, day) = (number(0..<4), number(5..<7), number(8..<10))
    let (hour, minute, second) = (number(11..<13), number(14..<16), number(17..<19))
    guard year >= 1970, let date = CalendarDay(year: year, month: month, day: day),
      hour < 24, minute < 60, second < 60
    else { return nil }
    var fraction: Int64 = 0
    if bytes.count > 20 {
      let digits = bytes[20..<(bytes.count - 1)]
      guard bytes[19] == UInt8(ascii: "."), !digits.isEmpty, digits.allSatisfy(\.isASCIIDigit)
      else { return nil }
      for place in 0..<6 {
        let digit = place < digits.count ? digits[20 + place] - UInt8(ascii: "0") : 0
        fraction = fraction * 10 + Int64(digit)
      }
    }
    let seconds = (date.number * 24 + hour) * 3600 + minute * 60 + second
    self.init(microseconds: seconds * 1_000_000 + fraction)
  }

  /// Whether one time is before another.
  package static func < (left: Self, right: Self) -> Bool { left.microseconds < right.microseconds }

  /// The time this many microseconds later, or earlier if they are negative: some days, so that
  /// nothing overflows.
  package func advanced(by microseconds: Int64) -> UnixTime {
    UnixTime(microseconds: self.microseconds + microseconds)
  }

  /// An hour, in microseconds.
  static let hour: Int64 = 3_600_000_000
}

extension UnixTime: CustomStringConvertible {
  /// The time in RFC 3339, to the second: `2023-04-12T04:53:57Z`.
  package var description: String {
    let seconds = microseconds / 1_000_000
    let (day, time) = (CalendarDay(number: seconds / 86_400), seconds % 86_400)
    func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
    return "\(day)T\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60))Z"
  }
}
