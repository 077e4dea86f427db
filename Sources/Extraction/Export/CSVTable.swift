internal import ATProtocol
internal import Files
internal import IPLD

/// A record, as a row of a table is made of it.
struct TableRecord {
  /// Its at:// URI.
  let uri: String
  /// Its CID.
  let cid: CID
  /// When it was made, in RFC 3339; nothing if neither it nor its key says so.
  let created: String
  /// What it says; nil if it cannot be read.
  let value: IPLDValue?
  /// The same as JSON on one line.
  var json: String { value?.json() ?? "" }

  /// A record by its key and its block, which is empty if it is not in the archive.
  init(_ key: [UInt8], _ cid: CID, _ block: Span<UInt8>, of did: DID, _ times: RecordTimes) {
    // The row of a record that cannot be read has its name and CID, and nothing else.
    value = try? DAGCBORDecoder.decode(block)
    let createdAt = value?["createdAt"]?.string
    created = createdAt ?? times.time(of: key, createdAt: nil)?.text ?? ""
    uri = "at://\(did)/\(String(decoding: key, as: UTF8.self))"
    self.cid = cid
  }
}

/// The columns of a collection's table.
///
/// Every table begins with `uri`, `cid` and `created`. Collections of lexicons that are known have
/// columns for what people look for; every other has one, `json`.
struct CSVTable {
  private typealias Column = (name: String, content: @Sendable (TableRecord) -> String)

  /// Columns with the texts of fields.
  private static func texts(_ names: String...) -> [Column] { names.map { text($0, at: $0) } }

  /// A column with the text at the end of a path of fields.
  private static func text(_ name: String, at path: String...) -> Column {
    (name, { record in path.reduce(record.value) { $0?[$1] }?.string ?? "" })
  }

  private let columns: [Column]

  /// The table of a collection.
  init(of collection: String) {
    columns = Self.common + (Self.known[collection] ?? [Self.json])
  }

  /// The names of the columns.
  var header: [UInt8] { Self.row(columns.map(\.name)) }

  /// The row of a record.
  func row(of record: TableRecord) -> [UInt8] { Self.row(columns.map { $0.content(record) }) }

  /// A row: RFC 4180, ended by CR LF.
  ///
  /// A spreadsheet takes a cell that begins with one of `= + - @`, a tab or a CR for a formula;
  /// such a cell gets an apostrophe in front.
  static func row(_ cells: [String]) -> [UInt8] {
    let cells = cells.map { cell in
      let isFormula = cell.utf8.first.map(formulaSigns.contains) ?? false
      let text = (isFormula ? "'" : "") + cell
      guard text.utf8.contains(where: quotedSigns.contains) else { return Array(text.utf8) }
      let quote = UInt8(ascii: "\"")
      var quoted = [quote]
      for byte in text.utf8 {
        if byte == quote { quoted.append(quote) }
        quoted.append(byte)
      }
      return quoted + [quote]
    }
    return Array(cells.joined(separator: [UInt8(ascii: ",")])) + [0x0d, 0x0a]
  }

  private static let formulaSigns = Array("=+-@\t\r".utf8)
  private static let quotedSigns = Array(",\"\r\n".utf8)

  private static let common: [Column] = [
    ("uri", { $0.uri }), ("cid", { "\($0.cid)" }), ("created", { $0.created }),
  ]
  private static let json: Column = ("json", { $0.json })
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
      ("avatar", { blobs(in: $0.value?["avatar"]) }),
      ("banner", { blobs(in: $0.value?["banner"]) }),
    ],
  ]

  private static let post: [Column] = [
    text("text", at: "text"),
    ("langs", { words($0.value?.texts("langs")) }),
    text("reply_to", at: "reply", "parent", "uri"),
    text("reply_root", at: "reply", "root", "uri"),
    ("quote", { $0.value?.quotedURI ?? "" }),
    ("link", { $0.value?.shownMedia?["external"]?["uri"]?.string ?? "" }),
    (
      "alt_texts",
      { record in
        let media = record.value?.shownMedia
        let texts = (media?["images"]?.array ?? []).map { $0["alt"] } + [media?["alt"]]
        return texts.compactMap { $0?.string }.filter { !$0.isEmpty }.joined(separator: "\n")
      }
    ),
    ("media", { blobs(in: $0.value?.shownMedia) }),
    ("tags", { words($0.value?.texts("tags")) }),
    ("labels", { words($0.value?.labels) }),
  ]

  private static func words(_ texts: [String]?) -> String { (texts ?? []).joined(separator: " ") }

  /// The CIDs of the blobs that a value refers to in either form, with spaces between them.
  private static func blobs(in value: IPLDValue?) -> String {
    var found: [String] = []
    var open = [value].compactMap(\.self)
    while let next = open.popLast() {
      if next["$type"]?.string == "blob", let cid = next["ref"]?.link {
        found.append("\(cid)")
      } else if next.map?.entries.count == 2, let cid = next["cid"]?.string,
        next["mimeType"]?.string != nil
      {
        found.append(cid)
      } else {
        open += next.children.reversed()
      }
    }
    return found.joined(separator: " ")
  }
}
