/// Decides whether the archive of a deleted account may be moved aside, and deleted later.
///
/// It only decides: the database counts the losses of the host (``HostLosses``), and
/// ``Deletion/find(of:_:asking:)`` collects evidence and witnesses.
///
/// 1. Nothing is moved while the alarm of the host is raised.
/// 2. A party besides the host has to agree that the account was deleted: its log in the PLC
///    directory, a relay, a mirror, or the operator, who has seen and cleared an alarm.
/// 3. Without such a party the host's own word is enough for a small share of its accounts.
enum DeletionRule {
  /// What is to be done.
  enum Decision: Equatable {
    /// The archive may be moved aside, or deleted where it was moved; who agrees with the host.
    case move(witness: String?)
    /// Nothing, for now; why, if there is something to say.
    case keep(String?)
    /// Nothing, until an operator has looked at the host; why.
    case alarm(String)
  }

  /// How many accounts of a host may disappear within a day: twenty, or 1 % of more than 500.
  static func dailyLimit(of accounts: Int) -> Int { accounts > 500 ? accounts / 100 : 20 }

  /// Of how many accounts one may be deleted within ``window`` days on the host's word alone.
  ///
  /// Services lose about 1 % of their accounts a month: one in twenty is several times that, so a
  /// host without a witness raises no alarm in ordinary months. A host that lies gets a twentieth
  /// of its archives moved before an operator is asked, and has to lie for as long as an archive
  /// stays aside. With fewer than twenty accounts each deletion is an operator's decision: one of
  /// ten is what a lie about one account looks like.
  static let share = 20
  /// The days over which these deletions are counted.
  static let window = 30

  /// The witness that stands for an operator who has cleared the alarm.
  static let theOperator = "operator"

  /// What is to be done about an account that is gone.
  ///
  /// - Parameters:
  ///   - deletion: what proves that it was deleted; nil if nothing does.
  ///   - losses: what else its host has lost.
  ///   - isNew: whether that was found out just now: a witness may hear of it later.
  static func decide(_ deletion: Deletion?, _ losses: HostLosses, isNew: Bool = false) -> Decision {
    guard !losses.isAlarmed else { return .keep(nil) }
    guard losses.goneInADay <= dailyLimit(of: losses.accounts) else {
      return .alarm("\(losses.goneInADay) accounts are gone within a day")
    }
    guard let deletion else { return .keep(nil) }
    guard !losses.isApproved else { return .move(witness: theOperator) }
    switch deletion.testimony {
    case .agreed(let witness): return .move(witness: witness)
    case .denied(let witness) where isNew: return .keep("\(witness) has the account")
    case .denied(let witness): return .alarm("\(witness) has an account that it calls deleted")
    case .unanswered(let why): return .keep(why)
    case .none:
      let count = losses.onItsWord + 1
      guard count * share > losses.accounts else { return .move(witness: nil) }
      return .alarm(
        "\(count) of \(losses.accounts) accounts are deleted by its word alone within \(window) days"
      )
    }
  }
}

/// What a host has lost, counted when one of its accounts is gone.
struct HostLosses: Equatable, Sendable {
  /// Its origin.
  var host = ""
  /// How many of its accounts have an archive, or had one that was removed.
  var accounts = 0
  /// How many have disappeared within a day, whatever the reason, since an alarm was last cleared.
  var goneInADay = 0
  /// How many others were deleted, or had their archive removed, within ``DeletionRule/window``
  /// days and since an alarm was last cleared, with no witness but the host.
  var onItsWord = 0
  /// Whether its alarm is raised.
  var isAlarmed = false
  /// Whether an operator has cleared an alarm since the account was found deleted.
  var isApproved = false
}
