internal import IPLD

/// Reads the parts of a tree on several cores.
///
/// The nodes at the top lead to subtrees that follow one another in the order of keys. Runs of
/// these are walked at the same time, and then the top once more, on which every subtree has to fit
/// as a node would (``MSTWalker/pass(_:)``). A tree in which anything is wrong is not read this
/// way: what is said of it depends on where the walk was before.
struct TreeParts {
  /// What lies below the top, in the order of keys.
  private enum Item {
    case subtree(CID, layer: Int)
    case record(key: [UInt8], CID)
  }

  /// A run of them, and what was found in it; one owner at a time.
  private final class Part: @unchecked Sendable {
    let items: ArraySlice<Item>
    var reader: TreeReader
    /// What is at the edges of each subtree.
    var edges: [MSTSubtree] = []
    /// How many levels its deepest subtree has.
    var depth = 0
    /// Whether there is a flaw in it.
    var isFlawed = false

    init(_ items: ArraySlice<Item>, _ reader: TreeReader) {
      (self.items, self.reader) = (items, reader)
    }
  }

  /// How many levels of nodes the top has; below five there are some hundred subtrees, of a tree
  /// with four links a node.
  private static let topDepth = 5
  /// Fewer blocks are read before another thread has begun.
  private static let minimumBlockCount = 8192
  /// A top that leads to more is no tree of an account.
  private static let maximumItemCount = 1 << 14
  /// How many parts there are for each core, lest one that has more to do than the others is waited
  /// for.
  private static let partsForCore = 4
  /// How many there are at most: each keeps two bits for every place in the table.
  private static let maximumPartCount = 16

  /// Reads the whole tree from its root.
  ///
  /// - Returns: what was found; nil if there may be something wrong with the tree, or it is too
  ///   small to be worth it.
  static func read(
    root: CID, _ blocks: BlockTable, _ bytes: Span<UInt8>, workers: Int
  ) -> (TreeReader, MSTWalker)? {
    guard workers > 1, blocks.count >= minimumBlockCount,
      let items = items(root, TreeReader(blocks), bytes)
    else { return nil }
    let partCount = min(items.count, workers * partsForCore, maximumPartCount)
    let parts = (0..<partCount).map { number in
      let bounds = items.count * number / partCount..<items.count * (number + 1) / partCount
      return Part(items[bounds], TreeReader(blocks))
    }
    Parallel.perform(partCount, workers: workers) { walk(parts[$0], blocks, bytes) }
    guard !parts.contains(where: \.isFlawed) else { return nil }
    return join(parts, root, TreeReader(blocks), bytes)
  }

  /// What the top leads to; nil if there is a flaw in it.
  private static func items(_ root: CID, _ reader: TreeReader, _ bytes: Span<UInt8>) -> [Item]? {
    var (reader, walker) = (reader, MSTWalker(root: root))
    var items: [Item] = []
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        if walker.height < topDepth {
          reader.enter(cid, &walker, bytes)
        } else {
          guard let layer = walker.requestedLayer else { return nil }
          items.append(.subtree(cid, layer: layer))
          walker.skip()
        }
      case .record(let cid): items.append(.record(key: walker.key, cid))
      }
      guard items.count <= maximumItemCount, reader.inspection.missingNodes.isEmpty else {
        return nil
      }
    }
    return items.isEmpty || walker.problemCount > 0 ? nil : items
  }

  private static func walk(_ part: Part, _ blocks: BlockTable, _ bytes: Span<UInt8>) {
    for item in part.items {
      switch item {
      case .record(let key, let cid):
        part.reader.read(key, cid, blocks.place(of: cid, in: bytes), bytes)
      case .subtree(let cid, let layer):
        var walker = MSTWalker(subtree: cid, layer: layer)
        var firstKey: [UInt8]?
        part.reader.read(&walker, bytes) { record in
          if firstKey == nil { firstKey = record.key }
        }
        part.depth = max(part.depth, walker.depth)
        // Records that are scanned again and again are counted over all parts.
        guard let firstKey, walker.problemCount == 0, part.reader.inspection.missingNodes.isEmpty,
          part.reader.scannedLength <= bytes.count
        else {
          part.isFlawed = true
          return
        }
        part.edges.append(MSTSubtree(layer: layer, firstKey: firstKey, lastKey: walker.key))
      }
    }
  }

  /// Puts together what was found.
  ///
  /// - Returns: nil if the subtrees do not fit together, or records were scanned more often than
  ///   one reader would have.
  private static func join(
    _ parts: [Part], _ root: CID, _ top: TreeReader, _ bytes: Span<UInt8>
  ) -> (TreeReader, MSTWalker)? {
    var (reader, walker) = (top, MSTWalker(root: root))
    var edges = parts.lazy.flatMap(\.edges).makeIterator()
    while let step = walker.next() {
      guard case .node(let cid) = step else { continue }
      if walker.height < topDepth {
        reader.enter(cid, &walker, bytes)
      } else {
        guard let subtree = edges.next() else { return nil }
        walker.pass(subtree)
      }
    }
    guard walker.problemCount == 0 else { return nil }
    for part in parts {
      reader.add(part.reader)
      if part.depth > 0 { walker.noteDepth(topDepth + part.depth) }
    }
    return reader.scannedLength <= bytes.count ? (reader, walker) : nil
  }
}
