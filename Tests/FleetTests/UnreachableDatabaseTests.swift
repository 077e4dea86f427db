import StandIn
import TestSupport
import Testing

@Suite(.ownThread, .enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The commands of a fleet whose database cannot be reached` {
  @Test(arguments: ["status", "list", "add did:web:account.example.com", "pause --failed"])
  func `say so while a person still waits`(line: String) throws {
    let relay = try LoopbackRelay(to: nil)
    relay.stop()
    let begin = ContinuousClock.now
    let result = try Command(in: TemporaryFolder()).run(
      "carpack fleet \(line) --database postgres://x@127.0.0.1:\(relay.port)/x")
    #expect(result.status == 69 && result.errors.contains("cannot reach the database"))
    // A worker would wait for two minutes.
    #expect(begin.duration(to: .now) < .seconds(60))
  }
}
