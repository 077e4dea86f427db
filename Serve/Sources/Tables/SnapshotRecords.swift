import ATProtocol
import Archive
import Extraction
import IPLD
import SQLite
import Snapshots

/// The records of a snapshot on their way into the database, within one transaction.
struct SnapshotRecords {
  private let database: Database
  private let did: String
  private let snapshot: Int64
  /// The account's snapshot before; the same if there is none.
  private let before: Int64
  private let insertion: Statement
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
    insertion = try database.prepare(
      """
      INSERT INTO records (did, collection, rkey, cid, json, created_at, text, alt_texts,
      first_snapshot, last_snapshot, is_current)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 1)
      """)
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

  /// Adds what changed since the account's snapshot before.
  func addChanges(since old: ArchivedSnapshot, to new: ArchivedSnapshot) throws {
    _ = try SnapshotDiff.compare(old, new) { change in
      let path = String(decoding: change.key, as: UTF8.self)
      if change.old != nil { try end(path) }
      if let cid = change.new { try insert(path, cid, new.reader.body(of: cid)) }
    }
  }

  /// Adds all records, as far as the database does not have them already.
  ///
  /// - Returns: why records may be missing; nil if all are there.
  func addAll(of archived: ArchivedSnapshot) throws -> String? {
    // Without its commit there is nothing to add.
    _ = try archived.block(archived.snapshot.commit)
    try database.execute("CREATE TEMP TABLE incoming (path TEXT PRIMARY KEY) WITHOUT ROWID")
    defer { discardIncoming() }
    let known = try database.prepare(
      """
      SELECT id, first_snapshot, json IS NULL AS is_unread FROM records
      WHERE did = ? AND collection = ? AND rkey = ? AND is_current AND cid = ?
      """)
    let removal = try database.prepare("DELETE FROM records WHERE id = ?")
    let arrival = try database.prepare("INSERT OR IGNORE INTO incoming VALUES (?)")
    let isEmpty =
      try database.first("SELECT 1 FROM records WHERE did = ? LIMIT 1", [did]) == nil
    let contents = try SnapshotBlocks(archived, keepsRecords: true).contents { record, body in
      let path = String(decoding: record.key, as: UTF8.self)
      if !isEmpty {
        try arrival.execute([path])
        let (collection, key) = Self.parts(of: path)
        if let row = try known.first([did, collection, key, "\(record.cid)"]) {
          let (id, first, isUnread) = (row[0], row[1].integer, row[2].integer == 1)
          guard isUnread, record.length != nil else { return }
          // It could not be read before.
          try removal.execute([id])
          return try insert(path, record.cid, body.array, since: first)
        }
        try end(path)
      }
      try insert(path, record.cid, record.length == nil ? nil : body.array)
    }
    contents.releasePages()
    if let why = contents.whyRecordsMayBeMissing { return why }
    guard !isEmpty else { return nil }
    try database.execute(
      """
      UPDATE records SET is_current = 0, last_snapshot = ? WHERE did = ? AND is_current
      AND collection || '/' || rkey NOT IN (SELECT path FROM incoming)
      """, [before, did])
    return nil
  }

  private func discardIncoming() {
    do {
      try database.execute("DROP TABLE temp.incoming")
    } catch {
      // The transaction fails anyway, and with it goes the table.
    }
  }

  private func end(_ path: String) throws {
    let (collection, key) = Self.parts(of: path)
    try ending.execute([before, did, collection, key])
  }

  private func insert(
    _ path: String, _ cid: CID, _ bytes: [UInt8]?, since first: Int64? = nil
  ) throws {
    let content = RecordContent(bytes)
    let (collection, key) = Self.parts(of: path)
    try insertion.execute([
      did, collection, key, "\(cid)", content.json, content.createdAt,
      content.text, content.altTexts, first ?? snapshot, snapshot,
    ])
    let row = database.lastInsertedRow
    for found in content.blobs {
      try blob.execute([did, "\(found.cid)", found.mimeType, found.size])
      try reference.execute([row, "\(found.cid)"])
    }
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
