internal import ATProtocol
internal import Archive
package import Files
package import IPLD
package import Snapshots

/// What to extract from an archive, or show of it.
package struct Selection: Sendable {
  /// The CAR.
  package var car = false
  /// Every record, as JSON.
  package var records = false
  /// Every blob, extras included.
  package var blobs = false
  /// What is known about the snapshot and the account.
  package var metadata = false
  /// Private data; never a part of everything.
  package var privateData = false
  /// What app views have shown of others; never a part of everything.
  package var context = false
  /// Single things.
  package var items: [Item] = []

  /// One thing, named.
  package enum Item: Hashable, Sendable {
    /// A block or blob.
    case cid(CID)
    /// A record, by its key in the tree, `collection/rkey`.
    case record(String)
  }

  /// Whether everything is selected, with or without ``privateData`` and ``context``.
  package var isAll: Bool { car && records && blobs && metadata }

  /// Everything but ``privateData`` and ``context``.
  package static let all = Selection(car: true, records: true, blobs: true, metadata: true)

  /// Whole kinds of things; nothing, unless it is said.
  package init(
    car: Bool = false, records: Bool = false, blobs: Bool = false, metadata: Bool = false,
    privateData: Bool = false, context: Bool = false
  ) {
    (self.car, self.records, self.blobs, self.metadata) = (car, records, blobs, metadata)
    (self.privateData, self.context) = (privateData, context)
  }
}

/// How things are extracted.
package struct ExtractionOptions: Sendable {
  /// Whether blobs are named after the day, the key and the words of the record that refers to
  /// them; otherwise after their CIDs.
  package var isReadable = false
  /// Whether files get the times of the records.
  package var setsTimes = true
  /// Whether files are removed that carpack wrote there and that the snapshot no longer has.
  package var isDeleting = false

  /// As by default.
  package init() {}

  /// Which systems have to accept the names.
  var target: FileNaming.Target { isReadable ? .any : .unix }
}

/// The things of a snapshot that words mean.
extension Selection {
  /// How many things a message names.
  private static let maximumNamed = 5

  /// Returns what the words mean, in their order, that of one word in the order of paths; each
  /// once.
  ///
  /// The tree is walked only for patterns.
  ///
  /// - Parameters:
  ///   - words: the words.
  ///   - archived: the snapshot.
  ///   - takesBlobs: whether a word that means records means the blobs that they refer to as well.
  ///   - observer: receives how far the walk is.
  /// - Throws: ``BackupError/notFound(_:)`` for a word that means nothing there,
  ///   ``BackupError/notInRemains(_:_:)`` if that may be because of damage, or
  ///   ``BackupError/notInPart(_:missingNodes:)`` because the snapshot is not whole,
  ///   ``BackupError/ambiguousSelector(_:_:)`` for one that is to mean one thing and fits several;
  ///   what `SnapshotBlocks.contents` throws.
  package static func items(
    _ words: [String], in archived: ArchivedSnapshot, takesBlobs: Bool = false,
    observer: @escaping Progress.Observer = { _ in }
  ) throws -> [Item] {
    let selectors = try words.map { try Selector($0) }
    var found: [[Item]] = selectors.map { selector in
      switch selector {
      case .cid(let cid): [.cid(cid)]
      case .records(let pattern, _): pattern.exactPath.map { [.record($0)] } ?? []
      case .cidPrefix: []
      }
    }
    let open = selectors.indices.filter { found[$0].isEmpty }
    var searched: LaidOutRepository?
    if !open.isEmpty {
      let blocks = SnapshotBlocks(archived, keepsRecords: takesBlobs, observer: observer)
      let contents = try blocks.contents { record, body in
        for index in open where selectors[index].matches(record.key, record.cid) {
          if case .cidPrefix = selectors[index] {
            found[index].append(.cid(record.cid))
          } else {
            found[index].append(.record(String(decoding: record.key, as: UTF8.self)))
            if takesBlobs { found[index] += Self.blobs(of: body) }
          }
        }
      }
      searched = contents
      let blobs = try contents.blobs.entries.map(\.cid) + archived.extras()
      for index in open {
        found[index] += blobs.filter { selectors[index].matches(nil, $0) }.map { .cid($0) }
      }
    }
    for (index, selector) in selectors.enumerated() {
      guard !found[index].isEmpty else {
        throw searched?.absence(of: words[index]) ?? BackupError.notFound(words[index])
      }
      guard case .records(let pattern, _) = selector else {
        try checkOne(found[index], words[index])
        continue
      }
      if pattern.isKeyAlone {
        found[index] = withoutGates(found[index])
        try checkOne(found[index], words[index])
      }
      if takesBlobs, let path = pattern.exactPath {
        found[index] += try Self.blobs(of: path, in: archived)
      }
    }
    var seen: Set<Item> = []
    return found.joined().filter { seen.insert($0).inserted }
  }

