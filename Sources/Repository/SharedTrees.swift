package import ATProtocol
package import IPLD

/// Walks the trees of many snapshots, and what they share only once.
///
/// A tree is checked, and what it consists of is counted, by how it differs from the one before, if
/// that is whole and keeps the rules: this takes as long as there are differences, and the trees of
/// successive snapshots have few.
///
/// Invariant: ``counts`` are those of a whole tree that keeps the rules.
package struct SharedTrees {
  /// What a walk came to.
  package struct Tree {
    /// What was found out, but for the blobs.
    package internal(set) var found = RepositoryInspection()
    /// How many blobs records refer to.
    package internal(set) var blobCount = 0
    /// Their numbers, if the tree is not whole; nil if it is, and ``SharedTrees/refersTo(_:)``
    /// tells.
    package internal(set) var ownBlobs: [Int]?
  }

  /// What is counted of a whole tree.
  private struct Counts {
    var root: CID
    var nodeCount = 0
    var recordCount = 0
    var unreadable = UnreadableRecords()
    /// Its nodes.
    var nodes: BlockSet
    /// Its records.
    var records: BlockSet
    /// How many keys lead to each block as a record.
    var keyCounts: [UInt32]
    /// How many records refer to each blob.
    var referrerCounts: [UInt32] = []
    /// How many blobs records refer to.
    var blobCount = 0

    init(root: CID, blockCount: Int) {
      self.root = root
      nodes = BlockSet(count: blockCount)
      records = nodes
      keyCounts = [UInt32](repeating: 0, count: blockCount)
    }
  }

  /// The blobs that the records read so far refer to, numbered in the order of their first
  /// references.
  package private(set) var blobs = BlobTable()
  /// The first of the records that break the data model, with why.
  package private(set) var recordWarnings: [(record: String, why: String)] = []
  /// The blobs to which the last whole tree refers and the one before it does not, or the other way
  /// round; some may be neither.
  package private(set) var changedBlobs: [Int] = []

  private let source: LaidOutBlocks
  private var scanner = RecordScanner()
  /// The records that have been read.
  private var readRecords: BlockSet
  /// Those of them that refer to blobs, or cannot be read.
  private var referrers: Referrers
  /// What is counted of the last whole tree.
  private var counts: Counts?

  package init(_ source: LaidOutBlocks) {
    self.source = source
    readRecords = BlockSet(count: source.numberLimit)
    referrers = Referrers(blockCount: source.numberLimit)
  }

  /// Whether a record of the last whole tree refers to a blob.
  package func refersTo(_ blob: Int) -> Bool {
    counts.map { blob < $0.referrerCounts.count && $0.referrerCounts[blob] > 0 } ?? false
  }

  /// The blobs to which a tree refers that was walked just now.
  package func blobs(of tree: Tree) -> [Int] {
    tree.ownBlobs ?? blobs.entries.indices.filter(refersTo)
  }

  /// Walks the tree of a commit.
  ///
  /// - Parameters:
  ///   - commit: the commit.
  ///   - blocks: those that count as there; nil for all.
  package mutating func walk(from commit: CID?, within blocks: BlockSet? = nil) -> Tree {
    changedBlobs = []
    var tree = Tree()
    do throws(RepositoryError) {
      let (found, number) = try source.commit(commit)
      if let commit, let blocks, !blocks.contains(number) { throw .commitMissing(commit) }
      tree.found.commit = found
    } catch {
      tree.found.commitError = error
      tree.ownBlobs = []
    }
    guard let root = tree.found.commit?.data else { return tree }
    if !proceed(to: root) {
      let all = walkAll(root, tree, within: nil, counting: true)
      if blocks == nil, counts?.root != root { return all }
    }
    if let counts, counts.root == root,
      blocks.map({ counts.nodes.isSubset(of: $0) && counts.records.isSubset(of: $0) }) ?? true
    {
      tree.found.nodeCount = counts.nodeCount
      tree.found.recordCount = counts.recordCount
      tree.found.unreadable = counts.unreadable
      tree.blobCount = counts.blobCount
      return tree
    }
    // It is not whole, and what is missing or wrong takes a walk of its own.
    return walkAll(root, tree, within: blocks, counting: false)
  }

  // MARK: All of a tree

  /// Walks a tree from end to end.
  ///
  /// - Parameter isCounting: Whether ``counts`` become those of this tree, if it is whole and keeps
  ///   the rules.
  private mutating func walkAll(
    _ root: CID, _ begun: Tree, within blocks: BlockSet?, counting isCounting: Bool
  ) -> Tree {
    var tree = begun
    var seenBlobs: Set<UInt32> = []
    var ownBlobs: [Int] = []
    var found = Counts(root: root, blockCount: isCounting ? source.numberLimit : 0)
    var fold = TreeFold(source, root: root, within: blocks)
    while let step = fold.next() {
      switch step {
      case .node, .subtree: break
      case .missingNode(let cid): tree.found.missingNodes.append(cid)
      case .record(_, nil):
        tree.found.recordCount += 1
        tree.found.missingRecordCount += 1
        tree.found.list(missing: String(decoding: fold.key, as: UTF8.self))
      case .record(_, let number?):
        tree.found.recordCount += 1
        read(number, fold.key)
        if isCounting { found.keyCounts[number] += 1 }
        guard let referred = referrers.blobs(of: number) else { continue }
        tree.found.unreadable.add(referrers.unreadable(number))
        for blob in referred where seenBlobs.insert(blob).inserted { ownBlobs.append(Int(blob)) }
      }
    }
    tree.found.treeProblems = fold.walker.problems
    tree.found.nodeCount = fold.nodes.count
    tree.blobCount = ownBlobs.count
    tree.ownBlobs = ownBlobs
    guard isCounting, fold.isWhole, tree.found.missingRecordCount == 0 else { return tree }
    (found.nodeCount, found.recordCount) = (tree.found.nodeCount, tree.found.recordCount)
    found.unreadable = tree.found.unreadable
    found.nodes = fold.nodes
    take(found)
    return tree
  }

  /// Makes the counts of a tree the ones that count.
  private mutating func take(_ found: Counts) {
    var found = found
    found.referrerCounts = [UInt32](repeating: 0, count: blobs.entries.count)
    for index in found.keyCounts.indices where found.keyCounts[index] > 0 {
      found.records.insert(index)
      for blob in (referrers.blobs(of: index) ?? []).lazy.map(Int.init) {
        found.referrerCounts[blob] += 1
        if found.referrerCounts[blob] == 1 { found.blobCount += 1 }
      }
    }
    changedBlobs = Array(found.referrerCounts.indices)
    counts = found
  }

  // MARK: What is another tree than the last

  /// Says that the tree is not whole.
  private struct NotWhole: Error {}

  /// Makes the counts those of another tree, by how it differs from theirs; answers whether that
  /// could be done.
  private mutating func proceed(to root: CID) -> Bool {
    guard var counts else { return false }
    let old = counts.root
    guard old != root else { return true }
    // The counts have one owner, so that no table is copied.
    self.counts = nil
    counts.root = root
    do {
      try MSTDiff.compare(old: old, new: root, verifying: true) { [source] cid, _ in
        source.body(of: cid)
      } each: { change in
        try apply(change, to: &counts)
      }
    } catch {
      // Another walk will tell what is missing or wrong.
      return false
    }
    self.counts = counts
    return true
  }

  private mutating func apply(
    _ change: MSTDiff.Change, to counts: inout Counts
  ) throws(NotWhole) {
    func index(of cid: CID) throws(NotWhole) -> Int {
      guard let index = source.number(of: cid) else { throw NotWhole() }
      return index
    }
    switch change {
    case .createdNode(let cid):
      counts.nodes.insert(try index(of: cid))
      counts.nodeCount += 1
    case .deletedNode(let cid):
      counts.nodes.remove(try index(of: cid))
      counts.nodeCount -= 1
    case .record(let record):
      if let new = record.new {
        let index = try index(of: new)
        read(index, record.key)
        counts.recordCount += 1
        counts.keyCounts[index] += 1
        if counts.keyCounts[index] == 1 { counts.records.insert(index) }
        refer(index, counts.keyCounts[index] == 1, 1, &counts)
      }
      if let old = record.old {
        let index = try index(of: old)
        counts.recordCount -= 1
        counts.keyCounts[index] -= 1
        if counts.keyCounts[index] == 0 { counts.records.remove(index) }
        refer(index, counts.keyCounts[index] == 0, -1, &counts)
      }
    }
  }

  /// Counts what a record refers to once more or once less.
  ///
  /// - Parameter isWhole: Whether it is the first key that leads to the record, or was the last.
  private mutating func refer(
    _ record: Int, _ isWhole: Bool, _ sign: Int, _ counts: inout Counts
  ) {
    guard let referred = referrers.blobs(of: record) else { return }
    counts.unreadable.add(referrers.unreadable(record), times: sign)
    guard isWhole else { return }
    let lack = blobs.entries.count - counts.referrerCounts.count
    if lack > 0 { counts.referrerCounts += repeatElement(0, count: lack) }
    for blob in referred.lazy.map(Int.init) {
      let before = counts.referrerCounts[blob]
      counts.referrerCounts[blob] = UInt32(Int(before) + sign)
      guard before == 0 || counts.referrerCounts[blob] == 0 else { continue }
      counts.blobCount += sign
      changedBlobs.append(blob)
    }
  }

  // MARK: Records

  /// Reads a record, unless it has been read.
  private mutating func read(_ index: Int, _ key: [UInt8]) {
    guard !readRecords.contains(index) else { return }
    readRecords.insert(index)
    var found: [Int] = []
    var why: [String] = []
    var unreadable = UnreadableRecords()
    switch source.kind(index) {
    case .plainRecord: return
    case .other: why = ["it is not DAG-CBOR"]
    case .kept:
      let source = source
      let oddities = source.withBody(index) { body in
        scanner.scan(body) { ref in
          let number = blobs.insert(ref, from: key)
          if !found.contains(number) { found.append(number) }
        }
      }
      why = oddities.first
      unreadable.count(oddities)
    }
    referrers.insert(index, blobs: found, unreadable)
    for why in why where recordWarnings.count < RepositoryInspection.maximumListed {
      recordWarnings.append((String(decoding: key, as: UTF8.self), why))
    }
  }
}

