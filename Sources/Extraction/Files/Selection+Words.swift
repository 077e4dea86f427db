internal import ATProtocol
internal import Archive
package import Files
internal import IPLD
package import Snapshots

/// The things of a snapshot that words mean.
extension Selection {
  /// How many things a message names.
  private static let maximumNamed = 5

  /// Returns what the words mean, in their order, that of one word in the order of paths; each once.
  ///
  /// The tree is walked only for patterns.
  ///
  /// - Parameters:
  ///   - words: the words.
  ///   - archived: the snapshot.
  ///   - takesBlobs: whether a word that means records means the blobs that they refer to as well.
  ///   - observer: receives how far the walk is.
  /// - Throws: ``BackupError/notFound(_:)`` for a word that means nothing there,
  ///   ``BackupError/notInRemains(_:_:)`` if that may be because of damage,
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
    var flaw: String?
    if !open.isEmpty {
      let blocks = SnapshotBlocks(archived, keepsRecords: takesBlobs, observer: observer)
      let contents = try blocks.contents { record, body in
        for index in open {
          switch selectors[index] {
          case .records(let pattern, _) where pattern.matches(record.key):
            found[index].append(.record(String(decoding: record.key, as: UTF8.self)))
            if takesBlobs { found[index] += Self.blobs(of: body) }
          case .cidPrefix(let prefix) where "\(record.cid)".hasPrefix(prefix):
            found[index].append(.cid(record.cid))
          default: continue
          }
        }
      }
      flaw = contents.flaw
      let blobs = try contents.blobs.entries.map(\.cid) + archived.extras()
      for index in open {
        guard case .cidPrefix(let prefix) = selectors[index] else { continue }
        found[index] += blobs.filter { "\($0)".hasPrefix(prefix) }.map { .cid($0) }
      }
    }
    for index in selectors.indices {
      guard !found[index].isEmpty else {
        throw flaw.map { BackupError.notInRemains(words[index], $0) }
          ?? BackupError.notFound(words[index])
      }
      if meansOne(selectors[index]) { try checkOne(found[index], words[index]) }
      if takesBlobs, case .records(let pattern, _) = selectors[index], let path = pattern.exactPath
      {
        found[index] += try Self.blobs(of: path, in: archived)
      }
    }
    var seen: Set<Item> = []
    return found.joined().filter { seen.insert($0).inserted }
  }

  /// The blobs of a record that is found through the tree.
  private static func blobs(of path: String, in archived: ArchivedSnapshot) throws -> [Item] {
    do {
      guard let record = try archived.record(path) else { return [] }
      let body = record.bytes.span
      return Self.blobs(of: body)
    } catch is ArchiveError {
      // Reading the record itself finds the same damage, and says it.
      return []
    }
  }

  private static func blobs(of record: Span<UInt8>) -> [Item] {
    var scanner = RecordScanner()
    var found: [Item] = []
    _ = scanner.scan(record) { found.append(.cid($0.cid)) }
    return found
  }

  private static func meansOne(_ selector: Selector) -> Bool {
    switch selector {
    case .cid, .cidPrefix: true
    case .records(let pattern, _): pattern.isKeyAlone
    }
  }

  /// Makes sure that a word means one thing: a block or blob, or a record, whatever blobs that has.
  private static func checkOne(_ items: [Item], _ word: String) throws {
    let hasRecords = items.contains { if case .record = $0 { true } else { false } }
    var names: [String] = []
    for item in items {
      let name: String
      switch item {
      case .cid(let cid):
        if hasRecords { continue }
        name = "\(cid)"
      case .record(let path): name = path
      }
      if !names.contains(name), names.count < maximumNamed { names.append(name) }
    }
    guard names.count == 1 else { throw BackupError.ambiguousSelector(word, names) }
  }
}
