package import ATProtocol
package import Archive
internal import Files
package import IPLD
package import Snapshots

/// How one record changed from snapshot to snapshot.
package struct RecordHistory {
  /// A snapshot that has another version of the record than the one before it, or none any more;
  /// whether the one before it had none; the record's CID, or nil if it is gone.
  package typealias Change = (entry: SnapshotHistory.Entry, isNew: Bool, cid: CID?)

  /// The changes, the oldest first.
  package private(set) var changes: [Change] = []
  /// Snapshots in which the record could not be looked for.
  package private(set) var gaps: [RecordSearch.Gap] = []

  /// Looks the record up in each snapshot.
  ///
  /// - Parameters:
  ///   - path: its path, `collection/rkey`.
  ///   - entries: the snapshots of its account, the oldest first.
  ///   - reader: the archive.
  /// - Throws: errors that are not about the archive; what is damaged is in ``gaps``.
  package init(
    of path: String, in entries: [SnapshotHistory.Entry], _ reader: ArchiveReader
  ) throws {
    var last: CID?
    for entry in entries {
      let cid: CID?
      do {
        cid = try ArchivedSnapshot(entry.cid, in: reader).recordCID(path)
      } catch {
        let flaw = try error.flaw()
        gaps.append(("snapshot \(entry.number): \(flaw)", isDamage: error.faultKind != .absence))
        continue
      }
      defer { last = cid }
      guard cid != last else { continue }
      changes.append((entry, last == nil, cid))
    }
  }

  /// The number of the last snapshot up to one that no longer has it, where one before had it.
  package func deletion(upTo number: Int) -> Int? {
    changes.last { $0.cid == nil && $0.entry.number <= number }?.entry.number
  }

  /// The number of the last snapshot before one that has it, or else of the first after that.
  ///
  /// - Parameter entries: the snapshots of its account, the oldest first.
  package func snapshot(nearest number: Int, of entries: [SnapshotHistory.Entry]) -> Int? {
    let last = entries.last { entry in
      let change = changes.last { $0.entry.number <= entry.number }
      return entry.number < number && change?.cid != nil
    }
    return last?.number ?? changes.first { $0.cid != nil }?.entry.number
  }

  /// The path of the only record that matches: of a key alone or a pattern, in the newest snapshot
  /// that has a match; nil if none of the snapshots has one.
  ///
  /// - Parameters:
  ///   - selector: what means a record.
  ///   - entries: the snapshots of an account, the oldest first.
  ///   - reader: the archive.
  /// - Throws: ``BackupError`` for a selector that is none, or that several records match; what
  ///   reading a snapshot throws.
  package static func path(
    _ selector: String, in entries: [SnapshotHistory.Entry], _ reader: ArchiveReader
  ) throws -> String? {
    guard case .records(let pattern, _) = try Selector(selector) else { return nil }
    if let path = pattern.exactPath {
      return try RecordHistory(of: path, in: entries, reader).changes.isEmpty ? nil : path
    }
    var failure: BackupError?
    for entry in entries.reversed() {
      do {
        let snapshot = try ArchivedSnapshot(entry.cid, in: reader)
        let items = try Selection.items([selector], in: snapshot)
        try Selection.checkOne(items, selector)
        if case .record(let path)? = items.first { return path }
      } catch let error as BackupError where error.faultKind == .absence {
        if case .notFound = error { continue }
        failure = error
      }
    }
    if let failure { throw failure }
    return nil
  }

  /// The only account that has such a record in some snapshot; nil if none has.
  ///
  /// - Parameters:
  ///   - selector: what means a record.
  ///   - history: the snapshots.
  /// - Throws: `SelectionError` if several have; what reading a snapshot throws.
  package static func owner(of selector: String, in history: SnapshotHistory) throws -> DID? {
    let owners = try history.newestOfAccounts.map(\.did).filter { did in
      do {
        return try path(selector, in: history.entries(of: did), history.reader) != nil
      } catch let error as BackupError where error.faultKind == .absence {
        return false
      }
    }
    guard owners.count <= 1 else {
      throw SelectionError.severalAccounts(owners.map { history.name(of: $0) })
    }
    return owners.first
  }
}
