package import ATProtocol
package import HTTP
internal import IPLD
package import Snapshots
internal import XRPC

/// What a restore would do, what would be missing, and what it takes: found out without changing
/// anything, and without a login.
package struct RestorePlan: Sendable {
  /// What is to be restored.
  package let source: RestoreSource
  /// The new server.
  package let server: RestoreServer
  /// The old server; nil if none is known.
  package let old: SourceServer?
  /// The handle that the account goes by.
  package let handle: Handle?
  /// Whether that handle is lost with the old server.
  package let losesHandle: Bool
  /// How many blobs would be sent, and how many bytes those have.
  package private(set) var upload: (count: Int, bytes: UInt64) = (0, 0)
  /// The blobs that would not be there.
  package private(set) var unrestored = UnrestoredBlobs()
  /// The rotation keys that may change the account, in the order of their authority.
  package let rotationKeys: [String]
  /// Whether the archive has preferences to give back.
  package let hasPreferences: Bool

  /// How many blobs the reference server takes a day.
  private static let uploadsADay = 1000

  /// How many days sending the blobs takes with the reference server's limit.
  package var uploadDays: Int { (upload.count + Self.uploadsADay - 1) / Self.uploadsADay }
  /// Whether something was written to the account since the snapshot was made.
  package var isOutdated: Bool {
    if case .active(_, let head)? = old?.standing { head != source.head } else { false }
  }
  /// Whether the account is on the new server already.
  package var isThere: Bool { old.map { AccountRestore.isSame($0.url, server.url) } ?? false }

  /// Finds it out.
  ///
  /// - Throws: ``BackupError`` and `ArchiveError` for a snapshot that cannot be restored; what the
  ///   new server and the directory throw.
  package init(_ archived: ArchivedSnapshot, to target: String, network: Network) async throws {
    source = try await onOwnQueue { try RestoreSource(archived) { _ in } }
    let client = XRPCClient(service: target, network: network)
    server = (client.service, try await client.call(.describeServer()))
    hasPreferences = try archived.preferences() != nil
    let did = archived.snapshot.did
    let document = try await IdentityResolver(network: network).dids.document(of: did).document
    handle = document.handle ?? archived.snapshot.handle
    rotationKeys =
      did.method == "plc"
      ? try await PLCUpdate.log(of: did, network).state?.rotationKeys ?? [] : []
    if let url = document.pds {
      old = try await SourceServer(url, of: did, network)
    } else {
      old = nil
    }
    if old != nil, let handle, !server.facts.userDomains.contains(where: handle.text.hasSuffix) {
      losesHandle = try await SourceServer.takesAlong(handle, of: did, from: old, network)
    } else {
      losesHandle = false
    }
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
  }
}
