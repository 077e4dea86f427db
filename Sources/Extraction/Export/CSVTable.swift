internal import ATProtocol
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
  let json: String
}

/// The columns of a collection's table.
///
/// Every table begins with `uri`, `cid` and `created`. Collections of lexicons that are known have
/// columns for what people look for; every other has one, `json`.
struct CSVTable {
  private struct Column: Sendable {
    let name: String
    let content: @Sendable (TableRecord) -> String

    init(_ name: String, _ content: @escaping @Sendable (TableRecord) -> String) {
      (self.name, self.content) = (name, content)
    }

    /// A text at the end of a path of fields.
    init(_ name: String, at path: String...) {
      self.init(name) { record in
        path.reduce(record.value) { $0?[$1] }?.string ?? ""
      }
    }
  }

  private let columns: [Column]

  /// The table of a collection.
  init(of collection: String) {
    columns = Self.common + (Self.known[collection] ?? [Column("json", \.json)])
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
    var bytes: [UInt8] = []
    for (index, cell) in cells.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      let isFormula = cell.utf8.first.map { Array("=+-@\t\r".utf8).contains($0) } ?? false
      let text = Array(((isFormula ? "'" : "") + cell).utf8)
      guard text.contains(where: { Array(",\"\r\n".utf8).contains($0) }) else {
        bytes += text
        continue
      }
      bytes.append(UInt8(ascii: "\""))
      for byte in text {
        if byte == UInt8(ascii: "\"") { bytes.append(byte) }
        bytes.append(byte)
      }
      bytes.append(UInt8(ascii: "\""))
    }
    return bytes + [0x0d, 0x0a]
  }

  private static let common = [
    Column("uri", \.uri), Column("cid", { "\($0.cid)" }), Column("created", \.created),
  ]

  private static let subject = [
    Column("subject", at: "subject", "uri"), Column("subject_cid", at: "subject", "cid"),
  ]
  private static let account = [Column("subject", at: "subject")]

  private static let known: [String: [Column]] = [
    "app.bsky.feed.post": post,
    "app.bsky.feed.like": subject,
    "app.bsky.feed.repost": subject,
    "app.bsky.graph.follow": account,
    "app.bsky.graph.block": account,
    "app.bsky.graph.listitem": account + [Column("list", at: "list")],
    "app.bsky.graph.listblock": account,
    "app.bsky.graph.list": [
      Column("name", at: "name"), Column("purpose", at: "purpose"),
      Column("description", at: "description"),
    ],
    "app.bsky.graph.starterpack": [
      Column("name", at: "name"), Column("list", at: "list"),
      Column("description", at: "description"),
    ],
    "app.bsky.feed.generator": [
      Column("name", at: "displayName"), Column("service", at: "did"),
      Column("description", at: "description"),
    ],
    "app.bsky.actor.profile": [
      Column("name", at: "displayName"), Column("description", at: "description"),
      Column("avatar") { blobs(in: $0.value?["avatar"]) },
      Column("banner") { blobs(in: $0.value?["banner"]) },
    ],
  ]

  private static let post = [
    Column("text", at: "text"),
    Column("langs") { list($0.value?["langs"]) },
    Column("reply_to", at: "reply", "parent", "uri"),
    Column("reply_root", at: "reply", "root", "uri"),
    Column("quote") { record in
      let embedded = record.value?["embed"]?["record"]
      return (embedded?["record"] ?? embedded)?["uri"]?.string ?? ""
    },
    Column("link") { media(of: $0)?["external"]?["uri"]?.string ?? "" },
    Column("alt_texts") { record in
      let images = media(of: record)?["images"]?.array ?? []
      let texts = images.map { $0["alt"] } + [media(of: record)?["alt"]]
      return texts.compactMap { $0?.string }.filter { !$0.isEmpty }.joined(separator: "\n")
    },
    Column("media") { blobs(in: media(of: $0)) },
    Column("tags") { list($0.value?["tags"]) },
    Column("labels") { record in
      let values = record.value?["labels"]?["values"]?.array ?? []
      return values.compactMap { $0["val"]?.string }.joined(separator: " ")
    },
  ]

  /// What a post shows beside a quote.
  private static func media(of record: TableRecord) -> IPLDValue? {
    let embed = record.value?["embed"]
    return embed?["media"] ?? embed
  }

  private static func list(_ value: IPLDValue?) -> String {
    (value?.array ?? []).compactMap(\.string).joined(separator: " ")
  }

  /// The CIDs of the blobs that a value refers to in either form, with spaces between them.
  private static func blobs(in value: IPLDValue?) -> String {
    var found: [String] = []
    var open = [value].compactMap(\.self)
    while let next = open.popLast() {
      if next["$type"]?.string == "blob", let cid = next["ref"]?.link {
        found.append("\(cid)")
      } else if let map = next.map {
        if map.entries.count == 2, let cid = next["cid"]?.string, next["mimeType"]?.string != nil {
          found.append(cid)
        } else {
          open += map.entries.map(\.value).reversed()
        }
      } else if let items = next.array {
        open += items.reversed()
      }
    }
    return found.joined(separator: " ")
  }
}
