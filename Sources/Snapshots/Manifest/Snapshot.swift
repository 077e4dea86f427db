public import ATProtocol
public import IPLD

/// The manifest: what one snapshot is, how complete it is, and how to reassemble its CAR.
///
/// A DAG-CBOR map in a section of its own; the footer names the newest, and each names the one
/// before it. The fields are described in `Docs/FORMAT.md`, section 6.
public struct Snapshot: Equatable, Sendable {
  /// The version of the structure that is written, and the only one that is read.
  package static let version = 1

  /// The account.
  public var did: DID
  /// The account's handle, as it was known.
  public var handle: Handle?
  /// The server, as it was known.
  public var pds: String?
  /// The revision; nil for a commit of version 2.
  public var rev: TID?
  /// The signed commit.
  public var commit: CID
  /// The manifest before this one in the file.
  public var previous: CID?
  /// When the snapshot was made, in RFC 3339 and UTC.
  public var createdAt = ""
  /// Name and version of the writer.
  public var tool = ""
  /// The CAR as it was received.
  package var car = CARDescription()
  /// How many records, tree nodes and distinct blocks there are.
  public var counts = Counts()
  /// How many blobs there are, and how many of them the archive holds.
  public var blobs = BlobCounts()
  /// The account's DID document, as received.
  package var didDocument: CID?
  /// The account's PLC audit log, as received.
  package var plcLog: CID?
  /// The list of what the server keeps for the account's owner alone; nil if never requested.
  package var privateData: CID?
  /// The list of what app views have shown of the people and posts that records point to; nil if
  /// none was queried.
  package var context: CID?
  /// Pages that list the blobs held though no record refers to them.
  package var extrasPages: [CID] = []
  /// Pages that list the blobs referred to and not held.
  package var missingPages: [CID] = []
  /// Whether every tree node and record was in the CAR.
  public var isComplete = false
  /// What damage to an archive has left of it; nil if nothing is known to be lost.
  package var remains: Remains?
  /// The operating system it was made on.
  package var hostSystem = ""
  /// How long making it took, in milliseconds.
  package var durationMilliseconds = 0
  /// How it was fetched from a server; nil if it was packed from a file.
  package var fetched: Fetched?
  /// How many records could not be read when it was made.
  package var unreadable = UnreadableRecords()
  /// Its trust issues, and those that were accepted.
  package var standing = Standing()
  /// Whether no footer led to it when it was found in a damaged file, so that it may never have
  /// been committed.
  package var isUnvouched = false
  /// The unknown fields of its manifest.
  var further = FurtherFields()

  /// Fields that a later version may have written, kept in copies; nothing here depends on them.
  struct FurtherFields: Equatable, Sendable {
    var map: IPLDMap = [:]

    static func == (left: Self, right: Self) -> Bool { true }
  }

  /// A snapshot of which nothing else is known.
  package init(did: DID, commit: CID) { (self.did, self.commit) = (did, commit) }

  /// What a manifest says of a repository itself.
  package init(
    _ commit: Commit, at root: CID, _ counts: Counts, _ unreadable: UnreadableRecords,
    isComplete: Bool, blobCount: Int
  ) {
    self.init(did: commit.did, commit: root)
    (rev, blobs.referenced) = (commit.rev, blobCount)
    (self.counts, self.unreadable, self.isComplete) = (counts, unreadable, isComplete)
  }

  /// How a server gave a repository.
  package struct Fetched: Equatable, Sendable {
    /// The revision since which the server was asked for changes, if what it sent was put together
    /// with the snapshot that the archive had; nil if it sent the whole repository.
    package var since: TID?
    /// The revision that the server named when it sent the repository (`Atproto-Repo-Rev`), as
    /// received; nil if it named none.
    package var repoRev: String?

    /// What the server sent beside the repository and was left out; nil if all that it sent is
    /// stored.
    package var leftOut: LeftOut?

    /// A repository that was fetched.
    package init() {}
  }

  /// Blocks that a server sent though they are not part of the repository, and that are not stored.
  package struct LeftOut: Equatable, Sendable {
    /// How many there were, repeated ones counted each time.
    package var blocks: Int
    /// How many bytes their sections had.
    package var bytes: Int

    package init(blocks: Int, bytes: Int) { (self.blocks, self.bytes) = (blocks, bytes) }
  }

  /// The CAR that came in, and the order of its sections.
  package struct CARDescription: Equatable, Sendable {
    /// The header, with its length in front.
    package var header: [UInt8] = []
    /// The length in bytes.
    package var byteCount: UInt64 = 0
    /// The SHA-256 of all of it; nil if the snapshot never was a CAR that came in, and
    /// was not put together.
    package var sha256: SHA256Digest?
    /// How many sections it has, repeated ones counted each time.
    package var sectionCount: UInt64 = 0
    /// The runs of the order; nil if they are in ``pages``, because it is long.
    package var runs: [UInt8]? = []
    /// The blocks whose concatenation is the runs.
    package var pages: [CID] = []
    /// The manifest of an earlier snapshot of the account, to whose order this one is relative; nil
    /// if its positions are ordinals.
    package var base: CID?
    /// The ordinal that the position after that snapshot's last section stands for.
    package var first: UInt64?

  }

