internal import ATProtocol
internal import Files
internal import HTTP
internal import IPLD
package import Snapshots
internal import Synchronization
internal import SystemPackage
internal import XRPC

/// The blobs of one backup: which are wanted, which have arrived, and why others have not.
///
/// Servers are asked one after the other, each for what those before it did not give, many blobs at
/// a time. A blob is missing when the last of them has not given it either.
final class BlobDownloads: Sendable {
  private let did: DID
  private let appender: ArchiveAppender
  private let folder: FilePath
  private let pieces: BlobPieces?
  private let options: AccountBackup.Options
  private let loggedInAt: String?
  private let tellsArrivals: Bool
  private let observer: @Sendable (BackupEvent) -> Void
  private let pace = ProgressPace()
  /// What is wanted; what each server has said of the blobs, by their positions, the account's own
  /// first; how far it is.
  private let state:
    Mutex<
      (
        reconciliation: BlobReconciliation, answers: [(server: String, failures: [UInt32])],
        progress: BackupProgress
      )
    >

  /// How often a blob is requested if its content does not match its CID.
  private static let mismatchAttempts = 3
  /// The same, if the content differs each time: then it is corrupted in transfer, and may still
  /// arrive intact.
  private static let corruptAttempts = 8
  /// How often a blob is requested in the first round; the second, for all that failed, has the
  /// remaining attempts.
  private static let firstAttempts = 2

  /// Downloads of what is wanted and not held.
  ///
  /// - Parameters:
  ///   - reconciliation: what is wanted.
  ///   - did: whose blobs.
  ///   - appender: where they go.
  ///   - folder: where to put files without a name.
  ///   - pieces: where large blobs that broke off wait for the next run; nil if none may.
  ///   - options: how many at a time, and in how much memory.
  ///   - loggedInAt: the only server at which this run is logged in; nil if it is at none.
  ///   - tellsArrivals: whether there is an event for each blob that comes.
  ///   - observer: called with what happens.
  init(
    _ reconciliation: BlobReconciliation, of did: DID, into appender: ArchiveAppender,
    folder: FilePath, pieces: BlobPieces?, options: AccountBackup.Options,
    loggedInAt: String? = nil, tellsArrivals: Bool = false,
    observer: @escaping @Sendable (BackupEvent) -> Void
  ) {
    (self.did, self.appender, self.options) = (did, appender, options)
    (self.folder, self.pieces) = (folder, pieces)
    (self.loggedInAt, self.tellsArrivals, self.observer) = (loggedInAt, tellsArrivals, observer)
    let progress = BackupProgress(.blobs, blobsTotal: reconciliation.wantedCount)
    state = Mutex((reconciliation, [], progress))
  }

  /// Asks servers, one after the other, for all that is outstanding.
  ///
  /// - Throws: what the archive throws, or `CancellationError`; all blobs that have arrived by then
  ///   are in the archive.
  func fetch(from servers: [XRPCClient]) async throws {
    for (place, client) in servers.enumerated() {
      let wanted = state.withLock { state in
        let wanted = state.reconciliation.outstanding
        if !wanted.isEmpty {
          let none = [UInt32](repeating: 0, count: state.reconciliation.count)
          state.answers.append((client.service, none))
        }
        return wanted
      }
      let isLast = place == servers.count - 1
      try await fetch(wanted, from: client) { self.settled($0, $1, isLast: isLast) }
    }
  }

  /// What the manifest says about the blobs.
  ///
  /// What the account's own server says of a blob counts; servers where the account was before may
  /// be long gone.
  ///
  /// - Parameter moment: when they were asked for.
  func ledger(at moment: String) -> BlobLedger {
    state.withLock { state in
      let failures = state.answers.first?.failures
      return state.reconciliation.ledger(at: moment) { position in
        failures.flatMap { Self.failure($0[position]) }
      }
    }
  }

  // MARK: One server

