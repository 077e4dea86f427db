import ATProtocol
import IPLD
import StandIn
import Testing
import XRPC

@testable import Fleet

@Suite struct `An event of a firehose` {
  private static let did = "did:plc:w3pvxhp5ga2ax32lkbfrxakv"

  @Test(arguments: ["#commit", "#sync"])
  func `tells an account's new revision`(kind: String) throws {
    let key = kind == "#commit" ? "repo" : "did"
    let message = try StandInFirehose.message(
      kind,
      [
        ("seq", .integer(7)), (key, .string(Self.did)), ("rev", .string("3lkxag2qhdc2a")),
        ("blocks", .bytes([1, 2, 3])),
      ])
    #expect(
      FirehoseEvent(message) == .revision(try DID(Self.did), rev: "3lkxag2qhdc2a", sequence: 7))
  }

  @Test func `tells when it was sent, if it does`() throws {
    for (time, expected) in [("1970-01-01T00:01:00.5Z", 60_500_000), ("yesterday", nil)] {
      let message = try StandInFirehose.message(
        "#commit", [("seq", .integer(7)), ("time", .string(time))])
      #expect(FirehoseEvent.time(of: message)?.microseconds == expected.map { Int64($0) })
    }
    #expect(FirehoseEvent.time(of: [0xa0]) == nil)
  }

  @Test(arguments: ["#account", "#identity"])
  func `tells that an account is not what it was`(kind: String) throws {
    let body: [(String, IPLDValue)] = [("seq", .integer(8)), ("did", .string(Self.did))]
    #expect(
      try FirehoseEvent(StandInFirehose.message(kind, body))
        == .change(try DID(Self.did), sequence: 8))
  }

  @Test func `of another kind moves the cursor only`() throws {
    let message = try StandInFirehose.message(
      "#handle", [("seq", .integer(9)), ("did", .string(Self.did))])
    #expect(FirehoseEvent(message) == .other(sequence: 9))
    let revision = try StandInFirehose.message(
      "#commit", [("seq", .integer(9)), ("repo", .string(Self.did)), ("rev", .string("x"))])
    #expect(FirehoseEvent(revision) == .other(sequence: 9))
  }

  @Test(
    arguments: [
      ("FutureCursor", nil, FirehoseEvent.futureCursor("FutureCursor")),
      ("FutureCursor", "in the\nfuture", .futureCursor("FutureCursor: in the future")),
      ("ConsumerTooSlow", "read faster", .failure("ConsumerTooSlow: read faster")),
      ("OutdatedCursor", nil, .failure("OutdatedCursor")),
      (nil, "?", .failure("an error without a name: ?")),
    ] as [(String?, String?, FirehoseEvent)])
  func `may end the stream`(name: String?, words: String?, event: FirehoseEvent) throws {
    var body: [(String, IPLDValue)] = []
    if let name { body.append(("error", .string(name))) }
    if let words { body.append(("message", .string(words))) }
    #expect(FirehoseEvent(try StandInFirehose.message(nil, body)) == event)
  }

  @Test(arguments: [
    ("OutdatedCursor", FirehoseEvent.outdatedCursor("OutdatedCursor: it is gone")),
    ("AnotherWord", .other(sequence: nil)), ("FutureCursor", .other(sequence: nil)),
  ])
  func `may say something about the stream`(name: String, event: FirehoseEvent) throws {
    let message = try StandInFirehose.message(
      "#info", [("name", .string(name)), ("message", .string("it is gone"))])
    #expect(FirehoseEvent(message) == event)
  }

  @Test(arguments: [-5, Int64.min])
  func `without a number that can be is none to go by`(sequence: Int64) throws {
    let message = try StandInFirehose.message(
      "#commit",
      [
        ("seq", .integer(Int128(sequence))), ("repo", .string(Self.did)),
        ("rev", .string("3lkxag2qhdc2a")),
      ])
    #expect(FirehoseEvent(message) == .other(sequence: nil))
  }

  // {"op": 2}{}, {"op": 0}{}, {}{}, {"op": "1"}{}
  @Test(
    arguments: [
      [0xa1, 0x62, 0x6f, 0x70, 0x02, 0xa0], [0xa1, 0x62, 0x6f, 0x70, 0x00, 0xa0], [0xa0, 0xa0],
      [0xa1, 0x62, 0x6f, 0x70, 0x61, 0x31, 0xa0],
    ] as [[UInt8]])
  func `of an unknown kind is ignored`(message: [UInt8]) {
    #expect(FirehoseEvent(message) == .other(sequence: nil))
  }

  @Test(arguments: [[], [0xa0], [0xff, 0xff], [0xa1, 0x62]] as [[UInt8]])
  func `that is malformed is none`(message: [UInt8]) { #expect(FirehoseEvent(message) == nil) }

  @Test(
    arguments: [
      ([100, 3], 100), ([1, 2, 3], 3), ([-5], nil), ([7, -5], 7), ([nil, 4, nil], 4), ([], nil),
    ] as [([Int64?], Int64?)])
  func `moves the cursor on and never back`(sequences: [Int64?], cursor: Int64?) {
    var marks = FirehoseMarks()
    for sequence in sequences { _ = marks.take(.other(sequence: sequence)) }
    #expect(marks.cursor == cursor)
  }
}
