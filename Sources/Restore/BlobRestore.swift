internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
package import Snapshots
package import SystemPackage
package import XRPC

/// Sends an account's own server the blobs that it says it misses, and reads back those that it does
/// not: nothing else on it is changed, unless records are to be written again for blobs that the
/// server only believes to have.
package struct BlobRestore {
  private let archived: ArchivedSnapshot
  private let network: Network
  private let connections: Int
  private let comparesBlobs: Bool
  private let rewritesRecords: Bool
  private let archive: FilePath
  private let agrees: @Sendable (RestoreQuestion) -> Bool
  private let tell: @Sendable (RestoreEvent) -> Void
  /// What came of it, so far.
  package private(set) var report = RestoreReport()

  /// A restore of the blobs of a snapshot.
  ///
  /// - Parameters:
  ///   - archived: the snapshot.
  ///   - archive: the archive's file.
  ///   - network: the way to servers.
  ///   - connections: how many transfers are under way at a time.
  ///   - comparesBlobs: whether blobs that the server does not miss are read back.
  ///   - rewritesRecords: whether records may be deleted and written again, if that is agreed to.
  ///   - agrees: asks whether something may be done.
  ///   - tell: is told what happens.
  package init(
    _ archived: ArchivedSnapshot, in archive: FilePath, network: Network, connections: Int,
    comparesBlobs: Bool, rewritesRecords: Bool,
    agrees: @escaping @Sendable (RestoreQuestion) -> Bool,
    tell: @escaping @Sendable (RestoreEvent) -> Void
  ) {
    (self.archived, self.archive, self.network) = (archived, archive, network)
    (self.connections, self.comparesBlobs, self.tell) = (connections, comparesBlobs, tell)
    (self.rewritesRecords, self.agrees) = (rewritesRecords, agrees)
  }

  /// Sends them.
  ///
  /// - Parameters:
  ///   - password: the account's, or one for apps.
  ///   - code: the code that came by mail for logging in.
  ///   - asksForCode: asks for it if the server wants one.
  /// - Throws: ``BackupError`` for a snapshot that is not whole; what servers throw.
  package mutating func run(
    password: Secret, code: Secret?,
    asksForCode: @Sendable (_ server: String, _ purpose: String) -> Secret?
  ) async throws {
    let (archived, tell) = (archived, tell)
    let did = archived.snapshot.did
    let source = try await onOwnThread {
      try RestoreSource(archived) { tell(.progress($0)) }
    }
    let facts = try AccountRestore.facts(of: source)
    report.source = facts
    tell(.source(facts))
    let identity = try await IdentityResolver(network: network).resolve(
      .did(did), confirmingHandle: false)
    guard let url = identity.pds else { throw BackupError.noServer(did.text) }
    let server = try await RestoreServer(asking: XRPCClient(service: url, network: network))
    report.server = server
    tell(.server(server))
    let session = try await Session.begin(
      service: url, network: network, did: did, password: password, code: code,
      asking: asksForCode)
    let target = RestoreTarget(
      client: XRPCClient(service: url, network: network, session: session), did: did
    ) { tell(.waiting(seconds: $0, why: $1)) }
    let sent = try await BlobUpload(
      source: source, target: target, blobLimit: server.blobLimit, connections: connections,
      progress: { tell(.progress($0)) }
    ).run()
    report.sentBlobs = sent.sentCount
    report.sentBytes = sent.sentBytes
    for blob in sent.missing { report.add(blob) }
    report.unrestoredCount += sent.missingCount - sent.missing.count
    finish(.blobs, "\(sent.sentCount) sent, \(sent.missingCount) missing")
    guard comparesBlobs else { return }
    let known = Set(report.unrestored.map(\.cid))
    var compared = try await compare(source, target, except: known)
    if try await rewrite(compared.differing, target, source) {
      compared = try await compare(source, target, except: known)
    }
    report.equalBlobs = compared.equalCount
    for blob in compared.differing { report.add(blob) }
    report.unrestoredCount += compared.differingCount - compared.differing.count
    finish(.comparison, "\(compared.equalCount) equal, \(compared.differingCount) not")
  }

  private func compare(
    _ source: RestoreSource, _ target: RestoreTarget, except known: Set<CID>
  ) async throws -> BlobComparison.Outcome {
    let tell = tell
    return try await BlobComparison(
      source: source, client: target.client, connections: connections,
      progress: { tell(.progress($0)) }
    ).run(except: known)
  }

  /// Offers to write records again whose blobs the server believes to have and has not; answers
  /// whether that was done.
  private mutating func rewrite(
    _ differing: [UnrestoredBlob], _ target: RestoreTarget, _ source: RestoreSource
  ) async throws -> Bool {
    let path = FileNaming.beside(archive, ".rewrite.json")
    guard !differing.isEmpty || AtomicFile.isTaken(path) else { return false }
    let archived = archived
    let rewrite = RecordRewrite(
      archived: archived, repository: try await onOwnThread { try LaidOutRepository(of: archived) },
      target: target, pending: path)
    let finished = try await rewrite.finishPending()
    if finished > 0 {
      tell(.warning("\(finished) records that an interrupted run had deleted were written again"))
    }
    let plan = try await rewrite.plan(for: Set(differing.map(\.cid)))
    for (cid, why) in plan.hopeless { tell(.warning("\(cid) cannot be helped: \(why)")) }
    guard !plan.records.isEmpty else { return finished > 0 }
    guard rewritesRecords, agrees(.rewriting(records: plan.records.count)) else {
      tell(
        .warning(
          "the server believes to have \(differing.count) blobs that it has not, and takes them again only when no record refers to them: --rewrite-records deletes \(plan.records.count) records and writes them again, with the same keys, values and CIDs"
        ))
      return finished > 0
    }
    try await rewrite.run(plan)
    return true
  }

  private mutating func finish(_ step: RestoreStep, _ answer: String) {
    report.steps.append(step)
    tell(.step(step, answer, wasDone: false))
  }
}
