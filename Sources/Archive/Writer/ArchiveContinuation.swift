internal import IPLD

/// Makes a file what an archive is that lies elsewhere and of which the file is the beginning.
///
/// 1. Until the last footer is written, the file is the archive that it was before.
/// 2. That is written when everything before it has been found whole, section by section, and is on
///    the medium.
package struct ArchiveContinuation {
  private let storage: any ArchiveStorage
  private let limits: ReadLimits

  /// How many bytes are read at a time.
  private static let pieceLength = 1 << 20

  /// A continuation of the archive in a storage, which may be empty.
  package init(_ storage: any ArchiveStorage, limits: ReadLimits = ReadLimits()) {
    (self.storage, self.limits) = (storage, limits)
  }

  /// How many bytes the footer takes in which a file ends; nil if it ends in none.
  ///
  /// - Parameters:
  ///   - ending: The file's last bytes, as many as the longest footer has.
  ///   - count: How many bytes the file has.
  package static func footerLength(atEndOf ending: [UInt8], count: UInt64) -> Int? {
    guard ending.count >= Footer.trailerLength, count <= UInt64(Int.max) else { return nil }
    let own = ending.span.u64(ending.count - Footer.trailerLength)
    let before = count - UInt64(ending.count)
    guard before <= own, own < count else { return nil }
    let footer = ending.span.extracting(Int(own - before)..<ending.count)
    let length = Footer.frame(footer, at: 0, writtenAt: Int(own))?.length
    return length == footer.count ? length : nil
  }

  /// Appends what the other has and the file does not.
  ///
  /// - Parameters:
  ///   - count: How many bytes the other has.
  ///   - footerLength: How many of them are its last footer.
  ///   - read: Reads some bytes of the other, from an offset on.
  ///   - progress: Called with how many bytes have come, and how many there are to come.
  /// - Throws: ``ArchiveError`` if what came is not whole, and what the storage and `read` throw. The
  ///   file is what it was then.
  package func extend(
    to count: UInt64, footerLength: Int, read: (UInt64, Int) throws -> [UInt8],
    progress: (UInt64, UInt64) -> Void = { _, _ in }
  ) throws {
    let start = try storage.size
    let footer = count - UInt64(footerLength)
    do {
      var offset = start
      while offset < footer {
        let piece = try read(offset, Int(min(UInt64(Self.pieceLength), footer - offset)))
        let bytes = piece.span
        try storage.write(bytes, at: offset)
        offset += UInt64(piece.count)
        progress(offset - start, count - start)
      }
      let last = try read(footer, footerLength)
      // What lies before the last footer of a repaired file need not count.
      let isRepaired = FeatureFlags(required: last.span.u64(32)).isRepaired
      try check(from: start, isCounting: !isRepaired)
      try storage.synchronize()
      try storage.write(last.span, at: footer)
      let file = try storage.map()
      guard let generation = try ArchiveReader.lastGeneration(of: file),
        generation.committedLength == count
      else { throw ArchiveError(.truncated, offset: footer) }
      // Throws if an index segment is not the one that the footer names.
      _ = try ArchiveReader(file, committed: generation)
      try storage.synchronize()
    } catch {
      // What cannot be cut off is a tail that readers ignore.
      do { try storage.truncate(to: start) } catch _ {}
      throw error
    }
  }

  /// Makes sure that everything from a place on is whole, and that footers there count what there is.
  private func check(from start: UInt64, isCounting: Bool) throws {
    let file = try storage.map()
    let committed = start > 0 ? try ArchiveReader.lastGeneration(of: file) : nil
    let survey = try Survey(file, after: committed, limits: limits)
    guard survey.isTiled, survey.damagedCount == 0, survey.incomplete.isEmpty else {
      let failure = survey.malformations.first
      throw ArchiveError(
        .damagedFrame("what came does not hold"),
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
