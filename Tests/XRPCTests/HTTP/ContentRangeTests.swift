import Testing

@testable import HTTP

@Suite struct `a range of content` {
  @Test func `says where it begins and ends, and perhaps how much there is`() {
    #expect(
      ContentRange("bytes 100-199/200").map { [$0.first, $0.last, $0.total] } == [100, 199, 200])
    #expect(ContentRange("Bytes 0-0/*").map { [$0.first, $0.last, $0.total] } == [0, 0, nil])
  }

  @Test(arguments: [
    "", "bytes", "bytes */200", "bytes 0-1", "bytes 5-4/10", "bytes 0-10/10", "bytes -5-1/10",
    "items 0-1/2",
    "bytes 0-1/2 3", "bytes 0-1/x", "bytes 0-99999999999999999999/*",
  ])
  func `is nothing else`(text: String) { #expect(ContentRange(text) == nil) }
}
