package import IPLD

/// Pages of a ledger (FORMAT 6.2).
extension BlobLedger {
  /// How many entries a page holds: about 120 bytes each, so that pages stay far below 1 MiB.
  package static let entriesPerPage = 4096

  /// The longest page that is written, in bytes (FORMAT 6.2).
  private static let maximumPage = 1 << 20

  /// Pages that list missing blobs.
  package static func pages(missing: some RandomAccessCollection<Missing>) throws -> [Block] {
    var pages: [Block] = []
    try forEachPage(of: missing) { pages.append($0) }
    return pages
  }

  /// Pages that list missing blobs, one after the other: all of them may be a hundred megabytes.
  package static func forEachPage(
    of missing: some RandomAccessCollection<Missing>, _ body: (Block) throws -> Void
  ) throws {
    try forEachPage(missing, body) { entry in
      var entry = entry
      var fields = ManifestFields(writing: [:])
      try entry.fields(&fields)
      return .map(fields.map)
    }
  }

  /// Pages that list extras.
  package static func pages(extras: [CID]) throws -> [Block] {
    var pages: [Block] = []
    try forEachPage(extras, { pages.append($0) }) { .link($0) }
    return pages
  }

  private static func forEachPage<Items: RandomAccessCollection>(
    _ items: Items, _ body: (Block) throws -> Void, value: (Items.Element) throws -> IPLDValue
  ) throws {
    var rest = items[...]
    while !rest.isEmpty {
      var count = min(entriesPerPage, rest.count)
      var bytes = try DAGCBOREncoder.encode(.array(rest.prefix(count).map(value)))
      // Entries may hold long texts.
      while bytes.count > maximumPage, count > 1 {
        count /= 2
        bytes = try DAGCBOREncoder.encode(.array(rest.prefix(count).map(value)))
      }
      rest = rest.dropFirst(count)
      try body(Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes))
    }
  }

  /// Reads a page of missing blobs.
  package static func missing(onPage page: Block) throws(SnapshotError) -> [Missing] {
    try items(page) { item throws(SnapshotError) in
      guard let map = item.map, let cid = item["cid"]?.link else { return nil }
      var entry = Missing(cid: cid, reason: .notProvided, size: nil)
      var fields = ManifestFields(reading: map)
      try entry.fields(&fields)
      return entry
    }
  }

  /// Reads a page of extras.
  package static func extras(onPage page: Block) throws(SnapshotError) -> [CID] {
    try items(page) { $0.link }
  }

  private static func items<Item>(
    _ page: Block, _ parse: (IPLDValue) throws(SnapshotError) -> Item?
  ) throws(SnapshotError) -> [Item] {
    guard let items = (try? DAGCBORDecoder.decode(page.bytes.span))?.array else {
      throw .malformedPage(page.cid)
    }
    // One entry that cannot be read makes the page malformed.
    let parsed = items.compactMap { try? parse($0) }
    guard parsed.count == items.count else { throw .malformedPage(page.cid) }
    return parsed
  }
}

extension BlobLedger.Missing {
  /// The fields of an entry.
  fileprivate mutating func fields(_ fields: inout ManifestFields) throws(SnapshotError) {
    try fields.field("cid", &cid)
    try fields.field("reason", &reason)
    var declared = size.map(Int64.init)
    try fields.optional("size", &declared)
    size = declared.map(Int.init)
    try fields.optional("status", &status)
    try fields.optional("firstTried", &firstTried)
    try fields.optional("lastTried", &lastTried)
    try fields.field("referenced", &isReferenced, orElse: true)
    try fields.group(
      "accepted", &accepted, orElse: BlobLedger.Acceptance(date: "", reason: nil)
    ) { accepted, fields throws(SnapshotError) in
      try fields.field("date", &accepted.date)
      try fields.optional("reason", &accepted.reason)
    }
  }
}

/// What a record says of a blob's length, which may be any number: it is not a figure, and nothing
/// is added to it.
extension Int64: FieldValue {
  static func read(_ field: IPLDValue) -> Int64? { field.integer.map(Int64.init) }
  var field: IPLDValue { .integer(Int128(self)) }
}
