internal import IPLD

/// How an archive is written; nothing here changes what it holds.
package struct ArchiveOptions: Sendable {
  /// The zstd level for what zstd shrinks; those above 3 cost much and save a few percent.
  package var level: Int
  /// How many packs are compressed at a time.
  package var workers: Int

  /// Whether a file that does not begin with the CAR header at hand, or cannot be continued, is
  /// emptied and begun again.
  ///
  /// For a file that has not been announced yet; the default is to leave such a file alone and
  /// fail.
  package var startsOver = false
  /// Whether something is appended behind an end that was committed and is damaged, which stays as
  /// it is: the snapshots in it may come back, and a backup cannot wait for that.
  package var appendsBehindDamage = false
  /// How many bytes are written before they are made to count, so that no more can be lost.
  package var checkpointLength: UInt64 = 64 << 20
  /// How much parity there is for what is appended, in percent; nil for as much as the archive has.
  package var parity: Int?
  /// Optional feature bits that the archive is to have beside those that it has: those of the
  /// archives that are copied into it.
  package var optionalFeatures: UInt64 = 0

  /// Options; by default level 3, and a worker for each core.
  package init(level: Int = 3, workers: Int? = nil) {
    self.level = level
    self.workers = max(1, workers ?? Parallel.processorCount)
  }
}