  /// Fetches blobs, many at a time, started in this order.
  ///
  /// One failed blob does not hold up the others: temporary failures are tried again at the end.
  ///
  /// - Parameters:
  ///   - wanted: which.
  ///   - client: the server.
  ///   - settled: called with the result for each blob: its length, or why it did not come.
  func fetch(
    _ wanted: [BlobReconciliation.Wanted], from client: XRPCClient,
    settled: @escaping @Sendable (BlobReconciliation.Wanted, Result<UInt64, BlobFailure>) -> Void
  ) async throws {
    let allowed = client.network.options.attempts
    let first = min(Self.firstAttempts, allowed)
    let deferred = Mutex<[BlobReconciliation.Wanted]>([])
    // Slow transfers leave their places to others, so more tasks than connections are needed; the
    // network limits how many are under way at a time.
    let taskCount = 3 * options.connections
    try await forEachConcurrently(wanted, atATime: taskCount) { [self] blob in
      // Further attempts may resume a large blob where it broke off.
      let result = try await fetch(blob, from: client, attempts: blob.isLarge ? allowed : first)
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
    let patience = max(32, 2 * options.connections)
    try await forEachConcurrently(deferred.withLock { $0 }, atATime: taskCount) { [self] blob in
      let isPatient = failuresInARow.load(ordering: .relaxed) < patience
      let result = try await fetch(blob, from: client, attempts: isPatient ? allowed - first : 1)
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
    _ blob: BlobReconciliation.Wanted, from client: XRPCClient, attempts: Int
  ) async throws -> Result<UInt64, BlobFailure> {
    guard blob.cid.multihash.sha256 != nil else {
      return .failure(BlobFailure(reason: .unverifiable, status: nil))
    }
    var mismatches = 0
    var contents: Set<SHA256Digest> = []
    while true {
      let download = BlobDownload(
        blob.cid, memory: options.memory, folder: folder, limit: options.maxBlob, pieces: pieces
      ) { [self] count in
        report { $0.bytes = UInt64(max(0, Int($0.bytes) + count)) }
      }
      do {
        let content = try await download.fetch(from: client, of: did, attempts: attempts)
        try await appender.append(blob.cid, content)
        try download.forget()
        return .success(UInt64(download.count))
      } catch {
        if loggedInAt == client.service, let refusal = error as? XRPCError,
          let end = SessionEnded(refusal)
        {
          throw end
        }
        guard var failure = BlobFailure(error) else { throw error }
        if failure.reason == .noAnswer, download.count > 0, download.offset == 0 {
          failure.explanation? +=
            "; the server cannot continue a transfer: each attempt begins anew"
        }
        guard failure.reason == .mismatch else { return .failure(failure) }
        try download.forget()
        mismatches += 1
        if let other = download.otherDigest { contents.insert(other) }
        let isCorrupted = contents.count == mismatches
        guard mismatches < (isCorrupted ? Self.corruptAttempts : Self.mismatchAttempts) else {
          return .failure(failure)
        }
      }
    }
  }

  // MARK: Results

  private func settled(
    _ blob: BlobReconciliation.Wanted, _ result: Result<UInt64, BlobFailure>, isLast: Bool
  ) {
    let (server, answers) = state.withLock { state in
      let last = state.answers.count - 1
      switch result {
      case .success(let length): state.reconciliation.received(blob, length: length)
      case .failure(let failure): state.answers[last].failures[blob.position] = failure.packed
      }
      guard isLast || tellsArrivals else { return ("", [ServerAnswer]()) }
      let answers = state.answers.enumerated().compactMap { place, answer -> ServerAnswer? in
        var failure = Self.failure(answer.failures[blob.position])
        // With its explanation, which is not kept.
        if place == last, case .failure(let told) = result { failure = told }
        return failure.map {
          ServerAnswer(server: answer.server, failure: $0, loggedInAt: loggedInAt)
        }
      }
      return (state.answers[last].server, answers)
    }
    switch result {
    case .success:
      report { $0.blobsDone += 1 }
      if tellsArrivals { observer(.arrived(blob.cid, from: server, answers)) }
    case .failure:
      guard isLast, let first = answers.first?.failure else { return }
      report { $0.blobsFailed += 1 }
      var entry = BlobLedger.Missing(cid: blob.cid, reason: first.reason, size: blob.declaredSize)
      (entry.status, entry.isReferenced) = (first.status, blob.isReferenced)
      observer(.missing(entry, answers))
    }
  }

  private func report(_ change: (inout BackupProgress) -> Void) {
    let progress: BackupProgress? = state.withLock { state in
      change(&state.progress)
      return pace.isDue() ? state.progress : nil
    }
    if let progress { observer(.progress(progress)) }
  }

  private static func failure(_ packed: UInt32) -> BlobFailure? {
    packed == 0 ? nil : BlobFailure(packed: packed)
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
  /// Whether the server may give the blob to the account's owner, and was not asked by the owner.
  package var wantsLogin: Bool { failure.wantsLogin && loggedInAt != server }

  /// The sentence for people, without the server.
  package var sentence: String {
    let status = failure.status.map { " (HTTP \($0))" } ?? ""
    guard wantsLogin else {
      return failure.reason.sentence + status + (failure.explanation.map { ": \($0)" } ?? "")
    }
    return loggedInAt.map { "could not be asked as the owner\(status): logged in only at \($0)" }
      ?? "gives it out only to the owner, logged in\(status)"
  }
}
