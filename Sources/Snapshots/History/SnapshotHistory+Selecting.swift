package import ATProtocol
internal import Archive
package import Files
package import IPLD

/// Choosing among the snapshots.
extension SnapshotHistory {
  /// The newest snapshot of each account, by revision, the newest in the file first.
  ///
  /// It need not be the one that was added last: a server may have been rolled back to an earlier
  /// state.
  package var newestOfAccounts: [Entry] { newest(entries, byRevision: true) }

  /// The archive head: the newest manifest; nil if that is lost.
  package var head: CID? {
    let head = reader.generation.head?.cid ?? newest?.cid
    return head == newest?.cid ? head : nil
  }

  /// The snapshots of an account, or all, the oldest first.
  package func entries(of account: DID?) -> [Entry] {
    account.map { account in entries.filter { $0.did == account } } ?? entries
  }

  /// An account's name for people: its last known handle, or its DID.
  package func name(of did: DID) -> String {
    entries.last { $0.did == did && $0.handle != nil }?.handle?.text ?? did.text
  }

  /// The account that has a DID, or had a handle in some snapshot.
  ///
  /// - Throws: ``SelectionError`` if there is none, or more than one.
  package func account(_ text: String) throws(SelectionError) -> DID {
    let text = text.hasPrefix("@") ? String(text.dropFirst()) : text
    let handle = text.lowercased()
    var found: [DID] = []
    for entry in entries.reversed()
    where entry.did.text == text || entry.handle?.text == handle {
      if !found.contains(entry.did) { found.append(entry.did) }
    }
    guard let account = found.first else {
      throw .noSuchAccount(text, newestOfAccounts.map { name(of: $0.did) })
    }
    guard found.count == 1 else { throw .ambiguousAccount(text, found.map(\.text)) }
    return account
  }

  /// The account that is named; nil if none is.
  ///
  /// - Throws: ``SelectionError`` if there is none, or more than one.
  package func account(_ text: String?) throws(SelectionError) -> DID? {
    guard let text else { return nil }
    return try account(text)
  }

  /// The selected snapshots: one at most of each account, the newest first.
  ///
  /// The newest is that with the latest revision; the number −1 is the one that was added last. A
  /// number and a CID mean one snapshot. A date means one of each account, unless the account is
  /// given; and so does a revision that several accounts have. If the same revision was packed more
  /// than once, the newest of these counts.
  ///
  /// - Parameters:
  ///   - selector: which.
  ///   - account: of which account; nil for all. It does not change the numbers, but those that
  ///     count back from the newest.
  /// - Throws: ``SelectionError`` if there is none, or the beginning of a revision or CID fits
  ///   several.
  package func select(_ selector: SnapshotSelector = .latest, of account: DID? = nil)
    throws(SelectionError) -> [Entry]
  {
    let eligible = entries(of: account)
    func none(_ what: String) -> SelectionError {
      let names =
        account.map { "\(name(of: $0)) has \(eligible.count)" }
        ?? "the archive has \(eligible.count)"
      return .noSuchSnapshot(
        what, available: eligible.isEmpty ? "the archive has none" : names + Self.span(eligible))
    }
    let found: [Entry]
    let what: String
    switch selector {
    case .latest:
      (what, found) = ("at all", eligible)
    case .number(let number):
      what = "number \(number)"
      let index = number > 0 ? number - 1 : eligible.count + number
      let list = number > 0 ? entries : eligible
      found = list.indices.contains(index) ? [list[index]] : []
      if let entry = found.first, let account, entry.did != account {
        throw .noSuchSnapshot(
          "\(what) of \(name(of: account))",
          available: "\(what) belongs to \(name(of: entry.did))")
      }
    case .moment(let moment):
      what = "made by then"
      found = eligible.filter { $0.moment?.isUpTo(moment) ?? false }.sorted {
        Moment.areInOrder(($0.moment, $0.number), ($1.moment, $1.number))
      }
    case .revision(let text):
      what = "with revision \(text)"
      found = eligible.filter { $0.rev?.text.hasPrefix(text) ?? false }
      try Self.refuseSeveral("revision \(text)", Set(found.compactMap { $0.rev?.text }))
    case .cid(let text):
      what = "\(text)"
      let names = eligible.map { ($0, Self.fits($0, text)) }
      found = names.compactMap { $0.1 == nil ? nil : $0.0 }
      try Self.refuseSeveral(text, Set(names.compactMap(\.1)))
    }
    guard !found.isEmpty else { throw none(what) }
    return newest(found, byRevision: selector == .latest)
  }