  /// Chooses what words mean instead of all records and blobs: records and the blobs that they
  /// refer to, or of these two the kind that is selected; no items if records refer to no blob.
  ///
  /// - Throws: as ``items(_:in:takesBlobs:observer:)`` does.
  package mutating func choose(
    _ words: [String], in archived: ArchivedSnapshot, observer: @escaping Progress.Observer
  ) throws {
    items = try Self.items(words, in: archived, takesBlobs: !records, observer: observer)
    guard blobs != records else { return }
    items.removeAll { if case .record = $0 { blobs } else { false } }
    (records, blobs) = (false, false)
  }

  /// Chooses what passes a filter instead of all records and blobs: both, or the kind that is
  /// selected.
  ///
  /// - Throws: as ``ItemFilter/items(of:records:blobs:observer:)`` does.
  package mutating func choose(
    _ filter: ItemFilter, in archived: ArchivedSnapshot, observer: @escaping Progress.Observer
  ) throws {
    let takesBoth = records == blobs
    items = try filter.items(
      of: archived, records: records || takesBoth, blobs: blobs || takesBoth, observer: observer)
    (records, blobs) = (false, false)
  }

  /// The blobs of a record that is found through the tree.
  private static func blobs(of path: String, in archived: ArchivedSnapshot) throws -> [Item] {
    do {
      guard let cid = try archived.recordCID(path) else { return [] }
      return try SnapshotBlocks(archived).withBody(of: cid) { Self.blobs(of: $0) } ?? []
    } catch let error where error.isLoss {
      // Reading the record itself finds the same problem, and reports it.
      return []
    }
  }

  private static func blobs(of record: Span<UInt8>) -> [Item] {
    var scanner = RecordScanner()
    var found: [Item] = []
    _ = scanner.scan(record) { found.append(.cid($0.cid)) }
    return found
  }

  /// The records with one key without those that have it from a post among them, which is what is
  /// meant: who may answer it, and who may quote it.
  private static func withoutGates(_ items: [Item]) -> [Item] {
    func isIn(_ collection: String) -> (Item) -> Bool {
      { if case .record(let path) = $0 { path.hasPrefix(collection + "/") } else { false } }
    }
    guard items.contains(where: isIn("app.bsky.feed.post")) else { return items }
    return items.filter {
      !isIn("app.bsky.feed.threadgate")($0) && !isIn("app.bsky.feed.postgate")($0)
    }
  }

  /// Makes sure that a word means one thing: a block or blob, or a record, whatever blobs it has.
  static func checkOne(_ items: [Item], _ word: String) throws {
    var (paths, cids): ([String], [String]) = ([], [])
    var seen: Set<Item> = []
    for item in items where seen.insert(item).inserted {
      switch item {
      case .record(let path): paths.append(path)
      case .cid(let cid): cids.append("\(cid)")
      }
    }
    let names = paths.isEmpty ? cids : paths
    guard names.count != 1 else { return }
    throw BackupError.ambiguousSelector(word, Array(names.prefix(maximumNamed)))
  }
}
