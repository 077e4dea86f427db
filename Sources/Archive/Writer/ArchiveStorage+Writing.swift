extension ArchiveStorage {
  /// Makes bytes that no longer count into frames that decoders pass over; fewer than eight in a
  /// row stay as they are.
  ///
  /// Ranges that lie side by side become one, because a void has a smallest length.
  ///
  /// - Returns: How many bytes were made into such frames.
  func void(_ ranges: [Range<Int>]) throws -> UInt64 {
    try ranges.merged().reduce(0) { try $0 + UInt64(void($1)) }
  }

  private func void(_ range: Range<Int>) throws -> Int {
    // In pieces that fit into memory, of which the last is long enough, too.
    let maximum = 4 << 20
    var start = range.lowerBound
    while range.upperBound - start >= SkippableFrame.voidHeaderLength {
      let rest = range.upperBound - start
      let length = rest < maximum + SkippableFrame.voidHeaderLength ? rest : maximum
      let bytes = try read(length, at: UInt64(start))
      let patches = SkippableFrame.voidPatches(for: bytes.span)
      for (offset, patch) in patches { try write(patch.span, at: UInt64(start + offset)) }
      start += length
    }
    return start - range.lowerBound
  }

  /// Waits for a footer that was written last.
  ///
  /// - Throws: ``ArchiveError`` with the reason `commitUncertain` if the wait fails: whether the
  ///   footer counts shows when the file is opened again.
  func synchronizeFooter() throws {
    do {
      try commit()
    } catch let error as ArchiveError {
      guard case .system(_, let code) = error.reason else { throw error }
      throw ArchiveError(.commitUncertain(code: code))
    }
  }
}

extension IndexSegment {
  /// The segment as a footer names it.
  var named: Generation.Segment {
    Generation.Segment(
      offset: UInt64(frame.offset), base: base, sectionCount: UInt32(count),
      frameCount: UInt32(frameCount), checksum: frame.checksum)
  }
}

/// Making a file what an archive is that lies elsewhere and of which the file, which may be empty,
/// is the beginning.
///
/// 1. Until everything before the last footer is on the medium, the file is the archive that it was
///    before: footers on the way lack their first bytes until then.
/// 2. That is written when everything before it has been found whole, section by section, and is on
///    the medium.
extension ArchiveStorage {
  /// Appends what the other has and the file does not.
  ///
  /// - Parameters:
  ///   - count: How many bytes the other has.
  ///   - footerLength: How many of them are its last footer.
  ///   - limits: How much the archive may hold.
  ///   - read: Reads some bytes of the other, from an offset on.
  ///   - progress: Called with how many bytes have arrived, and how many there are to come.
  /// - Throws: ``ArchiveError`` if what came is not whole, and what the storage and `read` throw.
  ///   The file is what it was then.
  package func extend(
    to count: UInt64, footerLength: Int, limits: ArchiveLimits = ArchiveLimits(),
    read: (UInt64, Int) throws -> [UInt8],
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws {
    let start = try size
    let footer = count - UInt64(footerLength)
    // No footer among the new bytes counts before everything has been checked.
    let committed = start > 0 ? try ArchiveReader.lastGeneration(of: map()) : nil
    do {
      var offset = start
      var withheld: [(offset: UInt64, bytes: [UInt8])] = []
      while offset < footer {
        var piece = try read(offset, Int(min(1 << 20, footer - offset)))
        for place in Footer.places(in: piece.span) {
          let word = place..<place + 4
          withheld.append((offset + UInt64(place), Array(piece[word])))
          piece.replaceSubrange(word, with: repeatElement(0, count: word.count))
        }
        try write(piece.span, at: offset)
        let isLast = offset + UInt64(piece.count) == footer
        // The bytes that identify a footer may lie in two pieces.
        offset += UInt64(isLast ? piece.count : max(1, piece.count - SkippableFrame.headerLength))
        progress(offset - start, count - start)
      }
      try synchronize()
      for (offset, bytes) in withheld { try write(bytes.span, at: offset) }
      let last = try read(footer, footerLength)
      // What lies before the last footer of a repaired file need not count.
      let isRepaired = FeatureFlags(required: last.span.u64(32)).isRepaired
      try check(from: start, after: committed, isCounting: !isRepaired, limits: limits)
      try synchronize()
      try write(last.span, at: footer)
      let file = try map()
      guard let generation = try ArchiveReader.lastGeneration(of: file),
        generation.committedLength == count
      else { throw ArchiveError(.truncated, offset: footer) }
      // Throws if an index segment is not the one that the footer names.
      _ = try ArchiveReader(file, committed: generation)
      try commit()
    } catch {
      // What cannot be cut off is a tail that readers ignore.
      do { try truncate(to: start) } catch _ {}
      throw error
    }
  }

  /// Makes sure that everything from a place on is whole, and that footers there count what there
  /// is.
  private func check(
    from start: UInt64, after committed: Generation?, isCounting: Bool, limits: ArchiveLimits
  ) throws {
    let file = try map()
    let survey = try Survey(file, after: committed, limits: limits)
    guard survey.isTiled, survey.damagedCount == 0, survey.incomplete.isEmpty else {
      let failure = survey.malformations.first
      throw ArchiveError(
        .damagedFrame("the bytes received are not valid"),
        offset: failure?.offset ?? UInt64(survey.gaps.first?.lowerBound ?? Int(start)))
    }
    guard isCounting else { return }
    var malformed: ArchiveError?
    file.withBytes { bytes in
      _ = survey.checkFooters(
        after: committed, before: file.count, isCounting: true, in: bytes
      ) { malformed = malformed ?? $0 }
    }
    if let malformed { throw malformed }
  }
}
