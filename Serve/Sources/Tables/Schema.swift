import SQLite

/// The tables of the database.
///
/// ```
/// accounts      one row an account
/// snapshots     one row a snapshot
/// records       every record, in each form it ever had; what the other tables are made of
/// blobs         every blob that a record ever referred to, held or not
/// record_blobs  which record refers to which
/// posts, likes, reposts, follows, blocks, profiles, lists, list_items
///               what the records of these collections say, by `records.id`
/// people        other accounts as an app view showed them (`backup --context`), a row for each
///               account whose records point to them
/// context_posts posts of others, likewise
/// search        full text (FTS5) of `records.text` and `records.alt_texts`, by words
/// search_parts  the same by parts of words, of three characters and more: also for scripts that
///               write words without spaces
/// ```
enum Schema {
  /// Marks a database as one of these: "carp".
  static let applicationID: Int64 = 0x6361_7270
  /// Raised when a column goes or changes its meaning.
  static let version: Int64 = 1

  /// Makes the tables in an empty database.
  static func create(in database: Database) throws {
    try database.execute("PRAGMA application_id = \(applicationID)")
    try database.execute("PRAGMA user_version = \(version)")
    try database.run(script: tables)
    for table in kinds { try database.run(script: table.definition) }
  }

  /// Makes the tables that databases of earlier versions lack.
  static func complete(in database: Database) throws {
    try database.run(script: context)
    let name = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'search_parts'"
    guard try database.first(name) == nil else { return }
    try database.run(script: parts)
  }

  private static let parts = """
    CREATE VIRTUAL TABLE search_parts USING fts5 (
      text, alt_texts, content = 'records', content_rowid = 'id', tokenize = 'trigram'
    );
    INSERT INTO search_parts (rowid, text, alt_texts) SELECT id, text, alt_texts FROM records
    WHERE text IS NOT NULL OR alt_texts IS NOT NULL;
    """

  private static let context = """
    CREATE TABLE IF NOT EXISTS people (
      -- The account whose records point there.
      account TEXT NOT NULL REFERENCES accounts (did),
      did TEXT NOT NULL,
      handle TEXT,
      display_name TEXT,
      description TEXT,
      -- A small picture, as the app view serves it.
      avatar BLOB,
      -- Why there is nothing; null if there is something.
      absent TEXT,
      seen_from TEXT NOT NULL,
      seen_at TEXT NOT NULL,
      PRIMARY KEY (account, did)
    ) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS context_posts (
      account TEXT NOT NULL REFERENCES accounts (did),
      uri TEXT NOT NULL,
      author TEXT NOT NULL,
      cid TEXT,
      json TEXT,
      text TEXT,
      -- As the record says.
      created_at TEXT,
      -- Whether the archive has a proof that it is its author's.
      is_signed INTEGER NOT NULL,
      absent TEXT,
      seen_from TEXT NOT NULL,
      seen_at TEXT NOT NULL,
      PRIMARY KEY (account, uri)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS context_posts_by_author ON context_posts (author);
    """

  private static let tables = """
    CREATE TABLE accounts (
      did TEXT PRIMARY KEY,
      handle TEXT,
      pds TEXT,
      -- The newest snapshot that is in here, by revision.
      snapshot INTEGER REFERENCES snapshots (id)
    );
    CREATE TABLE snapshots (
      id INTEGER PRIMARY KEY,
      did TEXT NOT NULL REFERENCES accounts (did),
      rev TEXT,
      commit_cid TEXT NOT NULL,
      created_at TEXT NOT NULL,
      handle TEXT,
      records INTEGER NOT NULL,
      blobs_referenced INTEGER NOT NULL,
      blobs_held INTEGER NOT NULL,
      -- Why records may be missing; null if all are here.
      flaw TEXT,
      UNIQUE (did, commit_cid)
    );
    CREATE INDEX snapshots_by_order ON snapshots (did, coalesce(rev, ''), created_at);
    CREATE TABLE records (
      id INTEGER PRIMARY KEY,
      did TEXT NOT NULL REFERENCES accounts (did),
      collection TEXT NOT NULL,
      rkey TEXT NOT NULL,
      cid TEXT NOT NULL,
      -- Null for a record that is not in the archive, or cannot be read.
      json TEXT,
      -- As the record says.
      created_at TEXT,
      text TEXT,
      alt_texts TEXT,
      -- The oldest and the newest snapshot that have it in this form.
      first_snapshot INTEGER NOT NULL REFERENCES snapshots (id),
      last_snapshot INTEGER NOT NULL REFERENCES snapshots (id),
      -- Whether it is in the newest snapshot.
      is_current INTEGER NOT NULL
    );
    CREATE INDEX records_by_path ON records (did, collection, rkey);
    CREATE INDEX records_by_time ON records (created_at);
    CREATE INDEX past_records ON records (did, collection, rkey) WHERE NOT is_current;
    CREATE TABLE blobs (
      did TEXT NOT NULL REFERENCES accounts (did),
      cid TEXT NOT NULL,
      -- As the first record says.
      mime_type TEXT,
      -- In bytes: of what is held, else as the first record says.
      size INTEGER,
      is_held INTEGER NOT NULL DEFAULT 0,
      -- Why it is not held, if that is known.
      reason TEXT,
      PRIMARY KEY (did, cid)
    ) WITHOUT ROWID;
    CREATE TABLE record_blobs (
      record INTEGER NOT NULL REFERENCES records (id),
      cid TEXT NOT NULL,
      PRIMARY KEY (record, cid)
    ) WITHOUT ROWID;
    CREATE INDEX record_blobs_by_cid ON record_blobs (cid);
    CREATE VIRTUAL TABLE search USING fts5 (
      text, alt_texts, content = 'records', content_rowid = 'id',
      tokenize = 'unicode61 remove_diacritics 2'
    );
    CREATE VIEW current_records AS SELECT * FROM records WHERE is_current;
    -- The last form of each record that the newest snapshot has in no form.
    CREATE VIEW deleted_records AS SELECT r.* FROM records r
    JOIN snapshots s ON s.id = r.last_snapshot
    WHERE NOT r.is_current AND NOT EXISTS (
      SELECT 1 FROM records o JOIN snapshots l ON l.id = o.last_snapshot
      WHERE o.did = r.did AND o.collection = r.collection AND o.rkey = r.rkey
      AND (o.is_current OR \(order(of: "l")) > \(order(of: "s")))
    );
    """

