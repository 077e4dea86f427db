public import ATProtocol
internal import Archive
package import IPLD

/// Everything that was found out about a repository in a CAR: what is in it, whether it is whole,
/// whether it is well-formed.
public struct RepositoryInspection: Sendable {
  /// The version of the CAR file: 1, or 2 around an inner CAR of version 1.
  package internal(set) var carVersion = 1
  /// Where in the input the CAR of version 1 lies.
  package internal(set) var payload = 0..<0
  /// The CAR's header.
  package internal(set) var header = CARHeader(roots: [])
  /// How many sections the CAR has.
  package internal(set) var sectionCount = 0
  /// How many distinct blocks it has.
  package internal(set) var distinctBlockCount = 0
  /// How many sections there are of each codec, repeated blocks counted each time.
  package internal(set) var codecCounts: [Codec: Int] = [:]
  /// The blocks that do not hash to their CIDs.
  package internal(set) var mismatchedBlocks: [CID] = []
  /// How many blocks have a hash function that cannot be checked here.
  package internal(set) var unverifiableBlockCount = 0
  /// Whether the first section is the first root; both orders occur.
  package internal(set) var rootIsFirstBlock = false
  /// What ended the reading of the CAR before its end.
  package internal(set) var carError: CARError?
  /// The first block that is longer than one of a repository may be, though it hashes to its CID;
  /// nil if there is none, and of blocks that came in earlier.
  ///
  /// Sections of the codec raw are blobs, which may have any length.
  package internal(set) var tooLong: CARError?

  /// The commit.
  public internal(set) var commit: Commit?
  /// Why there is no commit.
  package internal(set) var commitError: RepositoryError?

  /// How many distinct tree nodes were reached.
  package internal(set) var nodeCount = 0
  /// How many levels of nodes the tree has.
  package internal(set) var treeDepth = 0
  /// The layer of the root's keys; nil for an empty tree.
  package internal(set) var rootLayer: Int?
  /// The tree nodes that are linked and not in the CAR, each once, in the order of the tree.
  package internal(set) var missingNodes: [CID] = []
  /// What is wrong with the tree, the first ``MSTWalker/maximumProblems`` of it.
  package internal(set) var treeProblems: [MSTProblem] = []
  /// How many things are wrong with the tree.
  package internal(set) var treeProblemCount = 0

  /// How many records the tree names, whether their blocks are there or not.
  public internal(set) var recordCount = 0
  /// How many different blocks the records are.
  package internal(set) var distinctRecordCount = 0
  /// How many records each collection has.
  package internal(set) var recordsByCollection: [String: Int] = [:]
  /// The first ``maximumListed`` of the records whose blocks are not in the CAR.
  package internal(set) var missingRecords: [String] = []
  /// How many records have no block in the CAR.
  public internal(set) var missingRecordCount = 0
  /// The first ``maximumListed`` of the records that break the data model, with why; their blocks
  /// are kept anyway.
  package internal(set) var recordWarnings: [(record: String, why: String)] = []
  /// How many records cannot be read.
  package internal(set) var unreadable = UnreadableRecords()
  /// How many records are not in DAG-CBOR's one canonical form, so that encoding them again would
  /// change them.
  package internal(set) var nonCanonicalRecordCount = 0
  /// How many records hold a float.
  package internal(set) var floatRecordCount = 0
  /// How many records break AT Protocol's data model in some way.
  package internal(set) var recordWarningCount = 0

  /// The blobs that records refer to.
  public internal(set) var blobs = BlobTable()
  /// The same by their numbers in ``SharedTrees/blobs``, if the tree was walked with others.
  package internal(set) var blobNumbers = BlockSet(count: 0)
  /// How many distinct blocks are neither the commit nor in the tree nor a record.
  package internal(set) var unreachableBlockCount = 0

  /// The blocks that the commit reaches: itself, tree nodes and records.
  package internal(set) var reached = BlockSet(count: 0)

  /// How many names a list keeps; beyond that things are counted.
  package static let maximumListed = RecordScanner.maximumListed

  /// What is wrong with the commit, also that there is none; nil if nothing is.
  package var commitFlaw: RepositoryError? { commitError ?? commit?.flaw }

  /// Why there is no commit, in words; nil if there is one.
  package var whyNoCommit: String? { commitError.map { "\($0)" } }

