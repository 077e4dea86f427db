internal import ATProtocol
internal import Archive
internal import IPLD
internal import Snapshots
internal import Synchronization
internal import XRPC

/// Fetches blobs from a server into an archive, many at a time.
struct BlobFetcher: Sendable {
  /// The server.
  let client: XRPCClient
  /// Whose blobs.
  let did: DID
  /// Where they go.
  let appender: ArchiveAppender
  /// What the downloads share.
  let context: DownloadContext
  /// How many transfers are under way at a time.
  let connections: Int
  /// Called with the result for each blob: its length, or why it did not come.
  let settled: @Sendable (BlobReconciliation.Wanted, Result<UInt64, BlobFailure>) -> Void

  /// How often a blob is requested whose content turns out to be another's.
  private static let mismatchAttempts = 3
  /// The same, if the content is another one each time: then it is corrupted on the way, and may
  /// yet arrive intact.
  private static let corruptAttempts = 8
  /// How often a blob is requested in the first round; the second, for all that failed, has the
  /// remaining attempts.
  private static let firstAttempts = 2

  /// Fetches blobs, in this order as far as there is one among many at a time.
  ///
  /// One failed blob does not hold up the others: temporary failures are tried again at the end.
  ///
  /// - Throws: what the archive throws, or `CancellationError`; all blobs that have arrived by then
  ///   are in the archive.
  func fetch(_ wanted: [BlobReconciliation.Wanted]) async throws {
    let allowed = client.network.options.attempts
    let first = min(Self.firstAttempts, allowed)
    let deferred = Mutex<[BlobReconciliation.Wanted]>([])
    try await forEach(wanted) { blob in
      // Further attempts may resume a large blob where it broke off.
      let result = try await fetch(blob, attempts: blob.isLarge ? allowed : first)
      if case .failure(let failure) = result, failure.isTransient, !failure.isStall,
        first < allowed, !blob.isLarge
      {
        deferred.withLock { $0.append(blob) }
      } else {
        settled(blob, result)
      }
    }
    // A server that has lost everything is not asked for each blob as often as for the first ones.
    let failuresInARow = Atomic<Int>(0)
    let patience = max(32, 2 * connections)
    try await forEach(deferred.withLock { $0 }) { blob in
      let isPatient = failuresInARow.load(ordering: .relaxed) < patience
      let result = try await fetch(blob, attempts: isPatient ? allowed - first : 1)
      if case .success = result {
        failuresInARow.store(0, ordering: .relaxed)
      } else {
        failuresInARow.add(1, ordering: .relaxed)
      }
      settled(blob, result)
    }
  }

  private func forEach(
    _ wanted: [BlobReconciliation.Wanted],
    _ body: @escaping @Sendable (BlobReconciliation.Wanted) async throws -> Void
  ) async throws {
    // Slow transfers leave their places to others, so more tasks than connections are needed; the
    // network limits how many are under way at a time.
    try await forEachConcurrently(wanted, atATime: 3 * connections, body)
  }

  /// Fetches one blob; returns its length, or why it did not come.
  private func fetch(
    _ blob: BlobReconciliation.Wanted, attempts: Int
  ) async throws -> Result<UInt64, BlobFailure> {
    guard blob.cid.multihash.sha256 != nil else {
      return .failure(BlobFailure(reason: .unverifiable, status: nil))
    }
    var mismatches = 0
    var contents: Set<SHA256Digest> = []
    while true {
      let download = BlobDownload(blob.cid, context)
      do {
        let content = try await download.fetch(from: client, of: did, attempts: attempts)
        try await appender.append(blob.cid, content)
        return .success(UInt64(download.count))
      } catch {
        guard let failure = BlobFailure(error) else { throw error }
        guard failure.reason == .mismatch else { return .failure(failure) }
        mismatches += 1
        if let other = download.otherDigest { contents.insert(other) }
        let isCorrupted = contents.count == mismatches
        guard mismatches < (isCorrupted ? Self.corruptAttempts : Self.mismatchAttempts) else {
          return .failure(failure)
        }
      }
    }
  }
}
