internal import ATProtocol
internal import Archive
internal import Files
internal import HTTP
package import IPLD
internal import Snapshots
internal import Synchronization
internal import XRPC

/// The blobs of a snapshot on a server: sends those that it says it misses, and reads all others
/// back.
struct BlobTransfer: Sendable {
  let source: RestoreSource
  let server: DestinationServer
  /// The server's limit for the length of a blob, in bytes.
  let limit: UInt64?
  let connections: Int
  let tell: @Sendable (RestoreEvent) -> Void

  /// How many calls in a row may go unanswered.
  private static let maximumSilence = 8
  private static let pageLength = 1000
  /// How often a blob is sent that the server still lists as missing.
  private static let maximumRounds = 3
  /// How many blobs a server may miss beside twice those that the snapshot has: those of records
  /// that are gone, or came later.
  private static let maximumOthers = 200_000
  /// How often a blob is read back if its content does not match its CID.
  private static let attempts = 3
  /// How many blobs are taken from the table at a time to be read back.
  private static let batch = 256

  /// What was found out so far, by all tasks that send.
  private struct Sent {
    var count = 0
    var bytes: UInt64 = 0
    /// What is not sent again, and why: a few bytes for each blob that is not there.
    var refused: [CID: UnrestoredBlob.Reason] = [:]
    var silence = 0
    var done = 0
  }

  /// Sends the blobs that the server misses, until it misses none that can be sent.
  ///
  /// - Returns: How many blobs and bytes were sent, what the server still misses, by what it said
  ///   last, and why that list broke off; nil if it was read to its end.
  /// - Throws: `XRPCError` if the server does not list what it misses, or the session is over;
  ///   `TransportError` if it does not answer any more; `ArchiveError` if the archive cannot be
  ///   read; `CancellationError`.
  func send() async throws -> (
    count: Int, bytes: UInt64, missing: UnrestoredBlobs, brokenList: BrokenList?
  ) {
    let sent = Mutex(Sent())
    var total = 0
    _ = try await forEachPage { total += $0.count }
    var rounds = 0
    while true {
      rounds += 1
      let before = sent.withLock { $0.count }
      var missing = UnrestoredBlobs()
      let brokenList = try await forEachPage { page in
        let known = sent.withLock { $0.refused }
        let gate = DestinationServer.WaitGate()
        let wanted = try inArchiveOrder(page.filter { known[$0] == nil })
        try await forEachConcurrently(wanted, atATime: connections) { [total] cid in
          let result = try await send(cid, gate, sent)
          let done = sent.withLock { sent in
            sent.done += 1
            switch result {
            case .success(let length):
              sent.count += 1
              sent.bytes += length
            case .failure(let reason): sent.refused[cid] = reason
            }
            return UInt64(sent.done)
          }
          tell(.progress(Progress(stage: "blobs", done: done, total: max(UInt64(total), done))))
        }
        let refused = sent.withLock { $0.refused }
        for cid in page {
          missing.add(
            cid, of: source, refused[cid] ?? .refused("it was sent but is still listed as missing"))
        }
      }
      // What the server lists after a round in which nothing could be sent is what it will lack.
      let (count, bytes) = sent.withLock { ($0.count, $0.bytes) }
      if count == before || rounds == Self.maximumRounds {
        return (count, bytes, missing, brokenList)
      }
    }
  }

  /// Goes through what the server misses, a page at a time.
  ///
  /// - Returns: Why the list broke off; nil if it was read to its end.
  private func forEachPage(_ body: ([CID]) async throws -> Void) async throws -> BrokenList? {
    var pages = server.client.pages(
      limit: 2 * source.blobs.entries.count + Self.maximumOthers, by: { $0 },
      through: { [server] in try await server.call($0) }
    ) { .listMissingBlobs(limit: Self.pageLength, cursor: $0) }
    do {
      while let page = try await pages.next() { try await body(page.entries) }
      return nil
    } catch let error as BrokenList {
      return error
    }
  }

  /// The blobs in the order in which they lie in the archive, so that each frame is read once.
  private func inArchiveOrder(_ cids: [CID]) throws -> [CID] {
    let ordinals = try source.archived.reader.ordinals(cids.count) { cids[$0] }
    return ordinals.indices.sorted { (ordinals[$0], $0) < (ordinals[$1], $1) }.map { cids[$0] }
  }

  /// Sends one; returns its length, or why it is not to be sent again.
  private func send(
    _ cid: CID, _ gate: DestinationServer.WaitGate, _ sent: borrowing Mutex<Sent>
  ) async throws -> Result<UInt64, UnrestoredBlob.Reason> {
    do {
      let result = try await server.send(
        cid, as: source.blobs[cid]?.mimeType, from: source.archived,
        isAccepted: source.accepted.contains(cid), limit: limit, gate)
      if case .success = result { sent.withLock { $0.silence = 0 } }
      return result
    } catch let error as XRPCError where error.status != 401 && error.status != 429 {
      sent.withLock { $0.silence = 0 }
      return .failure(.refused("\(error)"))
    } catch let error as TransportError where error.isTransient {
      let silence = sent.withLock { sent in
        sent.silence += 1
        return sent.silence
      }
      guard silence < Self.maximumSilence else { throw error }
      return .failure(.refused("\(error)"))
    }
  }

  // MARK: Reading back

