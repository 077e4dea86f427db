package import IPLD

/// A proof that a repository has one record, or does not have it: the commit, the tree nodes on the
/// way, the record.
///
/// A CAR whose only root is the commit, as `com.atproto.sync.getRecord` returns it. It proves what
/// the commit's signer signed at that revision, once the signature is judged
/// (``PLCHistory/judge(_:now:)`` with ``commit``); not that the revision is the newest.
package struct RecordProof: Hashable, Sendable {
  /// The longest proof, in bytes: that of the longest record, and as much for the nodes on the way,
  /// which are usually a few kilobytes.
  package static let maximumLength = 2 * RepositoryLimits.block

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

  /// Judges a proof made by any tool.
  ///
  /// - Parameters:
  ///   - car: the proof.
  ///   - path: what it is about. A CAR does not name it; without it, the path of a record that is
  ///     there is found in the proof. That of an absent record has to be given.
  /// - Throws: ``RecordProofFault``, also where a block is missing that would decide;
  ///   ``RecordProofFault/pathUnknown`` without a path, unless it holds exactly one record.
  package init(judging car: Span<UInt8>, of path: RecordPath? = nil) throws(RecordProofFault) {
    let blocks = try ProofBlocks(car)
    commitCID = blocks.root
    commit = try Self.commit(car.extracting(try blocks.range(blocks.root)))
    if let path {
      self.path = path
    } else {
      self.path = try blocks.onlyPath(below: commit.data, car)
    }
    var used: Set<CID> = [blocks.root]
    var finding = Finding.absent
    var way = Way(self.path, below: commit.data)
    while let cid = try way.next() {
      let range = try blocks.range(cid)
      used.insert(cid)
      if try way.take(car.extracting(range)) { finding = .record(cid, car.array(range)) }
    }
    self.finding = finding
    extraBlocks = blocks.ranges.count - used.count
    duplicateBlocks = blocks.duplicates
  }

  private static func commit(_ bytes: Span<UInt8>) throws(RecordProofFault) -> Commit {
    do throws(RepositoryError) {
      return try Commit(bytes)
    } catch {
      throw .notACommit(error)
    }
  }

  /// The nodes on the way to a record, each of which is judged, and the record.
  private struct Way {
    private let key: [UInt8]
    private var descent: MSTDescent
    private var isAtRecord = false

    init(_ path: RecordPath, below root: CID) {
      key = Array(path.text.utf8)
      descent = MSTDescent(root: root, from: key, isJudging: true)
    }

    /// The block that is needed next; nil after the record, or if there is none.
    mutating func next() throws(RecordProofFault) -> CID? {
      guard !isAtRecord else { return nil }
      do throws(MSTProblem) {
        switch try descent.next() {
        case .node(let cid): return cid
        case .record(let cid) where descent.key == key:
          isAtRecord = true
          return cid
        default: return nil
        }
      } catch {
        throw .illegalNode(error)
      }
    }

    /// Takes the block; returns whether it is the record.
    mutating func take(_ block: Span<UInt8>) throws(RecordProofFault) -> Bool {
      guard !isAtRecord else { return true }
      do throws(MSTProblem) {
        try descent.enter(block)
        return false
      } catch {
        throw .illegalNode(error)
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
    let head = try Self.commit(bytes.span)
    var way = Way(path, below: head.data)
    while let cid = try way.next() {
      let bytes = try append(cid, block, &car)
      _ = try way.take(bytes.span)
    }
    return car
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
