package import ATProtocol
internal import LibC

/// When a file was modified, as file systems keep it.
package struct FileTime: Equatable, Sendable {
  /// The seconds since the beginning of 1970.
  package let seconds: Int64
  /// The nanoseconds after these.
  package let nanoseconds: Int64

  /// The beginning of 1980, before which FAT and exFAT know no time.
  package static let earliest: Int64 = 315_532_800
  /// The end of 2107, behind which they know none.
  package static let latest: Int64 = 4_354_819_199

  /// A time that file systems can keep; nil for one that some cannot.
  package init?(seconds: Int64, nanoseconds: Int64 = 0) {
    guard Self.earliest...Self.latest ~= seconds, 0..<1_000_000_000 ~= nanoseconds else {
      return nil
    }
    (self.seconds, self.nanoseconds) = (seconds, nanoseconds)
  }

  /// The time that a TID tells.
  package init?(_ tid: TID) {
    let microseconds = Int64(tid.microseconds)
    self.init(
      seconds: microseconds / 1_000_000, nanoseconds: microseconds % 1_000_000 * 1000)
  }

  /// The time that text in the form of RFC 3339 tells.
  package init?(_ text: String) {
    guard let moment = Moment(text) else { return nil }
    self.init(seconds: moment.seconds, nanoseconds: moment.nanoseconds)
  }

  /// The day in UTC, as `2025-03-22`.
  package var day: String { CalendarDay(number: seconds / 86_400).description }

  /// The day and the minute in UTC, as `2025-03-22 14:05`.
  package var minute: String {
    func padded(_ number: Int64) -> String { (number < 10 ? "0" : "") + "\(number)" }
    return "\(day) \(padded(seconds / 3600 % 24)):\(padded(seconds / 60 % 60))"
  }

  /// In the form of RFC 3339, to the second.
  package var text: String {
    let second = seconds % 60
    return "\(day)T\(minute.suffix(5)):\(second < 10 ? "0" : "")\(second)Z"
  }

  /// Gives it to an open file, where the file system allows that.
  package func set(_ descriptor: CInt) {
    let time = timespec(tv_sec: Int(seconds), tv_nsec: Int(nanoseconds))
    // It says nothing about the content, so a file without it is as good.
    _ = unsafe futimens(descriptor, [time, time])
  }
}
