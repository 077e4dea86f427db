internal import ATProtocol
internal import IPLD

/// Walks the trees of many snapshots, and what they share only once.
///
/// Whether a subtree keeps the rules follows from its own nodes, so one that was walked without
/// finding anything is passed over wherever it comes again. What it consists of is kept, as
/// numbers, and gone through each time: a snapshot has its own CAR, in which every block of the
/// subtree has to be, and its own blobs, which are counted once each.
///
/// Invariants:
/// 1. A node is known only if everything below it was there, and nothing was wrong with it.
/// 2. In ``links`` a known node has, from where ``starts`` says, how many links it has, its layer,
///    and the links in the order of its keys.
struct SharedTrees {
  /// What a walk came to.
  struct Tree {
    /// The commit; nil if there is none to walk from.
    var commit: Commit?
    /// Why there is no commit.
    var commitError: RepositoryError?
    /// What is wrong with the tree, the first of it.
    var problems: [MSTProblem] = []
    /// How many tree nodes were reached.
    var nodeCount = 0
    /// How many records the tree names.
    var recordCount = 0
    /// The first of the records whose blocks are not there.
    var missingRecords: [String] = []
    /// How many records have no block.
    var missingRecordCount = 0
    /// The nodes that are not there, each once.
    var missingNodes: [CID] = []
    /// The blobs that records refer to, in the order of the tree, each once; and the record that comes first.
    var blobs: [(blob: Int, record: Int)] = []

    /// How many records cannot be read.
    var unreadable = UnreadableRecords()

    /// Whether every node and record is there.
    var isComplete: Bool { commit != nil && missingNodes.isEmpty && missingRecordCount == 0 }
  }

  /// A blob, and what the first record that was read says of it.
  struct Blob {
    let cid: CID
    var mimeType: String?
    var size: Int?
    /// The walk that came to it last.
    fileprivate var walk = 0
  }

  /// What is kept of a record that refers to blobs, or cannot be read.
  private struct Referrer {
    /// The record's key where it was read first.
    let key: [UInt8]
    let blobs: [Int]
    /// The record itself, if it cannot be read.
    let unreadable: UnreadableRecords
  }

  /// A link of a known node: the number of a block, and whether that is a node.
  private struct Link {
    let word: UInt32

    /// How many blocks can be told apart; in larger archives no node is ever known.
    static let maximumCount = 1 << 31

    init(node index: Int) { word = UInt32(index) << 1 | 1 }
    init(record index: Int) { word = UInt32(index) << 1 }
    init(word: UInt32) { self.word = word }

    var index: Int { Int(word >> 1) }
    var isNode: Bool { word & 1 == 1 }
  }

  /// The blobs that the records read so far refer to.
  private(set) var blobs: [Blob] = []
  /// The first of the records that break the data model, with why.
  private(set) var recordWarnings: [(record: String, why: String)] = []

  private let census: BlockCensus
  private var scanner = RecordScanner()
  /// For each block where its links begin, one more than that; 0 for what is no known node.
  private var starts: [UInt32]
  private var links: [UInt32] = []
  /// The records that have been read.
  private var readRecords: BlockSet
  /// Those of them that are in ``referrers``, for a look at each that is short.
  private var referring: BlockSet
  private var referrers: [Int: Referrer] = [:]
  private var blobNumbers: [CID: Int] = [:]
  private var walkCount = 0

  init(_ census: BlockCensus) {
    self.census = census
    starts = [UInt32](repeating: 0, count: census.count)
    readRecords = BlockSet(count: census.count)
    referring = readRecords
  }

  /// The key of a record with blobs.
  func key(ofRecord index: Int) -> String {
    String(decoding: referrers[index]?.key ?? [], as: UTF8.self)
  }

