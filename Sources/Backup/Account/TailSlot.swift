internal import Archive
internal import IPLD
internal import Synchronization

/// The end of an archive, to which one large blob at a time may stream.
///
/// While it does nothing else can be appended, and what is in memory stays there. So it is given out only when no small blob is left to come: those
/// would have to wait for the slowest of the large.
final class TailSlot: Sendable {
  private let appender: ArchiveAppender
  private let isTaken = Mutex(false)
  private let smallCount: Atomic<Int>

  /// The end of the archive that `appender` writes.
  ///
  /// - Parameter wanted: the blobs that are going to come.
  init(_ appender: ArchiveAppender, for wanted: [BlobReconciliation.Wanted]) {
    self.appender = appender
    smallCount = Atomic(wanted.count { !$0.isLarge })
  }

  /// Notes that nothing more comes of a blob.
  func settled(_ blob: BlobReconciliation.Wanted) {
    if !blob.isLarge { smallCount.subtract(1, ordering: .relaxed) }
  }

  /// Begins to append what a queue brings, if nothing speaks against it.
  func claim(_ cid: CID, _ pieces: PieceQueue) -> Task<Void, any Error>? {
    guard smallCount.load(ordering: .relaxed) == 0 else { return nil }
    let isFree = isTaken.withLock { isTaken in
      defer { isTaken = true }
      return !isTaken
    }
    guard isFree else { return nil }
    return Task { [appender, self] in
      defer { isTaken.withLock { $0 = false } }
      try await appender.append(cid, from: pieces)
    }
  }
}
