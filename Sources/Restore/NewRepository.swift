internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import XRPC

/// The records of a snapshot as the repository of another account.
///
/// A commit names the account that it is of, and a server that imports one takes it as it is; so
/// there is a new commit. What a server puts into its first write's commit is its own signature: the
/// one in here is the old one, which does not hold.
///
/// Records that refer to others of the same account name it by its DID, and these by their CIDs. On
/// request they are rewritten, each after the ones that it refers to.
struct NewRepository {
  /// The CAR.
  let body: RequestBody
  /// The commit.
  let commit: Commit
  /// The commit's CID.
  let head: CID
  /// How many records were rewritten.
  let rewrittenCount: Int

  /// Makes it.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - did: the other account.
  ///   - rewritesReferences: whether records that refer to their own account are rewritten.
  /// - Throws: ``BackupError`` for a snapshot that is damaged; `MSTProblem`.
  init(of archived: ArchivedSnapshot, as did: DID, rewritesReferences: Bool) throws {
    let repository = try LaidOutRepository(of: archived)
    let references = OwnReferences(of: archived.snapshot.did, as: did)
    var rewriting = Rewriting(repository, references)
    let file = try TemporaryFile()
    var builder = MSTBuilder()
    func put(_ block: Block) throws {
      var bytes: [UInt8] = []
      CARWriter.appendSection(block.cid, block.bytes.span, to: &bytes)
      try file.write(bytes.span)
    }
    let lost = try repository.forEachRecord { path, cid, bytes in
      guard let bytes else { throw SnapshotError.blockMissing(cid) }
      let block =
        rewritesReferences
        ? try rewriting.record(path, Block(cid: cid, bytes: bytes)) : Block(cid: cid, bytes: bytes)
      try put(block)
      try builder.append(key: Array(path.utf8), value: block.cid) { try put($0) }
    }
    guard lost == 0 else {
      throw BackupError.malformedRepository("tree nodes are missing in the snapshot: \(lost)")
    }
    let data = try builder.finish { try put($0) }
    let old = repository.commit
    let fields: IPLDMap = [
      "did": .string(did.text), "version": .integer(3), "data": .link(data),
      "rev": .string((old.rev ?? TID(integer: 0)).text), "prev": .null,
      "sig": .bytes(old.signature),
    ]
    let bytes = try DAGCBOREncoder.encode(.map(fields))
    commit = try Commit(bytes.span)
    head = CID(codec: .dagCBOR, hashing: bytes.span)
    var beginning: [UInt8] = []
    CARWriter.appendHeader(roots: [head], to: &beginning)
    CARWriter.appendSection(head, bytes.span, to: &beginning)
    body = Self.body(beginning, file)
    rewrittenCount = rewriting.count
  }

  private static func body(_ beginning: [UInt8], _ file: TemporaryFile) -> RequestBody {
    let start = UInt64(beginning.count)
    return RequestBody(byteCount: start + UInt64(file.count)) { offset, count in
      guard offset < start else { return try file.bytes(at: offset - start, count: count) }
      let head = beginning[Int(offset)...].prefix(count)
      return Array(head) + (try file.bytes(at: 0, count: count - head.count))
    }
  }

  /// Records rewritten, each after those that it refers to.
  ///
  /// A record that refers to others knows their CIDs, so that references never lead round. They may
  /// be long, as threads are, so that no call is made inside another.
  private struct Rewriting {
    private let repository: LaidOutRepository
    private let references: OwnReferences
    /// What was rewritten so far: the new CIDs, by paths.
    private var known: [String: CID] = [:]
    private(set) var count = 0

    init(_ repository: LaidOutRepository, _ references: OwnReferences) {
      (self.repository, self.references) = (repository, references)
    }

    /// What a record says; nil for one that cannot be read, which stays as it is.
    private static func value(of block: Block) -> IPLDValue? {
      do throws(DAGCBORError) { return try DAGCBORDecoder.decode(block.bytes.span) } catch {
        return nil
      }
    }

    /// A record as it is to be.
    mutating func record(_ path: String, _ block: Block) throws -> Block {
      var open = [(path, block)]
      while let (path, block) = open.last {
        guard let value = Self.value(of: block), references.occur(in: value) else {
          known[path] = block.cid
          open.removeLast()
          continue
        }
        var first: (String, Block)?
        for target in references.strongTargets(of: value) where known[target.path] == nil {
          guard let found = try repository.record(target.path), found.cid == target.cid,
            !open.contains(where: { $0.0 == target.path })
          else { continue }
          first = (target.path, found)
          break
        }
        if let first {
          open.append(first)
          continue
        }
        let bytes = try DAGCBOREncoder.encode(references.rewritten(value, known))
        known[path] = CID(codec: .dagCBOR, hashing: bytes.span)
        open.removeLast()
        if open.isEmpty {
          count += 1
          return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
        }
      }
      return block
    }
  }
}

/// What in a record names its own account: `at://DID/…` and the DID itself.
struct OwnReferences {
  private let old: String
  private let new: String

  init(of old: DID, as new: DID) { (self.old, self.new) = (old.text, new.text) }

  /// Whether a value names the account anywhere.
  func occur(in value: IPLDValue) -> Bool {
    Self.parts(of: value).contains { $0.string.map(names) ?? false }
  }

  /// The own records that a value refers to with their CIDs.
  func strongTargets(of value: IPLDValue) -> [(path: String, cid: CID)] {
    Self.parts(of: value).compactMap { $0.map.flatMap(target) }
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

  /// The value with the other account's DID in the place of this one's, and the CIDs of records that
  /// were rewritten.
  ///
  /// The depth of a record is limited by what decodes it.
  func rewritten(_ value: IPLDValue, _ known: [String: CID]) -> IPLDValue {
    switch value {
    case .string(let text):
      if text == old { return .string(new) }
      return names(text)
        ? .string("at://" + new + text.dropFirst("at://".count + old.count)) : value
    case .array(let items): return .array(items.map { rewritten($0, known) })
    case .map(let map):
      var result = map
      for entry in map.entries { result[entry.key] = rewritten(entry.value, known) }
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
