internal import ATProtocol
internal import Archive
internal import IPLD

/// Which blobs the snapshots of an archive refer to, each told once; and where its sections are.
struct BlobNeeds {
  private let census: BlockCensus
  private var trees: SharedTrees
  /// Whether each of the blobs has been told.
  private var isTold: [Bool] = []

  /// The needs of an archive whose sections all hash to their CIDs; what does not is found when it is copied.
  init(_ reader: ArchiveReader, _ observer: Progress.Observer) throws {
    census = try BlockCensus(reader, except: [], observer: observer)
    trees = SharedTrees(census)
  }

  /// The number of a section in the archive; nil if it is not there.
  func ordinal(of cid: CID) -> UInt64? {
    census.withBytes { bytes in census.table.index(of: cid, in: bytes) }.map(census.ordinal)
  }

  /// The blobs that the records of a snapshot refer to, those that no snapshot before it did.
  ///
  /// - Parameters:
  ///   - commit: its commit.
  ///   - order: the sections of its CAR.
  mutating func blobs(of commit: CID, in order: BlockOrder) -> [CID] {
    let blocks = census.blocks(in: order.runs)
    let tree = census.withBytes { bytes in trees.walk(from: commit, within: blocks, in: bytes) }
    isTold += [Bool](repeating: false, count: trees.blobs.count - isTold.count)
    var blobs: [CID] = []
    for (number, _) in tree.blobs where !isTold[number] {
      isTold[number] = true
      blobs.append(trees.blobs[number].cid)
    }
    return blobs
  }
}
