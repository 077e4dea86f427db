package import ATProtocol
package import IPLD

/// Which snapshot it is, in whatever archive: manifests are made again, and this stays.
package struct SnapshotMember: Hashable, Sendable {
  /// The account.
  package let did: DID
  /// The revision; nil for a commit of version 2.
  package let rev: TID?
  /// The signed commit.
  package let commit: CID
}

extension Snapshot {
  /// Which snapshot it is.
  package var member: SnapshotMember { SnapshotMember(did: did, rev: rev, commit: commit) }
}

/// A snapshot that was listed before an archive was written, and is not in it afterwards though
/// nobody asked for that.
package struct LostSnapshot: Equatable, Sendable, CustomStringConvertible {
  /// Which.
  package let member: SnapshotMember
  /// The manifest that it had.
  package let manifest: CID
  /// Why it is lost.
  package let why: String

  /// The message for people.
  package var description: String {
    let rev = member.rev.map { " at \($0)" } ?? ""
    return "the snapshot \(manifest) of \(member.did)\(rev): \(why)"
  }

  /// A snapshot that is lost.
  package init(_ entry: SnapshotHistory.Entry, _ why: String) {
    (member, manifest, self.why) = (entry.member, entry.cid, why)
  }
}

/// The law of whatever writes: each snapshot that an archive had is in it afterwards, or was wished
/// away, or is named as lost.
extension SnapshotHistory {
  /// What was listed before and is neither here nor accounted for.
  ///
  /// Snapshots are compared by account, revision and commit, since manifests are made again.
  ///
  /// - Parameters:
  ///   - before: What was listed before.
  ///   - wished: What was to go.
  ///   - lost: What is named as lost already.
  /// - Returns: The lost, those that are here after all left out, and each that nothing accounts
  ///   for.
  package func losses(
    since before: [Entry], wished: Set<SnapshotMember> = [], named lost: [LostSnapshot] = []
  ) -> [LostSnapshot] {
    var known = wished.union(entries.map(\.member))
    var losses: [LostSnapshot] = []
    for loss in lost where known.insert(loss.member).inserted { losses.append(loss) }
    for entry in before where known.insert(entry.member).inserted {
      losses.append(LostSnapshot(entry, "nothing of it was kept"))
    }
    return losses
  }
}
