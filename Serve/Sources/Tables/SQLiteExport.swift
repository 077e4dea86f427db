import ATProtocol
import Archive
import Files
import IPLD
import LibC
import SQLite
import Snapshots
import SystemPackage
import Terminal

/// Writes an archive into a database of SQLite: every snapshot, and every record in each form that
/// it ever had.
///
/// 1. A snapshot is in the database or it is not: each is one transaction. An interrupted run is
///    continued where it stopped.
/// 2. A newest snapshot that lacks records because the archive is damaged is not complete: the next
///    run reads it again.
/// 3. Snapshots that are in the database, and no longer in the archive, stay.
/// 4. An account's snapshots are ordered by revision, whichever archive came in first; a commit
///    that several archives or snapshots have is one snapshot.
package struct SQLiteExport {
  /// Why a database cannot be written.
  package enum Fault: Error, CustomStringConvertible {
    /// The file is something else.
    case foreign
    /// A later version of carpack made it.
    case later(Int64)

    /// The sentence for people.
    package var description: String {
      switch self {
      case .foreign: "it exists already, and is not a database that carpack made"
      case .later(let version): "a later version of carpack made it (version \(version))"
      }
    }
  }

  /// The result.
  package struct Report: Sendable {
    /// How many snapshots were added.
    package var newSnapshots = 0
    /// How many records are in the database, in all their versions.
    package var records = 0
    /// How many of them are not in the archive, or cannot be read, so that only their names are
    /// here.
    package var unreadable = 0
    /// How many of the added snapshots were incomplete when they were made.
    package var incompleteSnapshots = 0
    /// What is wrong with the archive and its snapshots, each in a line.
    package var flaws: [String] = []
    /// How many bytes of a write that was not finished follow what is committed.
    package var unfinishedByteCount: UInt64 = 0
  }

  private(set) var reader: ArchiveReader
  let database: Database
  var report = Report()

  private init(_ options: SQLiteOptions) throws {
    let limits = ArchiveLimits(allowsLarge: options.allowsLarge)
    reader = try ArchiveReader(path: FilePath(options.archive), limits: limits)
    try reader.refuseTooMuchContent()
    database = try Database(path: options.database)
    let id = try database.number("PRAGMA application_id")
    let version = try database.number("PRAGMA user_version") ?? 0
    if try database.number("SELECT count(*) FROM sqlite_master") == 0 {
      try database.transaction { try Schema.create(in: database) }
    } else {
      guard id == Schema.applicationID else { throw Fault.foreign }
      guard version == Schema.version else { throw Fault.later(version) }
    }
    try Schema.complete(in: database)
  }

  /// Brings a database up to date with an archive, and creates it if it does not exist.
  ///
  /// - Throws: ``Fault``; `ArchiveError` for an archive that cannot be read; `DatabaseError`.
  package static func run(_ options: SQLiteOptions) throws -> Report {
    var export = try SQLiteExport(options)
    let history = try SnapshotHistory(of: export.reader)
    export.reader = history.reader
    guard !history.entries.isEmpty else { throw SnapshotError.noSnapshot }
    export.noteRecovery()
    for fault in history.breaks { export.report.flaws.append("\(fault)") }
    var last: [DID: SnapshotHistory.Entry] = [:]
    let entries = history.entries.sorted {
      ($0.rev?.text ?? "", $0.createdAt) < ($1.rev?.text ?? "", $1.createdAt)
    }
    for entry in entries {
      try export.add(entry, after: last[entry.did])
      last[entry.did] = entry
    }
    for entry in last.values.sorted(by: { $0.number < $1.number }) {
      let archived = try ArchivedSnapshot(entry.cid, in: export.reader)
      let isNewest = try export.settle(entry, archived)
      try export.noteBlobs(of: archived, isNewest: isNewest)
      if isNewest { try export.addContext(of: archived) }
    }
    let database = export.database
    try database.transaction {
      let count = "SELECT count(*) FROM records"
      export.report.records = Int(try database.number(count) ?? 0)
      export.report.unreadable = Int(try database.number("\(count) WHERE json IS NULL") ?? 0)
      try database.execute("PRAGMA optimize")
    }
    return export.report
  }

  /// Notes what was not as it should be when the archive was opened.
  private mutating func noteRecovery() {
    guard let recovery = reader.recovery else { return }
    if recovery.rebuild != nil {
      report.flaws.append("its index or its end is damaged; it was read from the data itself")
    } else if recovery.isDamaged {
      report.flaws.append(
        "bytes were inserted or removed before its last \(recovery.interruptedTail) bytes")
    } else if !recovery.isBeingWritten {
      report.unfinishedByteCount = recovery.interruptedTail
    }
  }

  // MARK: A snapshot

  private mutating func add(
    _ entry: SnapshotHistory.Entry, after before: SnapshotHistory.Entry?
  ) throws {
    let did = entry.did.text
    let known = try database.first(
      """
      SELECT id, flaw IS NOT NULL AND id = (\(Schema.newestSnapshot))
      FROM snapshots WHERE did = ?1 AND commit_cid = ?2
      """, [did, "\(entry.commit)"])
    if let known {
      // A later backup of the same commit may have brought blobs.
      try database.execute(
        "UPDATE snapshots SET blobs_held = ?1 WHERE id = ?2 AND blobs_held < ?1",
        [entry.blobs.held, known[0].integer])
      let lacksRecords = known[1].integer == 1
      guard lacksRecords, entry.isComplete else { return }
    }
    let id = known?[0].integer
    let archived = try ArchivedSnapshot(entry.cid, in: reader)
    var flaw: String?
    try database.transaction {
      let snapshot = try id ?? insert(entry, archived)
      let previous = try database.first(
        "SELECT id, commit_cid, flaw FROM snapshots WHERE id = (\(Schema.snapshots("<")) LIMIT 1)",
        [did, snapshot])
      let firstNew = 1 + (try database.number("SELECT max(id) FROM records") ?? 0)
      let writer = try SnapshotRecords(
        database, did: did, snapshot: snapshot, after: previous?[0].integer)
      do {
        if let previous, let before, previous[1].text == "\(before.commit)", previous[2] == .null,
          before.isComplete, entry.isComplete, id == nil, writer.isNewest
        {
          try writer.addChanges(
            since: ArchivedSnapshot(before.cid, in: reader), to: archived)
        } else {
          flaw = try writer.addAll(of: archived)
        }
      } catch let error where !(error is DatabaseError) {
        flaw = try error.flaw()
      }
      try writer.finish(firstNew: firstNew, flaw: flaw)
    }
    if id == nil { report.newSnapshots += 1 }
    guard let flaw else { return }
    if entry.isComplete {
      report.flaws.append("snapshot \(entry.number): \(flaw)")
    } else {
      // It came in like that.
      report.incompleteSnapshots += 1
    }
  }

  /// Adds rows for a snapshot and its account.
  private func insert(
    _ entry: SnapshotHistory.Entry, _ archived: ArchivedSnapshot
  ) throws -> Int64 {
    try database.execute(
      """
      INSERT INTO snapshots
      (did, rev, commit_cid, created_at, handle, records, blobs_referenced, blobs_held)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """,
      [
        entry.did.text, entry.rev?.text, "\(entry.commit)", entry.createdAt, entry.handle?.text,
        entry.counts.records, entry.blobs.referenced, entry.blobs.held,
      ])
    let id = database.lastInsertedRow
    try noteAccount(entry, archived)
    return id
  }

  /// Updates an account from a snapshot, if the account has no newer one.
  private func noteAccount(
    _ entry: SnapshotHistory.Entry, _ archived: ArchivedSnapshot
  ) throws {
    try database.execute(
      """
      INSERT INTO accounts (did, handle, pds, snapshot)
      SELECT did, ?2, ?3, id FROM snapshots
      WHERE id = (\(Schema.newestSnapshot)) AND commit_cid = ?4 AND created_at <= ?5
      ON CONFLICT (did) DO UPDATE SET handle = coalesce(excluded.handle, handle),
      pds = coalesce(excluded.pds, pds), snapshot = excluded.snapshot
      """,
      [
        entry.did.text, entry.handle?.text, archived.snapshot.pds, "\(entry.commit)",
        entry.createdAt,
      ])
  }

  /// Updates the last snapshot of an account's current records.
  ///
  /// Once for all snapshots that came in: there may be thousands, and each has nearly all records.
  ///
  /// - Returns: whether the account has no newer snapshot.
  private func settle(
    _ entry: SnapshotHistory.Entry, _ archived: ArchivedSnapshot
  ) throws -> Bool {
    let did = entry.did.text
    return try database.transaction {
      try noteAccount(entry, archived)
      try database.execute(
        """
        UPDATE records SET last_snapshot = (SELECT snapshot FROM accounts WHERE did = ?1)
        WHERE did = ?1 AND is_current
        """, [did])
      for kind in Schema.kinds { try database.execute(kind.update, [did]) }
      let newest = "SELECT commit_cid FROM snapshots WHERE id = (\(Schema.newestSnapshot))"
      return try database.first(newest, [did])?[0].text == "\(entry.commit)"
    }
  }

  // MARK: Blobs

  /// Updates for every blob of an account whether the archive holds it.
  ///
  /// - Parameter isNewest: whether no other archive has a newer snapshot; otherwise what another
  ///   one holds stays held.
  private func noteBlobs(of archived: ArchivedSnapshot, isNewest: Bool) throws {
    let did = archived.snapshot.did.text
    var reasons: [String: String] = [:]
    do {
      for missing in try archived.missingBlobs() {
        reasons["\(missing.cid)"] = missing.reason.sentence
      }
    } catch let error where error.faultKind != .system {
      // A damaged page of the ledger leaves only the reasons unknown.
    }
    try database.transaction {
      let rows = try database.prepare("SELECT cid FROM blobs WHERE did = ?").all([did])
      let cids = rows.compactMap { row in row[0].text.flatMap { try? CID($0) } }
      let states = try archived.states(of: cids)
      let update = try database.prepare(
        """
        UPDATE blobs SET is_held = ?, size = coalesce(?, size), reason = ?
        WHERE did = ? AND cid = ? AND (? OR NOT is_held)
        """)
      for (cid, state) in zip(cids, states) {
        let text = "\(cid)"
        let length: Int64?
        let reason: String?
        switch state {
        case .held(let bytes): (length, reason) = (Int64(clamping: bytes), nil)
        case .missing: (length, reason) = (nil, reasons[text] ?? "the archive does not hold it")
        case .damaged(let flaw): (length, reason) = (nil, "damaged: \(flaw)")
        }
        try update.execute([length != nil, length, reason, did, text, isNewest])
      }
    }
  }
}

