import StandIn
import TestSupport
import Testing

/// Each verb is stopped at the calls it makes while they get no answer: some that a seed chooses,
/// and where `CARPACK_FROZEN` is `all` every call in every manner.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A signal while a partner says nothing` {
  @Test func `ends each command at once, and the next one completes`() throws {
    for fault in try FrozenMatrix(FrozenVerbs.all, choosing: 50).run() { Issue.record("\(fault)") }
  }
}
