internal import IPLD

/// Writes damaged sections of an archive again, as far as they can be read, and makes voids of the
/// frames that nothing needs any more (FORMAT 5.2).
///
/// A section can be read from what is left of its frame, or from another archive. Without another
/// archive only frames that have lost nothing are written again: of any other the rest can be read
/// where it is.
extension ArchiveRepair {
  /// Writes damaged sections again, as far as they can be read, and ends a generation.
  ///
  /// A manifest that a footer names as the newest and that was lost becomes it again.
  ///
  /// - Parameter survey: What was found before.
  /// - Throws: ``ArchiveError`` if an archive cannot be read; what the storage throws.
  /// - Returns: How many sections were written.
  func writeAgain(_ survey: Survey) throws -> UInt64 {
    let reader = try reader()
    guard reader.generation.number > 0 else { return 0 }
    let damaged = try reader.damagedSections()
    let wanted = sources.isEmpty ? try reader.salvageable(damaged) : damaged + survey.lost
    let places = Set(survey.frames.filter { !$0.isIntact }.map(\.offset))
    // What was written again before its footer was made: only the footer says that it counts.
    let isUnsaid =
      !reader.generation.features.isRepaired
      && survey.lost.joined().contains { reader.isSuperseded($0, places) }
    guard !wanted.isEmpty || isUnsaid else { return 0 }
    var writer = try ArchiveWriter.reopen(storage)
    return try writer.orAbandon { writer in
      let count = try writer.heal(wanted, from: sources)
      guard count > 0 || isUnsaid else { return 0 }
      writer.require(FeatureFlags.repaired)
      // Written again, it is in a frame of its own.
      var manifest = survey.newestNamed
      if let named = manifest,
        try writer.find(named, among: writer.pending.ordinals(named.sectionKey)) == nil
      {
        manifest = nil
      }
      try writer.commit(manifest: manifest)
      return count
    }
  }

  /// Makes voids of what does not hold, if every section that the index counts is there: in a frame
  /// that holds, or written again.
  ///
  /// - Parameter survey: What a survey of the file as it is has found; nil to make one.
  /// - Throws: what the storage throws.
  /// - Returns: How many bytes it has.
  func voidNeedless(_ survey: Survey?) throws -> UInt64 {
    let reader = try reader()
    guard reader.generation.features.isRepaired else { return 0 }
    let survey = try survey ?? Survey(reader.file, limits: limits)
    let places = Set(survey.frames.filter { !$0.isIntact }.map(\.offset))
    guard survey.sectionCount <= reader.generation.sectionCount,
      survey.lost.joined().allSatisfy({ reader.isSuperseded($0, places) })
    else { return 0 }
    let count = try storage.void(reader.withFile { (file) in survey.rubble(in: file) })
    if count > 0 { try storage.synchronize() }
    return count
  }

  /// What is committed now.
  func reader() throws -> ArchiveReader {
    try ArchiveReader(storage.map(), limits: limits, ignoresTail: true)
  }
}
