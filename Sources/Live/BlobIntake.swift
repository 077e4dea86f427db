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
/// called missing when the last of them has not given it either.
final class BlobIntake: Sendable {
  fileprivate struct State {
    var reconciliation: BlobReconciliation
    /// What each server so far has said, the account's own first.
    var servers: [Answers] = []
    var progress = BackupProgress(.blobs)
  }

  /// What a server said of the blobs that it did not give, by their positions.
  fileprivate struct Answers {
    let name: String
    let loggedInAt: String?
    /// 0 for those of which it has said nothing.
    var failures: [UInt32]

    func failure(_ position: Int) -> BlobFailure? {
      failures[position] == 0 ? nil : BlobFailure(packed: failures[position])
    }
  }

  private let state: Mutex<State>
  private let observer: @Sendable (BackupEvent) -> Void
  private let tellsArrivals: Bool
  private let pace = ProgressPace()

  /// An intake of what is wanted and not held.
  ///
  /// - Parameter tellsArrivals: whether each blob that comes is told, with the server it came from.
  init(
    _ reconciliation: BlobReconciliation, tellsArrivals: Bool = false,
    observer: @escaping @Sendable (BackupEvent) -> Void
  ) {
    var state = State(reconciliation: reconciliation)
    state.progress.blobsTotal = reconciliation.wantedCount
    self.state = Mutex(state)
    self.tellsArrivals = tellsArrivals
    self.observer = observer
  }

  /// The blobs that have not come: all that are wanted at first, and what is left after each
  /// server.
  var outstanding: [BlobReconciliation.Wanted] {
    state.withLock { $0.reconciliation.outstanding }
  }

  /// A server to ask.
  struct Source: Sendable {
    /// What asks it.
    let client: XRPCClient
    /// Its name.
    let name: String
    /// The only server at which this run is logged in; nil if it is at none.
    let loggedInAt: String?
  }

  /// Asks servers, one after the other, for all that is outstanding.
  ///
  /// - Parameters:
  ///   - sources: the servers.
  ///   - did: whose blobs.
  ///   - appender: where they go.
  ///   - options: how many at a time, and in how much memory.
  ///   - folder: where to put files without a name.
  /// - Throws: what the archive throws, or `CancellationError`.
  func fetch(
    from sources: [Source], of did: DID, into appender: ArchiveAppender,
    options: AccountBackup.Options, folder: FilePath
  ) async throws {
    for (place, source) in sources.enumerated() {
      let wanted = outstanding
      guard !wanted.isEmpty else { return }
      state.withLock { state in
        let none = [UInt32](repeating: 0, count: state.reconciliation.count)
        state.servers.append(
          Answers(name: source.name, loggedInAt: source.loggedInAt, failures: none))
      }
      let isLast = place == sources.count - 1
      let surroundings = ReceivedBlob.Surroundings(
        memory: options.memory, folder: folder, limit: options.maxBlob,
        arrived: { [self] in arrived($0) })
      let fetcher = BlobFetcher(
        client: source.client, did: did, appender: appender, surroundings: surroundings,
        connections: options.connections,
        settled: { [self] in settled($0, $1, isLast: isLast) })
      try await fetcher.fetch(wanted)
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
      state.reconciliation.ledger(at: moment) { position in
        state.servers.first?.failure(position)
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
      let server = state.servers.count - 1
      switch result {
      case .success(let length):
        state.reconciliation.received(blob, length: length)
        state.progress.blobsDone += 1
        if tellsArrivals {
          event = .arrived(
            blob.cid, from: state.servers[server].name, state.answers(on: blob.position))
        }
      case .failure(let failure):
        state.servers[server].failures[blob.position] = failure.packed
        guard isLast else { return }
        state.progress.blobsFailed += 1
        let answers = state.answers(on: blob.position, last: failure)
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

  /// Changes the state, and reports how far things are, now and then.
  private func report(_ change: (inout State) -> Void) {
    let progress: BackupProgress? = state.withLock { state in
      change(&state)
      return pace.isDue() ? state.progress : nil
    }
    if let progress { observer(.progress(progress)) }
  }
}

extension BlobIntake.State {
  /// What servers have said of a blob.
  ///
  /// - Parameter last: what the last of them has said, with its explanation, which is not kept.
  fileprivate func answers(on position: Int, last: BlobFailure? = nil) -> [ServerAnswer] {
    servers.enumerated().compactMap { place, server in
      let kept = server.failure(position)
      guard let failure = place == servers.count - 1 ? last ?? kept : kept else { return nil }
      return ServerAnswer(
        server: server.name, reason: failure.reason, status: failure.status,
        wantsLogin: failure.wantsLogin && server.loggedInAt != server.name,
        loggedInAt: server.loggedInAt, explanation: failure.explanation)
    }
  }
}
