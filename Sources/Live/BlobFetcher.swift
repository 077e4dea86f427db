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
  /// What blobs need on their way.
  let surroundings: ReceivedBlob.Surroundings
  /// How many transfers are under way at a time.
  let connections: Int
  /// Is told what came of each blob.
  let settled: @Sendable (BlobReconciliation.Wanted, Result<UInt64, BlobFailure>) -> Void

  /// How often a blob is asked for whose content turns out to be another's.
  private static let mismatchAttempts = 3
  /// How often it is if the content is another one each time: then it is spoilt on the way, and may
  /// yet come as it is.
  private static let spoiltAttempts = 8
  /// How often a blob is asked for in the first round; those that take more patience come when all
  /// others have.
  private static let firstAttempts = 2

  /// Which blobs nobody has begun with yet.
  private final class Queue: Sendable {
    private let wanted: [BlobReconciliation.Wanted]
    private let next = Atomic<Int>(0)

    init(_ wanted: [BlobReconciliation.Wanted]) { self.wanted = wanted }

    func take() -> BlobReconciliation.Wanted? {
      let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
      return index < wanted.count ? wanted[index] : nil
    }
  }

  /// Fetches blobs, in this order as far as there is one among many at a time.
  ///
  /// One blob that does not come does not keep the others from coming: what fails for a reason that
  /// may pass is put off until the rest is here.
  ///
  /// - Throws: what the archive throws, or `CancellationError`; all blobs that have arrived by then
  ///   are in the archive.
  func fetch(_ wanted: [BlobReconciliation.Wanted]) async throws {
    let allowed = client.network.options.attempts
    let first = min(Self.firstAttempts, allowed)
    let deferred = Mutex<[BlobReconciliation.Wanted]>([])
    // What of a large blob has come may be gone on with, by those who asked for it.
    try await fetch(wanted, attempts: { $0.isLarge ? allowed : first }) { blob, result in
      if case .failure(let failure) = result, failure.isTransient, !failure.isStall,
        first < allowed, !blob.isLarge
      {
        deferred.withLock { $0.append(blob) }
      } else {
        settled(blob, result)
      }
    }
    // A server that has lost everything need not be asked for each blob as often as for the first
    // ones.
    let failuresInARow = Atomic<Int>(0)
    let patience = max(32, 2 * connections)
    try await fetch(
      deferred.withLock { $0 },
      attempts: { _ in failuresInARow.load(ordering: .relaxed) < patience ? allowed - first : 1 }
    ) { blob, result in
      if case .success = result {
        failuresInARow.store(0, ordering: .relaxed)
      } else {
        failuresInARow.add(1, ordering: .relaxed)
      }
      settled(blob, result)
    }
  }

  private func fetch(
    _ wanted: [BlobReconciliation.Wanted],
    attempts: @escaping @Sendable (BlobReconciliation.Wanted) -> Int,
    ended: @escaping @Sendable (BlobReconciliation.Wanted, Result<UInt64, BlobFailure>) -> Void
  ) async throws {
    let queue = Queue(wanted)
    try await withThrowingTaskGroup(of: Void.self) { group in
      // Slow transfers leave their places to others, who have to be there. How many are under way
      // at a time the network decides.
      for _ in 0..<min(3 * connections, wanted.count) {
        group.addTask {
          while let blob = queue.take() {
            try Task.checkCancellation()
            ended(blob, try await fetch(blob, attempts: attempts(blob)))
          }
        }
      }
      try await group.waitForAll()
    }
  }

  /// Fetches one blob; answers its length, or why it did not come.
  private func fetch(
    _ blob: BlobReconciliation.Wanted, attempts: Int
  ) async throws -> Result<UInt64, BlobFailure> {
    guard blob.cid.multihash.sha256 != nil else {
      return .failure(BlobFailure(reason: .unverifiable, status: nil))
    }
    var mismatches = 0
    var contents: Set<SHA256Digest> = []
    while true {
      do {
        return .success(try await receive(blob, attempts: attempts))
      } catch {
        guard let failure = BlobFailure(error) else { throw error }
        guard failure.reason == .mismatch else { return .failure(failure) }
        mismatches += 1
        if let other = error as? ReceivedBlob.OtherContent { contents.insert(other.digest) }
        let isSpoilt = contents.count == mismatches
        guard mismatches < (isSpoilt ? Self.spoiltAttempts : Self.mismatchAttempts) else {
          return .failure(failure)
        }
      }
    }
  }

  /// Receives a blob into the archive; answers its length.
  private func receive(_ blob: BlobReconciliation.Wanted, attempts: Int) async throws -> UInt64 {
    let received = ReceivedBlob(blob.cid, surroundings)
    try await client.stream(
      GetBlob(did: did, cid: blob.cid), attempts: attempts, from: { received.offset }
    ) { response in
      try await received.receive(response)
    }
    try await appender.append(blob.cid, received.content())
    return UInt64(received.count)
  }
}
