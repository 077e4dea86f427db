internal import ATProtocol
internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import Synchronization
internal import XRPC

/// Sends a server the blobs that it says it misses, until it misses none that can be sent.
struct BlobUpload: Sendable {
  let source: RestoreSource
  let target: RestoreTarget
  /// How long a blob may be by what the server says, in bytes.
  let blobLimit: UInt64?
  let connections: Int
  let progress: @Sendable (Progress) -> Void

  /// What came of it.
  struct Outcome: Sendable {
    var sentCount = 0
    var sentBytes: UInt64 = 0
    /// Those that the server misses still, by what it said last.
    var missing: [UnrestoredBlob] = []
    var missingCount = 0
  }

  /// How many calls in a row may get no answer.
  private static let maximumSilence = 8
  private static let pageLength = 1000
  /// How often a server is sent what it goes on listing as missing.
  private static let maximumRounds = 3
  /// How many blobs a server may miss beside twice those that the snapshot has: those of records
  /// that are gone, or came later.
  private static let maximumOthers = 200_000

  /// What was found out so far, by all who send.
  private struct State {
    var outcome = Outcome()
    /// What is not sent again, and why: a few bytes for each blob that is not there.
    var refused: [CID: UnrestoredBlob.Reason] = [:]
    var silence = 0
    var done = 0
  }

  /// Holds it for all of them.
  private final class Tally: Sendable {
    private let state = Mutex(State())

    func withLock<Value: Sendable>(_ body: (inout State) -> Value) -> Value {
      state.withLock { body(&$0) }
    }
  }

  /// Sends them.
  ///
  /// - Throws: `XRPCError` if the server does not list what it misses, or the session is over;
  ///   `TransportError` if it does not answer any more; `ArchiveError` if the archive cannot be
  ///   read; `CancellationError`.
  func run() async throws -> Outcome {
    let state = Tally()
    var total = 0
    try await forEachPage { total += $0.count }
    var rounds = 0
    while true {
      rounds += 1
      let before = state.withLock { $0.outcome.sentCount }
      var left: [CID] = []
      var leftCount = 0
      try await forEachPage { page in
        let known = state.withLock { $0.refused }
        let wanted = page.filter { known[$0] == nil }
        try await send(wanted, total: total, state)
        for cid in page where left.count < RestoreReport.maximumListed { left.append(cid) }
        leftCount += page.count
      }
      // What the server lists after a round in which nothing could be sent is what it will lack.
      guard state.withLock({ $0.outcome.sentCount }) == before || rounds == Self.maximumRounds
      else { continue }
      var outcome = state.withLock { $0.outcome }
      let reasons = state.withLock { $0.refused }
      outcome.missingCount = leftCount
      outcome.missing = left.map { cid in
        UnrestoredBlob(
          cid: cid, record: source.blobs[cid]?.firstRecord,
          reason: reasons[cid] ?? .refused("it is listed as missing though it was sent"))
      }
      return outcome
    }
  }

  /// Goes through what the server misses, a page at a time.
  private func forEachPage(_ body: ([CID]) async throws -> Void) async throws {
    var cursor: String?
    var count = 0
    while true {
      let query = ListMissingBlobs(limit: Self.pageLength, cursor: cursor)
      let page = try await target.patiently { try await target.client.call(query) }
      guard !page.cids.isEmpty else { return }
      count += page.cids.count
      guard count <= 2 * source.blobs.entries.count + Self.maximumOthers else {
        throw BackupError.endlessList(target.url)
      }
      try await body(page.cids)
      // The reference server names the last CID; one that does not get on is not followed.
      guard let next = page.cursor, next != cursor else { return }
      cursor = next
    }
  }

