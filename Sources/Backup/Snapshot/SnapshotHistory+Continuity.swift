internal import ATProtocol

/// Where an account's history does not go forward.
extension SnapshotHistory {
  /// Why a snapshot does not follow from the one before it of the same account.
  public enum Disruption: String, Sendable {
    /// Its revision is older: a server was put back to an earlier state, or an older CAR was packed.
    case rollback
    /// Its revision is the same, and its commit another one.
    case fork
  }

  /// The snapshots that do not follow from the one before them of the same account, by their indices
  /// in ``entries``, with the index of that one.
  ///
  /// Snapshots that no footer leads to are passed over: nothing says when they were made.
  public var disruptions: [(kind: Disruption, before: Int, after: Int)] {
    var last: [DID: Int] = [:]
    var found: [(kind: Disruption, before: Int, after: Int)] = []
    for (index, entry) in entries.enumerated() where entry.isVouched {
      if let before = last[entry.did], let kind = entry.disruption(after: entries[before]) {
        found.append((kind, before, index))
      }
      last[entry.did] = index
    }
    return found
  }
}

extension SnapshotHistory.Entry {
  /// Why it does not follow from a snapshot; nil if it does, or nothing tells.
  func disruption(after earlier: Self) -> SnapshotHistory.Disruption? {
    guard let rev, let old = earlier.rev else { return nil }
    if rev.text < old.text { return .rollback }
    return rev == old && commit != earlier.commit ? .fork : nil
  }
}