  /// Reads back every blob that the archive holds, and compares it with its CID.
  ///
  /// A server knows a blob by a row in a table, and does not check whether the bytes are there:
  /// only reading them shows that.
  ///
  /// - Parameters:
  ///   - skipped: blobs that are known not to be there.
  ///   - done: how many of the snapshot's blobs, in the order of their first references, were
  ///     compared before and found to be equal.
  ///   - note: called with how many have been compared, as long as none differs.
  /// - Throws: `TransportError` if the server does not answer any more; `ArchiveError` if the
  ///   archive cannot be read; `CancellationError`.
  func compare(
    except skipped: Set<CID>, from done: Int = 0, note: (Int) throws -> Void = { _ in }
  ) async throws -> (equalCount: Int, differing: UnrestoredBlobs) {
    let outcome = Mutex((equalCount: 0, differing: UnrestoredBlobs()))
    let entries = source.blobs.entries
    var start = min(done, entries.count)
    while start < entries.count {
      let end = min(start + Self.batch, entries.count)
      let cids = entries[start..<end].map(\.cid)
      let held = zip(cids, try source.archived.states(of: cids)).compactMap { cid, state in
        if case .held = state, !skipped.contains(cid) { cid } else { nil }
      }
      try await forEachConcurrently(held, atATime: connections) { cid in
        let reason = try await compare(cid)
        outcome.withLock { outcome in
          guard let reason else { return outcome.equalCount += 1 }
          outcome.differing.add(cid, of: source, reason)
        }
      }
      start = end
      if skipped.isEmpty, outcome.withLock({ $0.differing.count }) == 0 { try note(start) }
      tell(
        .progress(Progress(stage: "comparing", done: UInt64(start), total: UInt64(entries.count))))
    }
    return outcome.withLock { $0 }
  }

  /// Reads one back; returns what is wrong with it, nil if nothing is.
  private func compare(_ cid: CID) async throws -> UnrestoredBlob.Reason? {
    do {
      // What was corrupted on the way arrives intact the next time.
      for _ in 0..<Self.attempts {
        let digest = try await server.client.stream(.getBlob(cid, of: source.did)) {
          response in
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

/// A blob that the new server does not have, or not as it is in the archive.
package struct UnrestoredBlob: Sendable, Equatable {
  /// The blob.
  package let cid: CID
  /// The record that refers to it first; nil if none in the snapshot does.
  package let record: String?
  /// Why.
  package let reason: Reason

  /// Why a blob is missing, or not as it should be.
  package struct Reason: Error, Equatable {
    /// The name of the reason, for scripts.
    package let word: String
    /// What a person reads.
    package let sentence: String

    private init(_ word: String, _ sentence: String) {
      (self.word, self.sentence) = (word, sentence)
    }

    /// Why a blob with this state in the archive cannot be sent; nil if it can be.
    init?(_ state: BlobState, isAccepted: Bool, limit: UInt64?) {
      switch state {
      case .held(let length):
        guard let limit, length > limit else { return nil }
        self.init("too-large", "it has \(length) bytes, and the server accepts \(limit)")
      case .missing: self = isAccepted ? .acceptedAsLost : .notHeld
      case .damaged(let why): self = .damaged(why)
      }
    }

    /// The archive does not hold it.
    static let notHeld = Reason("not-held", "the archive does not hold it")
    /// The archive does not hold the blob, and its loss is accepted.
    static let acceptedAsLost = Reason(
      "accepted-as-lost", "the archive does not hold it, and its loss was accepted")
    /// The server gives back other bytes.
    static let otherBytes = Reason("other-bytes", "the server returns other bytes")

    /// It is damaged in the archive.
    static func damaged(_ why: String) -> Reason {
      Reason("damaged", "it is damaged in the archive: \(why)")
    }

    /// The server refused it.
    static func refused(_ why: String) -> Reason {
      Reason("refused", "the server refused it: \(why)")
    }

    /// The server named another CID for it.
    static func otherCID(_ cid: CID) -> Reason {
      Reason("other-cid", "the server gave it another CID, \(cid)")
    }

    /// The server does not give it back, and does not list it as missing.
    static func notServed(_ why: String) -> Reason {
      Reason(
        "not-served",
        "the server does not return it, although it does not list it as missing: \(why)")
    }
  }
}

/// The blobs that are missing, or not as they should be: how many, and the first of them.
package struct UnrestoredBlobs: Sendable {
  /// How many there are.
  package private(set) var count = 0
  /// How many of them the archive does not hold, which is accepted.
  package private(set) var acceptedCount = 0
  /// The first of them.
  package private(set) var first: [UnrestoredBlob] = []
  /// Whether the loss of all of them is accepted.
  package var areAccepted: Bool { count <= acceptedCount }

  /// The most blobs that are listed.
  private static let maximumListed = 1000

  /// None.
  package init() {}

  mutating func add(_ cid: CID, of source: RestoreSource, _ reason: UnrestoredBlob.Reason) {
    count += 1
    if reason == .acceptedAsLost { acceptedCount += 1 }
    guard first.count < Self.maximumListed else { return }
    first.append(UnrestoredBlob(cid: cid, record: source.blobs[cid]?.firstRecord, reason: reason))
  }

  static func += (blobs: inout Self, more: Self) {
    blobs.count += more.count
    blobs.acceptedCount += more.acceptedCount
    blobs.first += more.first.prefix(maximumListed - blobs.first.count)
  }
}
