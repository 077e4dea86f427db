package import ATProtocol
internal import Archive
package import IPLD

/// What app views have shown of the people and posts that an account's records point to
/// (FORMAT 6.7).
///
/// ```
/// manifest ─ context ─► list             {"carpackContext": {"pages": [ … ]}, "did": …}
///                        └ pages ─► page    {"carpackContext": [ item, … ]}
///                                    └ thumbnails, proofs ─► piece   {"carpackContext": bytes}
/// ```
/// 1. If several pages have a subject, the item on the last page counts, so that an earlier page is
///    never written again for a new item.
/// 2. List, pages and pieces are DAG-CBOR maps of this one shape, and never a record, a tree node
///    or a blob.
package struct Context: Equatable, Sendable {
  /// The account whose records point there.
  package let did: DID
  /// The pages, the oldest first.
  package var pages: [Page] = []
  /// How many bytes its thumbnails and proofs have.
  package var pieceBytes: UInt64 = 0
  /// How many subjects were left out because there are more than the limit.
  package var leftOutCount = 0

  /// A page, and how many items are on it.
  package struct Page: Equatable, Sendable {
    package let cid: CID
    package let itemCount: Int
    package init(_ cid: CID, itemCount: Int) { (self.cid, self.itemCount) = (cid, itemCount) }
  }

  /// No context yet.
  package init(of did: DID) { self.did = did }

  /// How many items its pages have, those included that later ones replace.
  package var itemCount: Int { pages.reduce(0) { $0 + $1.itemCount } }

  /// The most items that the pages of a list may have together: a reader keeps the subject of each.
  package static let maximumItems = 1 << 20
  /// The most bytes of a piece's content.
  package static let maximumPiece = 1 << 20
  /// How many bytes a writer puts on a page before it begins another.
  package static let usualPage = 256 << 10
  /// The most bytes of an item: with one more, no page gets longer than 1 MiB.
  package static let maximumItem = 512 << 10
}

// MARK: As blocks

extension Context {
  /// The field that every block of a context has.
  private static let name = "carpackContext"
  /// The most bytes of a page.
  private static let maximumPage = 1 << 20

  /// The block of the list.
  package func block() throws -> Block {
    var map: IPLDMap = [
      "pages": .array(
        pages.map {
          .map(["page": .link($0.cid), "items": .integer(Int128($0.itemCount))])
        }),
      "pieceBytes": .integer(Int128(pieceBytes)),
    ]
    if leftOutCount > 0 { map["leftOut"] = .integer(Int128(leftOutCount)) }
    return try Self.block(.map(["did": .string(did.text), Self.name: .map(map)]))
  }

  /// The block of a page.
  package static func page(_ items: [ContextItem]) throws -> Block {
    try block(.map([name: .array(items.map { .map($0.map) })]))
  }

  /// The block of a piece.
  package static func piece(_ bytes: [UInt8]) throws -> Block {
    try block(.map([name: .bytes(bytes)]))
  }

  private static func block(_ value: IPLDValue) throws -> Block {
    let bytes = try DAGCBOREncoder.encode(value)
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }

  private static func content(of block: Block) throws(SnapshotError) -> (IPLDValue, IPLDValue) {
    let value: IPLDValue
    do throws(DAGCBORError) { value = try DAGCBORDecoder.decode(block.bytes.span) } catch {
      throw .notDAGCBOR(error)
    }
    guard let content = value[name] else { throw .malformedPage(block.cid) }
    return (value, content)
  }

  /// Reads a list from its block.
  ///
  /// - Throws: ``SnapshotError`` for another block, or one with more items than
  ///   ``maximumItems``.
  init(_ block: Block) throws(SnapshotError) {
    let (value, content) = try Self.content(of: block)
    guard let did = value["did"].flatMap(DID.read), let items = content["pages"]?.array,
      let pieceBytes = content["pieceBytes"].flatMap(UInt64.read)
    else { throw .malformedPage(block.cid) }
    self.did = did
    self.pieceBytes = pieceBytes
    if let field = content["leftOut"] {
      guard let count = Int.read(field) else { throw .malformedPage(block.cid) }
      leftOutCount = count
    }
    var total = 0
    for item in items {
      guard let page = item["page"]?.link, let count = item["items"].flatMap(Int.read),
        count <= Self.maximumItems - total
      else { throw .malformedPage(block.cid) }
      total += count
      pages.append(Page(page, itemCount: count))
    }
    guard Set(pages.map(\.cid)).count == pages.count else { throw .malformedPage(block.cid) }
  }

  /// The items on a page.
  ///
  /// - Throws: ``SnapshotError`` for another block than the page that a list names.
  package static func items(on block: Block, _ page: Page) throws(SnapshotError) -> [ContextItem] {
    guard block.bytes.count <= maximumPage else { throw .malformedPage(block.cid) }
    let (_, content) = try content(of: block)
    guard let values = content.array, values.count == page.itemCount else {
      throw .malformedPage(block.cid)
    }
    let items = values.compactMap { ContextItem($0) }
    guard items.count == values.count else { throw .malformedPage(block.cid) }
    return items
  }

  /// The content of a piece.
  ///
  /// - Throws: ``SnapshotError`` for another block.
  static func piece(_ block: Block) throws(SnapshotError) -> [UInt8] {
    let (_, content) = try content(of: block)
    guard let bytes = content.bytes, bytes.count <= maximumPiece else {
      throw .malformedPage(block.cid)
    }
    return bytes
  }
}

// MARK: In an archive

extension ArchivedSnapshot {
  /// What app views have shown of others; nil if none was queried, or it was forgotten.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if its list is damaged.
  package func context() throws -> Context? {
    guard let link = snapshot.context else { return nil }
    let context = try Context(try block(link))
    guard context.did == snapshot.did else { throw SnapshotError.malformedPage(link) }
    return context
  }

  /// The items on a page.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if it is damaged.
  package func contextItems(_ page: Context.Page) throws -> [ContextItem] {
    try Context.items(on: block(page.cid), page)
  }

  /// Visits the item that counts of each subject, page by page, the newest page first.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` for a page that is damaged; what `visit` throws.
  package func forEachContextItem(_ visit: (ContextItem) throws -> Void) throws {
    guard let context = try context() else { return }
    var seen: Set<String> = []
    for page in context.pages.reversed() {
      for item in try contextItems(page) where seen.insert(item.subject.text).inserted {
        try visit(item)
      }
    }
  }

  /// The bytes of a thumbnail or a proof.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` if it is damaged.
  package func contextPiece(_ cid: CID) throws -> [UInt8] { try Context.piece(try block(cid)) }

  /// The blocks below the list: pages and pieces.
  ///
  /// - Throws: ``SnapshotError``; `ArchiveError` for a page that is damaged.
  package func contextBlocks() throws -> [CID] {
    guard let context = try context() else { return [] }
    return try context.pages.flatMap { page in
      [page.cid] + (try contextItems(page).flatMap(\.pieces))
    }
  }
}
