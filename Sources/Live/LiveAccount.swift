package import ATProtocol
internal import Archive
internal import Files
package import HTTP
package import IPLD
internal import Repository
internal import Snapshots
internal import SystemPackage
package import XRPC

/// An account on its server, for fetching single pieces of it.
package struct LiveAccount: Sendable {
  /// The account.
  package let did: DID
  private let identity: AccountIdentity
  private let client: XRPCClient
  private let network: Network

  /// Finds an account.
  ///
  /// - Parameters:
  ///   - account: what it is called.
  ///   - network: the way to servers.
  ///   - session: what begins a session, to ask as the account's owner.
  /// - Throws: `IdentityError`, `BackupError`, and what a session throws.
  package init(
    _ account: ATIdentifier, network: Network,
    session: (@Sendable (DID, String, Network) async throws -> Session)? = nil
  ) async throws {
    // Without an archive no moment counts.
    identity = try await AccountIdentity(account, base: nil, at: "", network: network)
    did = identity.did
    self.network = network
    client = XRPCClient(
      service: identity.server, network: network,
      session: try await identity.session(session, for: account, network: network))
  }

  /// The repository, or its changes, each block compared with its CID.
  ///
  /// - Parameters:
  ///   - since: the revision since which changes are wanted; nil for all of it.
  ///   - limit: how long its CAR may be, in bytes, decompressed.
  ///   - now: the moment, in RFC 3339, to recognise revisions in the future.
  /// - Returns: the CAR, and how many tree nodes and records are missing in it.
  /// - Throws: `XRPCError`, `TransportError`; ``CutShort`` if it came without its end each time;
  ///   `CARError`, `RepositoryError` and ``BackupError`` for one that is malformed, or not the
  ///   account's.
  package func repository(
    since: TID? = nil, limit: Int, now: String
  ) async throws -> (DownloadedFile, missing: Int) {
    var attempts = 1
    while true {
      do {
        return try await fetchRepository(since, limit, now)
      } catch let error as CARError where error.isCut {
        guard attempts < Self.repositoryAttempts else {
          throw CutShort(cause: error, attempts: attempts)
        }
        attempts += 1
      }
    }
  }

  /// How often a repository is fetched that does not arrive whole.
  private static let repositoryAttempts = 3

  private func fetchRepository(_ since: TID?, _ limit: Int, _ now: String) async throws
    -> (DownloadedFile, missing: Int)
  {
    let received = ReceivedRepository(
      in: TemporaryFile.defaultFolder, limit: limit, arrived: { _ in })
    try await client.stream(.getRepo(did, since: since)) { response in
      try await received.receive(response.body)
    }
    let file = try await received.received()
    guard since == nil else { return (.file(file), 0) }
    let log = did.method == "plc" ? try await plcLog() : nil
    let verifier = try CommitVerifier(did: did, key: identity.key, log: log, now: now)
    return try await onOwnQueue {
      let repository = try CheckedRepository(
        file.map(), archive: nil, isHashed: true, observer: { _ in })
      try verifier.check(repository.commit)
      let inspection = repository.inspection
      return (.file(file), inspection.missingNodes.count + inspection.missingRecordCount)
    }
  }

  /// A blob, compared with its CID.
  ///
  /// - Parameters:
  ///   - cid: which.
  ///   - limit: how long it may be, in bytes.
  /// - Throws: `XRPCError`, `TransportError`; `ArchiveError` with the reason `contentMismatch` if
  ///   the server sent something else.
  package func blob(_ cid: CID, limit: Int) async throws -> DownloadedFile {
    let download = BlobDownload(
      cid, memory: MemoryBudget(BlobDownload.maximumInMemory), folder: TemporaryFile.defaultFolder,
      limit: limit)
    let content = try await download.fetch(from: client, of: did)
    guard case .file(let file) = content else { return content }
    return try await onOwnQueue {
      var hash = SHA256()
      try file.read(pieces: 1 << 20) { hash.update($0) }
      guard cid.multihash.sha256 == hash.finish() else { throw ArchiveError(.contentMismatch(cid)) }
      return .file(file)
    }
  }

  /// The blobs that the server lists, how many of its entries are not CIDs, and the error that
  /// ended the list too early.
  ///
  /// - Throws: `CancellationError`.
  package func blobs() async throws -> (cids: [CID], malformedCount: Int, failure: (any Error)?) {
    let listing = try await BlobListing.gather(
      of: did, from: client, referenced: nil, progress: { _ in })
    return (Array(listing.list), listing.malformedCount, listing.failure)
  }

  /// The newest commit.
  ///
  /// - Throws: `XRPCError`, `TransportError`.
  package func latestCommit() async throws -> LatestCommit {
    try await client.call(.getLatestCommit(did))
  }

  /// The DID document.
  ///
  /// - Throws: `BackupError` if it could not be fetched.
  package func document() throws -> [UInt8] {
    guard let document = identity.document else { throw BackupError.noServer(did.text) }
    return document
  }

  /// The account's history in the PLC directory.
  ///
  /// - Throws: `IdentityError`.
  package func plcLog() async throws -> [UInt8] {
    try await IdentityResolver(network: network).dids.plcLog(of: did)
  }
}
