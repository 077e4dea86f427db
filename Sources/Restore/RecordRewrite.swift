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
  let archived: ArchivedSnapshot
  let repository: LaidOutRepository
  let target: RestoreTarget
  /// The file that says what is deleted and not written again yet.
  let pending: FilePath

  /// What would be done.
  struct Plan {
    /// The records to write again.
    var records: [(path: RecordPath, cid: CID)] = []
    /// Blobs that cannot be helped, and why.
    var hopeless: [(cid: CID, why: String)] = []
  }

  private var restore: RecordRestore { restore(from: archived, repository) }

  private func restore(from archived: ArchivedSnapshot, _ repository: LaidOutRepository)
    -> RecordRestore
  {
    RecordRestore(archived, repository: repository, target: target, replaces: false)
  }

  /// Finds out which records have to be written again for these blobs.
  ///
  /// - Throws: `MSTProblem`; what the server throws.
  func plan(for blobs: Set<CID>) async throws -> Plan {
    var hopeless: [CID: String] = [:]
    for cid in blobs {
      // One that was taken down is refused again, and would be after its records are gone.
      if let why = try await whyNotSent(cid) { hopeless[cid] = why }
    }
    var found: [Candidate] = []
    try repository.forEachRecord { path, cid, bytes in
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
    var plan = Plan()
    plan.hopeless = hopeless.map { (cid: $0.key, why: $0.value) }
    for candidate in found where candidate.whyNot == nil {
      plan.records.append((try RecordPath(candidate.path), candidate.block.cid))
    }
    return plan
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
    guard case .held(let length) = archived.state(of: cid) else {
      return "the archive does not hold it"
    }
    let type = RestoreSource.mediaType(repository.blobs[cid]?.mimeType)
    let upload = UploadBlob(
      try await RequestBody.blob(cid, of: length, in: archived), contentType: type)
    do {
      _ = try await target.patiently { try await target.client.upload(upload) }
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
    if let why = RecordRestore.whyUnfit(block) { return "\(path): \(why)" }
    for ref in refs {
      guard !ref.isLegacy else { return "\(path) refers to it in the form of 2022" }
      guard case .held = archived.state(of: ref.cid) else {
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
    guard names.optionalText("did") == target.did.text,
      let manifest = names.optionalCID("manifest"),
      let items = names.json["records"]?.array
    else {
      throw BackupError.malformedDocument(
        "\(pending) does not say which records of \(target.did) were deleted")
    }
    let archived = try ArchivedSnapshot(manifest, in: archived.reader)
    let restore = restore(from: archived, try LaidOutRepository(of: archived))
    let paths = try items.map { try RecordPath($0.string ?? "") }
    let count = try await write(paths, restore)
    try AtomicFile.remove(pending)
    return count
  }

  /// Deletes the records, and writes them again.
  func run(_ plan: Plan) async throws {
    guard let manifest = archived.cid else { throw SnapshotError.noSnapshot }
    let names: IPLDMap = [
      "did": .string(target.did.text), "manifest": .string("\(manifest)"),
      "records": .array(plan.records.map { .string("\($0.path)") }),
    ]
    let text = DataModelJSON.encode(.map(names))
    try AtomicFile.save(to: pending, replacing: true, isPrivate: true) { try $0(text.span) }
    for (path, cid) in plan.records {
      let query = DeleteRecord(did: target.did, path: path, expecting: cid)
      try await target.patiently { try await target.client.perform(query) }
    }
    _ = try await write(plan.records.map(\.path), restore)
    try AtomicFile.remove(pending)
  }

  private func write(_ paths: [RecordPath], _ restore: RecordRestore) async throws -> Int {
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
    return count
  }
}
