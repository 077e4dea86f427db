internal import ATProtocol
internal import Archive
internal import IPLD
internal import Synchronization
internal import SystemPackage
internal import XRPC

/// The blobs of one backup: which are wanted, which have come, and why others have not.
final class BlobIntake: Sendable {
  private struct State {
    var reconciliation: BlobReconciliation
    var failures: [CID: BlobFailure] = [:]
    var progress = BackupProgress(.blobs)
  }

  private let state: Mutex<State>
  private let observer: @Sendable (BackupEvent) -> Void
  private let pace = ProgressPace()

  /// An intake of what is wanted and not held.
  init(
    _ reconciliation: BlobReconciliation, observer: @escaping @Sendable (BackupEvent) -> Void
  ) {
    var state = State(reconciliation: reconciliation)
    state.progress.blobsTotal = reconciliation.wanted.count
    self.state = Mutex(state)
    self.observer = observer
  }

  /// The blobs that have not come: all that are wanted at first, and what is left after each server.
  var outstanding: [BlobReconciliation.Wanted] {
    state.withLock { $0.reconciliation.outstanding }
  }

  /// Asks a server for all that is outstanding.
  ///
  /// - Parameters:
  ///   - client: the server.
  ///   - did: whose blobs.
  ///   - appender: where they go.
  ///   - options: how many at a time, and in how much memory.
  ///   - folder: where to put files without a name.
  /// - Throws: what the archive throws, or `CancellationError`.
  func fetch(
    from client: XRPCClient, of did: DID, into appender: ArchiveAppender,
    options: AccountBackup.Options, folder: FilePath
  ) async throws {
    let wanted = outstanding
    let surroundings = ReceivedBlob.Surroundings(
      memory: options.memory, folder: folder, limit: options.maxBlob,
      arrived: { [self] in arrived($0) })
    let fetcher = BlobFetcher(
      client: client, did: did, appender: appender, surroundings: surroundings,
      connections: options.connections,
      settled: { [self] in settled($0, $1) })
    try await fetcher.fetch(wanted)
  }

  /// What the manifest says about the blobs.
  ///
  /// - Parameter moment: when they were asked for.
  func ledger(at moment: String) -> BlobReconciliation.Ledger {
    state.withLock { $0.reconciliation.ledger($0.failures, at: moment) }
  }

  private func arrived(_ count: Int) {
    report { $0.progress.bytes = UInt64(max(0, Int($0.progress.bytes) + count)) }
  }

  private func settled(
    _ blob: BlobReconciliation.Wanted, _ result: Result<UInt64, BlobFailure>
  ) {
    var missing: BlobLedger.Missing?
    report { state in
      switch result {
      case .success(let length):
        state.reconciliation.received(blob.cid, length: length)
        state.progress.blobsDone += 1
        if state.failures.removeValue(forKey: blob.cid) != nil { state.progress.blobsFailed -= 1 }
      case .failure(let failure):
        // What the account's own server says of it counts, and is said once; servers where the account was before may be long gone.
        guard state.failures[blob.cid] == nil else { return }
        state.failures[blob.cid] = failure
        state.progress.blobsFailed += 1
        var entry = BlobLedger.Missing(
          cid: blob.cid, reason: failure.reason, size: blob.declaredSize)
        entry.status = failure.status
        entry.isReferenced = blob.isReferenced
        missing = entry
      }
    }
    if let missing { observer(.missing(missing)) }
  }

  /// Changes the state, and reports how far things are, now and then.
  private func report(_ change: (inout State) -> Void) {
    let progress: BackupProgress? = state.withLock { state in
      change(&state)
      return pace.isDue() ? state.progress : nil
    }
    if let progress { observer(.progress(progress)) }
  }
}