  /// What the repository consists of.
  public struct Counts: Equatable, Sendable {
    /// Records.
    public var records = 0
    /// Tree nodes.
    public var nodes = 0
    /// Distinct blocks.
    public var blocks = 0
    /// Distinct blocks that are records, of which two keys may lead to one; nil if that is not
    /// known.
    package var recordBlocks: Int?
  }

  /// What can still be reached of a snapshot that was in a damaged archive: records, and blobs that
  /// they refer to, each of how many.
  package struct Remains: Equatable, Sendable {
    package var (records, recordsBefore) = (0, 0)
    package var (references, referencesBefore) = (0, 0)

    /// So many of so many.
    package init(_ records: Int = 0, _ references: Int = 0) {
      (self.records, recordsBefore) = (records, records)
      (self.references, referencesBefore) = (references, references)
    }
  }

  /// The blobs in figures.
  public typealias BlobCounts = BlobLedger.Counts
}

extension Snapshot {
  /// What people call the account: its handle, or its DID.
  package var name: String { handle?.text ?? did.text }

  /// Whether nothing that is known of is missing but blobs that are accepted as lost.
  package var hasEverythingKnown: Bool { isComplete && blobs.isSettled }

  /// Whether nothing is missing, and no record may refer to blobs that are not known.
  public var isWhole: Bool { isComplete && blobs.isComplete && !unreadable.mayHideBlobs }

  /// Whether nothing is missing but blobs that are accepted as lost, and no record may refer to
  /// blobs that are not known.
  public var isSettled: Bool {
    hasEverythingKnown && !unreadable.mayHideBlobs && !standing.doubts.contains(.behind)
  }

  /// Whether an earlier snapshot of the account says everything that this one does, except for
  /// when, how and by whom it was made.
  func saysNothingNew(after earlier: Snapshot) -> Bool {
    var same = self
    (same.previous, same.fetched) = (earlier.previous, earlier.fetched)
    (same.createdAt, same.tool) = (earlier.createdAt, earlier.tool)
    same.hostSystem = earlier.hostSystem
    same.durationMilliseconds = earlier.durationMilliseconds
    same.blobs.listed = earlier.blobs.listed
    (same.blobs.new, same.blobs.newBytes) = (earlier.blobs.new, earlier.blobs.newBytes)
    // The CAR's digest is what counts; its order may be written down in several ways.
    (same.car.runs, same.car.pages) = (earlier.car.runs, earlier.car.pages)
    (same.car.base, same.car.first) = (earlier.car.base, earlier.car.first)
    if standing.saysNothingNew(after: earlier.standing) { same.standing = earlier.standing }
    // Earlier versions did not count them.
    if earlier.counts.recordBlocks == nil { same.counts.recordBlocks = nil }
    return same == earlier
  }
}

/// Why a manifest, or a block it leads to, cannot be used.
public enum SnapshotError: KnownFault, Equatable, Sendable, CustomStringConvertible {
  /// The block is not DAG-CBOR.
  case notDAGCBOR(DAGCBORError)
  /// The block is not a manifest.
  case notAManifest
  /// The manifest is of a later version.
  case unknownVersion(Int)
  /// A field is missing or malformed.
  case malformedField(String)
  /// The order of the CAR's sections is malformed.
  case malformedOrder
  /// The order has more runs than an archive of this size should need.
  case tooManyRuns(limit: Int)
  /// The order refers to an earlier snapshot in a way that is not known here.
  case unknownOrder(String)
  /// A page of a list is malformed.
  case malformedPage(CID)
  /// A block that the manifest leads to is not in the archive.
  case blockMissing(CID)
  /// A block of the repository is not in the archive, and the snapshot is known not to be whole.
  case notPacked(CID)
  /// The archive has no snapshot.
  case noSnapshot

  /// The archive has lost it, except what it never had.
  public var faultKind: FaultKind {
    if case .notPacked = self { .absence } else { .damage }
  }

  /// The message for people.
  public var description: String {
    switch self {
    case .notDAGCBOR(let error): "the manifest is \(error)"
    case .notAManifest: "the block that should be the manifest is something else"
    case .unknownVersion(let version):
      "the manifest is of version \(version); this carpack reads version \(Snapshot.version)"
    case .malformedField(let name): "the manifest's field \"\(name)\" is missing or malformed"
    case .malformedOrder: "the manifest's order of blocks is malformed"
    case .tooManyRuns(let limit):
      "the manifest's order of blocks has more than \(limit) runs, too many for the archive's size (--allow-large reads it)"
    case .unknownOrder(let kind):
      "the manifest orders its blocks in a way (\(kind.utf8.shown)) that is not known"
    case .malformedPage(let cid): "the page \(cid) that the manifest leads to is malformed"
    case .blockMissing(let cid): "the block \(cid) that the manifest leads to is not in the archive"
    case .notPacked(let cid): "the block \(cid) is missing: the snapshot is incomplete"
    case .noSnapshot: "the archive holds no snapshot"
    }
  }
}
