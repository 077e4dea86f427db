import ATProtocol
import Archive
import Extraction
import IPLD
import SQLite
import Snapshots

/// The records of a snapshot on their way into the database, within one transaction.
///
/// A record has one row for each form (CID) that it ever had. A snapshot that is older than others
/// of its account extends the rows' times, and changes nothing about what is current.
struct SnapshotRecords {
  private let database: Database
  private let did: String
  private let snapshot: Int64
  /// The account's snapshot before; the same if there is none.
  private let before: Int64
  /// Whether the account has no newer one.
  let isNewest: Bool
  /// Whether the account has no records yet.
  private let isEmpty: Bool
  private let known: Statement
  private let insertion: Statement
  private let arrival: Statement
  private let ending: Statement
  private let blob: Statement
  private let reference: Statement

  /// - Parameters:
  ///   - database: where.
  ///   - did: whose.
  ///   - snapshot: the row of the snapshot.
  ///   - before: that of the account's snapshot before; nil if there is none.
  init(_ database: Database, did: String, snapshot: Int64, after before: Int64?) throws {
    (self.database, self.did, self.snapshot) = (database, did, snapshot)
    self.before = before ?? snapshot
    isNewest = try database.number(Schema.newestSnapshot, [did]) == snapshot
    isEmpty = try database.first("SELECT 1 FROM records WHERE did = ? LIMIT 1", [did]) == nil
    // The rows that the snapshot has.
    try database.run(
      script: """
        CREATE TEMP TABLE IF NOT EXISTS incoming (record INTEGER PRIMARY KEY);
        DELETE FROM incoming;
        """)
    known = try database.prepare(
      """
      SELECT id, json IS NULL, is_current FROM records
      WHERE did = ? AND collection = ? AND rkey = ? AND cid = ?
      """)
    insertion = try database.prepare(
      """
      INSERT INTO records (did, collection, rkey, cid, json, created_at, text, alt_texts,
      first_snapshot, last_snapshot, is_current)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      """)
    arrival = try database.prepare("INSERT OR IGNORE INTO incoming VALUES (?)")
    ending = try database.prepare(
      """
      UPDATE records SET is_current = 0, last_snapshot = ?
      WHERE did = ? AND collection = ? AND rkey = ? AND is_current
      """)
    blob = try database.prepare(
      "INSERT OR IGNORE INTO blobs (did, cid, mime_type, size) VALUES (?, ?, ?, ?)")
    reference = try database.prepare(
      "INSERT OR IGNORE INTO record_blobs (record, cid) VALUES (?, ?)")
  }

  /// Adds what changed since the account's snapshot before, where this one is the newest.
  func addChanges(since old: ArchivedSnapshot, to new: ArchivedSnapshot) throws {
    _ = try SnapshotDiff.compare(old, new) { change in
      let path = String(decoding: change.key, as: UTF8.self)
      if let cid = change.new {
        // However long: the database has a limit of its own.
        try add(path, cid, new.reader.body(of: cid, limit: .max))
      } else {
        let (collection, key) = Self.parts(of: path)
        try ending.execute([before, did, collection, key])
      }
    }
    try extend()
  }

  /// Adds all records, as far as the database does not have them already.
  ///
  /// - Returns: why records may be missing; nil if all are there.
  func addAll(of archived: ArchivedSnapshot) throws -> String? {
    // Without its commit there is nothing to add.
    _ = try archived.block(archived.snapshot.commit)
    let contents = try SnapshotBlocks(archived, keepsRecords: true).contents { record, body in
      let path = String(decoding: record.key, as: UTF8.self)
      try add(path, record.cid, record.length == nil ? nil : body.array)
    }
    contents.releasePages()
    try extend()
    if let why = contents.whyRecordsMayBeMissing { return why }
    guard isNewest, !isEmpty else { return nil }
    try database.execute(
      """
      UPDATE records SET is_current = 0, last_snapshot = ? WHERE did = ? AND is_current
      AND id NOT IN (SELECT record FROM incoming)
      """, [before, did])
    return nil
  }

  /// Adds a record, unless the database has it in this form.
  private func add(_ path: String, _ cid: CID, _ bytes: [UInt8]?) throws {
    guard !isEmpty else {
      _ = try insert(path, cid, bytes)
      return
    }
    let (collection, key) = Self.parts(of: path)
    let found = try known.first([did, collection, key, "\(cid)"])
    if isNewest, found?[2].integer != 1 {
      try ending.execute([before, did, collection, key])
    }
    guard let found else { return try arrival.execute([insert(path, cid, bytes)]) }
    guard found[1].integer == 1, let bytes else { return try arrival.execute([found[0]]) }
    // It could not be read before.
    let row = try insert(path, cid, bytes)
    try database.execute(
      """
      UPDATE records SET (first_snapshot, last_snapshot, is_current) =
      (SELECT first_snapshot, last_snapshot, is_current FROM records WHERE id = ?) WHERE id = ?
      """, [found[0], row])
    try database.execute("DELETE FROM records WHERE id = ?", [found[0]])
    try arrival.execute([row])
  }

  /// Extends the times of the rows that the database had to this snapshot.
  private func extend() throws {
    let rows = "id IN (SELECT record FROM incoming)"
    guard !isNewest else {
      return try database.execute(
        "UPDATE records SET is_current = 1 WHERE NOT is_current AND \(rows)")
    }
    try database.execute(
      """
      UPDATE records SET first_snapshot = ?2
      WHERE \(rows) AND first_snapshot IN (\(Schema.snapshots(">")))
      """, [did, snapshot])
    try database.execute(
      """
      UPDATE records SET last_snapshot = ?2
      WHERE \(rows) AND NOT is_current AND last_snapshot IN (\(Schema.snapshots("<")))
      """, [did, snapshot])
  }

  /// Adds a row, and says which.
  private func insert(_ path: String, _ cid: CID, _ bytes: [UInt8]?) throws -> Int64 {
    let content = RecordContent(bytes)
    let (collection, key) = Self.parts(of: path)
    try insertion.execute([
      did, collection, key, "\(cid)", content.json, content.createdAt,
      content.text, content.altTexts, snapshot, snapshot, isNewest,
    ])
    let row = database.lastInsertedRow
    for found in content.blobs {
      try blob.execute([did, "\(found.cid)", found.mimeType, found.size])
      try reference.execute([row, "\(found.cid)"])
    }
    return row
  }

  /// Fills the tables that follow from the records.
  ///
  /// - Parameters:
  ///   - firstNew: the first `id` of the new records.
  ///   - flaw: why records may be missing.
  func finish(firstNew: Int64, flaw: String?) throws {
    for kind in Schema.kinds {
      try database.execute(kind.insertion, [firstNew - 1])
    }
    for table in ["search", "search_parts"] {
      try database.execute(
        """
        INSERT INTO \(table) (rowid, text, alt_texts) SELECT id, text, alt_texts FROM records
        WHERE id >= ? AND (text IS NOT NULL OR alt_texts IS NOT NULL)
        """, [firstNew])
    }
    try database.execute("UPDATE snapshots SET flaw = ? WHERE id = ?", [flaw, snapshot])
  }

  private static func parts(of path: String) -> (collection: String, key: String) {
    guard let slash = path.firstIndex(of: "/") else { return (path, "") }
    return (String(path[..<slash]), String(path[path.index(after: slash)...]))
  }
}
