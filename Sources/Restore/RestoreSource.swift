package import ATProtocol
internal import Archive
internal import Files
internal import HTTP
package import IPLD
internal import Repository
package import Snapshots
internal import Synchronization
internal import XRPC

/// A snapshot to be restored to a server: its repository as a checked CAR, and the blobs that its
/// records refer to.
package struct RestoreSource: Sendable {
  /// The snapshot.
  package let archived: ArchivedSnapshot
  /// The commit.
  let commit: Commit
  /// The result of the walk through the tree.
  private let tree: RepositoryInspection
  /// How many records were changed for another account.
  let rewrittenCount: Int
  /// What in it servers are known to refuse, in words.
  package let oddities: [String]
  /// The blobs whose losses are accepted.
  let accepted: Set<CID>
  /// The account that it is going to be: the snapshot's, or a new one.
  package let did: DID
  /// The commit's CID.
  package let head: CID
  /// The CAR, to be sent.
  let body: RequestBody
  /// The snapshot's repository; nil if it is going to be another one.
  let repository: LaidOutRepository?
  private let blocks: any BlockSource
  private let releasePages: @Sendable () -> Void

  /// How many bytes of the CAR are sent before their pages are released.
  private static let releaseInterval: UInt64 = 8 << 20

  /// How many records there are.
  package var recordCount: Int { tree.recordCount }
  /// The blobs that records refer to.
  package var blobs: BlobTable { tree.blobs }
  /// How many of them the archive holds.
  package private(set) var heldBlobCount = 0
  /// How long the CAR is, in bytes.
  package var byteCount: UInt64 { body.byteCount }

  /// Assembles a snapshot's CAR and checks all of it.
  ///
  /// - Throws: ``BackupError`` if it is not whole, or not as it came; `ArchiveError`.
  init(_ archived: ArchivedSnapshot, observer: @escaping Progress.Observer) throws {
    let (header, blocks, order): ([UInt8], LaidOutBlocks, [Int])
    do {
      (header, blocks, order) = try archived.exported(observer)
    } catch let error where !(error is BackupError) {
      throw BackupError.carNotExact(try error.flaw())
    }
    var oddPath: (first: String, count: Int)?
    let root = try CARHeader(header.span).roots.first
    tree = RepositoryInspection(from: root, in: blocks) { record in
      guard RecordPath.oddity(in: record.key.span) != nil else { return }
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
        "the snapshot is incomplete (missing tree nodes: \(tree.missingNodes.count), missing records: \(tree.missingRecordCount)), and no server accepts such a repository"
      )
    }
    guard commit.did == archived.snapshot.did else {
      throw BackupError.notGenuine(
        "the snapshot's commit belongs to \(commit.did), not to \(archived.snapshot.did)")
    }
    (self.archived, self.commit, self.blocks, rewrittenCount) = (archived, commit, blocks, 0)
    oddities =
      (oddPath.map {
        ["records with paths that servers do not accept: \($0.count), the first is \($0.first)"]
      } ?? []) + (tree.unreadable.sentence.map { [$0] } ?? [])
    accepted = Set(try archived.acceptances().keys)
    (did, head) = (archived.snapshot.did, archived.snapshot.commit)
    repository = LaidOutRepository(archived: archived, tree: tree, flaw: nil, blocks: blocks)
    releasePages = { blocks.releasePages() }
    body = Self.body(header, blocks, order)
    try forEachBlob { _, state in if case .held = state { heldBlobCount += 1 } }
    blocks.releasePages()
    archived.reader.releasePages()
  }

  /// A CAR of a header and blocks in an order.
  private static func body(_ header: [UInt8], _ blocks: LaidOutBlocks, _ order: [Int])
    -> RequestBody
  {
    // Where the header and each section end.
    var ends = [UInt64(header.count)]
    ends.reserveCapacity(order.count + 1)
    for (index, number) in order.enumerated() {
      ends.append(ends[index] + UInt64(blocks.withSection(number) { $0.count }))
    }
    return RequestBody(byteCount: ends[order.count]) { [ends] offset, count in
      var piece: [UInt8] = []
      piece.reserveCapacity(count)
      var index = ends.partitioningIndex { $0 > offset }
      var skipped = Int(offset - (index > 0 ? ends[index - 1] : 0))
      func take(_ part: Span<UInt8>) {
        let end = min(part.count, skipped + count - piece.count)
        piece.append(contentsOf: part.extracting(skipped..<end))
      }
      while piece.count < count, index < ends.count {
        if index == 0 { take(header.span) } else { blocks.withSection(order[index - 1], take) }
        (index, skipped) = (index + 1, 0)
      }
      let end = offset + UInt64(count)
      if offset / releaseInterval != end / releaseInterval { blocks.releasePages() }
      return piece
    }
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
    guard let repository = other.repository else { throw SnapshotError.noSnapshot }
    (archived, accepted, oddities) = (other.archived, other.accepted, other.oddities)
    (self.did, self.repository, heldBlobCount) = (did, nil, other.heldBlobCount)
    let old = other.commit
    var records = RewrittenRecords(in: repository, from: archived.snapshot.did, to: did)
    let spool = try TemporaryFile()
    func put(_ block: Block) throws {
      var bytes: [UInt8] = []
      CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes)
      try spool.write(bytes.span)
    }
    // The header that is sent, and the commit after it, are known when all the rest is.
    let header = CARHeader(roots: [other.head]).bytes
    try spool.write(header.span)
    var builder = MSTBuilder()
    var descent = MSTDescent(root: old.data, .ascending)
    while let (key, cid) = try descent.next(repository.block) {
      guard let bytes = repository.block(cid) else { throw SnapshotError.blockMissing(cid) }
      var block = Block(cid: cid, bytes: bytes)
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
    (commit, head) = (try Commit(bytes.span), CID(codec: .dagCBOR, hashing: bytes.span))
    let sectionsEnd = UInt64(spool.count)
    try put(Block(cid: head, bytes: bytes))
    let file = try CARFile(spool.map(), verifying: false)
    tree = RepositoryInspection(from: head, in: file)
    (blocks, rewrittenCount) = (file, records.count)
    releasePages = { file.file.releasePages() }
    var beginning = CARHeader(roots: [head]).bytes
    CARWriter.appendSection(head, bytes.span, to: &beginning)
    let (start, skipped) = (UInt64(beginning.count), UInt64(header.count))
    body = RequestBody(byteCount: start + sectionsEnd - skipped) { [beginning] offset, count in
      guard offset < start else {
        return try spool.bytes(at: offset - start + skipped, count: count)
      }
      let first = beginning[Int(offset)...].prefix(count)
      return Array(first) + (try spool.bytes(at: skipped, count: count - first.count))
    }
  }

  /// Why a server would take the commit and could not write to the repository afterwards, or would
  /// not take it; nil if it is one of today's.
  var whyCommitIsUnfit: String? {
    if commit.version != 3 { return "its commit has version \(commit.version)" }
    guard commit.hasPrev, commit.rev != nil, commit.fields.count == Self.commitFieldCount else {
      return "its commit does not have the fields that servers expect"
    }
    return nil
  }

  private static let commitFieldCount = 6

  /// Calls `body` with each blob that records refer to, and how it stands in the archive.
  func forEachBlob(_ body: (BlobTable.Entry, BlobState) throws -> Void) throws {
    let entries = blobs.entries
    for start in stride(from: 0, to: entries.count, by: 1000) {
      let part = entries[start..<min(start + 1000, entries.count)]
      for (entry, state) in zip(part, try archived.states(of: part.map(\.cid))) {
        try body(entry, state)
      }
    }
  }

  /// A media type that a record names, if it is valid in a header.
  static func mediaType(_ named: String?) -> String {
    let named = named ?? ""
    // It goes into a header field.
    let isUsable =
      named.contains("/") && named.utf8.allSatisfy { 0x21..<0x7f ~= $0 } && named.utf8.count <= 255
    return isUsable ? named : "application/octet-stream"
  }
}

