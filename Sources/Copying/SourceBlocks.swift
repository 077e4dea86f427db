internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots

/// The blocks of an archive that is being copied: where they are, and the trees they form.
struct SourceBlocks {
  private let census: BlockCensus
  private var trees: SharedTrees

  /// Reads all blocks of an archive.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file. What cannot be read is
  ///   left out.
  init(_ reader: ArchiveReader, _ observer: @escaping Progress.Observer) throws {
    census = try BlockCensus(reader, except: [], observer: observer)
    trees = SharedTrees(census)
  }

  /// The blobs that records read so far refer to, each once.
  var blobs: BlobTable.Entries { trees.blobs.entries }

  /// The numbers, among these, of the blobs to which a tree refers that was walked just now.
  func blobs(of tree: SharedTrees.Tree) -> [Int] { trees.blobs(of: tree) }

  /// The ordinal of a section; nil if it is not there.
  func ordinal(of cid: CID) -> UInt64? {
    census.withBytes { bytes in census.index(of: cid, in: bytes) }.map(census.ordinal)
  }

  /// How many different sections an order has.
  func distinctCount(_ order: BlockOrder) -> Int { census.blocks(in: order.runs).count }

  /// Walks the tree of a commit, of which only the sections of an order count as there.
  mutating func walk(from commit: CID, through order: BlockOrder) -> SharedTrees.Tree {
    let blocks = census.blocks(in: order.runs)
    return census.withBytes { bytes in trees.walk(from: commit, within: blocks, in: bytes) }
  }

  /// The ordinals of the commit and the tree nodes and records it leads to, those that are there,
  /// in canonical order (FORMAT 6.1) and each once.
  ///
  /// - Parameter known: sections that are left out.
  func reachable(from commit: CID, besides known: BlockOrder) -> [UInt64] {
    census.withBytes { bytes in
      var seen = census.blocks(in: known.runs)
      var ordinals: [UInt64] = []
      func find(_ cid: CID) -> Range<Int>? {
        guard let index = census.index(of: cid, in: bytes) else { return nil }
        if !seen.contains(index) {
          seen.insert(index)
          ordinals.append(census.ordinal(index))
        }
        return census.body(index, in: bytes)
      }
      // A block that is no commit leads to nothing further.
      guard let body = find(commit), let commit = try? Commit(bytes.extracting(body)) else {
        return ordinals
      }
      var walker = MSTWalker(root: commit.data)
      while let step = walker.next() {
        switch step {
        case .node(let cid):
          if let node = find(cid) {
            walker.enter(bytes.extracting(node))
          } else {
            walker.skip()
          }
        case .record(let cid): _ = find(cid)
        }
      }
      return ordinals
    }
  }
}
