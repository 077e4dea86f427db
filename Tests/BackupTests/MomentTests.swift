import Files
import Foundation
import Testing

@Suite struct `A moment in time` {
  @Test func `is what the calendar says`() throws {
    let formatter = ISO8601DateFormatter()
    for text in [
      "1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2000-02-29T12:00:00Z",
      "2026-11-21T10:00:05+01:00", "2026-11-21T10:00:05-11:30", "1900-03-01T00:00:00Z",
      "2100-03-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z",
      "1600-02-29T00:00:00Z",
    ] {
      let moment = try #require(Moment(text), "\(text)")
      // Foundation reckons in Julian days before 1582.
      guard !text.hasPrefix("0001") else {
        #expect(moment.seconds == -62_135_596_800)
        continue
      }
      let date = try #require(formatter.date(from: text))
      #expect(moment.seconds == Int64(date.timeIntervalSince1970), "\(text)")
    }
  }

  @Test func `may be told by halves, and is the longer for it`() throws {
    let second: Int64 = 1_000_000_000
    for (text, seconds, nanoseconds, length) in [
      ("2026-11-21", 1_795_219_200, 0, 86_400 * second),
      ("2026-11-21T10:00", 1_795_255_200, 0, 60 * second),
      ("2026-11-21 10:00Z", 1_795_255_200, 0, 60 * second),
      ("2026-11-21t10:00:05", 1_795_255_205, 0, second),
      ("2026-11-21T10:00:05.25z", 1_795_255_205, 250_000_000, 10_000_000),
      ("2026-11-21T10:00:05.000000001Z", 1_795_255_205, 1, 1),
      ("2026-11-21T10:00+01:00", 1_795_251_600, 0, 60 * second),
    ] as [(String, Int64, Int64, Int64)] {
      let moment = try #require(Moment(text), "\(text)")
      #expect(moment.seconds == seconds, "\(text)")
      #expect(moment.nanoseconds == nanoseconds, "\(text)")
      #expect(moment.length == length, "\(text)")
    }
  }

  @Test func `is not read from anything else`() {
    for text in [
      "", "2026", "2026-1-1", "2026-13-01", "2026-00-01", "2026-02-29", "2026-04-31", "2026-01-00",
      "2026-11-21T", "2026-11-21T10", "2026-11-21T24:00", "2026-11-21T10:60",
      "2026-11-21T10:00:61", "2026-11-21T10:00:05.", "2026-11-21T10:00:05.0000000001",
      "2026-11-21T10:00:05+1", "2026-11-21T10:00:05+24:00", "2026-11-21T10:00:05Z ",
      "2026-11-21Z", "x026-11-21", "٢٠٢٦-١١-٢١", "-026-11-21",
      "2026-11-21T10:00:05Z" + String(repeating: " ", count: 1000),
    ] { #expect(Moment(text) == nil, "\(text)") }
  }

  @Test func `comes up to a day, minute or second until that has ended`() throws {
    func isUpTo(_ first: String, _ second: String) throws -> Bool {
      try #require(Moment(first)).isUpTo(try #require(Moment(second)))
    }
    #expect(try isUpTo("2026-11-21T23:59:59Z", "2026-11-21"))
    #expect(try !isUpTo("2026-11-22T00:00:00Z", "2026-11-21"))
    #expect(try isUpTo("2026-11-21T10:00:59.999Z", "2026-11-21T10:00"))
    #expect(try !isUpTo("2026-11-21T10:01:00Z", "2026-11-21T10:00"))
    #expect(try isUpTo("2026-11-21T10:00:05.9Z", "2026-11-21T10:00:05Z"))
    #expect(try !isUpTo("2026-11-21T10:00:05.9Z", "2026-11-21T10:00:05.8Z"))
    #expect(try isUpTo("2026-11-21T10:30:00+01:00", "2026-11-21T09:30"))
    #expect(try !isUpTo("2026-11-21T10:30:00-01:00", "2026-11-21T09:30"))
  }
}
