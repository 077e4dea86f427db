internal import ATProtocol
internal import IPLD
package import Snapshots
internal import Synchronization
internal import SystemPackage
internal import XRPC

/// The blobs of one backup: which are wanted, which have come, and why others have not.
///
/// Servers are asked one after the other, each for what those before it did not give. A blob is
/// missing when the last of them has not given it either.
final class BlobDownloads: Sendable {
  private struct State {
    var reconciliation: BlobReconciliation
    /// What each server has said of the blobs, by their positions; the account's own comes first.
    var answers: [(server: String, failures: [UInt32])] = []
    var progress: BackupProgress
  }

  private let state: Mutex<State>
  private let observer: @Sendable (BackupEvent) -> Void
  private let loggedInAt: String?
  private let tellsArrivals: Bool
  private let pace = ProgressPace()

  /// Downloads of what is wanted and not held.
  ///
  /// - Parameters:
  ///   - reconciliation: what is wanted.
  ///   - loggedInAt: the only server at which this run is logged in; nil if it is at none.
  ///   - tellsArrivals: whether there is an event for each blob that comes.
  ///   - observer: called with what happens.
  init(
    _ reconciliation: BlobReconciliation, loggedInAt: String? = nil, tellsArrivals: Bool = false,
    observer: @escaping @Sendable (BackupEvent) -> Void
  ) {
    state = Mutex(
      State(
        reconciliation: reconciliation,
        progress: BackupProgress(.blobs, blobsTotal: reconciliation.wantedCount)))
    (self.loggedInAt, self.tellsArrivals, self.observer) = (loggedInAt, tellsArrivals, observer)
  }

  /// Asks servers, one after the other, for all that is outstanding.
  ///
  /// - Parameters:
  ///   - servers: the servers.
  ///   - did: whose blobs.
  ///   - appender: where they go.
  ///   - options: how many at a time, and in how much memory.
  ///   - folder: where to put files without a name.
  /// - Throws: what the archive throws, or `CancellationError`.
  func fetch(
    from servers: [XRPCClient], of did: DID, into appender: ArchiveAppender,
    options: AccountBackup.Options, folder: FilePath
  ) async throws {
    let context = DownloadContext(
      memory: options.memory, folder: folder, limit: options.maxBlob,
      arrived: { [self] in arrived($0) })
    for (place, client) in servers.enumerated() {
      let wanted = state.withLock { state in
        let none = [UInt32](repeating: 0, count: state.reconciliation.count)
        let wanted = state.reconciliation.outstanding
        if !wanted.isEmpty { state.answers.append((client.service, none)) }
        return wanted
      }
      let isLast = place == servers.count - 1
      try await BlobFetcher(
        client: client, did: did, appender: appender, context: context,
        connections: options.connections, settled: { [self] in settled($0, $1, isLast: isLast) }
      ).fetch(wanted)
    }
  }

  /// What the manifest says about the blobs.
  ///
  /// What the account's own server says of a blob counts; servers where the account was before may
  /// be long gone.
  ///
  /// - Parameter moment: when they were asked for.
  func ledger(at moment: String) -> BlobReconciliation.Ledger {
    state.withLock { state in
      let failures = state.answers.first?.failures
      return state.reconciliation.ledger(at: moment) { position in
        failures.flatMap { Self.failure($0[position]) }
      }
    }
  }

  private func arrived(_ count: Int) {
    report { $0.progress.bytes = UInt64(max(0, Int($0.progress.bytes) + count)) }
  }

  private func settled(
    _ blob: BlobReconciliation.Wanted, _ result: Result<UInt64, BlobFailure>, isLast: Bool
  ) {
    var event: BackupEvent?
    report { state in
      let last = state.answers.count - 1
      switch result {
      case .success(let length):
        state.reconciliation.received(blob, length: length)
        state.progress.blobsDone += 1
        if tellsArrivals {
          event = .arrived(
            blob.cid, from: state.answers[last].server, answers(state, on: blob.position))
        }
      case .failure(let failure):
        state.answers[last].failures[blob.position] = failure.packed
        guard isLast else { return }
        state.progress.blobsFailed += 1
        let answers = answers(state, on: blob.position, last: failure)
        guard let first = answers.first?.failure else { return }
        var entry = BlobLedger.Missing(cid: blob.cid, reason: first.reason, size: blob.declaredSize)
        entry.status = first.status
        entry.isReferenced = blob.isReferenced
        event = .missing(entry, answers)
      }
    }
    if let event { observer(event) }
  }

  private func report(_ change: (inout State) -> Void) {
    let progress: BackupProgress? = state.withLock { state in
      change(&state)
      return pace.isDue() ? state.progress : nil
    }
    if let progress { observer(.progress(progress)) }
  }

  /// What servers have said of a blob.
  ///
  /// - Parameter last: what the last of them has said, with its explanation, which is not kept.
  private func answers(_ state: State, on position: Int, last: BlobFailure? = nil) -> [ServerAnswer]
  {
    state.answers.enumerated().compactMap { place, answer in
      let kept = Self.failure(answer.failures[position])
      guard let failure = place == state.answers.count - 1 ? last ?? kept : kept else { return nil }
      return ServerAnswer(server: answer.server, failure: failure, loggedInAt: loggedInAt)
    }
  }

  private static func failure(_ packed: UInt32) -> BlobFailure? {
    packed == 0 ? nil : BlobFailure(packed: packed)
  }
}

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
    // Slow transfers leave their places to others, so more tasks than connections are needed; the
    // network limits how many are under way at a time.
    let taskCount = 3 * connections
    try await forEachConcurrently(wanted, atATime: taskCount) { blob in
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
    try await forEachConcurrently(deferred.withLock { $0 }, atATime: taskCount) { blob in
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

/// What one server said of a blob that it did not give out.
public struct ServerAnswer: Equatable, Sendable {
  /// The server.
  package let server: String
  /// Why it did not come from there.
  package let failure: BlobFailure
  /// The only server at which this run is logged in; nil if it is at none.
  package let loggedInAt: String?
  /// Whether the server may give it to the account's owner, and was not asked as its owner.
  package var wantsLogin: Bool { failure.wantsLogin && loggedInAt != server }

  /// What a person reads, without the server.
  package var sentence: String {
    let status = failure.status.map { " (HTTP \($0))" } ?? ""
    guard wantsLogin else {
      return failure.reason.sentence + status + (failure.explanation.map { ": \($0)" } ?? "")
    }
    return loggedInAt.map { "could not be asked as the owner\(status): logged in only at \($0)" }
      ?? "gives it out only to the owner, logged in\(status)"
  }
}
