internal import ATProtocol
internal import IPLD

/// The columns of a collection's table.
///
/// Every table begins with `uri`, `cid` and `created`. Collections of known lexicons have columns
/// for what people look for; every other collection has one, `json`.
extension CSVExporter {
  /// A column: its name, and its cell for a record's value, which is nil if the record cannot be
  /// read.
  typealias Column = (name: String, content: @Sendable (IPLDValue?) -> String)

  /// The columns of a collection that follow the first three.
  static func columns(of collection: String) -> [Column] {
    known[collection] ?? [("json", json)]
  }

  /// Columns with the texts of fields.
  private static func texts(_ names: String...) -> [Column] { names.map { text($0, at: $0) } }

  /// A column with the text at the end of a path of fields.
  private static func text(_ name: String, at path: String...) -> Column {
    (name, { value in path.reduce(value) { $0?[$1] }?.string ?? "" })
  }

  /// A row: RFC 4180, ended by CR LF.
  ///
  /// A spreadsheet takes a cell that begins with one of `= + - @`, a tab or a CR for a formula; so
  /// the cell gets an apostrophe in front.
  static func row(_ cells: [String]) -> [UInt8] {
    let cells = cells.map { cell in
      let isFormula = cell.utf8.first.map(formulaSigns.contains) ?? false
      let text = (isFormula ? "'" : "") + cell
      guard text.utf8.contains(where: quotedSigns.contains) else { return Array(text.utf8) }
      let quote = UInt8(ascii: "\"")
      let parts = text.utf8.split(separator: quote, omittingEmptySubsequences: false)
      return [quote] + Array(parts.joined(separator: [quote, quote])) + [quote]
    }
    return Array(cells.joined(separator: [UInt8(ascii: ",")])) + [0x0d, 0x0a]
  }

  private static let formulaSigns = Array("=+-@\t\r".utf8)
  private static let quotedSigns = Array(",\"\r\n".utf8)

  private static let json: @Sendable (IPLDValue?) -> String = { $0?.json() ?? "" }
  private static let subject = [
    text("subject", at: "subject", "uri"), text("subject_cid", at: "subject", "cid"),
  ]
  private static let account = texts("subject")

  private static let known: [String: [Column]] = [
    "app.bsky.feed.post": post,
    "app.bsky.feed.like": subject,
    "app.bsky.feed.repost": subject,
    "app.bsky.graph.follow": account,
    "app.bsky.graph.block": account,
    "app.bsky.graph.listitem": texts("subject", "list"),
    "app.bsky.graph.listblock": account,
    "app.bsky.graph.list": texts("name", "purpose", "description"),
    "app.bsky.graph.starterpack": texts("name", "list", "description"),
    "app.bsky.feed.generator": [
      text("name", at: "displayName"), text("service", at: "did"),
      text("description", at: "description"),
    ],
    "app.bsky.actor.profile": [
      text("name", at: "displayName"), text("description", at: "description"),
      ("avatar", { blobs(in: $0?["avatar"]) }),
      ("banner", { blobs(in: $0?["banner"]) }),
    ],
  ]

  private static let post: [Column] = [
    text("text", at: "text"),
    ("langs", { words($0?.texts("langs")) }),
    text("reply_to", at: "reply", "parent", "uri"),
    text("reply_root", at: "reply", "root", "uri"),
    ("quote", { $0?.quotedURI ?? "" }),
    ("link", { $0?.shownMedia?["external"]?["uri"]?.string ?? "" }),
    (
      "alt_texts",
      { value in
        let media = value?.shownMedia
        let texts = (media?["images"]?.array ?? []).map { $0["alt"] } + [media?["alt"]]
        return texts.compactMap { $0?.string }.filter { !$0.isEmpty }.joined(separator: "\n")
      }
    ),
    ("media", { blobs(in: $0?.shownMedia) }),
    ("tags", { words($0?.texts("tags")) }),
    ("labels", { words($0?.labels) }),
  ]

  private static func words(_ texts: [String]?) -> String { (texts ?? []).joined(separator: " ") }

  /// The CIDs of the blobs that a value refers to in either form, with spaces between them.
  private static func blobs(in value: IPLDValue?) -> String {
    guard let value else { return "" }
    return value.descendants.compactMap(\.blobCID).map { "\($0)" }.joined(separator: " ")
  }
}
