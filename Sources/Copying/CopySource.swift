internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots

/// An archive that snapshots are copied from: where its blocks are, the trees they form, and the
/// state of its sections, in eight bytes each.
struct CopySource {
  let archive: SourceArchive
  let blocks: LaidOutBlocks
  var trees: SharedTrees
  var orders = ResolvedOrders()
  /// The states of the blobs that records refer to, by their numbers.
  var blobs: [CopyOutcome?] = []
  /// The blocks whose links have been followed.
  var followed: BlockSet
  /// Sections that are rebuilt: manifests, and pages of their orders.
  ///
  /// One that was written again in a repair has several ordinals.
  var replaced: Set<CID> = []
  /// For each section its new ordinal.
  private var ordinals: [UInt64]
  /// The new ordinals of sections whose ordinals are lost in damage before them.
  private var further: [UInt64: UInt64] = [:]

  /// How many lost records of all snapshots are named, some 80 bytes each.
  private static let maximumNamed = 250_000
  private static let untouched = UInt64.max
  private static let lost = UInt64.max - 1

  /// Reads all blocks of an archive.
  ///
  /// - Throws: ``BackupError`` if there is no room for a temporary file. What cannot be read is
  ///   left out.
  init(_ archive: SourceArchive, _ observer: Progress.Observer) throws {
    self.archive = archive
    blocks = try LaidOutBlocks(archive.reader, observer: observer)
    trees = SharedTrees(blocks, listRoom: Self.maximumNamed)
    followed = BlockSet(count: blocks.numberLimit)
    ordinals = [UInt64](repeating: Self.untouched, count: Int(archive.reader.sectionLimit))
  }

  // MARK: Sections

  /// How many ordinals are known before those that are lost with damage.
  var capacity: UInt64 { UInt64(ordinals.count) }

  /// The ordinal of a section in the new archive; nil if it is missing.
  ///
  /// Setting it to nil says that the section is lost.
  subscript(ordinal: UInt64) -> UInt64? {
    get {
      let new = entry(ordinal)
      return new >= Self.lost ? nil : new
    }
    set {
      if ordinal < capacity {
        ordinals[Int(ordinal)] = newValue ?? Self.lost
      } else {
        further[ordinal] = newValue ?? Self.lost
      }
    }
  }

  private func entry(_ ordinal: UInt64) -> UInt64 {
    ordinal < capacity ? ordinals[Int(ordinal)] : further[ordinal] ?? Self.untouched
  }

  /// Whether a section has been neither copied nor found to be lost.
  func isUntouched(_ ordinal: UInt64) -> Bool { entry(ordinal) == Self.untouched }

  /// The parts of these runs that have been neither copied nor found to be lost.
  func untouched(of runs: [Range<UInt64>]) -> [Range<UInt64>] {
    var untouched = BlockOrder()
    for run in runs {
      var start = run.lowerBound
      while start < run.upperBound {
        var end = start
        while end < run.upperBound, isUntouched(end) { end += 1 }
        if end > start { untouched.append(start..<end) }
        start = end + 1
      }
    }
    return untouched.runs
  }

  /// How many sections are neither in the new archive nor rebuilt.
  var leftOutCount: Int {
    ordinals.count { $0 >= Self.lost } - replaced.compactMap(ordinal).count { self[$0] == nil }
  }

  /// The order in the new archive of sections that have been copied.
  func newOrder(_ order: BlockOrder) throws -> BlockOrder {
    let maximumRuns = archive.reader.maximumRuns
    var new = BlockOrder()
    for ordinal in order.runs.joined() {
      guard let ordinal = self[ordinal] else {
        throw BackupError.copyFailed("a section was skipped")
      }
      new.append(ordinal)
      guard new.runs.count <= maximumRuns else {
        throw BackupError.damagedArchive(
          archive.name, "\(SnapshotError.tooManyRuns(limit: maximumRuns))")
      }
    }
    return new
  }

  // MARK: Blocks

  /// The ordinal of a section; nil if it is missing.
  func ordinal(of cid: CID) -> UInt64? { blocks.number(of: cid).map(blocks.ordinal) }

  /// Whether the sections with these ordinals are as many and as long as those of a CAR.
  func has(_ car: Snapshot.CARDescription, at order: BlockOrder) -> Bool {
    // It throws for nothing else.
    (try? blocks.checkAmount(
      of: order.runs, count: car.sectionCount, byteCount: car.byteCount,
      headerLength: car.header.count)) != nil
  }

  /// Whether a block is among the sections with these ordinals: where another writer numbered them,
  /// as many and as long ones may be those of another snapshot.
  func has(_ block: CID, at order: BlockOrder) -> Bool {
    blocks.number(of: block).map { blocks.blocks(in: order.runs).contains($0) } ?? false
  }

  /// Walks the tree of a commit, of which only the sections of an order count as there, if one is
  /// given.
  mutating func walk(from commit: CID, through order: BlockOrder? = nil) -> RepositoryInspection {
    trees.walk(from: commit, within: order.map { blocks.blocks(in: $0.runs) })
  }

  /// The ordinals of the commit and the tree nodes and records it leads to, those that are there,
  /// in canonical order (FORMAT 6.1) and each once.
  ///
  /// - Parameter known: sections that are left out.
  func reachable(from commit: CID, besides known: BlockOrder) -> [UInt64] {
    let known = blocks.blocks(in: known.runs)
    return blocks.blocksInOrderOfTree(from: commit).filter { !known.contains($0) }
      .map(blocks.ordinal)
  }
}

/// The state of a section that something names.
enum CopyOutcome: UInt8 {
  /// It is in the new archive.
  case copied
  /// The archive holds it, but it cannot be read.
  case lost
  /// The archive does not hold it.
  case absent
}
