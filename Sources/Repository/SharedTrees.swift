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
  /// What is counted of a tree.
  private struct Counts {
    var root: CID
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
    /// The blobs to which records refer.
    var blobs = BlockSet(count: 0)

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

  private let source: LaidOutBlocks
  /// How many missing records are listed besides those that every walk lists.
  private var listRoom: Int
  private var scanner = RecordScanner()
  /// The records that have been read.
  private var readRecords: BlockSet
  /// Of these, those that refer to blobs, for a look at each that is short.
  private var referrers: BlockSet
  /// Where in ``references`` the list of each begins: an account may have a million with a picture
  /// each, so each takes about twenty bytes.
  private var lists: [Int: Int] = [:]
  /// Of each how many blobs it refers to, and then the numbers of these.
  private var references: [UInt32] = []
  /// The records that cannot be read.
  private var unreadable: [Int: UnreadableRecords] = [:]
  /// What is counted of the last whole tree.
  private var counts: Counts?

  /// The trees in some blocks.
  ///
  /// - Parameters:
  ///   - source: the blocks.
  ///   - listRoom: how many missing records all walks together list, if they are more than each of
  ///     them lists in any case, ``RepositoryInspection/maximumListed``.
  package init(_ source: LaidOutBlocks, listRoom: Int = 0) {
    (self.source, self.listRoom) = (source, listRoom)
    readRecords = BlockSet(count: source.numberLimit)
    referrers = readRecords
  }

  /// Walks the tree of a commit.
  ///
  /// - Parameters:
  ///   - commit: the commit.
  ///   - blocks: those that count as there; nil for all.
  /// - Returns: what was found out; in the place of the blobs their numbers,
  ///   ``RepositoryInspection/blobNumbers``.
  package mutating func walk(
    from commit: CID?, within blocks: BlockSet? = nil
  ) -> RepositoryInspection {
    var tree = RepositoryInspection()
    do throws(RepositoryError) {
      let (found, number) = try source.commit(commit)
      if let commit, let blocks, !blocks.contains(number) { throw .commitMissing(commit) }
      tree.commit = found
    } catch {
      tree.commitError = error
    }
    guard let root = tree.commit?.data else { return tree }
    if !proceed(to: root) {
      let (all, found) = walkAll(root, tree, within: nil)
      if all.treeProblems.isEmpty, all.isComplete {
        counts = found
      } else if blocks == nil {
        return all
      }
    }
    guard let counts, counts.root == root,
      blocks.map({ counts.nodes.isSubset(of: $0) && counts.records.isSubset(of: $0) }) ?? true
    else {
      // It is not whole, and what is missing or wrong takes a walk of its own.
      return walkAll(root, tree, within: blocks).tree
    }
    Self.enter(counts, in: &tree)
    return tree
  }

  private static func enter(_ counts: Counts, in tree: inout RepositoryInspection) {
    tree.nodeCount = counts.nodes.count
    (tree.unreadable, tree.blobNumbers) = (counts.unreadable, counts.blobs)
    tree.recordCount = counts.recordCount + tree.missingRecordCount
  }

  /// Walks a tree from end to end.
  private mutating func walkAll(
    _ root: CID, _ begun: RepositoryInspection, within blocks: BlockSet?
  ) -> (tree: RepositoryInspection, Counts) {
    var tree = begun
    var found = Counts(root: root, blockCount: source.numberLimit)
    var fold = TreeFold(source, root: root, within: blocks)
    let limit = max(RepositoryInspection.maximumListed, listRoom)
    defer { listRoom = max(0, listRoom - tree.missingRecords.count) }
    while let step = fold.next() {
      switch step {
      case .node, .subtree: break
      case .missingNode(let cid): tree.missingNodes.append(cid)
      case .record(_, nil):
        tree.missingRecordCount += 1
        tree.list(missing: String(decoding: fold.key, as: UTF8.self), limit: limit)
      case .record(_, let number?):
        read(number, fold.key)
        count(number, 1, in: &found)
      }
    }
    found.nodes = fold.nodes
    tree.treeProblems = fold.walker.problems
    Self.enter(found, in: &tree)
    return (tree, found)
  }

  // MARK: What is another tree than the last

  /// Updates the counts to another tree, by its difference from theirs; returns whether that was
  /// possible.
  private mutating func proceed(to root: CID) -> Bool {
    guard var counts else { return false }
    let old = counts.root
    guard old != root else { return true }
    // The counts have one owner, so that no table is copied.
    self.counts = nil
    counts.root = root
    func number(of cid: CID) throws(MSTProblem) -> Int {
      guard let number = source.number(of: cid) else {
        throw MSTProblem(kind: .missing, node: cid, key: nil)
      }
      return number
    }
    do {
      try MSTDiff.compare(old: old, new: root, verifying: true) { [source] cid, _ in
        source.body(of: cid)
      } each: { change in
        switch change {
        case .createdNode(let cid): counts.nodes.insert(try number(of: cid))
        case .deletedNode(let cid): counts.nodes.remove(try number(of: cid))
        case .record(let record):
          if let new = record.new {
            let new = try number(of: new)
            read(new, record.key)
            count(new, 1, in: &counts)
          }
          if let old = record.old { count(try number(of: old), -1, in: &counts) }
        }
      }
    } catch {
      // Another walk will tell what is missing or wrong.
      return false
    }
    self.counts = counts
    return true
  }

  /// Counts a key that leads to a record once more or once less.
  private func count(_ record: Int, _ sign: Int, in counts: inout Counts) {
    let before = counts.keyCounts[record]
    let after = UInt32(Int(before) + sign)
    counts.keyCounts[record] = after
    counts.recordCount += sign
    if let unreadable = unreadable.isEmpty ? nil : unreadable[record] {
      counts.unreadable.add(unreadable, times: sign)
    }
    guard before == 0 || after == 0 else { return }
    if after > 0 { counts.records.insert(record) } else { counts.records.remove(record) }
    guard referrers.contains(record), let list = lists[record] else { return }
    let lack = blobs.entries.count - counts.referrerCounts.count
    if lack > 0 {
      counts.referrerCounts += repeatElement(0, count: lack)
      counts.blobs.grow(to: blobs.entries.count)
    }
    for blob in references[list + 1...list + Int(references[list])].lazy.map(Int.init) {
      let after = UInt32(Int(counts.referrerCounts[blob]) + sign)
      counts.referrerCounts[blob] = after
      if after == 0 { counts.blobs.remove(blob) } else { counts.blobs.insert(blob) }
    }
  }

  /// Reads a record, unless it has been read.
  private mutating func read(_ number: Int, _ key: [UInt8]) {
    guard !readRecords.contains(number) else { return }
    readRecords.insert(number)
    var found: [UInt32] = []
    var why: [String] = []
    switch source.kind(number) {
    case .plainRecord: return
    case .other: why = ["it is not DAG-CBOR"]
    case .kept:
      let source = source
      let oddities = source.withBody(number) { body in
        scanner.scan(body) { ref in
          let blob = UInt32(blobs.insert(ref, from: key))
          if !found.contains(blob) { found.append(blob) }
        }
      }
      why = oddities.first
      var records = UnreadableRecords()
      records.count(oddities)
      if records.count > 0 { unreadable[number] = records }
    }
    if !found.isEmpty {
      referrers.insert(number)
      lists[number] = references.count
      references.append(UInt32(found.count))
      references += found
    }
    for why in why where recordWarnings.count < RepositoryInspection.maximumListed {
      recordWarnings.append((String(decoding: key, as: UTF8.self), why))
    }
  }
}