  /// What is wrong with the tree so that records that are in it may not have been reached; nil if a
  /// walk gives out all that there are.
  ///
  /// A tree may break other rules, and give them all: one with a key that is not a path, for
  /// example.
  package var whyRecordsAreLost: String? {
    let losing = treeProblems.first { problem in
      switch problem.kind {
      case .illegalKey, .wrongLayer, .emptyLeaf, .untrimmedTop: false
      case .prefixNotMaximal: problem.key == nil
      case .malformedNode, .missing, .keysNotAscending, .cycle, .repeatedNode, .tooDeep: true
      }
    }
    if let losing { return "\(losing)" }
    // Those that were not listed may be of any kind.
    return treeProblemCount > treeProblems.count
      ? "the tree of records is malformed (problems: \(treeProblemCount))" : nil
  }

  /// Whether everything that was read is what it must be: hashes, commit, tree.
  public var isWellFormed: Bool {
    carError == nil && mismatchedBlocks.isEmpty && commit != nil && commitFlaw == nil
      && treeProblemCount == 0
  }

  /// Whether every tree node and every record is in the CAR.
  public var isComplete: Bool { commit != nil && missingNodes.isEmpty && missingRecordCount == 0 }

  /// Whether nothing is missing, and no record hides to which blobs it refers.
  package var isWhole: Bool { isComplete && !unreadable.mayHideBlobs }

  /// What is wrong, a sentence each; of the tree, the first of it.
  package var flaws: [String] {
    var flaws = [carError.map { "\($0)" }, commitFlaw.map { "\($0)" }].compactMap(\.self)
    if let cid = mismatchedBlocks.first {
      flaws.append(
        mismatchedBlocks.count == 1
          ? "the block \(cid) does not hash to its CID"
          : "\(mismatchedBlocks.count) blocks do not hash to their CIDs, the first is \(cid)")
    }
    flaws += treeProblems.prefix(10).map { "the tree of records: \($0)" }
    if treeProblemCount > 10 { flaws.append("\(treeProblemCount - 10) more problems of the tree") }
    return flaws
  }
}

/// Inspecting reports everything that is wrong with a repository, not only the first thing: the
/// whole tree is walked and checked, every record is checked and searched for blobs.
extension RepositoryInspection {
  /// A record that the walk came to: its key in the tree, `collection/rkey`, its block, and the
  /// number of that; nil if it is missing.
  package typealias Record = (key: [UInt8], cid: CID, number: Int?)

  /// Inspects the repository in a CAR, on several cores.
  ///
  /// - Parameters:
  ///   - file: the CAR.
  ///   - workers: on how many cores; nil for all.
  package init(of file: CARFile, workers: Int? = nil) {
    self = file.found
    inspect(file, workers: workers ?? Parallel.processorCount) { _ in }
  }

  /// Inspects the repository in a CAR, and gives out its records in the order of the tree, which
  /// one core walks.
  package init(of file: CARFile, visit: (Record) -> Void) {
    self = file.found
    inspect(file, workers: 1, visit)
  }

  /// Inspects the repository that a commit and the blocks of a source make up.
  ///
  /// - Parameters:
  ///   - root: the commit.
  ///   - source: the blocks.
  ///   - visit: receives every record in the order of the tree.
  @specialized(where Source == LaidOutBlocks)
  package init<Source: BlockSource>(
    from root: CID?, in source: Source, visit: (Record) -> Void = { _ in }
  ) {
    self.init()
    header = CARHeader(roots: root.map { [$0] } ?? [])
    inspect(source, workers: 1, visit)
    distinctBlockCount = reached.count
    unreachableBlockCount = 0
  }

  /// Inspects a repository of which only the header and the number of blocks are known yet.
  ///
  /// - Parameters:
  ///   - source: its blocks.
  ///   - workers: on how many cores.
  ///   - visit: receives every record in the order of the tree, if there is one core.
  private mutating func inspect<Source: BlockSource>(
    _ source: Source, workers: Int, _ visit: (Record) -> Void
  ) {
    let (commit, place): (Commit, Int)
    do throws(RepositoryError) {
      (commit, place) = try source.commit(header.roots.first)
    } catch {
      commitError = error
      return
    }
    self.commit = commit
    var reader = TreeInspector(source)
    let walker: MSTWalker
    if let found = TreeParts.read(
      source, root: commit.data, blockCount: distinctBlockCount, workers: workers)
    {
      (reader, walker) = found
    } else {
      walker = reader.read(MSTWalker(root: commit.data), visit: visit)
    }
    reader.finish(walker, from: place, into: &self)
  }
}
