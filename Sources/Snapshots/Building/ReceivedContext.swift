package import ATProtocol
internal import Archive
internal import Files
package import IPLD
package import SystemPackage

/// What app views have shown, on its way into the archive.
///
/// It waits in a file without a name, so that nothing is in the archive before all has arrived, and
/// memory holds one page and the subjects.
package struct ReceivedContext: Sendable {
  /// What is known of a subject.
  package struct Known: Sendable {
    /// The page of the archive that has it; nil for one that has just come.
    fileprivate var page: Int?
    /// When the app view was last asked.
    package let askedAt: String
    /// Whether it showed nothing.
    package let isAbsent: Bool
    /// Whether it is a post without a proof, and when the last request for one failed.
    package let lacksProof: Bool
    package let unprovenAt: String?
    /// Whether pictures of it are missing.
    package let owesPictures: Bool
    /// Whether it was received this time.
    package var isNew: Bool { page == nil }

    fileprivate init(_ item: ContextItem, page: Int?) {
      self.page = page
      (askedAt, isAbsent, owesPictures) = (item.askedAt, item.isAbsent, !item.owed.isEmpty)
      var post: ContextItem.Post?
      if case .post(let shown) = item.content { post = shown }
      lacksProof = post.map { $0.proof == nil } ?? false
      unprovenAt = post?.unprovenAt
    }
  }

  private let archived: ArchivedSnapshot?
  private let earlier: Context
  private let file: TemporaryFile
  private var known: [String: Known] = [:]
  /// How many items of each earlier page still count.
  private var liveCounts: [Int]
  /// The pages that have been written to the file.
  private var pages: [Context.Page] = []
  private var pending: [ContextItem] = []
  private var pendingBytes = 0
  /// How many bytes of pages are in the file.
  private var pageBytes: UInt64 = 0
  private var pieces: Set<CID> = []
  /// How many bytes of pieces the context has.
  package private(set) var pieceBytes: UInt64
  /// How many subjects are left out because there are more than the limit.
  package var leftOutCount = 0
  /// The earlier pages that were read last, by their numbers.
  private var cache: [Int: [String: ContextItem]] = [:]
  /// How many pages are kept in memory.
  private static let maximumCached = 16
  /// The list, once ``finish()`` has made it.
  private(set) var list: Context?

  /// What the archive has.
  ///
  /// - Parameters:
  ///   - did: the account.
  ///   - folder: where the temporary file lies.
  ///   - archived: the snapshot before; a damaged context of it counts as none.
  /// - Throws: ``BackupError`` if there is no room for a temporary file; `ArchiveError` if the
  ///   archive cannot be read.
  package init(of did: DID, in folder: FilePath, after archived: ArchivedSnapshot?) throws {
    file = try TemporaryFile(in: folder)
    let found = try archived?.readable { archived in
      try archived.context().map { context in
        (
          context,
          try context.pages.indices.map { index in
            try archived.contextItems(context.pages[index]).map {
              ($0.subject.text, Known($0, page: index))
            }
          }
        )
      }
    }
    earlier = found?.0 ?? Context(of: did)
    self.archived = found == nil ? nil : archived
    liveCounts = earlier.pages.map { _ in 0 }
    pieceBytes = earlier.pieceBytes
    for (index, page) in (found?.1 ?? []).enumerated().reversed() {
      for (subject, item) in page where known[subject] == nil {
        known[subject] = item
        liveCounts[index] += 1
      }
    }
  }

  /// How many subjects are known.
  package var count: Int { known.count }

  /// How many bytes the context has, thumbnails and what has arrived of pages.
  package var byteCount: UInt64 { pieceBytes + pageBytes + UInt64(pendingBytes) }

  /// What is known of a subject; nil if nothing is.
  package subscript(subject: ContextItem.Subject) -> Known? { known[subject.text] }

  /// The item that the archive has of a subject; nil if it has none.
  ///
  /// - Throws: as ``ArchivedSnapshot/contextItems(_:)`` does.
  package mutating func item(_ subject: ContextItem.Subject) throws -> ContextItem? {
    guard let page = known[subject.text]?.page, let archived else { return nil }
    if cache[page] == nil {
      if cache.count >= Self.maximumCached { cache = [:] }
      cache[page] = Dictionary(
        try archived.contextItems(earlier.pages[page]).map { ($0.subject.text, $0) },
        uniquingKeysWith: { $1 })
    }
    return cache[page]?[subject.text]
  }

  /// Whether there is something that the archive does not have.
  package var isNews: Bool { list.map { $0 != earlier } ?? false }

  /// Keeps a thumbnail or a proof; returns the piece that has it.
  ///
  /// - Throws: ``BackupError`` if there is no room.
  package mutating func keep(piece bytes: [UInt8]) throws -> CID {
    let block = try Context.piece(bytes)
    if pieces.insert(block.cid).inserted {
      try file.append(block)
      pieceBytes += UInt64(bytes.count)
    }
    return block.cid
  }

  /// Takes an item, in the place of what was known of its subject.
  ///
  /// An item that shows nothing never replaces one that shows something: what its author has
  /// deleted since stays as it was seen.
  ///
  /// - Throws: ``BackupError`` if there is no room; what reading the archive throws.
  package mutating func take(_ item: ContextItem) throws {
    var item = item
    if item.isAbsent, let old = known[item.subject.text], !old.isAbsent {
      guard var kept = try self.item(item.subject) else { return }
      kept.askedAt = item.askedAt
      item = kept
    }
    let length = try DAGCBOREncoder.encode(.map(item.map)).count
    guard length <= Context.maximumItem else {
      guard known[item.subject.text]?.isAbsent ?? true else { return }
      return try take(
        ContextItem(item.subject, .absent(.tooLarge), from: item.seenFrom, at: item.seenAt))
    }
    forget(item.subject)
    known[item.subject.text] = Known(item, page: nil)
    try append(item, length: length)
  }

  private mutating func forget(_ subject: ContextItem.Subject) {
    if let page = known[subject.text]?.page { liveCounts[page] -= 1 }
  }

  private mutating func append(_ item: ContextItem, length: Int) throws {
    if pendingBytes + length > Context.usualPage { try writePage() }
    pending.append(item)
    pendingBytes += length
  }

  private mutating func writePage() throws {
    guard !pending.isEmpty else { return }
    // If two items are about one subject, the later one counts; the order is always the same.
    var last: [String: ContextItem] = [:]
    for item in pending { last[item.subject.text] = item }
    let items = last.values.sorted { $0.subject.text < $1.subject.text }
    let block = try Context.page(items)
    try file.append(block)
    pages.append(Context.Page(block.cid, itemCount: items.count))
    pageBytes += UInt64(block.bytes.count)
    (pending, pendingBytes) = ([], 0)
  }

  /// Makes the list: earlier pages stay as they are, except for those of which less than half
  /// counts still, and small ones at the end, which are written again with what is new.
  ///
  /// - Throws: ``BackupError`` if there is no room; what reading the archive throws.
  package mutating func finish() throws {
    var list = Context(of: earlier.did)
    (list.leftOutCount, list.pieceBytes) = (leftOutCount, pieceBytes)
    var newCount = pending.count + pages.reduce(0) { $0 + $1.itemCount }
    guard newCount > 0 else {
      list = earlier
      list.leftOutCount = leftOutCount
      return self.list = list
    }
    var kept: [Context.Page] = []
    var isTail = true
    for index in earlier.pages.indices.reversed() {
      let page = earlier.pages[index]
      isTail = isTail && page.itemCount <= 2 * newCount && liveCounts[index] < Self.smallPage
      if !isTail, 2 * liveCounts[index] >= page.itemCount {
        kept.append(page)
        continue
      }
      for item in try archived?.contextItems(page) ?? []
      where known[item.subject.text]?.page == index {
        try append(item, length: try DAGCBOREncoder.encode(.map(item.map)).count)
        newCount += 1
      }
    }
    try writePage()
    // A page of the same content is one block.
    let old = Set(kept.map(\.cid))
    list.pages = kept.reversed() + pages.filter { !old.contains($0.cid) }
    self.list = list
  }

  /// Up to how many items a page is small.
  private static let smallPage = 200

  /// Appends the blocks that the context needs, and its list.
  ///
  /// - Throws: what the writer throws.
  func append(to writer: inout ArchiveWriter) throws {
    guard let list else { return }
    let needed = Set(list.pages.map(\.cid)).union(pieces)
    try file.forEachBlock { cid, body in
      if needed.contains(cid) { try writer.append(cid, body) }
    }
    let block = try list.block()
    try writer.append(block.cid, block.bytes.span)
  }
}