/// Sending a repository to a server, and finding out whether it has it.
extension RestoreSource {
  /// How long the server is asked whether it has taken a repository whose import was not answered,
  /// in seconds: where a proxy gave up, or nothing came for half an hour; and where the connection
  /// broke off, which mostly ends the import as well.
  private static let (patience, shortPatience) = (60.0, 2.0)
  private static let interval = 2.0
  /// How often an unanswered import is tried.
  private static let attempts = 3

  /// Sends the repository to a server unless it is there.
  ///
  /// - Returns: Whether it had to be sent.
  /// - Throws: `XRPCError` if the server refuses it; `TransportError` if it does not answer.
  func send(to target: DestinationServer) async throws -> Bool {
    if try await isThere(on: target) { return false }
    var attempt = 1
    while true {
      do {
        try await target.perform(.importRepo(body), attempts: 1)
        return true
      } catch let error {
        guard let patience = Self.patience(after: error), attempt < Self.attempts else {
          guard let refusal = error as? XRPCError, [400, 413, 500].contains(refusal.status) else {
            throw error
          }
          throw RestoreError.importRefused("\(refusal)", oddities)
        }
        for _ in 0...Int(patience / Self.interval) {
          if try await isThere(on: target) { return true }
          try await Task.sleep(for: .seconds(Self.interval))
        }
        attempt += 1
      }
    }
  }

