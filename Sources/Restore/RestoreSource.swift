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
      let range = Int(offset)..<Int(offset) + count
      let piece = car.withBytes { $0.extracting(range).array }
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

  /// Whether a CAR has the same commit, and every block of this repository, so that it has all of
  /// it and, by what the blocks hash to, nothing else in its tree.
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

/// Giving a server a repository, and finding out whether it has it.
extension RestoreSource {
  /// How long the server is asked whether it has taken a repository whose import was not answered,
  /// in seconds: where a proxy gave up, or nothing came for half an hour; and where the connection
  /// broke off, which mostly ends the import as well.
  private static let (patience, shortPatience) = (60.0, 2.0)
  private static let interval = 2.0
  private static let pieceLength = 2 << 20
  /// How often an import is tried that gets no answer.
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
        _ = try await target.upload(ImportRepo(body), attempts: 1)
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
    try await target.call(CheckAccountStatus()).commit == head
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

  /// Reads the repository back and compares it: the same tree, every node and record of it there.
  ///
  /// Each block is compared with its CID on the way, and a tree's root names all of it: two trees
  /// with one root have the same paths and records.
  ///
  /// - Throws: ``RestoreError/otherRepository(_:)``; what fetching throws.
  func compare(
    on target: DestinationServer, _ progress: @escaping @Sendable (Progress) -> Void
  ) async throws {
    let limit = Int(clamping: byteCount.multipliedSaturated(by: 4)) + (64 << 20)
    let received = ReceivedRepository(
      in: TemporaryFile.defaultFolder, limit: limit,
      arrived: { [byteCount] count in
        progress(Progress(stage: "reading back", done: UInt64(count), total: byteCount))
      })
    try await target.client.stream(GetRepo(did: did)) { response in
      try await received.receive(response.body)
    }
    let file = try await received.received()
    try await onOwnQueue { [self] in
      var offset = 0
      let isAll = try isAll {
        let count = min(Self.pieceLength, file.count - offset)
        defer { offset += count }
        return count > 0 ? try file.bytes(at: UInt64(offset), count: count) : nil
      }
      if isAll { return }
      // Other blocks may be the same tree, and it takes a walk to say what is different.
      let repository = try CheckedRepository(
        file.map(), archive: nil, isHashed: true, observer: { _ in })
      guard repository.inspection.isComplete else {
        throw RestoreError.otherRepository("tree nodes or records are missing in it")
      }
      guard repository.commit.data == commit.data else {
        throw RestoreError.otherRepository(
          "its tree is \(repository.commit.data) with \(repository.inspection.recordCount) records, and the archive's is \(commit.data) with \(recordCount)"
        )
      }
    }
  }
}

/// The records of a repository, naming another account in the place of their own.
///
/// Records that refer to others of the same account name it by its DID, and these by their CIDs. So
/// they are rewritten, each after the ones that it refers to.
struct RewrittenRecords {
  private let file: CARFile
  /// The root of the tree.
  private let root: CID
  private let old: String
  private let new: String
  /// What was rewritten so far: the new CIDs, by paths.
  private var known: [String: CID] = [:]
  /// How many records were rewritten.
  private(set) var count = 0

  /// The records below the root of a tree, going from one account to another.
  init(in file: CARFile, below root: CID, from old: DID, to new: DID) {
    (self.file, self.root, self.old, self.new) = (file, root, old.text, new.text)
  }

  /// What a record says; nil for one that cannot be read, which stays as it is.
  private static func value(of block: Block) -> IPLDValue? {
    do throws(DAGCBORError) { return try DAGCBORDecoder.decode(block.bytes.span) } catch {
      return nil
    }
  }

  /// A record as it is to be.
  ///
  /// A record that refers to others knows their CIDs, so that references never lead round. They may
  /// be long, as threads are, so that no call is made inside another.
  mutating func record(_ path: String, _ block: Block) throws -> Block {
    var open = [(path, block)]
    while let (path, block) = open.last {
      let value = Self.value(of: block)
      let parts = value.map(Self.parts) ?? []
      guard let value, parts.contains(where: { $0.string.map(names) ?? false }) else {
        known[path] = block.cid
        open.removeLast()
        continue
      }
      // The first of the own records that it refers to with their CIDs and that is not known yet.
      var first: (String, Block)?
      for target in parts.compactMap({ $0.map.flatMap(target) })
      where known[target.path] == nil && !open.contains(where: { $0.0 == target.path }) {
        let cid = try MSTDescent.find(target.path.utf8, below: root) { try file.block($0).bytes }
        guard cid == target.cid else { continue }
        first = (target.path, try file.block(target.cid))
        break
      }
      if let first {
        open.append(first)
        continue
      }
      let bytes = try DAGCBOREncoder.encode(rewritten(value))
      let cid = CID(codec: .dagCBOR, hashing: bytes.span)
      known[path] = cid
      open.removeLast()
      if open.isEmpty {
        count += 1
        return Block(cid: cid, bytes: bytes)
      }
    }
    return block
  }

  /// A value and all that is in it, without a call inside another.
  private static func parts(of value: IPLDValue) -> [IPLDValue] {
    var parts = [value]
    var next = 0
    while next < parts.count {
      switch parts[next] {
      case .array(let items): parts += items
      case .map(let map): parts += map.entries.map(\.value)
      default: break
      }
      next += 1
    }
    return parts
  }

  /// The value with the other account's DID in the place of this one's, and the CIDs of records
  /// that were rewritten.
  ///
  /// The depth of a record is limited by what decodes it.
  private func rewritten(_ value: IPLDValue) -> IPLDValue {
    switch value {
    case .string(let text):
      if text == old { return .string(new) }
      return names(text)
        ? .string("at://" + new + text.dropFirst("at://".count + old.count)) : value
    case .array(let items): return .array(items.map(rewritten))
    case .map(let map):
      var result = map
      for entry in map.entries { result[entry.key] = rewritten(entry.value) }
      if let target = target(map), let cid = known[target.path] {
        result["cid"] = .string("\(cid)")
      }
      return .map(result)
    default: return value
    }
  }

  private func names(_ text: String) -> Bool { text == old || text.hasPrefix("at://\(old)/") }

  private func target(_ map: IPLDMap) -> (path: String, cid: CID)? {
    guard let uri = map["uri"]?.string, uri.hasPrefix("at://\(old)/"),
      let cid = Answer(.map(map)).optionalCID("cid")
    else { return nil }
    return (String(uri.dropFirst("at://\(old)/".utf8.count)), cid)
  }
}
