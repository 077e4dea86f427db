internal import ATProtocol
internal import HTTP
internal import IPLD
internal import Snapshots
internal import XRPC

/// Private data: what the server keeps for the account's owner alone, requested as the owner.
///
/// 1. If a part does not come, for whatever reason, only that part is missing: it is noted as a
///    fault, and the next backup requests it again.
/// 2. A refusal is not an error: servers differ, and an app password may not read
///    conversations.
/// 3. Earlier data stays until a complete answer replaces it.
extension BackupRun {
  /// The share of the total time that one kind may take, except for the long ones.
  private static let shareOfKind = 0.1

  /// Requests all kinds.
  ///
  /// - Throws: `CancellationError`; ``BackupError`` if there is no room for what arrives.
  func fetchPrivateData() async throws -> ReceivedPrivateData {
    // What is damaged in the archive has to be fetched again.
    let earlier = try base?.readable { try $0.privateData() }
    var received = try ReceivedPrivateData(of: identity.did, in: target.folder, after: earlier)
    let end = ContinuousClock.now + options.privateDataLimit
    for kind in OwnerData.allCases {
      observer(.progress(BackupProgress(.privateData)))
      var limit = ContinuousClock.now.duration(to: end)
      if kind.isObject { limit = min(limit, options.privateDataLimit * Self.shareOfKind) }
      let download = PrivateDataDownload(
        client: client, received: received,
        entry: PrivateData.Entry(kind.rawValue, at: options.now()))
      received = try await download.fetched(kind, within: limit)
    }
    if !received.notGiven.isEmpty {
      warn(
        "the server does not give this private data: \(received.notGiven.joined(separator: ", "))")
    }
    for text in received.failures { warn("private data is incomplete: \(text)") }
    return received
  }
}
