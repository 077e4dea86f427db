package import ATProtocol
package import Archive
package import Files
package import IPLD
internal import Repository
package import Snapshots

/// Looks for a text in the records of all snapshots of an account.
///
/// Every record is read once: all of the first snapshot, and of each later one those that it
/// changed.
///
/// Invariant: `open` holds the matches that are in the snapshot that was examined last, which has
/// the number `lastNumber`.
package struct RecordSearch {
  /// A record with the text, and the snapshots that have it.
  package struct Match: Sendable {
    /// Its path.
    package let path: String
    /// Its CID.
    package let cid: CID
    /// When it was made, as the record says itself.
    let createdAt: String?
    /// When it was made, by the rule of all verbs.
    package fileprivate(set) var time: Moment?
    /// The text and its surroundings.
    package let excerpt: String
    /// The number of the first snapshot that has it.
    package let first: Int
    /// The number of the last snapshot that has it.
    package fileprivate(set) var last: Int
    /// Whether the newest snapshot of the account has it.
    package fileprivate(set) var isCurrent = false
  }

  private let pattern: TextPattern
  private let reader: ArchiveReader
  private let observer: Progress.Observer
  private var open: [[UInt8]: Match] = [:]
  private var lastNumber = 0
  private var scanner = RecordScanner()
  /// The records of the snapshot that is examined which are missing, and which cannot be decoded.
  private var unsearched = (missing: 0, undecodable: 0)
  /// What could not be searched.
  package private(set) var gaps: [Gap] = []

  /// Something that could not be searched, and whether that is damage; otherwise it was not in the
  /// CAR.
  package typealias Gap = (what: String, isDamage: Bool)

  /// A search in an archive.
  package init(
    _ pattern: TextPattern, in reader: ArchiveReader,
    observer: @escaping Progress.Observer = { _ in }
  ) {
    (self.pattern, self.reader, self.observer) = (pattern, reader, observer)
  }

  /// Looks through all snapshots of an account, or of all accounts, the newest first.
  ///
  /// - Parameters:
  ///   - history: the snapshots.
  ///   - account: whose; nil for all.
  ///   - filter: which records are looked for; it is not asked for their sizes.
  ///   - each: receives the matches of each account, as ``run(_:each:)`` has them, and whose they
  ///     are.
  /// - Throws: as that does; ``SnapshotError`` and `ArchiveError` for a newest snapshot that is
  ///   damaged.
  package mutating func run(
    _ history: SnapshotHistory, of account: DID?, passing filter: ItemFilter,
    each: (Match, DID) throws -> Void
  ) throws {
    for newest in history.newestOfAccounts where account == nil || newest.did == account {
      let times = RecordTimes(of: try ArchivedSnapshot(newest.cid, in: reader).snapshot)
      try run(history.entries(of: newest.did)) { found in
        let key = Array(found.path.utf8)
        var match = found
        match.time = times.time(of: key, createdAt: match.createdAt)
        if filter.passes(key, match.cid, size: nil, time: match.time) {
          try each(match, newest.did)
        }
      }
    }
  }

  /// Looks through the snapshots of one account.
  ///
  /// - Parameters:
  ///   - entries: the snapshots, the oldest first.
  ///   - each: receives the matches that were deleted or changed since, as that is found; then, in
  ///     the order of their paths, those of the newest.
  /// - Throws: what `each` throws; ``BackupError`` if there is no room for a temporary file. What
  ///   is damaged is in ``gaps``.
  package mutating func run(
    _ entries: [SnapshotHistory.Entry], each: (Match) throws -> Void
  ) throws {
    (open, lastNumber) = ([:], 0)
    var before: ArchivedSnapshot?
    for entry in entries {
      let snapshot: ArchivedSnapshot
      do {
        snapshot = try ArchivedSnapshot(entry.cid, in: reader)
      } catch let error where error.isLoss {
        note("\(error)", entry.number, isDamage: true)
        continue
      }
      // Only what changed has to be read, if that can be told.
      let ended =
        try before.flatMap { try readChanges(from: $0, to: snapshot, entry.number) }
        ?? readAll(of: snapshot, entry.number)
      for match in ended { try each(self.ended(match)) }
      (before, lastNumber) = (snapshot, entry.number)
    }
    for match in open.values.sorted(by: { $0.path < $1.path }) {
      try each(ended(match, isCurrent: true))
    }
  }

  /// Reads what changed between two snapshots.
  ///
  /// - Returns: The matches that are not in the new one any more; nil, and nothing is done, if that
  ///   cannot be told.
  private mutating func readChanges(
    from old: ArchivedSnapshot, to new: ArchivedSnapshot, _ number: Int
  ) throws -> [Match]? {
    let oldBlocks = SnapshotBlocks(old, observer: observer)
    let newBlocks = SnapshotBlocks(new, keepsRecords: true, observer: observer)
    let openBefore = open
    var ended: [Match] = []
    do {
      try SnapshotBlocks.compare(oldBlocks, newBlocks) { change in
        guard case .record(let record) = change else { return }
        if let match = open.removeValue(forKey: record.key) { ended.append(match) }
        guard let cid = record.new else { return }
        let isThere: Void? = try newBlocks.withBody(of: cid) { read(record.key, cid, $0, number) }
        if isThere == nil { unsearched.missing += 1 }
      }
      noteUnsearched(new, number)
      return ended
    } catch let error where error.isLoss || error.faultKind == .limit {
      (open, unsearched) = (openBefore, (0, 0))
      return nil
    }
  }

  /// Reads all records of a snapshot, and returns the matches that are not in it any more.
  private mutating func readAll(of snapshot: ArchivedSnapshot, _ number: Int) throws -> [Match] {
    let earlier = open
    open = [:]
    do {
      let blocks = SnapshotBlocks(snapshot, keepsRecords: true, observer: observer)
      let contents = try blocks.contents { record, body in
        if let match = earlier[record.key], match.cid == record.cid {
          open[record.key] = match
        } else if record.length == nil {
          unsearched.missing += 1
        } else {
          read(record.key, record.cid, body, number)
        }
      }
      if let flaw = contents.flaw { note(flaw, number, isDamage: true) }
      noteUnsearched(snapshot, number, below: contents.tree.missingNodes.count)
      return earlier.filter { open[$0.key]?.cid != $0.value.cid }.values
        .sorted { $0.path < $1.path }
    } catch let error where error.isLoss {
      note("\(error)", number, isDamage: true)
      open = earlier
      return []
    }
  }

  /// Notes which parts of a snapshot were not searched.
  private mutating func noteUnsearched(
    _ archived: ArchivedSnapshot, _ number: Int, below nodes: Int = 0
  ) {
    let isDamage = archived.snapshot.isComplete
    for (count, what, isDamage) in [
      (nodes, "tree nodes that are missing, and all records below", isDamage),
      (unsearched.missing, "records that are missing", isDamage),
      (unsearched.undecodable, "records that cannot be decoded", false),
    ] where count > 0 {
      note("not searched: \(what) (\(count))", number, isDamage: isDamage)
    }
    unsearched = (0, 0)
  }

  private mutating func note(_ what: String, _ number: Int, isDamage: Bool) {
    gaps.append(("snapshot \(number): \(what)", isDamage))
  }

  private mutating func read(_ key: [UInt8], _ cid: CID, _ body: Span<UInt8>, _ number: Int) {
    if !scanner.isPlain(body), scanner.scan(body, found: { _ in }).isUnreadable {
      unsearched.undecodable += 1
    }
    guard let excerpt = pattern.firstMatch(in: body) else { return }
    open[key] = Match(
      path: String(decoding: key, as: UTF8.self), cid: cid,
      createdAt: RecordTimes.createdAt(in: body), excerpt: excerpt, first: number, last: number)
  }

  /// A match that ends with the snapshot that was read last.
  private func ended(_ match: Match, isCurrent: Bool = false) -> Match {
    var match = match
    (match.last, match.isCurrent) = (lastNumber, isCurrent)
    return match
  }
}