extension SQLiteExport.Report {
  /// Reports the result, and ends the process with its status.
  package func say(_ options: SQLiteOptions) -> Never {
    let lacksRecords = unreadable > 0 || incompleteSnapshots > 0
    let isIncomplete = lacksRecords || unfinishedByteCount > 0
    let isComplete = !isIncomplete && flaws.isEmpty
    if options.isJSON {
      var json = JSONWriter()
      json.beginObject()
      for (name, text) in [
        ("schema", "carpack.export"), ("file", options.archive), ("database", options.database),
      ] {
        json.key(name)
        json.string(text)
      }
      for (name, number) in [
        ("version", 1), ("newSnapshots", newSnapshots), ("records", records),
        ("missingRecords", unreadable),
      ] {
        json.key(name)
        json.integer(number)
      }
      json.key("complete")
      json.boolean(isComplete)
      json.endObject()
      json.newline()
      let bytes = json.takeBytes()
      Console.print(bytes.span)
    } else if !options.isQuiet {
      let snapshots = newSnapshots == 1 ? "1 new snapshot" : "\(newSnapshots) new snapshots"
      Console.print("\(options.database): \(snapshots), \(records) records in all their versions")
    }
    Console.flush()
    for flaw in flaws { Console.put(line: "carpack: damaged: \(flaw)") }
    if unfinishedByteCount > 0 {
      Console.put(
        line:
          "carpack: unfinished: \(options.archive) ends in \(unfinishedByteCount) bytes of a write that was not finished"
      )
    }
    if lacksRecords, flaws.isEmpty, !options.isQuiet {
      Console.put(
        line:
          "carpack: incomplete: \(unreadable) records or more are not in the archive, or cannot be read; their rows have only names"
      )
    }
    exit(!flaws.isEmpty ? 11 : isIncomplete ? 10 : 0)
  }
}
