internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Repository
internal import Snapshots
internal import XRPC

/// A snapshot that is to be given back to a server: its CAR in a file, whole and checked, and the
/// blobs that its records refer to.
struct RestoreSource: Sendable {
  /// The snapshot.
  let archived: ArchivedSnapshot
  /// The commit.
  let commit: Commit
  /// How many records there are.
  let recordCount: Int
  /// The blobs that records refer to.
  let blobs: BlobTable
  /// How many records were changed for another account.
  let rewrittenCount: Int
  /// What in it servers are known to refuse, in words.
  let oddities: [String]
  /// The blobs whose losses are accepted.
  let accepted: Set<CID>
  /// The account that it is going to be: the snapshot's, or a new one.
  let did: DID
  /// The commit's CID.
  let head: CID
  /// The CAR, to be sent.
  let body: RequestBody
  /// The snapshot's CAR.
  let file: CARFile
  /// Which of its blocks the tree leads to; nil where it is going to be another repository.
  private let reached: BlockSet?

  /// How many bytes of the CAR are sent before their pages are let go of.
  private static let releaseInterval: UInt64 = 8 << 20

  /// Puts a snapshot's CAR together and checks all of it.
  ///
  /// - Throws: ``BackupError`` if it is not whole, or not as it came; `ArchiveError`.
  init(_ archived: ArchivedSnapshot, observer: @escaping Progress.Observer) throws {
    self.archived = archived
    let car = try RestoredRepository(archived, order: .exported, observer: observer)
    if let flaw = car.flaw { throw BackupError.carNotExact(flaw) }
    archived.reader.releasePages()
    let file = try CARFile(car.mapped, verifying: false)
    var oddPath: (first: String, count: Int)?
    let tree = RepositoryInspection(of: file) { record in
      guard RecordPath.fault(in: record.key.span) != nil else { return }
      oddPath = (
        oddPath?.first ?? String(decoding: record.key, as: UTF8.self), (oddPath?.count ?? 0) + 1
      )
    }
    guard let commit = tree.commit else {
      throw BackupError.malformedRepository(tree.whyNoCommit ?? "the snapshot has no commit")
    }
    if let problem = tree.treeProblems.first {
      throw BackupError.malformedRepository("the tree of records is malformed: \(problem)")
    }
    guard tree.isComplete else {
      throw BackupError.malformedRepository(
        "the snapshot is not whole: \(tree.missingNodes.count) tree nodes and \(tree.missingRecordCount) records are missing in it, and no server takes such a repository"
      )
    }
    guard commit.did == archived.snapshot.did else {
      throw BackupError.notGenuine(
        "the snapshot's commit is of \(commit.did), not of \(archived.snapshot.did)")
    }
    self.commit = commit
    oddities =
      (oddPath.map {
        ["\($0.count) records have paths that servers do not take, the first is \($0.first)"]
      } ?? []) + (tree.unreadable.sentence.map { [$0] } ?? [])
    (recordCount, rewrittenCount) = (tree.recordCount, 0)
    blobs = tree.blobs
    (self.file, reached) = (file, tree.reached)
    car.releasePages()
    accepted = Set(try archived.acceptances().keys)
    did = archived.snapshot.did
    head = archived.snapshot.commit
    body = RequestBody(byteCount: UInt64(car.mapped.count)) { offset, count in
      let piece = car.withBytes { bytes in
        bytes.extracting(Int(offset)..<Int(offset) + count).array
      }
      let end = offset + UInt64(count)
      if offset / Self.releaseInterval != end / Self.releaseInterval { car.releasePages() }
      return piece
    }
    archived.reader.releasePages()
  }

