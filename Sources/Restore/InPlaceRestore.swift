package import ATProtocol
internal import Archive
internal import Files
package import HTTP
package import IPLD
internal import Repository
package import Snapshots
internal import XRPC

/// Puts the records of a snapshot back into their own account, on its own server, by writes: the
/// repository's history continues, with a new revision.
///
/// 1. What is going to be written is found by comparing the snapshot with what the server has; so
///    an interrupted run is continued by the next.
/// 2. Nothing is replaced or deleted that is not in the archive.
/// 3. Blobs come first: a server takes no record whose blobs it does not have.
package struct InPlaceRestore: Sendable {
  /// What is different on the server.
  package struct Changes: Sendable {
    /// Records that no longer exist.
    package fileprivate(set) var created: [Change] = []
    /// Records that are different there.
    package fileprivate(set) var updated: [Change] = []
    /// Records that the snapshot does not have.
    package fileprivate(set) var added: [Change] = []
    /// Records that no server would write unchanged, and why.
    package fileprivate(set) var unwritable: [(path: String, why: String)] = []
    /// Blobs that the records to be written refer to and that no record there does.
    package fileprivate(set) var blobs: [BlobRef] = []
    /// How many blobs of these records the archive does not hold.
    package fileprivate(set) var missingBlobCount = 0

    /// Whether nothing is left to write.
    package var areWritten: Bool { created.isEmpty && updated.isEmpty }
  }

  /// A record that is different: its path, and its CID in the snapshot; nil if it is missing.
  package typealias Change = (path: RecordPath, cid: CID?)

  /// The snapshot.
  private let source: RestoreSource
  private let repository: LaidOutRepository
  private let server: DestinationServer
  /// Whether records are deleted that the snapshot does not have.
  private let isExact: Bool
  private let tell: @Sendable (RestoreEvent) -> Void

  /// How many writes and how many bytes of JSON the reference server takes at once, with room to
  /// spare.
  private static let (maximumWrites, maximumBytes) = (200, 100_000)

  /// Reads a snapshot, and logs in on the account's server.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - isExact: whether records are deleted that the snapshot does not have.
  ///   - network: the way to servers.
  ///   - login: the account's password, or one for apps, and the code that came by mail.
  ///   - asksForCode: asks for a code that came by mail.
  ///   - tell: called with what happens.
  /// - Throws: ``BackupError``; what servers throw.
  package init(
    _ archived: ArchivedSnapshot, isExact: Bool, network: Network, _ login: OwnLogin,
    asking asksForCode: CodeQuestion, tell: @escaping @Sendable (RestoreEvent) -> Void
  ) async throws {
    source = try await onOwnQueue { try RestoreSource(archived) { tell(.progress($0)) } }
    guard let repository = source.repository else { throw SnapshotError.noSnapshot }
    (self.repository, self.isExact, self.tell) = (repository, isExact, tell)
    server = try await DestinationServer.home(
      of: source.did, network, login, asking: asksForCode, tell: tell)
    tell(.source(source))
  }

  /// Compares the snapshot with what the server has.
  ///
  /// - Throws: ``RestoreError/notSaved(_:)`` if something would be lost; what servers throw.
  package func changes() async throws -> Changes {
    let present = try await source.received(from: server.client, source.did) { [tell, source] in
      tell(.progress(Progress(stage: "reading", done: UInt64($0), total: source.byteCount)))
    }
    let changes = try await onOwnQueue { [self] in try compare(with: present) }
    let isLossy = !changes.updated.isEmpty || isExact && !changes.added.isEmpty
    if isLossy, try await onOwnQueue({ [self] in try !isSaved(present.commit.data) }) {
      throw RestoreError.notSaved(present.commit.rev?.text ?? "unknown")
    }
    return changes
  }

  /// Whether a snapshot in the archive has this tree.
  private func isSaved(_ root: CID) throws -> Bool {
    let reader = source.archived.reader
    for entry in try SnapshotHistory(of: reader).entries where entry.did == source.did {
      guard let commit = try reader.body(of: entry.commit) else { continue }
      if try Commit(commit.span).data == root { return true }
    }
    return false
  }

  private func compare(with present: CheckedRepository) throws -> Changes {
    guard let there = present.file else { throw SnapshotError.noSnapshot }
    var changes = Changes()
    var blobs: Set<CID> = []
    try MSTDiff.compare(old: present.commit.data, new: source.commit.data) { cid, side in
      side == .old ? there.body(of: cid) : repository.block(cid)
    } each: { change in
      guard case .record(let record) = change else { return }
      let path = RecordPath(checked: String(decoding: record.key, as: UTF8.self))
      guard let cid = record.new else { return changes.added.append((path, nil)) }
      if let why = try whyUnwritable(path, cid) {
        return changes.unwritable.append(("\(path)", why))
      }
      if record.old == nil {
        changes.created.append((path, cid))
      } else {
        changes.updated.append((path, cid))
      }
      for ref in try RecordRestore.blobs(of: block(cid)) where blobs.insert(ref.cid).inserted {
        guard !present.inspection.blobs.contains(ref.cid) else { continue }
        changes.blobs.append(ref)
        if !source.archived.state(of: ref.cid).isHeld { changes.missingBlobCount += 1 }
      }
    }
    return changes
  }

  private func block(_ cid: CID) throws -> Block {
    guard let bytes = repository.block(cid) else { throw SnapshotError.blockMissing(cid) }
    return Block(cid: cid, bytes: bytes)
  }

  /// Why no server would write a record unchanged; nil if one would.
  private func whyUnwritable(_ path: RecordPath, _ cid: CID) throws -> String? {
    guard path.oddity == nil else { return "servers do not accept its path" }
    let block = try block(cid)
    do throws(BackupError) { try RecordRestore.value(of: block) } catch { return "\(error)" }
    return try RecordRestore.blobs(of: block).contains(where: \.isLegacy)
      ? "it refers to a blob in the form of 2022, which servers no longer accept" : nil
  }

  /// Writes what is different, and checks that it was written.
  ///
  /// - Parameter agrees: asks whether it may be done.
  /// - Returns: What is different still: what could not be written, and what came later.
  /// - Throws: ``RestoreQuestion/writing(_:deleting:)`` if it may not;
  ///   ``RestoreError/writtenMeanwhile``; what servers throw.
  package func write(_ changes: Changes, agrees: (RestoreQuestion) -> Bool) async throws -> Changes
  {
    let deleted = isExact ? changes.added : []
    guard !changes.areWritten || !deleted.isEmpty else { return changes }
    let question = RestoreQuestion.writing(
      changes.created.count + changes.updated.count, deleting: deleted.count)
    guard agrees(question) else { throw question }
    for (number, ref) in changes.blobs.enumerated() {
      tell(
        .progress(
          Progress(
            stage: "blobs", done: UInt64(number), total: UInt64(changes.blobs.count))))
      if case .failure(let reason) = try await server.send(
        ref.cid, as: ref.mimeType, from: source.archived), reason != .notHeld
      {
        tell(.warning("\(ref.cid): \(reason.sentence)"))
      }
    }
    var batch: (writes: [XRPCCall.Write], bytes: Int) = ([], 0)
    func add(_ write: XRPCCall.Write, _ length: Int) async throws {
      if batch.writes.count == Self.maximumWrites || batch.bytes + length > Self.maximumBytes {
        try await send(batch.writes)
        batch = ([], 0)
      }
      batch.writes.append(write)
      batch.bytes += length
    }
    for (isNew, list) in [(true, changes.created), (false, changes.updated)] {
      for case (let path, let cid?) in list {
        let value = try RecordRestore.value(of: block(cid))
        let length = DataModelJSON.encode(value).count + path.text.utf8.count + Self.overhead
        try await add(isNew ? .create(path, value) : .update(path, value), length)
      }
    }
    for (path, _) in deleted { try await add(.delete(path), path.text.utf8.count + Self.overhead) }
    try await send(batch.writes)
    return try await self.changes()
  }

  /// How many bytes of JSON a write takes in addition to its record and its path.
  private static let overhead = 100

  /// Writes a batch; where the server refuses all of it, writes its records one by one, so that one
  /// refused record does not hold up the others.
  private func send(_ writes: [XRPCCall.Write]) async throws {
    guard !writes.isEmpty else { return }
    let head = try await server.call(.getLatestCommit(source.did)).cid
    do {
      try await server.perform(.applyWrites(writes, of: source.did, after: head))
    } catch let error as XRPCError where error.name == "InvalidSwap" {
      throw RestoreError.writtenMeanwhile
    } catch let error as XRPCError where Self.refusals.contains(error.status) {
      for write in writes { try await sendAlone(write) }
    }
  }

  /// The statuses of what a server refuses for its content, or does not have.
  private static let refusals: Set = [400, 404, 413, 500, 501]

  /// Makes one write by itself, and says if that is refused.
  private func sendAlone(_ write: XRPCCall.Write) async throws {
    do {
      if case .delete(let path) = write {
        guard let cid = try await RecordRestore.cid(at: path, on: server) else { return }
        try await server.perform(.deleteRecord(path, of: source.did, expecting: cid))
      } else {
        let restore = RecordRestore(repository, to: server, replaces: true)
        if case .refused(let why) = try await restore.restore(write.path) {
          tell(.warning("\(write.path) was not written: \(why)"))
        }
      }
    } catch let error as XRPCError where Self.refusals.contains(error.status) {
      tell(.warning("\(write.path) was not written: \(error)"))
    }
  }
}
