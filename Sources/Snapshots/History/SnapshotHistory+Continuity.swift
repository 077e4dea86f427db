internal import ATProtocol

/// Where an account's history does not go forward.
extension SnapshotHistory {
  /// Why a snapshot does not follow from the one before it of the same account.
  package enum Disruption: String, Sendable {
    /// Its revision is older: a server was put back to an earlier state, or an older CAR was
    /// packed.
    case rollback
    /// Its revision is the same, and its commit another one.
    case fork
  }

  /// The snapshots that do not follow from what was there before of the same account, by their
  /// indices in ``entries``, with the index of the snapshot that says so.
  ///
  /// One is accepted if its snapshot says so, or a later one of the account.
  ///
  /// A snapshot may be both: put back to an earlier revision, and another commit of it. Snapshots
  /// that no footer leads to are passed over: nothing says when they were made.
  package var disruptions: [(kind: Disruption, before: Int, after: Int, isAccepted: Bool)] {
    struct Question: Hashable {
      let did: DID
      let doubt: Standing.Doubt
    }
    var answers: [Question: Int] = [:]
    for (index, entry) in entries.enumerated() {
      for doubt in entry.standing.accepted {
        answers[Question(did: entry.did, doubt: doubt)] = index
      }
    }
    func isAccepted(_ kind: Disruption, _ index: Int) -> Bool {
      let answer = answers[Question(did: entries[index].did, doubt: kind.doubt)]
      return answer.map { $0 >= index } ?? false
    }
    struct Revision: Hashable {
      let did: DID
      let rev: TID
    }
    var last: [DID: Int] = [:]
    var revisions: [Revision: [Int]] = [:]
    var found: [(kind: Disruption, before: Int, after: Int, isAccepted: Bool)] = []
    for (index, entry) in entries.enumerated() where entry.isVouched {
      defer { last[entry.did] = index }
      guard let rev = entry.rev else { continue }
      if let before = last[entry.did], entry.isOlder(than: entries[before]) {
        found.append((.rollback, before, index, isAccepted(.rollback, index)))
      }
      let same = revisions[Revision(did: entry.did, rev: rev)] ?? []
      guard !same.contains(where: { entries[$0].commit == entry.commit }) else { continue }
      if let other = same.last { found.append((.fork, other, index, isAccepted(.fork, index))) }
      revisions[Revision(did: entry.did, rev: rev), default: []].append(index)
    }
    return found
  }
}

extension SnapshotHistory.Disruption {
  /// The doubt that it is.
  package var doubt: Standing.Doubt {
    switch self {
    case .rollback: .rollback
    case .fork: .fork
    }
  }
}

extension SnapshotHistory.Entry {
  /// Whether its revision is older than another's; false if one of them has none.
  func isOlder(than other: Self) -> Bool {
    guard let rev, let otherRev = other.rev else { return false }
    return rev.text < otherRev.text
  }
}
