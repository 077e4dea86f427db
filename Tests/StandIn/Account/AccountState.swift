import ATProtocol
import IPLD
import TestSupport

/// What a server has stored of an account, with what it knows to answer `since`: in which revision
/// each block and record was written.
///
/// Invariants:
/// 1. `blocks` holds every block that there ever was; those that the current tree leads to, and the
///    commit, are marked.
/// 2. A record's revision is the last one that wrote it.
struct AccountState: Sendable {
  struct StoredBlock {
    var bytes: [UInt8]
    var rev: TID
    var isCurrent: Bool
  }

  struct StoredRecord {
    var cid: CID
    var rev: TID
    var blobs: [CID]
  }

  var handle: String
  /// The operations of its DID.
  var operations: PLCOperations
  var password = "hunter2-hunter2"
  var privatePages: [String: [String]] = [:]
  var status = StandInAccount.Status.active
  var commit: CID?
  var rev: TID?
  var data: CID?
  var blocks: [CID: StoredBlock] = [:]
  var records: [[UInt8]: StoredRecord] = [:]
  var blobs: [CID: BlobContent] = [:]
  /// Uploads that no record refers to.
  var unreferenced: Set<CID> = []
  /// What the server's table of blobs says, whatever lies in its store.
  var rows: [CID: BlobRow] = [:]
  /// Blobs that records referred to which an import has taken away: they are expected for ever.
  var ghosts: Set<CID> = []
  var email = ""
  var appPassword: String?
  /// The code that logging in takes beside the password; nil if none.
  var loginCode: String?
  /// The code that was sent by mail last, until it is used.
  var mailCode: String?
  /// How many codes were sent.
  var mailCount = 0
  /// The address of its server that the DID document names; nil for the server it is on.
  var endpoint: String?
  /// What was there before the last commit.
  var previous: AccountState? {
    get { before.first }
    set { before = newValue.map { [$0] } ?? [] }
  }
  /// One state, or none: a value cannot hold itself.
  private var before: [AccountState] = []
  /// Revisions that ``StandInAccount/advance()`` will bring, as CARs.
  var pending: [[UInt8]] = []
  /// How often ``StandInAccount/advance()`` made something up.
  var advances = 0

  init(handle: String, operations: PLCOperations) {
    (self.handle, self.operations) = (handle, operations)
  }

  /// A line of the server's table of blobs.
  struct BlobRow: Sendable {
    var type: String
    var size: Int
    /// Uploaded while no record referred to it: not available, and not missing.
    var isTemporary = false
    var isTakenDown = false
  }

  /// The blobs that a server without their rows lists as missing.
  var missingBlobs: [CID] {
    referencedBlobs(since: nil).union(ghosts).filter { rows[$0] == nil }
  }

  /// The blobs that records refer to which were written after a revision, or at all.
  func referencedBlobs(since rev: TID?) -> Set<CID> {
    var cids: Set<CID> = []
    for record in records.values {
      if let rev, record.rev <= rev { continue }
      cids.formUnion(record.blobs)
    }
    return cids
  }

  /// Takes up a new tree: `bodies` are the records, those that are not there are gone.
  mutating func replace(
    commit: Block, nodes: [Block], data: CID, records paths: [[UInt8]: Block], rev: TID
  ) {
    if self.commit != nil {
      previous = nil
      previous = self
    }
    // A block that had gone and comes again has been written by this revision.
    let kept = blocks.filter(\.value.isCurrent)
    for cid in kept.keys { blocks[cid]?.isCurrent = false }
    for block in [commit] + nodes + paths.values {
      blocks[block.cid] = StoredBlock(
        bytes: block.bytes, rev: kept[block.cid]?.rev ?? rev, isCurrent: true)
    }
    var scanner = BlobRefScanner(profile: .dagCBOR)
    var replaced: [[UInt8]: StoredRecord] = [:]
    for (path, block) in paths {
      if let old = records[path], old.cid == block.cid {
        replaced[path] = old
      } else {
        var blobs: [CID] = []
        // An invalid record refers to nothing.
        _ = try? scanner.scan(block.bytes.span, found: { blobs.append($0.cid) })
        replaced[path] = StoredRecord(cid: block.cid, rev: rev, blobs: blobs)
      }
    }
    let before = referencedBlobs(since: nil)
    records = replaced
    self.commit = commit.cid
    self.data = data
    self.rev = rev
    // A server releases a blob with the last record that refers to it.
    for cid in before.subtracting(referencedBlobs(since: nil)) {
      blobs[cid] = nil
      rows[cid] = nil
    }
  }
}
