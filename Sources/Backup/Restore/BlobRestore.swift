internal import ATProtocol
internal import Archive
internal import IPLD
public import XRPC

/// Sends an account's own server the blobs that it says it misses, and reads back those that it does
/// not: nothing else on it is changed.
public struct BlobRestore {
  private let archived: ArchivedSnapshot
  private let network: Network
  private let connections: Int
  private let comparesBlobs: Bool
  private let tell: @Sendable (RestoreEvent) -> Void
  /// What came of it, so far.
  public private(set) var report = RestoreReport()

  /// A restore of the blobs of a snapshot.
  public init(
    _ archived: ArchivedSnapshot, network: Network, connections: Int, comparesBlobs: Bool,
    tell: @escaping @Sendable (RestoreEvent) -> Void
  ) {
    (self.archived, self.network, self.connections) = (archived, network, connections)
    (self.comparesBlobs, self.tell) = (comparesBlobs, tell)
  }

  /// Sends them.
  ///
  /// - Parameters:
  ///   - password: the account's, or one for apps.
  ///   - code: the code that came by mail for logging in.
  ///   - asksForCode: asks for it if the server wants one.
  /// - Throws: ``BackupError`` for a snapshot that is not whole; what servers throw.
  public mutating func run(
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
    let said = try await XRPCClient(service: url, network: network).call(DescribeServer())
    let server = RestoreServer(
      url: url, did: said.did, userDomains: said.userDomains,
      isInviteRequired: said.isInviteRequired, blobLimit: said.blobLimit)
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
    let compared = try await BlobComparison(
      source: source, client: target.client, connections: connections,
      progress: { tell(.progress($0)) }
    ).run(except: Set(report.unrestored.map(\.cid)))
    report.equalBlobs = compared.equalCount
    for blob in compared.differing { report.add(blob) }
    report.unrestoredCount += compared.differingCount - compared.differing.count
    finish(.comparison, "\(compared.equalCount) equal, \(compared.differingCount) not")
  }

  private mutating func finish(_ step: RestoreStep, _ answer: String) {
    report.steps.append(step)
    tell(.step(step, answer, wasDone: false))
  }
}
