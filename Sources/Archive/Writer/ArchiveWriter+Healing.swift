internal import IPLD

/// Damaged sections, written again (FORMAT 5.2).
///
/// A section whose frame does not hold is not in the archive for one who appends it: it is written
/// again, and supersedes the damaged one. What is left of the other sections of that frame is
/// written again with it, so that, if the source has the rest, nothing needs the frame any more.
extension ArchiveWriter {
  /// The number of the section if it is there already and holds.
  mutating func existing(_ cid: CID, _ key: UInt64) throws -> UInt64? {
    let candidates = pending.ordinals(key)
    if let ordinal = try find(cid, among: candidates) { return ordinal }
    guard candidates.count < ArchiveLimits.aliases else { throw ArchiveError(.tooManyAliases(cid)) }
    guard let committed else { return nil }
    switch try committed.state(of: cid, isChecking: true) {
    case .held(let ordinal, _): return ordinal
    case .missing: return nil
    case .damaged:
      isHealing = true
      for candidate in try committed.candidates(key) { try saveNeighbours(of: candidate) }
      // It may have been one of them.
      return try find(cid, among: pending.ordinals(key))
    }
  }

  /// Writes again what is left of a damaged pack, or a section of several frames that can still be
  /// read.
  private mutating func saveNeighbours(of ordinal: UInt64) throws {
    guard let committed, let range = try committed.neighbours(of: ordinal),
      savedFrames.insert(range.lowerBound).inserted
    else { return }
    for ordinal in range {
      guard let (cid, body) = try committed.salvaged(ordinal) else {
        if try committed.isReadable(ordinal) { try copy(ordinal, from: committed) }
        continue
      }
      // A manifest is alone in its frame, whatever it was lost with.
      let isAlone = ManifestShape(cid, body.span) != nil
      if isAlone { try flush() }
      try append(verified: cid, body.span)
      if isAlone { try flush() }
    }
  }

  /// Writes damaged sections again, as far as they can be read.
  ///
  /// For a damaged section that no longer hashes to its CID, the bits of the key that the index
  /// keeps are known, at least 28. Any section of the other archive with the same bits is taken, so
  /// about once in some thousand sections a foreign one is copied, too.
  ///
  /// - Parameters:
  ///   - damaged: The numbers of the sections.
  ///   - sources: Other archives that may have them.
  /// - Throws: ``ArchiveError`` if another archive cannot be read; what the storage throws.
  /// - Returns: How many sections were written.
  @discardableResult
  package mutating func heal(_ damaged: [Range<UInt64>], from sources: [ArchiveReader] = []) throws
    -> UInt64
  {
    try checkUsable()
    guard let committed else { return 0 }
    let before = pending.nextOrdinal
    for ordinal in damaged.joined() {
      isHealing = true
      try saveNeighbours(of: ordinal)
      for source in sources {
        for other in try source.likelyTwins(of: ordinal, in: committed) {
          let isAlone = try source.neighbours(of: other)?.count == 1
          if isAlone { try flush() }
          try copy(other, from: source)
          if isAlone { try flush() }
        }
      }
    }
    return pending.nextOrdinal - before
  }

  /// Appends a section of another archive, if it holds.
  private mutating func copy(_ ordinal: UInt64, from source: ArchiveReader) throws {
    let section: Section
    do {
      section = try source.section(at: ordinal)
    } catch let error as ArchiveError where error.faultKind != .system {
      return
    }
    guard try begin(section.cid, length: section.bodyLength) == nil else { return }
    // An error of this archive's storage is not damage of the other archive, and is thrown.
    var refusal: (any Error)?
    do {
      let isThere = try source.read(section.cid) { bytes in
        do { try take(bytes) } catch {
          refusal = error
          throw error
        }
      }
      guard isThere else { return try cancel() }
    } catch let error as ArchiveError where refusal == nil && error.faultKind != .system {
      // It is damaged there, too.
      return try cancel()
    }
    do {
      try finish()
    } catch let error as ArchiveError where error.reason == .contentMismatch(section.cid) {
      // It no longer hashes to its CID there, and has been cancelled.
    }
  }
}

extension ArchiveReader {
  /// The numbers of sections here that may be the section `ordinal` of another archive.
  fileprivate func likelyTwins(of ordinal: UInt64, in other: ArchiveReader) throws -> [UInt64] {
    guard let kept = try other.withFile({ (file) in other.keptKey(of: ordinal, in: file) }) else {
      return []
    }
    return try candidates(kept.key, knownBits: kept.bits)
  }
}
