import Testing

@testable import HTTP

@Suite struct `what an answer says of limits` {
  private func read(_ fields: [(name: String, value: String)]) -> RateLimitFields {
    RateLimitFields(HTTPResponse(status: 429, fields: fields, url: ""), unixTime: 1_800_000_000)
  }

  @Test func `is read as the reference server writes it`() {
    let said = read([
      ("ratelimit-limit", "3000"), ("ratelimit-remaining", "2999"),
      ("ratelimit-reset", "1800000123"), ("ratelimit-policy", "3000;w=300"),
    ])
    #expect(said.limit == 3000)
    #expect(said.remaining == 2999)
    #expect(said.reset == 123)
    #expect(said.window == 300)
    #expect(said.wait == nil)
  }

  @Test(arguments: [
    ("60", 60.0), ("0", 0), ("1800000060", 60), ("1799999000", 0), ("1800080000", 330),
    ("80000", 330), ("12.5", 12.5),
  ])
  func `has a reset that is a moment, or a time to wait`(text: String, seconds: Double) {
    #expect(read([("ratelimit-reset", text)]).reset == seconds)
  }

  @Test func `has moments by the server's own clock, if it says what that is`() {
    let said = read([
      ("date", "Fri, 15 Jan 2027 09:00:00 GMT"), ("ratelimit-reset", "1800003630"),
      ("retry-after", "Fri, 15 Jan 2027 09:00:07 GMT"),
    ])
    #expect(said.reset == 30)
    #expect(said.retryAfter == 7)
  }

  @Test(arguments: [
    ("5", 5.0), ("0", 0), ("100000", 330), ("Fri, 15 Jan 2027 08:00:05 GMT", 5),
    ("Fri, 15 Jan 2027 07:00:00 GMT", 0), ("Tue, 01 Jan 2999 00:00:00 GMT", 330),
  ])
  func `has a time to wait, or a moment to wait for`(text: String, seconds: Double) {
    #expect(read([("retry-after", text)]).retryAfter == seconds)
  }

  @Test(arguments: ["", "soon", "-1", "nan", "inf", "Fri, 15 Jan 2027 08:00:05 CET", "0x10"])
  func `is not believed when it makes no sense`(text: String) {
    let said = read([
      ("retry-after", text), ("ratelimit-reset", text), ("ratelimit-limit", text),
      ("ratelimit-remaining", text), ("ratelimit-policy", "10;w=\(text)"),
    ])
    #expect(said == RateLimitFields())
  }

  @Test(arguments: ["9999999999", "999999999"])
  func `says nothing of a window that begins again in a hundred years`(text: String) {
    let said = read([
      ("ratelimit-limit", "5"), ("ratelimit-remaining", "0"), ("ratelimit-reset", text),
    ])
    #expect(said.remaining == nil)
    #expect(said.reset == nil)
    #expect(said.wait == nil)
  }

  @Test func `has a wait that goes before a reset`() {
    let fields = [
      (name: "ratelimit-remaining", value: "0"), (name: "ratelimit-limit", value: "10"),
      (name: "ratelimit-reset", value: "1800080000"),
    ]
    #expect(read(fields).wait == 330)
    #expect(read(fields + [(name: "retry-after", value: "1")]).wait == 1)
  }
}

@Suite struct `a moment in HTTP` {
  @Test(arguments: [
    ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
    ("Tue, 29 Feb 2000 23:59:59 GMT", 951_868_799),
    ("Sat, 31 Dec 2016 23:59:60 GMT", 1_483_228_800),
    ("Fri, 15 Jan 2027 08:00:00 GMT", 1_800_000_000),
    ("Fri, 31 Dec 9999 23:59:59 GMT", 253_402_300_799),
  ])
  func `is so many seconds after 1970`(text: String, seconds: Double) {
    #expect(HTTPDate.unixTime(text) == seconds)
    // A leap second counts as the one that follows.
    if !text.contains(":60") { #expect(HTTPDate.text(Int64(seconds)) == text) }
  }

  @Test(arguments: [
    "", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37",
    "Sun, 32 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
    "Sun, 06 Foo 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 08:49 GMT", "Sun, 06 Nov -994 08:49:37 GMT",
  ])
  func `is nothing else`(text: String) { #expect(HTTPDate.unixTime(text) == nil) }
}

@Suite struct `trying again` {
  @Test func `waits twice as long each time, and up to a cap`() {
    let longest = (1...10).map { Backoff.delay($0) { 1 } }
    #expect(longest == [0.5, 1, 2, 4, 8, 16, 32, 60, 60, 60])
    #expect(Backoff.delay(5) { 0.25 } == 2)
    #expect(Backoff.delay(1_000_000) { 1 } == 60)
  }

  @Test func `never waits for nothing at all`() {
    for failures in 0..<40 { #expect(Backoff.delay(failures) { 0 } > 0) }
  }

  @Test(arguments: [408, 429, 500, 502, 503, 504, 524])
  func `helps against what passes`(status: Int) {
    #expect(HTTPStatus.mayPass(status))
  }

  @Test(arguments: [200, 301, 400, 401, 403, 404, 405, 410, 416, 451, 501, 505])
  func `does not help against what stays`(status: Int) {
    #expect(!HTTPStatus.mayPass(status))
  }
}