  /// Whether the head of the repository is the one of the archive.
  private func isThere(on target: DestinationServer) async throws -> Bool {
    try await target.call(.checkAccountStatus()).commit == head
  }

  /// How long to ask whether a repository was taken after an error, in seconds; nil if it was not.
  private static func patience(after error: any Error) -> Double? {
    switch error {
    // A proxy that gave up says nothing about the server behind it, which may be at work.
    case let error as XRPCError where [502, 503, 504, 520, 522, 524].contains(error.status):
      return patience
    case let error as TransportError where error.isTransient:
      switch error.reason {
      case .stalled, .tooSlow: return patience
      default: return shortPatience
      }
    default: return nil
    }
  }

  /// How many blocks are compared before the pages in which they are found are released.
  private static let releaseCount = 1 << 15

  /// Reads the repository back and compares it: the same tree, every node and record of it there.
  ///
  /// Each block is compared with its CID on the way, and a tree's root names all of it: two trees
  /// with one root have the same paths and records. So what has the same commit and every block is
  /// equal, and nothing of it is kept. For anything else, only a walk can say what is different: it
  /// is fetched once more, into a file.
  ///
  /// - Throws: ``RestoreError/otherRepository(_:)``; what fetching throws.
  func compare(
    on target: DestinationServer, _ progress: @escaping @Sendable (Progress) -> Void
  ) async throws {
    let limit = Int(clamping: byteCount.multipliedSaturated(by: 4)) + (64 << 20)
    let arrived: @Sendable (Int) -> Void = { [byteCount] count in
      progress(Progress(stage: "reading back", done: UInt64(count), total: byteCount))
    }
    let missing = Mutex((blocks: tree.reached, found: 0))
    let passing = ReceivedRepository(in: nil, limit: limit, arrived: arrived) { [self] cid in
      guard let number = blocks.number(of: cid) else { return }
      missing.withLock { missing in
        missing.blocks.remove(number)
        missing.found += 1
        if missing.found % Self.releaseCount == 0 { releasePages() }
      }
    }
    try await target.client.stream(.getRepo(did)) { response in
      missing.withLock { $0.blocks = tree.reached }
      try await passing.receive(response.body)
    }
    releasePages()
    if await passing.roots == [head], missing.withLock({ $0.blocks.count }) == 0 { return }
    let repository = try await received(from: target.client, did, arrived)
    guard repository.commit.data == commit.data else {
      throw RestoreError.otherRepository(
        "its tree is \(repository.commit.data) with \(repository.inspection.recordCount) records, and the archive's is \(commit.data) with \(recordCount)"
      )
    }
  }

  /// What a server serves, complete and checked.
  ///
  /// - Throws: ``RestoreError/otherRepository(_:)`` if it is not whole; what fetching throws.
  func received(
    from client: XRPCClient, _ did: DID, _ arrived: @escaping @Sendable (Int) -> Void = { _ in }
  ) async throws -> CheckedRepository {
    let limit = Int(clamping: byteCount.multipliedSaturated(by: 4)) + (64 << 20)
    let received = ReceivedRepository(
      in: TemporaryFile.defaultFolder, limit: limit, arrived: arrived)
    try await client.stream(.getRepo(did)) { response in
      try await received.receive(response.body)
    }
    let file = try await received.received()
    return try await onOwnQueue {
      let repository = try CheckedRepository(
        file.map(), archive: nil, isHashed: true, observer: { _ in })
      guard repository.inspection.isComplete else {
        throw RestoreError.otherRepository("tree nodes or records are missing")
      }
      return repository
    }
  }
}
