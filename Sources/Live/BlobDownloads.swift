internal import ATProtocol
internal import Archive
internal import IPLD
internal import Snapshots
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
    var progress = BackupProgress(.blobs)
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
    var state = State(reconciliation: reconciliation)
    state.progress.blobsTotal = reconciliation.wantedCount
    self.state = Mutex(state)
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
        connections: options.connections,
        settled: { [self] in settled($0, $1, isLast: isLast) }
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
        guard let first = answers.first else { return }
        var entry = BlobLedger.Missing(
          cid: blob.cid, reason: first.reason, size: blob.declaredSize)
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
  private func answers(_ state: State, on position: Int, last: BlobFailure? = nil)
    -> [ServerAnswer]
  {
    state.answers.enumerated().compactMap { place, answer in
      let kept = Self.failure(answer.failures[position])
      guard let failure = place == state.answers.count - 1 ? last ?? kept : kept else { return nil }
      return ServerAnswer(
        server: answer.server, reason: failure.reason, status: failure.status,
        wantsLogin: failure.wantsLogin && loggedInAt != answer.server,
        loggedInAt: loggedInAt, explanation: failure.explanation)
    }
  }

  private static func failure(_ packed: UInt32) -> BlobFailure? {
    packed == 0 ? nil : BlobFailure(packed: packed)
  }
}