  /// The records of the same snapshot as the repository of another account.
  ///
  /// A commit names the account that it is of, and a server that imports one takes it as it is; so
  /// there is a new commit. What a server puts into its first write's commit is its own signature:
  /// the one in here is the old one, which does not hold.
  ///
  /// - Parameters:
  ///   - other: the snapshot.
  ///   - did: the other account.
  ///   - rewritesReferences: whether records that refer to their own account are rewritten.
  /// - Throws: ``BackupError`` if there is no room for it; `MSTProblem`.
  init(_ other: RestoreSource, as did: DID, rewritesReferences: Bool) throws {
    (archived, recordCount, accepted) = (other.archived, other.recordCount, other.accepted)
    (oddities, blobs, file) = (other.oddities, other.blobs, other.file)
    (self.did, reached) = (did, nil)
    let old = try file.commit(archived.snapshot.commit).commit
    var records = RewrittenRecords(in: file, below: old.data, from: archived.snapshot.did, to: did)
    let spool = try TemporaryFile()
    var builder = MSTBuilder()
    func put(_ block: Block) throws {
      var bytes: [UInt8] = []
      CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes)
      try spool.write(bytes.span)
    }
    var descent = MSTDescent(root: old.data, .ascending)
    while let (key, cid) = try descent.next(file.body) {
      var block = try file.block(cid)
      if rewritesReferences {
        block = try records.record(String(decoding: key, as: UTF8.self), block)
      }
      try put(block)
      try builder.append(key: key, value: block.cid) { try put($0) }
    }
    let fields: IPLDMap = [
      "did": .string(did.text), "version": .integer(3),
      "data": .link(try builder.finish { try put($0) }),
      "rev": .string((old.rev ?? TID(integer: 0)).text), "prev": .null,
      "sig": .bytes(old.signature),
    ]
    let bytes = try DAGCBOREncoder.encode(.map(fields))
    let head = CID(codec: .dagCBOR, hashing: bytes.span)
    var beginning: [UInt8] = []
    CARWriter.appendHeader(roots: [head], to: &beginning)
    CARWriter.appendSection(head, bytes.span, to: &beginning)
    (commit, self.head, rewrittenCount) = (try Commit(bytes.span), head, records.count)
    let start = UInt64(beginning.count)
    body = RequestBody(byteCount: start + UInt64(spool.count)) { [beginning] offset, count in
      guard offset < start else { return try spool.bytes(at: offset - start, count: count) }
      let first = beginning[Int(offset)...].prefix(count)
      return Array(first) + (try spool.bytes(at: 0, count: count - first.count))
    }
  }

  /// Why a server would take the commit and could not write to the repository afterwards, or would
  /// not take it; nil if it is one of today's.
  var whyCommitIsUnfit: String? {
    if commit.version != 3 { return "its commit is of version \(commit.version)" }
    guard commit.hasPrev, commit.rev != nil, commit.fields.count == Self.commitFieldCount else {
      return "its commit has not the fields that servers expect"
    }
    return nil
  }

  private static let commitFieldCount = 6

  /// How long the CAR is, in bytes.
  var byteCount: UInt64 { body.byteCount }

  /// Whether a CAR has the same commit, and every block of this repository, so that it has all of it
  /// and, by what the blocks hash to, nothing else in its tree.
  ///
  /// - Parameter read: gives the CAR, piece by piece; nil at its end.
  func isAll(in read: () throws -> [UInt8]?) throws -> Bool {
    guard var missing = reached else { return false }
    var checker = CARStreamChecker(limits: .mapped)
    while let piece = try read() {
      file.file.releasePages()
      try checker.take(piece.span) { cid in
        if let number = file.number(of: cid) { missing.remove(number) }
      }
    }
    try checker.finish()
    file.file.releasePages()
    return checker.header?.roots == [head] && missing.count == 0
  }

  /// A media type that a record names, if it can be sent.
  static func mediaType(_ named: String?) -> String {
    let named = named ?? ""
    // It goes into a header field.
    let isUsable =
      named.contains("/") && named.utf8.allSatisfy { 0x21..<0x7f ~= $0 } && named.utf8.count <= 255
    return isUsable ? named : "application/octet-stream"
  }
}

extension CARFile {
  /// A block that has to be here.
  ///
  /// - Throws: ``SnapshotError``.
  func block(_ cid: CID) throws -> Block {
    guard let bytes = body(of: cid) else { throw SnapshotError.blockMissing(cid) }
    return Block(cid: cid, bytes: bytes)
  }
}
