internal import ATProtocol
internal import IPLD

/// Reads the parts of a tree on several cores.
///
/// The nodes at the top lead to subtrees that follow one another in the order of keys. Runs of
/// these are walked at the same time, and then the top once more, on which every subtree has to fit
/// as a node would (``TreeFold/pass(_:)``). A tree in which anything is wrong is not read this
/// way: what is said of it depends on where the walk was before.
struct TreeParts<Source: BlockSource> {
  /// What lies below the top: a subtree of a layer, or a record with a key, which has no layer.
  private typealias Item = (cid: CID, layer: Int?, key: [UInt8])

  /// A run of them, and what was found in it; one owner at a time.
  private final class Part: @unchecked Sendable {
    let items: ArraySlice<Item>
    var reader: TreeInspector<Source>
    /// What is at the edges of each subtree.
    var edges: [MSTSubtree] = []
    /// How many levels its deepest subtree has.
    var depth = 0
    /// Whether there is a flaw in it.
    var isFlawed = false

    init(_ items: ArraySlice<Item>, _ reader: TreeInspector<Source>) {
      (self.items, self.reader) = (items, reader)
    }
  }

  private let source: Source
  private let root: CID

  /// How many levels of nodes the top has; below five there are some hundred subtrees, of a tree
  /// with four links a node.
  private static var topDepth: Int { 5 }
  /// Fewer blocks are read before another thread has begun.
  private static var minimumBlockCount: Int { 8192 }
  /// A top that leads to more is not a tree of an account.
  private static var maximumItemCount: Int { 1 << 14 }
  /// How many parts there are for each core, so that the others do not wait for one that has more
  /// to do.
  private static var partsForCore: Int { 4 }
  /// How many there are at most: each keeps two bits for every place in the table.
  private static var maximumPartCount: Int { 16 }

  /// Reads the whole tree from its root.
  ///
  /// - Returns: what was found; nil if there may be something wrong with the tree, or it is too
  ///   small to be worth it.
  static func read(
    _ source: Source, root: CID, blockCount: Int, workers: Int
  ) -> (TreeInspector<Source>, MSTWalker)? {
    guard workers > 1, blockCount >= minimumBlockCount else { return nil }
    return Self(source: source, root: root).read(workers)
  }

  private var top: TreeFold<Source> {
    TreeFold(source, MSTWalker(root: root), depthLimit: Self.topDepth)
  }

  private func read(_ workers: Int) -> (TreeInspector<Source>, MSTWalker)? {
    guard let items = items() else { return nil }
    let partCount = min(items.count, workers * Self.partsForCore, Self.maximumPartCount)
    let parts = (0..<partCount).map { number in
      let bounds = items.count * number / partCount..<items.count * (number + 1) / partCount
      return Part(items[bounds], TreeInspector(source))
    }
    Parallel.perform(partCount, workers: workers) { walk(parts[$0]) }
    guard !parts.contains(where: \.isFlawed) else { return nil }
    return join(parts)
  }

  /// What the top leads to; nil if there is a flaw in it.
  private func items() -> [Item]? {
    var fold = top
    var items: [Item] = []
    while let step = fold.next() {
      switch step {
      case .subtree(let cid):
        guard let layer = fold.walker.requestedLayer else { return nil }
        items.append((cid, layer, []))
      case .record(let cid, _): items.append((cid, nil, fold.key))
      case .missingNode: return nil
      case .node: break
      }
      guard items.count <= Self.maximumItemCount else { return nil }
    }
    return items.isEmpty || !fold.isWhole ? nil : items
  }

  private func walk(_ part: Part) {
    for (cid, layer, key) in part.items {
      guard let layer else {
        part.reader.read(key, cid, source.number(of: cid))
        continue
      }
      var firstKey: [UInt8]?
      let walker = part.reader.read(MSTWalker(subtree: cid, layer: layer)) { record in
        if firstKey == nil { firstKey = record.key }
      }
      part.depth = max(part.depth, walker.depth)
      // Records that are scanned again and again are counted over all parts.
      guard let firstKey, walker.problemCount == 0, part.reader.inspection.missingNodes.isEmpty,
        part.reader.scannedLength <= source.byteCount
      else {
        part.isFlawed = true
        return
      }
      part.edges.append(MSTSubtree(layer: layer, firstKey: firstKey, lastKey: walker.key))
    }
  }

  /// Puts together what was found.
  ///
  /// - Returns: nil if the subtrees do not fit together, or records were scanned more often than
  ///   one reader would have.
  private func join(_ parts: [Part]) -> (TreeInspector<Source>, MSTWalker)? {
    var (reader, fold) = (TreeInspector(source), top)
    var edges = parts.lazy.flatMap(\.edges).makeIterator()
    while let step = fold.next() {
      guard case .subtree = step else { continue }
      guard let subtree = edges.next() else { return nil }
      fold.pass(subtree)
    }
    guard fold.isWhole else { return nil }
    var walker = fold.walker
    reader.nodes = fold.nodes
    for part in parts {
      reader.add(part.reader)
      if part.depth > 0 { walker.noteDepth(Self.topDepth + part.depth) }
    }
    return reader.scannedLength <= source.byteCount ? (reader, walker) : nil
  }
}
