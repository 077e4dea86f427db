/// How an archive is written; nothing here changes what it holds.
public struct ArchiveOptions: Sendable {
  /// The zstd level for what zstd shrinks; those above 3 cost much and save a few percent.
  public var level: Int
  /// How many packs are compressed at a time.
  public var workers: Int

  /// How many bytes are written before they are made to count, so that no more can be lost.
  public var checkpointLength: UInt64 = 64 << 20

  /// Options; by default level 3, and a worker for each core.
  public init(level: Int = 3, workers: Int? = nil) {
    self.level = level
    self.workers = max(1, workers ?? SystemCalls.processorCount)
  }
}