  /// What an account's snapshots are ordered by: the revision, whichever came in first.
  private static func order(of table: String) -> String {
    "(coalesce(\(table).rev, ''), \(table).created_at, \(table).id)"
  }

  /// Finds the newest snapshot of the account `?1`.
  static let newestSnapshot =
    "SELECT id FROM snapshots s WHERE did = ?1 ORDER BY \(descending) LIMIT 1"

  /// Finds the account's snapshots that are older (`<`) or newer (`>`) than one of them, `?2`; the
  /// newest first.
  static func snapshots(_ comparison: String) -> String {
    """
    SELECT id FROM snapshots s WHERE did = ?1 AND \(order(of: "s")) \(comparison)
    (SELECT coalesce(rev, ''), created_at, id FROM snapshots WHERE id = ?2) ORDER BY \(descending)
    """
  }

  private static let descending = "coalesce(s.rev, '') DESC, s.created_at DESC, s.id DESC"

  /// A table with what the records of one collection say.
  struct Kind {
    let name: String
    let collection: String
    /// The columns, and where in the record's JSON each is found.
    let columns: [(name: String, path: String)]

    var definition: String {
      let columns = columns.map { "\($0.name) TEXT" }.joined(separator: ", ")
      return """
        CREATE TABLE \(name) (
          id INTEGER PRIMARY KEY REFERENCES records (id), did TEXT NOT NULL, rkey TEXT NOT NULL,
          created_at TEXT, is_current INTEGER NOT NULL, \(columns)
        );
        CREATE INDEX \(name)_by_time ON \(name) (created_at);
        """
    }

    /// Fills it from the records after an `id`.
    var insertion: String {
      let names = columns.map(\.name).joined(separator: ", ")
      let values = columns.map { "json_extract(json, '\($0.path)')" }.joined(separator: ", ")
      return """
        INSERT INTO \(name) (id, did, rkey, created_at, is_current, \(names))
        SELECT id, did, rkey, created_at, is_current, \(values) FROM records
        WHERE collection = '\(collection)' AND json IS NOT NULL AND id > ?
        """
    }

    /// Updates for each row of an account whether it is in the newest snapshot.
    var update: String {
      """
      UPDATE \(name) SET is_current = NOT is_current WHERE did = ?1
      AND is_current = (id IN (SELECT id FROM records WHERE did = ?1 AND NOT is_current))
      """
    }
  }

  static let kinds: [Kind] = [
    Kind(
      name: "posts", collection: "app.bsky.feed.post",
      columns: [
        ("text", "$.text"), ("langs", "$.langs"), ("reply_parent", "$.reply.parent.uri"),
        ("reply_root", "$.reply.root.uri"), ("embed_type", "$.embed.\"$type\""),
        ("link", "$.embed.external.uri"), ("link_title", "$.embed.external.title"),
        ("tags", "$.tags"),
      ]),
    Kind(name: "likes", collection: "app.bsky.feed.like", columns: subject),
    Kind(name: "reposts", collection: "app.bsky.feed.repost", columns: subject),
    Kind(name: "follows", collection: "app.bsky.graph.follow", columns: [("subject", "$.subject")]),
    Kind(name: "blocks", collection: "app.bsky.graph.block", columns: [("subject", "$.subject")]),
    Kind(
      name: "profiles", collection: "app.bsky.actor.profile",
      columns: [("display_name", "$.displayName"), ("description", "$.description")]),
    Kind(
      name: "lists", collection: "app.bsky.graph.list",
      columns: [
        ("name", "$.name"), ("purpose", "$.purpose"), ("description", "$.description"),
      ]),
    Kind(
      name: "list_items", collection: "app.bsky.graph.listitem",
      columns: [("subject", "$.subject"), ("list", "$.list")]),
  ]

  private static let subject = [
    (name: "subject", path: "$.subject.uri"), (name: "subject_cid", path: "$.subject.cid"),
  ]
}