  /// The selected snapshot.
  ///
  /// - Throws: ``SelectionError`` if there is none, or one of each of several accounts.
  package func selectOne(_ selector: SnapshotSelector = .latest, of account: DID? = nil)
    throws(SelectionError) -> Entry
  {
    let found = try select(selector, of: account)
    guard found.count == 1 else { throw .severalAccounts(found.map { name(of: $0.did) }) }
    return found[0]
  }

  /// Two snapshots of one account, to be compared: without a selector the newest and the one before
  /// it; else the selected one and the newest, or the two selected ones.
  ///
  /// - Parameters:
  ///   - selectors: which, two at most.
  ///   - account: of which account; nil if the first of them says that, or there is only one.
  /// - Throws: ``SelectionError`` if there is none, or several accounts have some;
  ///   ``SnapshotError`` for an archive without any.
  package func pair(_ selectors: [SnapshotSelector], of account: DID?) throws -> (
    old: Entry, new: Entry
  ) {
    if let first = selectors.first {
      let old = try selectOne(first, of: account)
      return (old, try selectOne(selectors.dropFirst().first ?? .latest, of: old.did))
    }
    let accounts = Set(entries(of: account).map(\.did)).map { name(of: $0) }
    guard accounts.count <= 1 else { throw SelectionError.severalAccounts(accounts.sorted()) }
    guard let newest = entries(of: account).last else { throw SnapshotError.noSnapshot }
    guard let old = entries(of: newest.did).dropLast().last else {
      throw SelectionError.onlySnapshot(name(of: newest.did))
    }
    return (old, newest)
  }

  /// Of each account the last in the list that a footer leads to, or else the last; the newest in
  /// the file first.
  ///
  /// - Parameter byRevision: whether one with an older revision than another is not taken.
  private func newest(_ list: [Entry], byRevision: Bool) -> [Entry] {
    var last: [DID: Entry] = [:]
    for entry in list {
      if let known = last[entry.did],
        known.mayBeNewest == entry.mayBeNewest
          ? byRevision && entry.isOlder(than: known) : known.mayBeNewest
      {
        continue
      }
      last[entry.did] = entry
    }
    return last.values.sorted { $0.number > $1.number }
  }

  /// The manifest or commit of a snapshot whose CID begins with a text.
  private static func fits(_ entry: Entry, _ text: String) -> String? {
    ["\(entry.cid)", "\(entry.commit)"].first { $0.hasPrefix(text) }
  }

  private static func refuseSeveral(_ what: String, _ found: Set<String>) throws(SelectionError) {
    guard found.count <= 1 else { throw .ambiguousSnapshot(what, found.sorted()) }
  }

  /// The time span in which they were made.
  private static func span(_ list: [Entry]) -> String {
    // Those of one account are in the order of their revisions, not of their times.
    let times = list.map(\.createdAt)
    guard let first = times.min(), let last = times.max() else { return "" }
    return first == last ? ", made \(first)" : ", made \(first) to \(last)"
  }
}

extension SnapshotHistory.Entry {
  /// The account's name for people: its handle, or its DID.
  package var name: String { handle?.text ?? did.text }
}

extension Moment {
  /// Whether the first of two pairs of a moment and a number is earlier.
  ///
  /// One without a moment counts as the oldest; at the same time the lower number comes first.
  package static func areInOrder(
    _ left: (moment: Moment?, number: Int), _ right: (moment: Moment?, number: Int)
  ) -> Bool {
    guard let first = left.moment, let second = right.moment else {
      return left.moment == nil && (right.moment != nil || left.number < right.number)
    }
    if first.begins(before: second) { return true }
    return !second.begins(before: first) && left.number < right.number
  }
}
