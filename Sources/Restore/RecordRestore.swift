package import ATProtocol
internal import Files
package import HTTP
package import IPLD
package import Snapshots
internal import SystemPackage
internal import XRPC

/// Puts single records of a snapshot back, and the blobs that they refer to, into their own
/// account: with the same keys, the same values and therefore the same CIDs.
package struct RecordRestore {
  /// The result for one record.
  package enum Outcome: Sendable, Equatable {
    /// It was written.
    case written
    /// It was there, with this very CID.
    case there
    /// Another record is in its place, and was left alone.
    case occupied(CID)
    /// It was not written: why.
    case refused(String)
  }

  private let repository: LaidOutRepository
  private var archived: ArchivedSnapshot { repository.archived }
  private let server: DestinationServer
  private let replaces: Bool

  /// A restore of records of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - network: the way to servers.
  ///   - login: the account's password, or one for apps, and the code that came by mail.
  ///   - replaces: whether other records in their places are replaced.
  ///   - tell: called with what is waited for.
  ///   - asksForCode: asks for a code that came by mail.
  /// - Throws: ``BackupError``; what servers throw.
  package init(
    _ archived: ArchivedSnapshot, network: Network, _ login: OwnLogin, replaces: Bool,
    tell: @escaping @Sendable (RestoreEvent) -> Void, asksForCode: CodeQuestion
  ) async throws {
    let server = try await DestinationServer.home(
      of: archived.snapshot.did, network, login, asking: asksForCode, tell: tell)
    let repository = try await onOwnQueue { try LaidOutRepository(of: archived) }
    self.init(repository, to: server, replaces: replaces)
  }

  init(_ repository: LaidOutRepository, to server: DestinationServer, replaces: Bool = false) {
    (self.repository, self.server, self.replaces) = (repository, server, replaces)
  }

  /// Puts one back.
  ///
  /// - Throws: ``BackupError/notFound(_:)`` for one that the snapshot does not have; what the
  ///   server throws that is not about this record.
  package func restore(_ path: RecordPath) async throws -> Outcome {
    guard let block = try repository.record("\(path)") else {
      throw BackupError.notFound("\(path)")
    }
    let value: IPLDValue
    do throws(BackupError) { value = try Self.value(of: block) } catch {
      return .refused("\(error)")
    }
    let present = try await cid(at: path)
    if present == block.cid { return .there }
    if let present, !replaces { return .occupied(present) }
    do {
      for ref in try Self.blobs(of: block) {
        guard !ref.isLegacy else {
          return .refused("it refers to a blob in the form of 2022, which servers no longer accept")
        }
        // The server may have what the archive does not; if not, it says so.
        if case .failure(let reason) = try await server.send(
          ref.cid, as: ref.mimeType, from: archived), reason != .notHeld
        {
          return .refused("its blob \(ref.cid): \(reason.sentence)")
        }
      }
      let did = server.did
      let written =
        if let present {
          try await server.call(
            .writeRecord(value, at: path, of: did, replacing: present))
        } else {
          try await server.call(.writeRecord(value, at: path, of: did))
        }
      return written == block.cid
        ? .written : .refused("the server stored another record instead, \(written)")
    } catch let error as XRPCError where [400, 413, 500].contains(error.status) {
      // Cut off on the way back, it may have been written.
      if error.status == 500, try await cid(at: path) == block.cid { return .written }
      return .refused("\(error)")
    }
  }

  /// What a record says, if JSON says all of it, so that the server comes to the same bytes.
  ///
  /// - Throws: ``BackupError/malformedDocument(_:)``: why it would not.
  @discardableResult
  static func value(of block: Block) throws(BackupError) -> IPLDValue {
    let value: IPLDValue
    let isFit: Bool
    do {
      value = try DAGCBORDecoder.decode(block.bytes.span)
      isFit =
        try DAGCBOREncoder.encode(value) == block.bytes
        && DataModelJSON.decode(DataModelJSON.encode(value)) == value
    } catch {
      throw .malformedDocument("it cannot be read: \(error)")
    }
    guard isFit else { throw .malformedDocument("it is not in the form that a server would write") }
    guard value["$type"] != nil else {
      throw .malformedDocument("it has no $type, which a server would add")
    }
    return value
  }

  static func blobs(of block: Block) throws -> [BlobRef] {
    var refs: [BlobRef] = []
    var scanner = BlobRefScanner(profile: .dagCBOR)
    _ = try scanner.scan(block.bytes.span, found: { refs.append($0) })
    return refs
  }

  func cid(at path: RecordPath) async throws -> CID? {
    try await Self.cid(at: path, on: server)
  }

  /// The CID of the record that a server has there; nil if it has none.
  static func cid(at path: RecordPath, on server: DestinationServer) async throws -> CID? {
    do {
      return try await server.call(.getRecord(path, of: server.did))
    } catch let error as XRPCError
      where error.status == 404
      || error.name == "RecordNotFound"
      || (error.status == 400 && error.name == "InvalidRequest")
    {
      return nil
    }
  }
}