/// The records that refer to blobs, or cannot be read, by the numbers of their blocks.
///
/// An account may have a million with a picture each, so it takes some twenty bytes of each.
struct Referrers {
  /// The records that are in ``lists``, for a look at each that is short.
  private var records: BlockSet
  /// Where in ``numbers`` the list of each begins.
  private var lists: [Int: Int] = [:]
  /// Of each how many blobs it refers to, and then the numbers of these.
  private var numbers: [UInt32] = []
  /// Those that cannot be read.
  private var unreadable: [Int: UnreadableRecords] = [:]

  /// No records, of so many blocks.
  package init(blockCount: Int) { records = BlockSet(count: blockCount) }

  /// Adds a record that is none of them yet.
  ///
  /// - Parameters:
  ///   - record: the number of its block.
  ///   - blobs: the numbers of the blobs that it refers to, each once.
  ///   - unreadable: the record itself, if it cannot be read.
  mutating func insert(_ record: Int, blobs: [Int], _ unreadable: UnreadableRecords) {
    guard !blobs.isEmpty || unreadable.count > 0 else { return }
    records.insert(record)
    lists[record] = numbers.count
    numbers.append(UInt32(blobs.count))
    for blob in blobs { numbers.append(UInt32(blob)) }
    if unreadable.count > 0 { self.unreadable[record] = unreadable }
  }

  /// The blobs that a record refers to; nil if it is none of these.
  @inline(__always)
  func blobs(of record: Int) -> ArraySlice<UInt32>? {
    guard records.contains(record), let list = lists[record] else { return nil }
    let first = list + 1
    return numbers[first..<first + Int(numbers[first - 1])]
  }

  /// The record itself, if it is one of these and cannot be read.
  func unreadable(_ record: Int) -> UnreadableRecords {
    unreadable.isEmpty ? UnreadableRecords() : unreadable[record] ?? UnreadableRecords()
  }
}
