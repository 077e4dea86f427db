import ATProtocol
import Archive
import Files
import Foundation
import GRDB
import IPLD
import Snapshots
import SystemPackage

/// Writes an archive into a database of SQLite: every snapshot, and every record in each form that
/// it ever had.
///
/// 1. A snapshot is in the database or it is not: each is one transaction. What is stopped goes on
///    where it was.
/// 2. A newest snapshot that lacks records as the archive is damaged is not done: the next run
///    reads it again.
/// 3. Snapshots that the database has, and the archive no longer, stay.
package struct SQLiteExport {
  /// Why a database cannot be written.
  package enum Fault: Error, CustomStringConvertible {
    /// It is something else.
    case foreign
    /// A later version made it.
    case later(Int)

    /// What a person reads.
    package var description: String {
      switch self {
      case .foreign: "it is there, and no database that carpack made"
      case .later(let version): "a later carpack made it (version \(version))"
      }
    }
  }

  /// What came of it.
  package struct Report: Sendable {
    /// How many snapshots came in.
    package var newSnapshots = 0
    /// How many records are in the database, in all their forms.
    package var records = 0
    /// How many of them are not in the archive, or cannot be read, so that only their names are
    /// here.
    package var unreadable = 0
    /// How many snapshots came in that were not whole when they were made.
    package var incompleteSnapshots = 0
    /// What is wrong with the archive and its snapshots, each in a line.
    package var flaws: [String] = []
    /// How many bytes of a write that was not finished follow what is committed.
    package var unfinishedByteCount: UInt64 = 0
  }

  private var reader: ArchiveReader
  private let queue: DatabaseQueue
  private var report = Report()

  private init(_ options: SQLiteOptions) throws {
    let limits = ArchiveLimits(allowsLarge: options.allowsLarge)
    reader = try ArchiveReader(path: FilePath(options.archive), limits: limits)
    try reader.refuseTooMuchContent()
    var configuration = Configuration()
    configuration.foreignKeysEnabled = false
    queue = try DatabaseQueue(path: options.database, configuration: configuration)
    try queue.writeWithoutTransaction { database in
      let id = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
      let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
      let count = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_master") ?? 0
      if count == 0 {
        try database.inTransaction {
          try Schema.create(in: database)
          return .commit
        }
      } else {
        guard id == Schema.applicationID else { throw Fault.foreign }
        guard version == Schema.version else { throw Fault.later(version) }
      }
    }
  }

  /// Brings a database up to date with an archive, and makes it if it is not there.
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
    for entry in history.entries {
      try export.add(entry, after: last[entry.did])
      last[entry.did] = entry
    }
    for entry in last.values.sorted(by: { $0.number < $1.number }) {
      try export.settle(entry.did)
      try export.noteBlobs(of: entry)
    }
    try export.queue.write { database in
      export.report.records = try Int.fetchOne(database, sql: "SELECT count(*) FROM records") ?? 0
      export.report.unreadable =
        try Int.fetchOne(database, sql: "SELECT count(*) FROM records WHERE json IS NULL") ?? 0
      try database.execute(sql: "PRAGMA optimize")
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
    let key: StatementArguments = [did, "\(entry.commit)", entry.createdAt]
    let known = try queue.read { database in
      try Row.fetchOne(
        database,
        sql: """
          SELECT id, flaw IS NOT NULL AND id = (SELECT snapshot FROM accounts WHERE did = ?)
          AS lacks_records FROM snapshots WHERE did = ? AND commit_cid = ? AND created_at = ?
          """, arguments: [did] + key)
    }
    if let known {
      guard known["lacks_records"], entry.isComplete else { return }
    }
    let id: Int64? = known?["id"]
    let archived = try ArchivedSnapshot(entry.cid, in: reader)
    var flaw: String?
    try queue.write { database in
      let previous = try Row.fetchOne(
        database,
        sql: """
          SELECT id, commit_cid, created_at, flaw FROM snapshots WHERE id =
          (SELECT max(id) FROM snapshots WHERE did = ? AND id < ?)
          """, arguments: [did, id ?? Int64.max])
      let snapshot = try id ?? Self.insert(entry, archived, into: database)
      let firstNew = 1 + (try Int64.fetchOne(database, sql: "SELECT max(id) FROM records") ?? 0)
      let writer = try SnapshotRecords(
        database, did: did, snapshot: snapshot, after: previous?["id"])
      do {
        if let previous, let before, previous["commit_cid"] == "\(before.commit)",
          previous["created_at"] == before.createdAt, before.isComplete, entry.isComplete,
          id == nil, previous["flaw"] == nil
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
  private static func insert(
    _ entry: SnapshotHistory.Entry, _ archived: ArchivedSnapshot, into database: Database
  ) throws -> Int64 {
    try database.execute(
      sql: """
        INSERT INTO accounts (did, handle, pds) VALUES (?, ?, ?)
        ON CONFLICT (did) DO UPDATE SET handle = coalesce(excluded.handle, handle),
        pds = coalesce(excluded.pds, pds)
        """, arguments: [entry.did.text, entry.handle?.text, archived.snapshot.pds])
    try database.execute(
      sql: """
        INSERT INTO snapshots
        (did, rev, commit_cid, created_at, handle, records, blobs_referenced, blobs_held)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
        """,
      arguments: [
        entry.did.text, entry.rev?.text, "\(entry.commit)", entry.createdAt, entry.handle?.text,
        entry.counts.records, entry.blobs.referenced, entry.blobs.held,
      ])
    let id = database.lastInsertedRowID
    try database.execute(
      sql: "UPDATE accounts SET snapshot = ? WHERE did = ?", arguments: [id, entry.did.text])
    return id
  }

  /// Says of an account's records up to where they last.
  ///
  /// Once for all snapshots that came in: there may be thousands, and each has nearly all records.
  private func settle(_ did: DID) throws {
    try queue.write { database in
      try database.execute(
        sql: """
          UPDATE records SET last_snapshot = (SELECT snapshot FROM accounts WHERE did = ?)
          WHERE did = ? AND is_current
          """, arguments: [did.text, did.text])
      for kind in Schema.kinds {
        try database.execute(sql: kind.update, arguments: [did.text, did.text])
      }
    }
  }

  // MARK: Blobs

  /// Says of every blob of an account whether the archive holds it.
  private func noteBlobs(of entry: SnapshotHistory.Entry) throws {
    let archived = try ArchivedSnapshot(entry.cid, in: reader)
    var reasons: [String: String] = [:]
    do {
      for missing in try archived.missingBlobs() {
        reasons["\(missing.cid)"] = missing.reason.sentence
      }
    } catch let error where !error.isOfSystem {
      // A damaged page of the ledger leaves only the reasons unknown.
    }
    try queue.write { database in
      let rows = try Row.fetchCursor(
        database, sql: "SELECT cid FROM blobs WHERE did = ?", arguments: [entry.did.text])
      var texts: [String] = []
      while let row = try rows.next() { texts.append(row["cid"]) }
      let cids = texts.compactMap { try? CID($0) }
      let states = try archived.states(of: cids)
      let update = try database.makeStatement(
        sql:
          "UPDATE blobs SET is_held = ?, size = coalesce(?, size), reason = ? WHERE did = ? AND cid = ?"
      )
      for (cid, state) in zip(cids, states) {
        let text = "\(cid)"
        let length: Int64?
        let reason: String?
        switch state {
        case .held(let bytes): (length, reason) = (Int64(clamping: bytes), nil)
        case .missing: (length, reason) = (nil, reasons[text] ?? "the archive does not hold it")
        case .damaged(let flaw): (length, reason) = (nil, "damaged: \(flaw)")
        }
        try update.execute(arguments: [length != nil, length, reason, entry.did.text, text])
      }
    }
  }
}

extension SQLiteExport.Report {
  /// Says what came of it, and ends the process with its status.
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
      FileHandle.standardOutput.write(Data(json.takeBytes()))
    } else if !options.isQuiet {
      let snapshots = newSnapshots == 1 ? "1 new snapshot" : "\(newSnapshots) new snapshots"
      let line = "\(options.database): \(snapshots), \(records) records in all their forms\n"
      FileHandle.standardOutput.write(Data(line.utf8))
    }
    for flaw in flaws { FileHandle.standardError.write(Data("carpack: damaged: \(flaw)\n".utf8)) }
    if unfinishedByteCount > 0 {
      let line =
        "carpack: unfinished: \(options.archive) ends in \(unfinishedByteCount) bytes of a write that was not finished\n"
      FileHandle.standardError.write(Data(line.utf8))
    }
    if lacksRecords, flaws.isEmpty, !options.isQuiet {
      let line =
        "carpack: incomplete: \(unreadable) records or more are not in the archive, or cannot be read; rows have their names\n"
      FileHandle.standardError.write(Data(line.utf8))
    }
    exit(!flaws.isEmpty ? 11 : isIncomplete ? 10 : 0)
  }
}
