internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import Synchronization
internal import XRPC

/// Reads back every blob that the archive holds, and compares it with its CID.
///
/// A server knows of a blob by a row in a table, and does not look whether the bytes are there: only
/// reading them says.
struct BlobComparison: Sendable {
  let source: RestoreSource
  let client: XRPCClient
  let connections: Int
  let progress: @Sendable (Progress) -> Void

  /// What came of it.
  struct Outcome: Sendable {
    var equalCount = 0
    var differing: [UnrestoredBlob] = []
    var differingCount = 0
  }

  /// Holds it for all who compare.
  private final class Tally: Sendable {
    private let outcome = Mutex(Outcome())

    var value: Outcome { outcome.withLock { $0 } }

    func noteEqual() { outcome.withLock { $0.equalCount += 1 } }

    func note(_ blob: UnrestoredBlob) {
      outcome.withLock { outcome in
        outcome.differingCount += 1
        if outcome.differing.count < RestoreReport.maximumListed { outcome.differing.append(blob) }
      }
    }
  }

  /// How often a blob is read whose content is another's.
  private static let attempts = 3
  /// How many blobs are taken from the table at a time.
  private static let batch = 256

  /// Compares them.
  ///
  /// - Parameters:
  ///   - skipped: blobs that are known not to be there.
  ///   - done: how many of the snapshot's blobs, in the order of their first references, were
  ///     compared before and found to be equal.
  ///   - note: is told how many have been, as long as none differs.
  /// - Throws: `TransportError` if the server does not answer any more; `ArchiveError` if the
  ///   archive cannot be read; `CancellationError`.
  func run(
    except skipped: Set<CID>, from done: Int = 0, note: (Int) throws -> Void = { _ in }
  ) async throws -> Outcome {
    let outcome = Tally()
    let entries = source.blobs.entries
    var start = min(done, entries.count)
    while start < entries.count {
      let end = min(start + Self.batch, entries.count)
      let cids = entries[start..<end].map(\.cid)
      let states = try source.archived.states(of: cids)
      let held = zip(cids, states).compactMap { cid, state -> CID? in
        if case .held = state, !skipped.contains(cid) { cid } else { nil }
      }
      try await compare(held, outcome)
      start = end
      if outcome.value.differingCount == 0, skipped.isEmpty { try note(start) }
      progress(Progress(stage: "comparing", done: UInt64(start), total: UInt64(entries.count)))
    }
    return outcome.value
  }

  private func compare(_ cids: [CID], _ outcome: Tally) async throws {
    try await forEachConcurrently(cids, atATime: connections) { cid in
      guard let reason = try await compare(cid) else { return outcome.noteEqual() }
      outcome.note(
        UnrestoredBlob(cid: cid, record: source.blobs[cid]?.firstRecord, reason: reason))
    }
  }

  /// Reads one back; answers what is wrong with it, nil if nothing is.
  private func compare(_ cid: CID) async throws -> UnrestoredBlob.Reason? {
    do {
      // What was spoilt on the way comes as it is the next time.
      for _ in 0..<Self.attempts {
        let digest = try await client.stream(GetBlob(did: source.did, cid: cid)) { response in
          var hash = SHA256()
          for try await piece in response.body { hash.update(piece.span) }
          return hash.finish()
        }
        if cid.multihash.sha256 == digest { return nil }
      }
      return .otherBytes
    } catch let error as XRPCError where error.status != 401 {
      return .notServed("\(error)")
    } catch let error as TransportError {
      switch error.reason {
      // Where a file is shorter than the server announces, the answer stands still, or breaks off.
      case .stalled, .cutOff, .tooSlow: return .notServed("\(error)")
      default: throw error
      }
    }
  }
}