  /// Walks the tree of a commit.
  ///
  /// - Parameters:
  ///   - commit: the commit.
  ///   - blocks: those that count as there; nil for all.
  ///   - bytes: those of the census.
  mutating func walk(from commit: CID, within blocks: BlockSet?, in bytes: Span<UInt8>) -> Tree {
    walkCount += 1
    var tree = Tree()
    do throws(RepositoryError) {
      guard let index = index(of: commit, within: blocks, in: bytes) else {
        throw .commitMissing(commit)
      }
      tree.commit = try Commit(bytes.extracting(body(index)))
    } catch {
      tree.commitError = error
    }
    guard let root = tree.commit?.data else { return tree }
    var walker = MSTWalker(root: root)
    var entered: [Int] = []
    var seen: Set<Int> = []
    var distinctMissing: Set<CID> = []
    while let step = walker.next() {
      switch step {
      case .node(let cid):
        guard let index = walker.place ?? census.table.index(of: cid, in: bytes),
          blocks?.contains(index) ?? true
        else {
          if distinctMissing.insert(cid).inserted { tree.missingNodes.append(cid) }
          walker.skip()
          continue
        }
        if !entered.isEmpty || hasKeys(index), isWhole(index, within: blocks) {
          let problemCount = walker.problemCount
          walker.pass(subtree(index, in: bytes))
          if walker.problemCount == problemCount { count(index, &tree) }
        } else if seen.insert(index).inserted {
          entered.append(index)
          tree.nodeCount += 1
          walker.enter(bytes.extracting(body(index))) { census.table.index(of: $0, in: bytes) }
        } else {
          walker.skipRepeated()
        }
      case .record(let cid):
        tree.recordCount += 1
        guard let index = walker.place ?? census.table.index(of: cid, in: bytes),
          blocks?.contains(index) ?? true
        else {
          tree.missingRecordCount += 1
          if tree.missingRecords.count < RepositoryInspection.maximumListed {
            tree.missingRecords.append(String(decoding: walker.key, as: UTF8.self))
          }
          continue
        }
        if !readRecords.contains(index) { read(index, walker.key, in: bytes) }
        countBlobs(ofRecord: index, &tree)
      }
    }
    tree.problems = walker.problems
    if tree.problems.isEmpty, tree.isComplete { remember(entered, in: bytes) }
    return tree
  }

  private func index(of cid: CID, within blocks: BlockSet?, in bytes: Span<UInt8>) -> Int? {
    guard let index = census.table.index(of: cid, in: bytes), blocks?.contains(index) ?? true
    else { return nil }
    return index
  }

  /// Where a block's body is, which is empty if it was not kept: then it is neither a node nor a commit.
  private func body(_ index: Int) -> Range<Int> { census.table.body(index) }

  // MARK: Records

  /// Reads a record for the first time.
  private mutating func read(_ index: Int, _ key: [UInt8], in bytes: Span<UInt8>) {
    readRecords.insert(index..<index + 1)
    var found: [Int] = []
    var why: [String] = []
    var unreadable = UnreadableRecords()
    switch census.kind(index) {
    case .plainRecord: return
    case .other: why = ["it is not DAG-CBOR"]
    case .kept:
      var refs: [BlobRef] = []
      let oddities = scanner.scan(bytes.extracting(body(index))) { refs.append($0) }
      why = oddities.first
      unreadable.count(oddities)
      for ref in refs {
        let number = number(of: ref)
        if !found.contains(number) { found.append(number) }
      }
    }
    if !found.isEmpty || unreadable.count > 0 {
      referring.insert(index..<index + 1)
      referrers[index] = Referrer(key: key, blobs: found, unreadable: unreadable)
    }
    for why in why where recordWarnings.count < RepositoryInspection.maximumListed {
      recordWarnings.append((String(decoding: key, as: UTF8.self), why))
    }
  }

  private mutating func number(of ref: BlobRef) -> Int {
    guard let number = blobNumbers[ref.cid] else {
      blobNumbers[ref.cid] = blobs.count
      blobs.append(Blob(cid: ref.cid, mimeType: ref.mimeType, size: ref.size))
      return blobs.count - 1
    }
    if blobs[number].mimeType == nil { blobs[number].mimeType = ref.mimeType }
    if blobs[number].size == nil { blobs[number].size = ref.size }
    return number
  }

  private mutating func countBlobs(ofRecord index: Int, _ tree: inout Tree) {
    guard let referrer = referrers[index] else { return }
    tree.unreadable.count += referrer.unreadable.count
    tree.unreadable.partlySearchedCount += referrer.unreadable.partlySearchedCount
    for blob in referrer.blobs where blobs[blob].walk != walkCount {
      blobs[blob].walk = walkCount
      tree.blobs.append((blob, index))
    }
  }

  // MARK: Known subtrees