  private func send(_ cids: [CID], total: Int, _ state: Tally) async throws {
    let gate = RestoreTarget.WaitGate()
    try await forEachConcurrently(try inArchiveOrder(cids), atATime: connections) { cid in
      let reason = try await send(cid, gate, state)
      let done = state.withLock { state -> Int in
        state.done += 1
        if let reason { state.refused[cid] = reason }
        return state.done
      }
      progress(Progress(stage: "blobs", done: UInt64(done), total: UInt64(max(total, done))))
    }
  }

  /// The blobs in the order in which they lie in the archive, so that each frame is read once.
  private func inArchiveOrder(_ cids: [CID]) throws -> [CID] {
    let ordinals = try source.archived.reader.ordinals(cids.count) { cids[$0] }
    return ordinals.indices.sorted { (ordinals[$0], $0) < (ordinals[$1], $1) }.map { cids[$0] }
  }

  /// Sends one; answers why not, if it is not to be sent again.
  private func send(_ cid: CID, _ gate: RestoreTarget.WaitGate, _ state: Tally)
    async throws -> UnrestoredBlob.Reason?
  {
    let body: RequestBody
    switch try await content(of: cid) {
    case .failure(let reason): return reason
    case .success(let found): body = found
    }
    if let blobLimit, body.byteCount > blobLimit {
      return .tooLarge(body.byteCount, limit: blobLimit)
    }
    let upload = UploadBlob(body, contentType: source.mediaType(of: cid))
    do {
      let answer = try await target.patiently(gate) { try await target.client.upload(upload) }
      let named = try UploadBlob.cid(in: answer)
      state.withLock { $0.silence = 0 }
      guard named == cid else { return .otherCID(named) }
      state.withLock {
        $0.outcome.sentCount += 1
        $0.outcome.sentBytes += body.byteCount
      }
      return nil
    } catch let error as XRPCError where error.status != 401 && error.status != 429 {
      state.withLock { $0.silence = 0 }
      return .refused("\(error)")
    } catch let fault as AnswerFault {
      return .refused("its answer is not what it should be (\(fault.what))")
    } catch let error as TransportError where error.isTransient {
      let silence = state.withLock { state -> Int in
        state.silence += 1
        return state.silence
      }
      guard silence < Self.maximumSilence else { throw error }
      return .refused("\(error)")
    }
  }

  /// A blob of the archive, to be sent: all of it was compared with its CID.
  private func content(of cid: CID) async throws -> Result<RequestBody, UnrestoredBlob.Reason> {
    let archived = source.archived
    let length: UInt64
    switch archived.state(of: cid) {
    case .held(let found): length = found
    case .missing: return .failure(source.accepted.contains(cid) ? .acceptedAsLost : .notHeld)
    case .damaged(let why): return .failure(.damaged(why))
    }
    do {
      return .success(try await RequestBody.blob(cid, of: length, in: archived))
    } catch let error as ArchiveError where error.isDamage {
      return .failure(.damaged("\(error)"))
    }
  }
}

extension RequestBody {
  /// A blob up to this length is held in memory while it is sent.
  private static let maximumInMemory: UInt64 = 512 << 10

  /// A blob of an archive that holds it, to be sent: all of it has been compared with its CID.
  ///
  /// - Throws: `ArchiveError` if it is damaged; ``BackupError`` if there is no room for a temporary
  ///   file.
  static func blob(_ cid: CID, of length: UInt64, in archived: ArchivedSnapshot) async throws
    -> RequestBody
  {
    try await onOwnThread {
      defer { archived.reader.releasePages() }
      if length <= maximumInMemory,
        let bytes = try archived.reader.body(of: cid, limit: Int(length))
      {
        return RequestBody(bytes)
      }
      let file = try TemporaryFile()
      guard try archived.reader.read(cid, each: { try file.write($0) }) else {
        throw BackupError.notFound("\(cid)")
      }
      return RequestBody(byteCount: UInt64(file.count)) { offset, count in
        try file.bytes(at: offset, count: count)
      }
    }
  }
}

extension UnrestoredBlob.Reason: Error {}
