internal import ATProtocol
package import Files
public import IPLD

/// A selector of a snapshot.
///
/// | text | means |
/// |---|---|
/// | `latest` | the newest, by revision |
/// | `7` | number 7, counted from the oldest, as `carpack log` prints it |
/// | `-1`, `-2` | the one that was added last, the one before it |
/// | `2026-11`, `2026-11-21`, `2026-11-21T10:00Z` | the newest made by the end of that time |
/// | `3loie2xwbae2b` | the revision, or the beginning of it, four characters at least |
/// | `bafyrei…` | the manifest or the commit, or the beginning of its CID, eight characters at least |
package enum SnapshotSelector: Equatable, Sendable {
  /// The one with the latest revision.
  case latest
  /// By number: from 1 for the oldest, from −1 for the one that was added last; never 0.
  case number(Int)
  /// The newest that was not made after this.
  case moment(Moment)
  /// By revision, or the beginning of one.
  case revision(String)
  /// By the CID of the manifest or the commit as text, or the beginning of it.
  case cid(String)

  /// How many characters of a revision must be given.
  static let minimumRevision = 4
  /// What all CIDs of manifests and commits begin with.
  ///
  /// A revision that begins so would be from the year 2226.
  static let beginningOfCID = "bafyrei"

  /// Reads a selector.
  ///
  /// - Throws: ``SelectionError/malformedSelector(_:)``; for 0,
  ///   ``SelectionError/noSuchSnapshot(_:available:)``.
  package init(_ text: String) throws(SelectionError) {
    if text == "latest" {
      self = .latest
    } else if text.utf8.count > Self.beginningOfCID.utf8.count,
      text.hasPrefix(Self.beginningOfCID), text.utf8.allSatisfy(Self.isDigit)
    {
      self = .cid(text)
    } else if text.utf8.count == TID.maximumLength, TID.isValid(text.utf8.span) {
      self = .revision(text)
    } else if let number = Self.number(text) {
      guard number != 0 else {
        throw .noSuchSnapshot(text, available: "numbers begin at 1, or at -1 from the end")
      }
      self = .number(number)
    } else if let moment = Moment(written: text) {
      self = .moment(moment)
    } else if Self.couldBeRevision(text) {
      self = .revision(text)
    } else if let cid = try? CID(text) {
      // It may be given in any form.
      self = .cid("\(cid)")
    } else {
      throw .malformedSelector(text)
    }
  }

  /// A number of ordinary digits, with or without a minus.
  private static func number(_ text: String) -> Int? {
    let digits = text.hasPrefix("-") ? text.dropFirst() : text[...]
    guard !digits.isEmpty, digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 })
    else { return nil }
    // One that is too large is as far from any snapshot as the largest there is.
    return Int(text) ?? (text.hasPrefix("-") ? -Int.max : .max)
  }

  /// Whether it could be the beginning of a revision.
  private static func couldBeRevision(_ text: String) -> Bool {
    guard minimumRevision..<TID.maximumLength ~= text.utf8.count else { return false }
    let rest = String(repeating: "2", count: TID.maximumLength - text.utf8.count)
    return TID.isValid((text + rest).utf8.span)
  }

  /// Whether a byte is a digit of base 32.
  private static func isDigit(_ byte: UInt8) -> Bool {
    UInt8(ascii: "a")...UInt8(ascii: "z") ~= byte || UInt8(ascii: "2")...UInt8(ascii: "7") ~= byte
  }
}

/// Why a selection of a snapshot or an account failed.
public enum SelectionError: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// The text is not a selector.
  case malformedSelector(String)
  /// No snapshot matches: what was requested, and what is available.
  case noSuchSnapshot(String, available: String)
  /// More than one matches: what was requested, and the matches.
  case ambiguousSnapshot(String, [String])
  /// The archive holds several accounts, and it was not said which.
  case severalAccounts([String])
  /// The archive does not hold this account: which, and those that it holds.
  case noSuchAccount(String, [String])
  /// Several accounts have had this handle.
  case ambiguousAccount(String, [String])
  /// There is no other snapshot of this account to compare its newest with.
  case onlySnapshot(String)

  /// What was asked for is not there, or cannot be told from others.
  public var faultKind: FaultKind {
    switch self {
    case .noSuchSnapshot, .noSuchAccount, .onlySnapshot: .absence
    case .malformedSelector, .ambiguousSnapshot, .severalAccounts, .ambiguousAccount: .refused
    }
  }

  /// The message for people.
  public var description: String {
    switch self {
    case .malformedSelector(let text):
      "\"\(text)\" names no snapshot: it is neither a number, a date, a revision nor a CID"
    case .noSuchSnapshot(let what, let available): "there is no snapshot \(what): \(available)"
    case .ambiguousSnapshot(let what, let found):
      "\(what) matches more than one snapshot: \(Self.list(found))"
    case .severalAccounts(let accounts):
      "the archive holds several accounts: \(Self.list(accounts))"
    case .noSuchAccount(let text, let accounts):
      "the archive does not hold the account \(text); it holds \(Self.list(accounts))"
    case .ambiguousAccount(let handle, let accounts):
      "several accounts have had the handle \(handle): \(Self.list(accounts))"
    case .onlySnapshot(let account):
      "\(account) has only one snapshot; nothing to compare"
    }
  }

  /// The first few names, and how many more there are.
  private static func list(_ names: [String]) -> String {
    let shown = names.prefix(5).joined(separator: ", ")
    return names.count > 5 ? "\(shown) and \(names.count - 5) more" : shown
  }
}
