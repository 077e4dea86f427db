public import IPLD

/// Everything that was found out about a repository in a CAR: what is in it, whether it is whole,
/// whether it is well-formed.
public struct RepositoryInspection: Sendable {
  /// The version of the CAR file: 1, or 2 around an inner CAR of version 1.
  public internal(set) var carVersion = 1
  /// Where in the input the CAR of version 1 lies.
  public internal(set) var payload = 0..<0
  /// The CAR's header.
  public internal(set) var header = CARHeader(roots: [])
  /// How many sections the CAR has.
  public internal(set) var sectionCount = 0
  /// Where each distinct block lies.
  public internal(set) var blocks = BlockTable()
  /// How many sections there are of each codec, blocks that come again counted each time.
  public internal(set) var codecCounts: [Codec: Int] = [:]
  /// The blocks that do not hash to their CIDs.
  public internal(set) var mismatchedBlocks: [CID] = []
  /// How many blocks have a hash function that cannot be checked here.
  public internal(set) var unverifiableBlockCount = 0
  /// Whether the first section is the first root; both orders occur.
  public internal(set) var rootIsFirstBlock = false
  /// What ended the reading of the CAR before its end.
  public internal(set) var carError: CARError?

  /// The commit.
  public internal(set) var commit: Commit?
  /// Why there is no commit.
  public internal(set) var commitError: RepositoryError?

  /// How many distinct tree nodes were reached.
  public internal(set) var nodeCount = 0
  /// How many levels of nodes the tree has.
  public internal(set) var treeDepth = 0
  /// The layer of the root's keys; nil for an empty tree.
  public internal(set) var rootLayer: Int?
  /// The tree nodes that are linked and not in the CAR, each once, in the order of the tree.
  public internal(set) var missingNodes: [CID] = []
  /// What is wrong with the tree, the first ``MSTWalker/maximumProblems`` of it.
  public internal(set) var treeProblems: [MSTProblem] = []
  /// How many things are wrong with the tree.
  public internal(set) var treeProblemCount = 0

  /// How many records the tree names, whether their blocks are there or not.
  public internal(set) var recordCount = 0
  /// How many different blocks the records are.
  public internal(set) var distinctRecordCount = 0
  /// How many records each collection has.
  public internal(set) var recordsByCollection: [String: Int] = [:]
  /// The first ``maximumListed`` of the records whose blocks are not in the CAR.
  public internal(set) var missingRecords: [String] = []
  /// How many records have no block in the CAR.
  public internal(set) var missingRecordCount = 0
  /// The first ``maximumListed`` of the records that break the data model, with why; their blocks
  /// are kept all the same.
  public internal(set) var recordWarnings: [(record: String, why: String)] = []
  /// How many records cannot be read.
  public internal(set) var unreadable = UnreadableRecords()
  /// How many records are not in DAG-CBOR's one canonical form, so that encoding them again would
  /// change them.
  public internal(set) var nonCanonicalRecordCount = 0
  /// How many records hold a float.
  public internal(set) var floatRecordCount = 0
  /// How many records break AT Protocol's data model in some way.
  public internal(set) var recordWarningCount = 0

  /// The blobs that records refer to.
  public internal(set) var blobs = BlobTable()
  /// How many distinct blocks are neither the commit nor in the tree nor a record.
  public internal(set) var unreachableBlockCount = 0

  /// How many names a list keeps; beyond that things are counted.
  public static let maximumListed = 1000

  /// Whether everything that was read is what it must be: hashes, commit, tree.
  public var isWellFormed: Bool {
    carError == nil && mismatchedBlocks.isEmpty && commit != nil && treeProblemCount == 0
  }

  /// Whether every tree node and every record is in the CAR.
  public var isComplete: Bool {
    commit != nil && missingNodes.isEmpty && missingRecordCount == 0
  }
}
