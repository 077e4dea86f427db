internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import SystemPackage
internal import XRPC

/// The way out for blobs that a server believes to have and does not.
///
/// It takes such a blob again only when no record refers to it. So the records that do are deleted,
/// and written again with the same keys and values, which gives them the same CIDs.
///
/// 1. A record is deleted only if the archive has it as the server does, with all blobs that it
///    refers to.
/// 2. What is going to be deleted is in a file beside the archive before it is: an interrupted run
///    is finished by the next.
struct RecordRewrite {
  /// What puts records back.
  let restore: RecordRestore
  /// The file that says what is deleted and not written again yet.
  let pending: FilePath

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
      if let why = try await whyNotSent(cid) { hopeless[cid] = why }
    }
    var found: [Candidate] = []
    try restore.repository.forEachRecord { path, cid, bytes in
      guard let bytes else { return }
      let block = Block(cid: cid, bytes: bytes)
      let refs = try RecordRestore.blobs(of: block)
      guard refs.contains(where: { blobs.contains($0.cid) }) else { return }
      found.append(Candidate(path: path, block: block, refs: refs))
    }
    for index in found.indices { found[index].whyNot = try await whyNot(found[index]) }
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
          found[index].whyNot = "\(candidate.path) refers to \(ref.cid), which cannot be helped"
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

  /// A record that refers to a blob in question.
  private struct Candidate {
    let path: String
    let block: Block
    let refs: [BlobRef]
    /// Why it has to stay; nil if it may be deleted.
    var whyNot: String?
  }

  /// Why the server does not take a blob at all; nil if it does.
  private func whyNotSent(_ cid: CID) async throws -> String? {
    do {
      let type = restore.repository.blobs[cid]?.mimeType
      let sent = try await restore.server.send(cid, as: type, from: restore.archived)
      if case .failure(let reason) = sent { return reason.sentence }
      return nil
    } catch let error as XRPCError where error.status != 401 {
      return "\(error)"
    }
  }

  /// Why a record is not to be deleted, by itself; nil if it may be.
  private func whyNot(_ candidate: Candidate) async throws -> String? {
    let (path, block, refs) = (candidate.path, candidate.block, candidate.refs)
    let recordPath: RecordPath
    do throws(IdentifierError) { recordPath = try RecordPath(path) } catch {
      return "\(path) is no path that a server takes"
    }
    do throws(RecordRestore.Unfit) { try RecordRestore.value(of: block) } catch {
      return "\(path): \(error.what)"
    }
    for ref in refs {
      guard !ref.isLegacy else { return "\(path) refers to it in the form of 2022" }
      guard case .held = restore.archived.state(of: ref.cid) else {
        return "\(path) refers to \(ref.cid) as well, which the archive does not hold"
      }
    }
    guard try await restore.cid(at: recordPath) == block.cid else {
      return "\(path) is another on the server than in the archive"
    }
    return nil
  }

  /// Finishes what an interrupted run has begun; answers how many records it wrote.
  ///
  /// They are read from the snapshot that they were deleted by: one that was made since lacks them.
  ///
  /// - Throws: ``BackupError/malformedDocument(_:)`` for a file that is another account's, or none.
  func finishPending() async throws -> Int {
    guard let bytes = try AtomicFile.read(pending) else { return 0 }
    let names = Answer(try DataModelJSON.decode(bytes))
    guard names.optionalText("did") == restore.server.did.text,
      let manifest = names.optionalCID("manifest"),
      let items = names.json["records"]?.array
    else {
      throw BackupError.malformedDocument(
        "\(pending) does not say which records of \(restore.server.did) were deleted")
    }
    let archived = try ArchivedSnapshot(manifest, in: restore.archived.reader)
    return try await finish(
      items.map { try RecordPath($0.string ?? "") },
      RecordRestore(archived, to: restore.server, replaces: false))
  }

  /// Deletes records, and writes them again.
  func run(_ records: [(path: RecordPath, cid: CID)]) async throws {
    guard let manifest = restore.archived.cid else { throw SnapshotError.noSnapshot }
    let did = restore.server.did
    let names: IPLDMap = [
      "did": .string(did.text), "manifest": .string("\(manifest)"),
      "records": .array(records.map { .string("\($0.path)") }),
    ]
    let text = DataModelJSON.encode(.map(names))
    try AtomicFile.save(to: pending, replacing: true, isPrivate: true) { try $0(text.span) }
    for (path, cid) in records {
      try await restore.server.perform(DeleteRecord(did: did, path: path, expecting: cid))
    }
    _ = try await finish(records.map(\.path), restore)
  }

  /// Writes what was deleted, and forgets that it was; returns how many records it wrote.
  private func finish(_ paths: [RecordPath], _ restore: RecordRestore) async throws -> Int {
    var count = 0
    for path in paths {
      switch try await restore.restore(path) {
      case .written: count += 1
      case .there: continue
      case let outcome:
        throw RestoreError.otherRepository(
          "\(path) was deleted and is \(outcome.sentence); it is named in \(pending), and --record puts it back"
        )
      }
    }
    try AtomicFile.remove(pending)
    return count
  }
}
