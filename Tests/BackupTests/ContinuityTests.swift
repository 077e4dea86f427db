import ATProtocol
import Archive
import Copying
import Files
import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `A history that does not go forward` {
  /// An archive of these revisions, each of a repository of its own.
  private static func history(_ revs: [Int?]) throws -> SnapshotHistory {
    var archive = try SeriesArchive()
    for (number, rev) in revs.enumerated() {
      var repository = try TestRepository(posts: 2 + number)
      repository.rev = rev.map { TID(integer: UInt64(1_700_000_000_000_000 + $0) << 10).text }
      try archive.add(repository.car(), at: "2026-01-0\(number + 1)T00:00:00Z")
    }
    return try SnapshotHistory(of: archive.reader())
  }

  @Test func `is one with a rollback or a fork in it`() throws {
    let found = try Self.history([1, 2, 1, 1, 3, nil, 4]).disruptions
    // The third is put back, and another commit of the first's revision; the fourth another one
    // still.
    #expect(found.map(\.kind) == [.rollback, .fork, .fork])
    #expect(found.map(\.before) == [1, 0, 2] && found.map(\.after) == [2, 2, 3])
    // A fork that a rollback hides: 2, put back to 1, and then another 2.
    let hidden = try Self.history([1, 2, 1, 2]).disruptions
    #expect(hidden.map(\.kind) == [.rollback, .fork, .fork])
    #expect(hidden.last?.before == 1 && hidden.last?.after == 3)
    #expect(try Self.history([1, 2, 3]).disruptions.isEmpty)
  }

  @Test func `has its newest snapshot where the revision is the latest`() throws {
    let history = try Self.history([1, 5, 2, 3])
    #expect(history.newestOfAccounts.map(\.number) == [2])
    #expect(try history.select(.latest).map(\.number) == [2])
    #expect(try history.select(.number(-1)).map(\.number) == [4])
    #expect(history.newest?.number == 4)
    // If revisions are equal, the one that was added last counts.
    #expect(try Self.history([1, 5, 5]).newestOfAccounts.map(\.number) == [3])
  }

  @Test func `loses nothing by a policy, and what is named all the same`() throws {
    let history = try Self.history([1, 5, 2, 3])
    let plan = try RetentionPolicy.Plan(history, RetentionPolicy(last: 1))
    #expect(plan.verdicts.map { !$0.reasons.isEmpty } == [false, true, false, true])
    #expect(plan.verdicts[1].reasons.contains(.beforeDisruption))
    let fork = try RetentionPolicy.Plan(Self.history([1, 2, 2, 3]), RetentionPolicy(last: 1))
    #expect(fork.verdicts.map { !$0.reasons.isEmpty } == [false, true, true, true])
    #expect(plan.lastComplete == [])
    let named = try RetentionPolicy.Plan(history, .everything, forgetting: [2])
    #expect(named.verdicts.map { !$0.reasons.isEmpty } == [true, false, true, true])
    #expect(throws: BackupError.self) {
      try RetentionPolicy.Plan(history, .everything, forgetting: [1, 2, 3, 4])
    }
    #expect(throws: SelectionError.self) {
      try RetentionPolicy.Plan(history, .everything, forgetting: [5])
    }
  }
}
