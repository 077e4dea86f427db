extension ArchiveReader {
  /// Calls `body` with what was committed, write by write, from the newest back to the first, until
  /// it answers false; in a file without a footer with nothing.
  ///
  /// Each footer names the one before it, so that only footers are read. Each ends before the one
  /// that names it begins, and its number is one less, so the walk ends however they were made.
  ///
  /// - Throws: ``ArchiveError`` if a footer is damaged or contradicts the one that names it: what
  ///   lies before it can no longer be told.
  package func forEachGeneration(_ body: (Generation) -> Bool) throws(ArchiveError) {
    // Without a footer there is no generation, only what was counted.
    guard generation.number > 0 else { return }
    var newest = generation
    while body(newest), let offset = newest.previousFooterOffset {
      newest = try generation(at: offset, before: newest)
      if newest.number % 128 == 0 { releasePages() }
    }
  }

  /// The generation whose footer lies at `offset`, which is the one before `newer`.
  private func generation(at offset: UInt64, before newer: Generation) throws(ArchiveError)
    -> Generation
  {
    let start = Int(clamping: offset)
    let place = start..<max(start, min(file.count, start + Footer.maximumLength))
    return try file.withBytes(reading: [place]) { (bytes) throws(ArchiveError) in
      let committed = bytes.extracting(first: Int(generation.committedLength))
      guard let offset = Int(exactly: offset), let frame = Footer.frame(committed, at: offset)
      else {
        throw ArchiveError(
          .malformedFooter("generation \(newer.number) follows it, and it does not hold"),
          offset: offset)
      }
      let older = try Footer.read(committed, frame)
      guard older.number == newer.number - 1, older.committedLength <= newer.footerOffset,
        older.sectionCount <= newer.sectionCount, older.streamLength <= newer.streamLength,
        older.head == nil || newer.head != nil
      else {
        throw ArchiveError(
          .malformedFooter("it cannot come before generation \(newer.number)"),
          at: offset)
      }
      return older
    }
  }
}
