internal import ATProtocol
internal import Extraction
internal import Reports
internal import Snapshots
internal import Terminal

/// What others said, as an app view showed it: what `ls --context` and `find --context` print.
enum ContextListing {
  typealias Found = (file: String, account: DID, item: ContextItem, excerpt: String?)

  /// Prints an item, in a line that says whose it is and when it was seen.
  static func show(_ found: Found, json: Bool) {
    guard !json else { return report.print(found) }
    let item = found.item
    let text = (found.excerpt ?? item.summary).split(whereSeparator: \.isNewline)
      .joined(separator: " ")
    Console.print(
      named: "\(item.subject.text)  \(text)  (another's, seen \(item.seenAt) at \(item.seenFrom))")
  }

  static let report = Report<Found>(
    "context", "`carpack ls --context` and `carpack find --context`: what another account showed."
  ) {
    ArchiveFields.file { $0.file }
    Field("account", "the account whose records point there") { $0.account }
    Field("kind", "what it is", .one(of: "person", "post")) {
      $0.item.isPerson ? "person" : "post"
    }
    Field("subject", "the DID or the AT URI") { $0.item.subject.text }
    Field(optional: "handle", "of a person: the handle") { $0.item.person?.handle?.text }
    Field(optional: "displayName", "of a person: the name") { $0.item.person?.displayName }
    Field(optional: "description", "of a person: what it says of itself") {
      $0.item.person?.description
    }
    Field(optional: "cid", "of a post: its CID, as the app view named it") {
      $0.item.post.map { "\($0.cid)" }
    }
    Field(optional: "record", "of a post: the record, JSON as text") { $0.item.post?.record }
    Field(optional: "thumbnails", "the number of thumbnails") {
      $0.item.isAbsent
        ? nil : $0.item.post?.thumbnails.count ?? ($0.item.person?.avatar == nil ? 0 : 1)
    }
    Field(optional: "signed", "of a post: whether there is a proof that it is its author's") {
      $0.item.post.map { $0.proof != nil }
    }
    Field(optional: "absent", "why there is nothing", .one(of: ContextItem.Absence.self)) {
      if case .absent(let absence) = $0.item.content { absence.rawValue } else { nil }
    }
    Field(optional: "excerpt", "the text that was found, with its surroundings") {
      $0.excerpt
    }
    Field("seenFrom", "the app view") { $0.item.seenFrom }
    Field("seenAt", "when it showed this, RFC 3339") { $0.item.seenAt }
    Field("askedAt", "when it was last asked, RFC 3339") { $0.item.askedAt }
  }
}

extension ContextItem {
  fileprivate var person: Person? { if case .person(let person) = content { person } else { nil } }
  fileprivate var post: Post? { if case .post(let post) = content { post } else { nil } }
}
