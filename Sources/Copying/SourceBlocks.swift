internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots

/// The blocks of an archive that is being copied: where they are, and the trees they form.
struct SourceBlocks {
  private let laidOut: LaidOutBlocks
  private var trees: SharedTrees

  /// Reads all blocks of an archive.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file. What cannot be read is
  ///   left out.
  init(_ reader: ArchiveReader, _ observer: @escaping Progress.Observer) throws {
    laidOut = try LaidOutBlocks(reader, except: [], observer: observer)
    trees = SharedTrees(laidOut)
  }

  /// The blobs that records read so far refer to, each once.
  var blobs: BlobTable.Entries { trees.blobs.entries }

  /// The numbers, among these, of the blobs to which a tree refers that was walked just now.
  func blobs(of tree: SharedTrees.Tree) -> [Int] { trees.blobs(of: tree) }

  /// The ordinal of a section; nil if it is not there.
  func ordinal(of cid: CID) -> UInt64? {
    laidOut.number(of: cid).map(laidOut.ordinal)
  }

  /// How many different sections an order has.
  func distinctCount(_ order: BlockOrder) -> Int { laidOut.blocks(in: order.runs).count }

  /// Walks the tree of a commit, of which only the sections of an order count as there, if one is
  /// given.
  mutating func walk(from commit: CID, through order: BlockOrder? = nil) -> SharedTrees.Tree {
    trees.walk(from: commit, within: order.map { laidOut.blocks(in: $0.runs) })
  }

  /// The ordinals of the commit and the tree nodes and records it leads to, those that are there,
  /// in canonical order (FORMAT 6.1) and each once.
  ///
  /// - Parameter known: sections that are left out.
  func reachable(from commit: CID, besides known: BlockOrder) -> [UInt64] {
    let known = laidOut.blocks(in: known.runs)
    return laidOut.blocksInOrderOfTree(from: commit).filter { !known.contains($0) }
      .map(laidOut.ordinal)
  }
}