/// The remedy for blobs that a server lists but has lost.
///
/// It accepts such a blob again only when no record refers to it. So the records that do are
/// deleted, and written again with the same keys and values, which gives them the same CIDs.
///
/// 1. A record is deleted only if the archive has it as the server does, with all blobs that it
///    refers to.
/// 2. What is going to be deleted is in a file beside the archive before it is: an interrupted run
///    is finished by the next.
extension RecordRestore {
  /// Finds out which records have to be written again for these blobs, and which blobs cannot be
  /// helped.
  ///
  /// - Throws: `MSTProblem`; what the server throws.
  func plan(for blobs: Set<CID>) async throws
    -> (records: [(path: RecordPath, cid: CID)], hopeless: [CID: String])
  {
    var hopeless: [CID: String] = [:]
    for cid in blobs {
      // One that was taken down is refused again, and would be after its records are gone.
      do {
        let type = repository.blobs[cid]?.mimeType
        if case .failure(let reason) = try await server.send(cid, as: type, from: archived) {
          hopeless[cid] = reason.sentence
        }
      } catch let error as XRPCError where error.status != 401 {
        hopeless[cid] = "\(error)"
      }
    }
    // The records that refer to one of them, and why each has to stay; nil if it may be deleted.
    var found: [(path: String, block: Block, refs: [BlobRef], whyNot: String?)] = []
    try repository.forEachRecord { path, cid, bytes in
      guard let bytes else { return }
      let block = Block(cid: cid, bytes: bytes)
      let refs = try Self.blobs(of: block)
      guard refs.contains(where: { blobs.contains($0.cid) }) else { return }
      found.append((path, block, refs, nil))
    }
    for index in found.indices {
      let (path, block, refs, _) = found[index]
      found[index].whyNot = try await whyNot(path, block, refs)
    }
    // A record that has to stay keeps the rows of its blobs, so that others need not be deleted for
    // these; and one that refers to what cannot be sent has to stay.
    var isSettled = false
    while !isSettled {
      isSettled = true
      for index in found.indices {
        let candidate = found[index]
        if candidate.whyNot == nil,
          let ref = candidate.refs.first(where: { hopeless[$0.cid] != nil })
        {
          found[index].whyNot = "\(candidate.path) refers to \(ref.cid), which cannot be restored"
          isSettled = false
        }
        guard let why = found[index].whyNot else { continue }
        for ref in candidate.refs where blobs.contains(ref.cid) && hopeless[ref.cid] == nil {
          hopeless[ref.cid] = why
          isSettled = false
        }
      }
    }
    let records = try found.filter { $0.whyNot == nil }.map {
      (path: try RecordPath($0.path), cid: $0.block.cid)
    }
    return (records, hopeless)
  }

  /// Why a record is not to be deleted, by itself; nil if it may be.
  private func whyNot(_ path: String, _ block: Block, _ refs: [BlobRef]) async throws -> String? {
    let recordPath = RecordPath(checked: path)
    guard recordPath.oddity == nil else { return "\(path) is not a path that a server accepts" }
    do throws(BackupError) { try Self.value(of: block) } catch { return "\(path): \(error)" }
    for ref in refs {
      guard !ref.isLegacy else { return "\(path) refers to it in the form of 2022" }
      guard case .held = archived.state(of: ref.cid) else {
        return "\(path) refers to \(ref.cid) as well, which the archive does not hold"
      }
    }
    guard try await cid(at: recordPath) == block.cid else {
      return "\(path) is a different record on the server than in the archive"
    }
    return nil
  }

  /// Finishes what an interrupted run has begun, according to its file; returns how many records it
  /// wrote.
  ///
  /// They are read from the snapshot that they were deleted by: one that was made since lacks them.
  ///
  /// - Throws: ``BackupError/malformedDocument(_:)`` for a file that is another account's, or none.
  func finishPending(in pending: FilePath) async throws -> Int {
    guard let bytes = try AtomicFile.read(pending) else { return 0 }
    let names = Answer(try DataModelJSON.decode(bytes))
    guard names.optionalText("did") == server.did.text,
      let manifest = names.optionalCID("manifest"), let items = names.json["records"]?.array
    else {
      throw BackupError.malformedDocument(
        "\(pending) does not say which records of \(server.did) were deleted")
    }
    let earlier = try ArchivedSnapshot(manifest, in: archived.reader)
    let repository = try await onOwnQueue { try LaidOutRepository(of: earlier) }
    return try await RecordRestore(repository, to: server).finish(
      items.map { try RecordPath($0.string ?? "") }, in: pending)
  }

  /// Deletes records, and writes them again; a file says meanwhile which they are.
  func rewrite(_ records: [(path: RecordPath, cid: CID)], noting pending: FilePath) async throws {
    guard let manifest = archived.cid else { throw SnapshotError.noSnapshot }
    let did = server.did
    let names: IPLDMap = [
      "did": .string(did.text), "manifest": .string("\(manifest)"),
      "records": .array(records.map { .string("\($0.path)") }),
    ]
    let text = DataModelJSON.encode(.map(names))
    try AtomicFile.save(to: pending, replacing: true, isPrivate: true) { try $0(text.span) }
    for (path, cid) in records {
      try await server.perform(.deleteRecord(path, of: did, expecting: cid))
    }
    _ = try await finish(records.map(\.path), in: pending)
  }

  /// Writes what was deleted, and removes the file; returns how many records it wrote.
  private func finish(_ paths: [RecordPath], in pending: FilePath) async throws -> Int {
    var count = 0
    for path in paths {
      switch try await restore(path) {
      case .written: count += 1
      case .there: continue
      case let outcome:
        throw RestoreError.notWrittenAgain(path, outcome, file: pending.string)
      }
    }
    try AtomicFile.remove(pending)
    return count
  }
}
