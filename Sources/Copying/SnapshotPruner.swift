package import ATProtocol
package import Archive
internal import Files
package import Snapshots

/// Forgets snapshots: appends a chain of manifests without them.
///
/// That is one more generation, which counts as a whole or not at all. The manifests from the first
/// forgotten snapshot on are made again. What forgotten snapshots held stays in the file until it
/// is compacted.
package struct SnapshotPruner {
  /// What becomes of the snapshots.
  package struct Plan: Sendable {
    /// The snapshots, the oldest first, and why each is kept; one without a reason is forgotten.
    package let verdicts: [(entry: SnapshotHistory.Entry, reasons: Set<RetentionPolicy.Reason>)]
    /// The newest complete snapshot of each account that keeps only such as lack records or tree
    /// nodes.
    package let lastComplete: [SnapshotHistory.Entry]

    /// A plan for the snapshots of an archive.
    ///
    /// - Parameters:
    ///   - history: the snapshots.
    ///   - policy: which are kept, of each account.
    ///   - named: snapshots that are forgotten whatever the policy says, by their numbers.
    ///   - account: the only account of which any are forgotten; nil for all.
    /// - Throws: ``SelectionError`` for a number that no snapshot has; ``BackupError`` if an
    ///   account would have none left.
    package init(
      _ history: SnapshotHistory, _ policy: RetentionPolicy, forgetting named: Set<Int> = [],
      account: DID? = nil
    ) throws {
      var places: [DID: [Int]] = [:]
      for (index, entry) in history.entries.enumerated() {
        places[entry.did, default: []].append(index)
      }
      var reasons = [Set<RetentionPolicy.Reason>](
        repeating: [.otherAccount], count: history.entries.count)
      for (did, indices) in places where account == nil || account == did {
        let found = indices.map { history.entries[$0] }
        let kept = policy.reasons(found.map(\.moment), complete: found.map(\.isComplete))
        for (index, why) in zip(indices, kept) { reasons[index] = why }
      }
      for disruption in history.disruptions {
        reasons[disruption.before].insert(.beforeDisruption)
        if disruption.kind == .fork { reasons[disruption.after].insert(.beforeDisruption) }
      }
      for (index, entry) in history.entries.enumerated()
      where !entry.standing.accepted.isDisjoint(with: [.rollback, .fork]) {
        reasons[index].insert(.acceptance)
      }
      for newest in history.newestOfAccounts { reasons[newest.number - 1].insert(.newest) }
      for number in named {
        guard history.entries.indices.contains(number - 1) else {
          throw SelectionError.noSuchSnapshot(
            "number \(number)", available: "there are \(history.entries.count)")
        }
        reasons[number - 1] = []
      }
      for newest in history.newestOfAccounts
      where !history.entries.contains(where: {
        $0.did == newest.did && !reasons[$0.number - 1].isEmpty
      }) {
        throw BackupError.lastSnapshot(history.name(of: newest.did))
      }
      let verdicts = zip(history.entries, reasons).map { (entry: $0, reasons: $1) }
      self.verdicts = verdicts
      lastComplete = places.keys.compactMap { did in
        let complete = verdicts.filter { $0.entry.did == did && $0.entry.isComplete }
        return complete.allSatisfy(\.reasons.isEmpty) ? complete.last?.entry : nil
      }.sorted { $0.number < $1.number }
    }

    /// How many are forgotten.
    package var forgottenCount: Int { verdicts.count { $0.reasons.isEmpty } }

    /// Those that are kept, the oldest first.
    fileprivate var links: [ChainLink] {
      verdicts.filter { !$0.reasons.isEmpty }.map { ChainLink($0.entry) }
    }
  }

  /// The result of pruning: what became of the snapshots, what is committed now, and by how many
  /// bytes the archive has grown.
  package typealias Report = (plan: Plan, generation: Generation, bytesAdded: UInt64)

  private let policy: RetentionPolicy
  private let named: Set<Int>

  /// A pruner by this policy, and of snapshots that are named by their numbers.
  package init(_ policy: RetentionPolicy, forgetting named: Set<Int> = []) {
    (self.policy, self.named) = (policy, named)
  }

  /// Forgets what the policy does not keep.
  ///
  /// If it keeps everything, nothing is written. Otherwise all checksums are compared before the
  /// archive is opened for writing, and all manifests are made again before the first is appended.
  ///
  /// - Parameters:
  ///   - storage: the archive.
  ///   - name: its name in messages.
  ///   - account: answers the only account of which any are forgotten; nil for all.
  /// - Throws: ``BackupError/damagedArchive(_:_:)`` if it is damaged, which changes nothing;
  ///   `ArchiveError` if it cannot be written; what `account` throws.
  package func prune(
    _ storage: any ArchiveStorage, name: String,
    account: (SnapshotHistory) throws -> DID? = { _ in nil }
  ) throws -> Report {
    let rewriting = try ChainRewriting(storage, name: name)
    let found = rewriting.found
    var plan = try Plan(
      found.history, policy, forgetting: named, account: try account(found.history))
    if plan.forgottenCount == 0, found.reader.recovery == nil {
      return (plan, found.reader.generation, 0)
    }
    try found.verifyChecksums()
    let (generation, bytesAdded) = try rewriting.append { archive in
      plan = try Plan(
        archive.history, policy, forgetting: named, account: try account(archive.history))
      guard plan.forgottenCount > 0 else { return nil }
      return (try ManifestChain(plan.links, in: archive), [])
    }
    return (plan, generation, bytesAdded)
  }
}
