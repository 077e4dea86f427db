internal import Archive
internal import Files
internal import IPLD
internal import Snapshots
internal import Synchronization

/// The only writer to an archive, while blobs arrive from many tasks.
///
/// 1. Writes happen one after the other, in a queue of their own.
/// 2. A blob is in the archive only if its bytes hashed to its CID.
/// 3. What was appended is handed to the system as soon as nothing else waits to be appended, and
///    after ``flushInterval`` in any case, so that a killed process loses almost nothing of what
///    had arrived.
actor ArchiveAppender {
  private let queue = OwnQueue("archive")
  private var writer: ArchiveWriter
  private let storage: any ArchiveStorage
  private let startLength: UInt64
  /// Snapshots that an unfinished write had left and that could not be kept.
  nonisolated let lost: [LostSnapshot]
  /// Whether an end that was committed is damaged, and what is appended goes behind it.
  nonisolated let isBehindDamage: Bool
  private var lastFlush: ContinuousClock.Instant = .now
  /// How many blobs wait to be appended.
  private nonisolated let waitingCount = Atomic<Int>(0)

  /// How long small sections may be held back to share a frame.
  static let flushInterval: Duration = .milliseconds(50)

  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe queue.asUnownedSerialExecutor() }

  /// Opens an archive to append to it, or begins a new one.
  ///
  /// - Throws: as `ArchiveWriter.openNaming` does.
  init(_ storage: any ArchiveStorage, carHeader: [UInt8], options: ArchiveOptions) throws {
    self.storage = storage
    var lost: [LostSnapshot] = []
    let writer = try ArchiveWriter.openNaming(
      storage, carHeader: carHeader, options: options, losses: &lost)
    self.lost = lost
    startLength = writer.generation?.committedLength ?? 0
    isBehindDamage = writer.isBehindDamage
    self.writer = writer
  }

  /// Does something with the writer.
  func perform<Value: Sendable>(
    _ work: @Sendable (inout ArchiveWriter) throws -> Value
  ) rethrows -> Value {
    try work(&writer)
  }

  /// By how many committed bytes the archive has grown since it was opened.
  nonisolated func bytesAdded(by generation: Generation) -> UInt64 {
    generation.committedLength - startLength
  }

  /// The archive with everything that is in it by now, for looking things up.
  ///
  /// A repository that is the first thing in an archive is made to count, and so is what an
  /// interrupted backup has left: from then on the archive can be continued, whatever the
  /// account has become when that is done.
  func reader() throws -> ArchiveReader {
    if writer.generation == nil || writer.adoptedSectionCount > 0 { try writer.checkpoint() }
    return try ArchiveReader(storage.map())
  }

  /// Appends a blob that has arrived.
  ///
  /// - Throws: `ArchiveError` with the reason `contentMismatch` if it is another blob; what was
  ///   written of it is cut off again.
  nonisolated func append(_ cid: CID, _ content: DownloadedFile) async throws {
    waitingCount.add(1, ordering: .relaxed)
    try await write(cid, content)
  }

  private func write(_ cid: CID, _ content: DownloadedFile) throws {
    waitingCount.subtract(1, ordering: .relaxed)
    switch content {
    case .memory(let pieces): try writer.append(verified: cid, pieces: pieces)
    case .file(let file): try write(cid, from: file)
    }
    guard
      waitingCount.load(ordering: .relaxed) == 0
        || lastFlush.duration(to: .now) >= Self.flushInterval
    else { return }
    try writer.flush()
    lastFlush = .now
  }

  private func write(_ cid: CID, from file: TemporaryFile) throws {
    guard try writer.begin(cid, length: UInt64(file.count)) == nil else { return }
    do {
      try file.read(pieces: 1 << 20) { try writer.take($0) }
    } catch {
      try writer.cancel()
      throw error
    }
    try writer.finish()
  }

  /// Commits what has arrived before a backup failed, for the next backup to continue.
  func keepWhatArrived() {
    do {
      try writer.checkpoint()
    } catch {
      // The archive is why it has failed, or fails as well: what is after the last footer is taken
      // up by the next writer.
    }
  }
}
