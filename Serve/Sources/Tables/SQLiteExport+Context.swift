import ATProtocol
import Archive
import Extraction
import Files
import IPLD
import SQLite
import Snapshots

/// What app views have shown of others, in separate tables.
extension SQLiteExport {
  /// Replaces the tables' rows of an account with what its newest snapshot has.
  mutating func addContext(of archived: ArchivedSnapshot) throws {
    let did = archived.snapshot.did.text
    do {
      try database.transaction {
        for table in ["people", "context_posts"] {
          try database.execute("DELETE FROM \(table) WHERE account = ?", [did])
        }
        let person = try database.prepare(
          "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)")
        let post = try database.prepare(
          "INSERT INTO context_posts VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
        try archived.forEachContextItem { item in
          switch item.subject {
          case .person: try person.execute(Self.row(of: item, did, archived))
          case .post(let uri): try post.execute(Self.row(of: item, did, uri))
          }
        }
      }
    } catch let error where !(error is DatabaseError) {
      report.flaws.append("what others said: \(try error.flaw())")
    }
  }

  private static func row(
    of item: ContextItem, _ did: String, _ archived: ArchivedSnapshot
  ) throws -> [any DatabaseBindable] {
    var person = ContextItem.Person()
    if case .person(let shown) = item.content { person = shown }
    // What is damaged is named by verify.
    let avatar = try person.avatar.flatMap { avatar in
      try unlessDamaged { try archived.contextPiece(avatar.piece) }
    }
    return [
      did, item.subject.text, person.handle?.text, person.displayName,
      person.description, avatar, item.absence, item.seenFrom, item.seenAt,
    ]
  }

  private static func row(of item: ContextItem, _ did: String, _ uri: ATURI)
    -> [any DatabaseBindable]
  {
    var post: ContextItem.Post?
    if case .post(let shown) = item.content { post = shown }
    let record = item.record
    return [
      did, uri.text, uri.authority.text, post.map { "\($0.cid)" },
      post?.record, record?["text"]?.string,
      record?["createdAt"]?.string, post?.proof != nil, item.absence,
      item.seenFrom, item.seenAt,
    ]
  }
}

extension ContextItem {
  fileprivate var absence: String? {
    if case .absent(let absence) = content { absence.rawValue } else { nil }
  }
}
