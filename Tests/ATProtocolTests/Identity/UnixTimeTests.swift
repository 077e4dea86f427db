import ATProtocol
import Testing

@Suite struct `A PLC time` {
  @Test(
    arguments: [
      ("1970-01-01T00:00:00Z", 0), ("1970-01-01T00:00:00.000001Z", 1),
      ("2023-04-12T04:53:57.057Z", 1_681_275_237_057_000),
      ("2000-02-29T23:59:59.9999999Z", 951_868_799_999_999),
      ("2024-12-31T00:00:00Z", 1_735_603_200_000_000),
      ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
    ] as [(String, Int64)])
  func `is read to the microsecond and written to the second`(_ text: String, _ value: Int64) {
    let time = UnixTime(text)
    #expect(time?.microseconds == value)
    #expect(time?.description == text.prefix(19) + "Z")
  }

  @Test(arguments: [
    "", "Z", "2023-04-12", "2023-04-12T04:53:57", "2023-04-12T04:53:57+00:00",
    "2023-04-12t04:53:57Z", "2023-04-12 04:53:57Z", "2023-04-12T04:53:57.Z",
    "2023-04-12T04:53:57.0x7Z", "2023-13-12T04:53:57Z", "2023-00-12T04:53:57Z",
    "2023-02-29T04:53:57Z", "2100-02-29T00:00:00Z", "2023-04-31T00:00:00Z", "2023-04-00T00:00:00Z",
    "2023-04-12T24:00:00Z", "2023-04-12T04:60:57Z", "2023-04-12T04:53:60Z", "1969-12-31T00:00:00Z",
    "2023-04-12T04:53:57.057ZZ", "２023-04-12T04:53:57Z", "2023-04-12T04:53:57,057Z",
  ])
  func `is nothing else`(_ text: String) { #expect(UnixTime(text) == nil) }

  @Test func `of every day of some centuries is read back`() {
    for day in stride(from: Int64(0), to: 200_000, by: 7) {
      let time = UnixTime(microseconds: day * 86_400_000_000)
      #expect(UnixTime(time.description) == time)
    }
    #expect(UnixTime(microseconds: -1).microseconds == 0)
    #expect(UnixTime(microseconds: .max).description == "9999-12-31T23:59:59Z")
  }
}
