import ATProtocol
import IPLD
import StandIn
import Testing

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

  @Test(arguments: [
    (true, nil, FleetOutcome.State.active), (false, "deleted", .deleted),
    (false, "takendown", .takendown), (false, "new-word", .deactivated), (false, nil, .deactivated),
  ])
  func `tells what an account has become`(
    isActive: Bool, status: String?, state: FleetOutcome.State
  ) throws {
    var body: [(String, IPLDValue)] = [
      ("seq", .integer(8)), ("did", .string(Self.did)), ("active", .boolean(isActive)),
    ]
    if let status { body.append(("status", .string(status))) }
    #expect(
      try FirehoseEvent(StandInFirehose.message("#account", body))
        == .state(try DID(Self.did), state, sequence: 8))
  }

  @Test func `of another kind moves the cursor only`() throws {
    let message = try StandInFirehose.message(
      "#identity", [("seq", .integer(9)), ("did", .string(Self.did))])
    #expect(FirehoseEvent(message) == .other(sequence: 9))
    let revision = try StandInFirehose.message(
      "#commit", [("seq", .integer(9)), ("repo", .string(Self.did)), ("rev", .string("x"))])
    #expect(FirehoseEvent(revision) == .other(sequence: 9))
  }

  @Test func `may say that the cursor is of no use`() throws {
    let message = try StandInFirehose.message(nil, [("error", .string("FutureCursor"))])
    #expect(FirehoseEvent(message) == .unusableCursor("FutureCursor"))
  }

  @Test(arguments: [[], [0xa0], [0xff, 0xff], [UInt8](repeating: 0, count: 2)] as [[UInt8]])
  func `that is malformed is none`(message: [UInt8]) {
    let event = FirehoseEvent(message)
    switch event {
    case nil, .unusableCursor: break
    default: Issue.record("\(String(describing: event))")
    }
  }
}
