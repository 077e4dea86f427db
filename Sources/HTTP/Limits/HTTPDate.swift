internal import ATProtocol

/// A moment as HTTP writes it (RFC 9110, section 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.
package enum HTTPDate {
  /// Seconds since 1970; nil for any other form, the two obsolete ones among them.
  package static func unixTime(_ text: String) -> Double? {
    let words = text.split(separator: " ")
    guard words.count == 6, words[0].hasSuffix(","), words[5] == "GMT",
      let day = number(words[1], 1...31), let month = months.firstIndex(of: words[2]),
      let year = number(words[3], 1970...9999),
      let date = CalendarDay(year: year, month: Int64(month + 1), day: day)
    else { return nil }
    let clock = words[4].split(separator: ":", omittingEmptySubsequences: false)
    guard clock.count == 3, let hour = number(clock[0], 0...23),
      let minute = number(clock[1], 0...59), let second = number(clock[2], 0...60)
    else { return nil }
    return Double(date.number * 86_400 + hour * 3600 + minute * 60 + second)
  }

  /// A moment, by its seconds since 1970.
  package static func text(_ unixTime: Int64) -> String {
    let day = CalendarDay(number: CalendarDay.floor(unixTime, 86_400))
    let second = unixTime - day.number * 86_400
    func two(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
    let clock = [second / 3600, second / 60 % 60, second % 60].map(two).joined(separator: ":")
    // 1970 began on a Thursday.
    let weekday = weekdays[Int((day.number + 3) % 7)]
    let date = day.date
    return "\(weekday), \(two(date.day)) \(months[Int(date.month - 1)]) \(date.year) \(clock) GMT"
  }

  private static let weekdays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]

  private static let months: [Substring] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  private static func number(_ text: Substring, _ range: ClosedRange<Int64>) -> Int64? {
    guard text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }),
      let number = Int64(text), range ~= number
    else { return nil }
    return number
  }
}
