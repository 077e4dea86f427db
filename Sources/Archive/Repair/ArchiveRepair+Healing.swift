internal import IPLD

/// Writes damaged sections of an archive again, as far as they can be had, and makes voids of the
/// frames that nothing needs any more (FORMAT 5.2).
///
/// A section can be had from what is left of its frame, or from another archive. Without another
/// archive only frames that have lost nothing are written again: of any other the rest can be read
/// where it is.
extension ArchiveRepair {
  /// Writes damaged sections again, as far as they can be had, and ends a generation.
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
  /// - Throws: what the storage throws.
  /// - Returns: How many bytes it has.
  func voidNeedless() throws -> UInt64 {
    var total: UInt64 = 0
    // What follows a frame that is gone may have been a part of the same section.
    while true {
      let count = try voidOnce()
      guard count > 0 else { return total }
      total += count
    }
  }

  private func voidOnce() throws -> UInt64 {
    let reader = try reader()
    guard reader.generation.features.isRepaired else { return 0 }
    let survey = try Survey(reader.file, limits: limits)
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

extension ArchiveReader {
  /// The damaged sections whose frames have lost nothing: all sections in them hash to their CIDs.
  fileprivate func salvageable(_ damaged: [Range<UInt64>]) throws -> [Range<UInt64>] {
    var found: [Range<UInt64>] = []
    for range in damaged {
      var ordinal = range.lowerBound
      while ordinal < range.upperBound {
        let frame = try neighbours(of: ordinal) ?? ordinal..<ordinal + 1
        if try frame.allSatisfy({ try salvaged($0) != nil }) { found.append(frame) }
        ordinal = max(frame.upperBound, ordinal + 1)
      }
    }
    return found
  }
}

extension Survey {
  /// The ordinals that no intact frame holds, and those of large sections that are not all there.
  fileprivate var lost: [Range<UInt64>] {
    lostOrdinals
      + incomplete.map { frames[$0].firstOrdinal }.filter { $0 != .max }.map { $0..<$0 + 1 }
  }

  /// The newest manifest by the last footer that holds, wherever it stands.
  fileprivate var newestNamed: CID? {
    footers.filter { $0.number > 0 }.max { $0.number < $1.number }?.head
  }

  /// Everything that is no frame, or one that does not hold.
  fileprivate func rubble(in file: Span<UInt8>) -> [Range<Int>] {
    let decoder = FrameDecoder()
    let broken = frames.filter { !$0.isIntact }.map { Int($0.offset)..<Int($0.end) }
    // One that says something out of place is a frame all the same.
    return gaps
      + broken.filter { range in
        let found = try? DataFrame(file, at: range.lowerBound, limit: range.upperBound)
        return !(found.map { decoder.holds($0, in: file) } ?? false)
      }
  }
}
