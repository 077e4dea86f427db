internal import ATProtocol
internal import Archive
internal import Dispatch
internal import IPLD
internal import Synchronization

/// The only one that writes to an archive, while blobs arrive from many sides.
///
/// 1. What is to be written is done one after the other, on a thread of its own: writing may block, and tasks must not.
/// 2. A blob is in the archive only if its bytes hashed to its CID.
/// 3. What was appended is handed to the system as soon as nothing else waits to be appended, and after ``flushInterval`` in any case, so that a
///    process that is killed loses next to nothing of what had arrived.
final class ArchiveAppender: Sendable {
  /// The writer, which only ``queue`` touches.
  private final class Owner: @unchecked Sendable {
    var writer: ArchiveWriter
    var lastFlush: ContinuousClock.Instant = .now

    init(_ writer: consuming ArchiveWriter) { self.writer = writer }
  }

  private let owner: Owner
  private let queue = DispatchQueue(label: "archive")
  private let storage: any ArchiveStorage
  private let waitingCount = Atomic<Int>(0)
  private let startLength: UInt64

  /// How long small sections may be held back to share a frame.
  static let flushInterval: Duration = .milliseconds(50)

  /// Opens an archive to append to it, or begins one.
  ///
  /// - Throws: as `ArchiveWriter.openNaming` does.
  init(_ storage: any ArchiveStorage, carHeader: [UInt8], options: ArchiveOptions) throws {
    self.storage = storage
    let writer = try ArchiveWriter.openNaming(storage, carHeader: carHeader, options: options)
    startLength = writer.generation?.committedLength ?? 0
    owner = Owner(writer)
  }

  /// Has something done with the writer when its turn comes.
  func perform<Value: Sendable>(
    _ work: @escaping @Sendable (inout ArchiveWriter) throws -> Value
  ) async throws -> Value {
    waitingCount.add(1, ordering: .relaxed)
    return try await withCheckedThrowingContinuation { continuation in
      queue.async { [self] in
        waitingCount.subtract(1, ordering: .relaxed)
        continuation.resume(with: Result { try work(&owner.writer) })
      }
    }
  }

  /// By how many bytes the archive has grown since it was opened, as far as that is committed.
  func bytesAdded(by generation: Generation) -> UInt64 { generation.committedLength - startLength }

  /// The archive with everything that is in it by now, for looking things up.
  ///
  /// A repository that is the first thing in an archive is made to count, and so is what an interrupted backup has left: from then on the archive can
  /// be gone on with, whatever the account has become when that is done.
  func reader() async throws -> ArchiveReader {
    try await perform { [storage] writer in
      if writer.generation == nil || writer.adoptedSectionCount > 0 { try writer.checkpoint() }
      return try ArchiveReader(storage.map())
    }
  }

  /// Appends a blob that was hashed already.
  func append(verified cid: CID, _ bytes: [UInt8]) async throws {
    try await perform { [self] writer in
      try writer.append(verified: cid, bytes.span)
      try flushIfDue(&writer)
    }
  }

  /// Appends a blob from a file, hashing it on the way.
  ///
  /// - Throws: `ArchiveError` with the reason `contentMismatch` if it is another one; what was written of it is cut off again.
  func append(_ cid: CID, from file: TemporaryFile) async throws {
    try await perform { [self] writer in
      guard try writer.begin(cid, length: UInt64(file.count)) == nil else { return }
      do {
        try file.read(pieces: 1 << 20) { try writer.take($0) }
      } catch {
        try writer.cancel()
        throw error
      }
      try writer.finish()
      try flushIfDue(&writer)
    }
  }

  /// Appends a blob that arrives in pieces straight to the end of the file, hashing it on the way; everything else waits for its end.
  ///
  /// - Throws: `ArchiveError` with the reason `contentMismatch` if it is another one, ``PieceQueue/Abandoned`` if it did not come to its end;
  ///   what was written of it is cut off again.
  func append(_ cid: CID, from pieces: PieceQueue) async throws {
    try await perform { writer in
      do {
        try Self.append(cid, from: pieces, to: &writer)
      } catch {
        pieces.refuse(error)
        throw error
      }
    }
  }

  private static func append(
    _ cid: CID, from pieces: PieceQueue, to writer: inout ArchiveWriter
  ) throws {
    var round = try pieces.nextRound(after: 0)
    while true {
      guard try writer.begin(cid, length: round.length) == nil else {
        // It is there already: whatever this one is, nobody needs it.
        return pieces.ignoreRest()
      }
      do {
        var isRestarted = false
        while !isRestarted {
          switch try pieces.next(of: round.round) {
          case .piece(let bytes): try writer.take(bytes.span)
          case .end:
            try writer.finish()
            return
          case .restarted: isRestarted = true
          }
        }
      } catch {
        try writer.cancel()
        throw error
      }
      try writer.cancel()
      round = try pieces.nextRound(after: round.round)
    }
  }

  /// Makes what has arrived count, for the next backup to go on with, after one has failed.
  func keepWhatArrived() async {
    do {
      try await perform { try $0.checkpoint() }
    } catch {
      // The archive is why it has failed, or fails as well: what is behind the last footer is taken up by the next writer.
    }
  }

  private func flushIfDue(_ writer: inout ArchiveWriter) throws {
    guard
      waitingCount.load(ordering: .relaxed) == 0
        || owner.lastFlush.duration(to: .now) >= Self.flushInterval
    else { return }
    try writer.flush()
    owner.lastFlush = .now
  }
}
