package import IPLD

/// A proof that a repository has one record, or does not have it: the commit, the tree nodes on the
/// way, the record.
///
/// A CAR whose only root is the commit, as `com.atproto.sync.getRecord` answers. It proves what the
/// commit's signer signed at that revision, once the signature is judged
/// (``PLCHistory/judge(_:now:)`` with ``commit``); not that the revision is the newest.
package struct RecordProof: Hashable, Sendable {
  /// The longest proof, in bytes: that of a record takes a few kilobytes beside the record.
  package static let maximumLength = 4 << 20

  /// What is proven of the path.
  package enum Finding: Hashable, Sendable {
    /// The record is in the repository: its CID and its bytes.
    case record(CID, [UInt8])
    /// The repository has no record at this path.
    case absent
  }

  /// The commit, for judging its signature.
  package let commit: Commit
  /// The commit's CID.
  package let commitCID: CID
  /// The path in question.
  package let path: RecordPath
  /// What is proven of it.
  package let finding: Finding
  /// How many different blocks the proof has that it does not need.
  package let extraBlocks: Int
  /// How many blocks are there again.
  package let duplicateBlocks: Int

  /// The account.
  package var did: DID { commit.did }
  /// The revision; a commit of version 2 has none.
  package var rev: TID? { commit.rev }

  /// Judges a proof about a path, made by any tool.
  ///
  /// - Throws: ``RecordProofFault``, also where a block is missing that would decide.
  package init(judging car: Span<UInt8>, of path: RecordPath) throws(RecordProofFault) {
    let blocks = try ProofBlocks(car)
    self = try RecordProof(path, in: blocks, car)
  }

  /// Judges a proof that a record is there, whose path is found in the proof.
  ///
  /// A CAR does not name the path. That of an absent record cannot be found, and has to be given.
  ///
  /// - Throws: ``RecordProofFault``; ``RecordProofFault/pathUnknown`` unless it holds exactly one
  ///   record.
  package init(judging car: Span<UInt8>) throws(RecordProofFault) {
    let blocks = try ProofBlocks(car)
    let path = try blocks.onlyPath(car)
    self = try RecordProof(path, in: blocks, car)
  }

  private init(_ path: RecordPath, in blocks: ProofBlocks, _ car: Span<UInt8>)
    throws(RecordProofFault)
  {
    commit = try blocks.commit(car)
    commitCID = blocks.root
    self.path = path
    var used: Set<CID> = [blocks.root]
    finding = try Self.find(path, below: commit.data, blocks, car, &used)
    extraBlocks = blocks.ranges.count - used.count
    duplicateBlocks = blocks.duplicates
  }

  /// Goes down the tree; `used` gets the blocks that this takes.
  private static func find(
    _ path: RecordPath, below root: CID, _ blocks: ProofBlocks, _ car: Span<UInt8>,
    _ used: inout Set<CID>
  ) throws(RecordProofFault) -> Finding {
    var way = ProvenPath(Array(path.text.utf8))
    var cid = root
    while true {
      let node = try blocks.range(cid)
      used.insert(cid)
      switch try way.step(car.extracting(node), cid) {
      case .node(let next): cid = next
      case .absent: return .absent
      case .record(let record):
        let range = try blocks.range(record)
        used.insert(record)
        return .record(record, car.array(range))
      }
    }
  }

  /// Makes the smallest proof of a path: the commit, the nodes from the root down, and the record
  /// if there is one.
  ///
  /// - Parameters:
  ///   - path: of which record.
  ///   - commit: the commit of the repository.
  ///   - block: the bytes of a block, or nil if there is none.
  /// - Throws: ``RecordProofFault`` where a block is missing or illegal; what `block` throws is up
  ///   to the caller.
  package static func make(
    of path: RecordPath, commit: CID, block: (CID) throws -> [UInt8]?
  ) throws -> [UInt8] {
    var car: [UInt8] = []
    CARWriter.appendHeader(roots: [commit], to: &car)
    let bytes = try append(commit, block, &car)
    let head: Commit
    do throws(RepositoryError) {
      head = try Commit(bytes.span)
    } catch {
      throw RecordProofFault.notACommit(error)
    }
    var way = ProvenPath(Array(path.text.utf8))
    var cid = head.data
    while true {
      let node = try append(cid, block, &car)
      switch try way.step(node.span, cid) {
      case .node(let next): cid = next
      case .absent: return car
      case .record(let record):
        _ = try append(record, block, &car)
        return car
      }
    }
  }

  /// Appends a block to a proof.
  private static func append(
    _ cid: CID, _ block: (CID) throws -> [UInt8]?, _ car: inout [UInt8]
  ) throws -> [UInt8] {
    guard let bytes = try block(cid) else { throw RecordProofFault.missingBlock(cid) }
    guard cid.verify(bytes.span) == .matches else { throw RecordProofFault.wrongBlock(cid) }
    CARWriter.appendSection(cid, bytes.span, to: &car)
    guard car.count <= maximumLength else { throw RecordProofFault.tooLong }
    return bytes
  }
}
