package import ATProtocol
internal import IPLD
package import Snapshots
package import XRPC

/// What a restore would do, what would be missing, and what it takes: found out without changing
/// anything, and without a login.
package struct RestorePlan: Sendable {
  /// What is to be restored.
  package var source: RestoreSource
  /// The new server.
  package var server: RestoreServer
  /// The old server; nil if none is known.
  package var oldServer: String?
  /// What the old server says of the account.
  package var oldStanding: String?
  /// The handle that the account goes by.
  package var handle: Handle?
  /// Whether that handle is lost with the old server.
  package var losesHandle = false
  /// How many blobs would be sent, and how many bytes those have.
  package var upload: (count: Int, bytes: UInt64) = (0, 0)
  /// The blobs that would not be there.
  package var unrestored = UnrestoredBlobs()
  /// The rotation keys that may change the account, in the order of their authority.
  package var rotationKeys: [String] = []
  /// Whether the archive has preferences to give back.
  package var hasPreferences = false
  /// What has to be given, in words.
  package var needs: [String] = []
  /// What a person should know, in words.
  package var warnings: [String] = []

  /// How many blobs the reference server takes a day.
  private static let uploadsADay = 1000

  /// Finds it out.
  ///
  /// - Throws: ``BackupError`` and `ArchiveError` for a snapshot that cannot be restored; what the
  ///   new server and the directory throw.
  package init(_ archived: ArchivedSnapshot, to target: String, network: Network) async throws {
    let source = try await onOwnQueue { try RestoreSource(archived) { _ in } }
    self.source = source
    let client = XRPCClient(service: target, network: network)
    server = (client.service, try await client.call(DescribeServer()))
    try source.forEachBlob { entry, state in
      let reason = UnrestoredBlob.Reason(
        state, isAccepted: source.accepted.contains(entry.cid), limit: server.facts.blobLimit)
      if let reason {
        unrestored.add(entry.cid, of: source, reason)
      } else if case .held(let length) = state {
        upload.count += 1
        upload.bytes += length
      }
    }
    hasPreferences = try archived.preferences() != nil
    try await findOut(archived, network)
    if server.facts.isInviteRequired { needs.append("an invite code of \(server.url): --invite") }
    if upload.count > Self.uploadsADay {
      let days = (upload.count + Self.uploadsADay - 1) / Self.uploadsADay
      warnings.append(
        "the reference server takes 1,000 blobs a day: with such a limit it takes \(days) days, and is waited for"
      )
    }
    if server.facts.blobLimit == nil {
      warnings.append("the new server does not say how long a blob may be")
    }
    warnings += source.oddities
    warnings.append(
      "a server may refuse a repository of \(source.byteCount) bytes for its length, which it does not say beforehand"
    )
  }

  private mutating func findOut(_ archived: ArchivedSnapshot, _ network: Network) async throws {
    let did = archived.snapshot.did
    let resolver = IdentityResolver(network: network)
    let document = try await resolver.dids.document(of: did).document
    handle = document.handle ?? archived.snapshot.handle
    if did.method == "plc" {
      rotationKeys = try await PLCUpdate.log(of: did, network).state?.rotationKeys ?? []
    }
    oldServer = document.pds
    guard let url = document.pds else {
      needs.append("a key: the DID document names no server that could vouch for the account")
      return
    }
    if AccountRestore.isSame(url, server.url) {
      warnings.append("the account is on \(url) already: --blobs-only sends what it lacks")
    }
    let standing = try await SourceServer.standing(of: did, at: url, network)
    switch standing {
    case .active(let rev, let head):
      oldStanding = "active, revision \(rev)"
      if head != archived.snapshot.commit {
        warnings.append(
          "the account has gone on since this snapshot: run \"carpack backup\" first, or choose this one with --at"
        )
      }
    case .inactive(let why): oldStanding = why
    case .gone(let why): oldStanding = "it does not have the account: \(why)"
    case .silent(let why): oldStanding = "it does not answer: \(why)"
    }
    if standing.isThere {
      needs.append("the account's own password: --login (no app password)")
      if did.method == "plc" {
        needs.append("the code that \(url) sends by mail, or a rotation key of your own")
      }
    } else {
      needs.append(
        "a rotation key of your own: --recovery-key; without one the account cannot be moved, and --as-new makes another of the archive"
      )
      needs.append("a mail address for the account: --email")
    }
    if let handle, !server.facts.userDomains.contains(where: handle.text.hasSuffix) {
      losesHandle = try await SourceServer.takesAlong(
        handle, of: did, from: url, isThere: standing.isThere, network: network)
    }
    if did.method == "web" { needs.append("a change of the DID document, which is yours to make") }
  }
}
