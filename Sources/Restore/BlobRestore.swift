internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
package import Snapshots
package import SystemPackage
package import XRPC

/// Sends an account's own server the blobs that it says it misses, and reads back the others.
///
/// Nothing else on it is changed, unless records are to be written again for blobs that the server
/// only believes to have.
package struct BlobRestore {
  private let archived: ArchivedSnapshot
  private let network: Network
  private let connections: Int
  private let comparesBlobs: Bool
  private let rewritesRecords: Bool
  private let archive: FilePath
  private let agrees: @Sendable (RestoreQuestion) -> Bool
  private let tell: @Sendable (RestoreEvent) -> Void
  /// The result, so far.
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
  ///   - tell: called with what happens.
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
  ///   - login: the account's password, or one for apps, and the code that came by mail.
  ///   - asksForCode: asks for a code if the server wants one.
  /// - Throws: ``BackupError`` for a snapshot that is not whole; what servers throw.
  package mutating func run(
    _ login: OwnLogin, asksForCode: @Sendable (_ server: String, _ purpose: String) -> Secret?
  ) async throws {
    let source = try await onOwnThread { [archived, tell] in
      try RestoreSource(archived) { tell(.progress($0)) }
    }
    try report.note(source, tell)
    let server = try await DestinationServer.home(
      of: archived.snapshot.did, network, login, asking: asksForCode, tell: tell)
    let client = XRPCClient(service: server.client.service, network: network)
    let blobs = BlobTransfer(
      source: source, server: server,
      limit: try await report.note(serverOf: client, tell).blobLimit, connections: connections,
      tell: tell)
    let sent = try await blobs.send()
    report.note(sent)
    finish(.blobs, "\(sent.count) sent, \(sent.missing.count) missing")
    guard comparesBlobs else { return }
    let known = Set(report.unrestored.first.map(\.cid))
    var compared = try await blobs.compare(except: known)
    if try await rewrite(compared.differing.first.map(\.cid), server) {
      compared = try await blobs.compare(except: known)
    }
    report.equalBlobs = compared.equalCount
    report.unrestored += compared.differing
    finish(.comparison, "\(compared.equalCount) equal, \(compared.differing.count) not")
  }

  /// Offers to write records again whose blobs the server believes to have and has not; returns
  /// whether that was done.
  private func rewrite(_ differing: [CID], _ server: DestinationServer) async throws -> Bool {
    let path = FileNaming.beside(archive, ".rewrite.json")
    guard !differing.isEmpty || AtomicFile.isTaken(path) else { return false }
    let rewrite = RecordRewrite(
      restore: try await RecordRestore(archived, to: server, replaces: false), pending: path)
    let finished = try await rewrite.finishPending()
    if finished > 0 {
      tell(.warning("\(finished) records that an interrupted run had deleted were written again"))
    }
    let plan = try await rewrite.plan(for: Set(differing))
    for (cid, why) in plan.hopeless { tell(.warning("\(cid) cannot be helped: \(why)")) }
    guard !plan.records.isEmpty else { return finished > 0 }
    guard rewritesRecords, agrees(.rewriting(records: plan.records.count)) else {
      tell(
        .warning(
          "the server believes to have \(differing.count) blobs that it has not, and takes them again only when no record refers to them: --rewrite-records deletes \(plan.records.count) records and writes them again, with the same keys, values and CIDs"
        ))
      return finished > 0
    }
    try await rewrite.run(plan.records)
    return true
  }

  private mutating func finish(_ step: RestoreStep, _ answer: String) {
    report.steps.append(step)
    tell(.step(step, answer, wasDone: false))
  }
}
