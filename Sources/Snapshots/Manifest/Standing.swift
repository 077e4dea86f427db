internal import ATProtocol
internal import Archive
internal import IPLD

/// The trust issues of a snapshot, found when it was made, and those that the user has accepted.
///
/// 1. A doubt that is neither accepted nor settled is a doubt of the account's following snapshots,
///    too, so that a reader needs not read the whole history.
/// 2. A rollback or fork is accepted by the snapshot that says so, and with it all of the kind
///    before; the next one is a new question.
/// 3. An unconfirmed handle stays accepted as long as the account claims that handle.
package struct Standing: Equatable, Sendable {
  /// A reason to doubt that a snapshot is what the account's owner intended.
  package enum Doubt: String, CaseIterable, Sendable {
    /// A revision is older than that of the snapshot before it: a server was rolled back to an
    /// earlier state.
    case rollback
    /// A commit differs from that of the snapshot before it, but has the same revision.
    case fork
    /// The handle that the account claims does not lead back to it.
    case handle
    /// No key was known by which the commit could have been checked.
    case unsigned
    /// The server sent an older revision than the one it named as its newest.
    case behind
    /// A revision's time was in the future when the snapshot was made.
    case future

    /// The doubts because of which a backup does not count as genuine until the user accepts them.
    ///
    /// An unknown key is missing evidence, not evidence against the account. A revision is what a
    /// server's clock says; and one that the server keeps back is missing, as a blob may be.
    static let grave: Set<Doubt> = [.rollback, .fork, .handle]
  }

  /// Its trust issues.
  package var doubts: Set<Doubt> = []
  /// Its trust issues that were accepted.
  package var accepted: Set<Doubt> = []

  /// No trust issues.
  package init() {}

  /// The doubts that are evidence against the account having made it.
  package var grave: [Doubt] {
    Doubt.allCases.filter { doubts.contains($0) && Doubt.grave.contains($0) }
  }

  /// Its trust issues, in a few words each.
  package var words: [String] {
    Doubt.allCases.compactMap { doubt in
      let word =
        switch doubt {
        case .rollback, .fork, .unsigned: doubt.rawValue
        case .handle: "handle not confirmed"
        case .behind: "behind its server"
        case .future: "revision in the future"
        }
      if doubts.contains(doubt) { return word }
      return accepted.contains(doubt) ? "\(word), accepted" : nil
    }
  }

  /// Adds a doubt, which may be one that is accepted.
  package mutating func add(_ doubt: Doubt, accepting: Set<Doubt>) {
    if accepting.contains(doubt) { accepted.insert(doubt) } else { doubts.insert(doubt) }
  }

  /// Copies an earlier snapshot's finding about the handle, where it was not checked.
  package mutating func takeHandle(from before: Standing?) {
    if before?.doubts.contains(.handle) == true { doubts.insert(.handle) }
    if before?.accepted.contains(.handle) == true { accepted.insert(.handle) }
  }

  /// Whether it says the same as an earlier one; that something was accepted before needs no
  /// repetition.
  package func saysNothingNew(after earlier: Standing) -> Bool {
    doubts == earlier.doubts && accepted.isSubset(of: earlier.accepted)
  }
}

extension Standing.Doubt: CustomStringConvertible {
  /// The message for people, after the name of the account.
  package var description: String {
    switch self {
    case .rollback:
      "was rolled back to an earlier state, or an older CAR was packed; all snapshots are kept"
    case .fork:
      "has two commits with one revision; both are kept"
    case .handle: "has a handle that does not resolve back to it"
    case .unsigned: "names no key by which its commit could be checked"
    case .behind:
      "has a newer commit: its server named it, but sent this older one; the next backup asks again"
    case .future: "has a revision whose time is in the future"
    }
  }
}