  /// Keeps what nodes consist of that were entered in one walk, in which nothing was wrong.
  private mutating func remember(_ nodes: [Int], in bytes: Span<UInt8>) {
    // From the last to the first, so that what is below a node comes before it.
    for index in nodes.reversed() {
      let node: MSTNode
      do {
        node = try MSTNode(bytes.extracting(body(index)))
      } catch {
        // It has just been walked through.
        continue
      }
      var found: [Link] = []
      func add(_ cid: CID?, isNode: Bool) {
        guard let cid, let index = census.table.index(of: cid, in: bytes) else { return }
        found.append(isNode ? Link(node: index) : Link(record: index))
      }
      add(node.left, isNode: true)
      for entry in node.entries {
        add(entry.value, isNode: false)
        add(entry.right, isNode: true)
      }
      // Only the root of an empty tree has none, and no other tree may hold that.
      guard let first = found.first, links.count < Int(UInt32.max) - found.count - 2,
        census.count <= Link.maximumCount
      else { continue }
      let layer: Int
      if let key = node.firstKey {
        layer = MSTLayer.layer(of: key.span)
      } else if let below = self.layer(first.index) {
        layer = below + 1
      } else {
        continue
      }
      starts[index] = UInt32(links.count) + 1
      links.append(UInt32(found.count))
      links.append(UInt32(layer))
      for link in found { links.append(link.word) }
    }
  }

  private func layer(_ index: Int) -> Int? {
    starts[index] > 0 ? Int(links[Int(starts[index])]) : nil
  }

  /// The links of a known node, as positions in ``links``.
  private func linkRange(_ index: Int) -> Range<Int> {
    let start = Int(starts[index]) - 1
    return start + 2..<start + 2 + Int(links[start])
  }

  /// Whether a known node has keys of its own: one without cannot be the root.
  private func hasKeys(_ index: Int) -> Bool {
    guard starts[index] > 0 else { return false }
    let range = linkRange(index)
    return range.count > 1 || !Link(word: links[range.lowerBound]).isNode
  }

  /// What has to be known of a known node to pass it over.
  private func subtree(_ index: Int, in bytes: Span<UInt8>) -> MSTSubtree {
    func edge(_ side: (Range<Int>) -> Int) -> MSTNode? {
      var index = index
      while true {
        let link = Link(word: links[side(linkRange(index))])
        guard link.isNode else { break }
        index = link.index
      }
      do {
        return try MSTNode(bytes.extracting(body(index)))
      } catch {
        // A known node has been read before.
        return nil
      }
    }
    return MSTSubtree(
      layer: layer(index) ?? 0, firstKey: edge { $0.lowerBound }?.firstKey ?? [],
      lastKey: edge { $0.upperBound - 1 }?.lastKey ?? [])
  }

  /// Whether a node is known and everything below it is among these blocks.
  private func isWhole(_ index: Int, within blocks: BlockSet?) -> Bool {
    guard starts[index] > 0 else { return false }
    guard let blocks else { return true }
    var isWhole = true
    forEachLink(below: index) { link in
      isWhole = isWhole && blocks.contains(link.index)
      return isWhole
    }
    return isWhole
  }

  /// Counts the nodes and records of a known subtree, and the records' blobs.
  private mutating func count(_ index: Int, _ tree: inout Tree) {
    var records: [Int] = []
    var (count, nodeCount) = (0, 1)
    forEachLink(below: index) { link in
      if link.isNode {
        nodeCount += 1
      } else {
        count += 1
        if referring.contains(link.index) { records.append(link.index) }
      }
      return true
    }
    tree.recordCount += count
    tree.nodeCount += nodeCount
    for record in records { countBlobs(ofRecord: record, &tree) }
  }

  /// Visits all links below a known node in the order of the keys, until told not to go on.
  private func forEachLink(below index: Int, _ visit: (Link) -> Bool) {
    // No path is longer than there are layers, for these subtrees keep the rules.
    var path = [linkRange(index)]
    while let last = path.indices.last {
      guard let position = path[last].first else {
        path.removeLast()
        continue
      }
      path[last].removeFirst()
      let link = Link(word: links[position])
      guard visit(link) else { return }
      if link.isNode { path.append(linkRange(link.index)) }
    }
  }
}
