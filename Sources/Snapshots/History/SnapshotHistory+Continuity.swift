internal import ATProtocol

/// Rollbacks and forks in an account's history.
extension SnapshotHistory {
  /// The snapshots that do not follow from what was there before of the same account, by their
  /// indices in ``entries``, with the index of the snapshot that says so.
  ///
  /// It is a rollback if the revision is older: a server was rolled back to an earlier state, or an
  /// older CAR was packed. It is a fork if the revision is the same and the commit another one. One
  /// is accepted if its snapshot says so, or a later one of the account.
  ///
  /// A snapshot may be both: put back to an earlier revision, and another commit of it. Snapshots
  /// that no footer leads to are passed over: nothing says when they were made.
  package var disruptions: [(kind: Standing.Doubt, before: Int, after: Int, isAccepted: Bool)] {
    var answers: [DID: [Standing.Doubt: Int]] = [:]
    for (index, entry) in entries.enumerated() {
      for doubt in entry.standing.accepted { answers[entry.did, default: [:]][doubt] = index }
    }
    var last: [DID: Int] = [:]
    var revisions: [DID: [TID: [Int]]] = [:]
    var found: [(kind: Standing.Doubt, before: Int, after: Int, isAccepted: Bool)] = []
    func add(_ kind: Standing.Doubt, _ before: Int, _ after: Int) {
      found.append((kind, before, after, answers[entries[after].did]?[kind] ?? -1 >= after))
    }
    for (index, entry) in entries.enumerated() where entry.isVouched {
      defer { last[entry.did] = index }
      guard let rev = entry.rev else { continue }
      if let before = last[entry.did], entry.isOlder(than: entries[before]) {
        add(.rollback, before, index)
      }
      let same = revisions[entry.did]?[rev] ?? []
      guard !same.contains(where: { entries[$0].commit == entry.commit }) else { continue }
      if let other = same.last { add(.fork, other, index) }
      revisions[entry.did, default: [:]][rev, default: []].append(index)
    }
    return found
  }

  /// The message for people about a snapshot that does not follow from the one with this index in
  /// ``entries``.
  package func sentence(_ kind: Standing.Doubt, after index: Int) -> String {
    let number = entries[index].number
    return kind == .rollback
      ? "its revision is older than that of the earlier snapshot \(number): a rollback"
      : "its commit differs from that of snapshot \(number), which has the same revision: a fork"
  }
}

extension SnapshotHistory.Entry {
  /// Whether its revision is older than another's; false if one of them has none.
  func isOlder(than other: Self) -> Bool {
    guard let rev, let otherRev = other.rev else { return false }
    return rev.text < otherRev.text
  }
}
