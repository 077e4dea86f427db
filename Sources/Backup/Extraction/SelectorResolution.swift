internal import ATProtocol
internal import Archive
internal import IPLD

/// The things of a snapshot that words mean.
package struct SelectorResolution {
  /// The things, in the order of the words, and those of one word in the order of their paths.
  package private(set) var items: [Selection.Item] = []

  /// How many things a message names.
  private static let maximumNamed = 5

  /// Finds what the words mean.
  ///
  /// The tree is walked only for patterns.
  ///
  /// - Throws: ``BackupError/notFound(_:)`` for a word that means nothing there, ``BackupError/notInRemains(_:_:)``
  ///   if that may be because of damage, ``BackupError/ambiguousSelector(_:_:)`` for one that is to mean one
  ///   thing and fits several; what `SnapshotBlocks.contents` throws.
  package init(
    _ words: [String], in archived: ArchivedSnapshot,
    observer: @escaping Progress.Observer = { _ in }
  ) throws {
    let selectors = try words.map { try Selector($0) }
    var found: [[Selection.Item]] = selectors.map { selector in
      switch selector {
      case .cid(let cid): [.cid(cid)]
      case .records(let pattern, _): pattern.exactPath.map { [.record($0)] } ?? []
      case .cidPrefix: []
      }
    }
    let open = selectors.indices.filter { found[$0].isEmpty }
    var flaw: String?
    if !open.isEmpty {
      let contents = try SnapshotBlocks(archived, observer: observer).contents { record, _ in
        for index in open {
          switch selectors[index] {
          case .records(let pattern, _) where pattern.matches(record.key):
            found[index].append(.record(String(decoding: record.key, as: UTF8.self)))
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
      if Self.meansOne(selectors[index]) { found[index] = try Self.one(found[index], words[index]) }
      items += found[index]
    }
  }

  private static func meansOne(_ selector: Selector) -> Bool {
    switch selector {
    case .cid, .cidPrefix: true
    case .records(let pattern, _): pattern.isKeyAlone
    }
  }

  private static func one(_ items: [Selection.Item], _ word: String) throws -> [Selection.Item] {
    var names: [String] = []
    for item in items {
      let name =
        switch item {
        case .cid(let cid): "\(cid)"
        case .record(let path): path
        }
      if !names.contains(name), names.count < maximumNamed { names.append(name) }
    }
    guard names.count == 1 else { throw BackupError.ambiguousSelector(word, names) }
    return [items[0]]
  }
}
