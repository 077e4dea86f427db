/// What was committed, write by write, from the newest back to the first.
///
/// Each footer names the one before it, so that only footers are read. One that is not what it has
/// to be ends the walk, with an error once: what lies before it can no longer be told.
///
/// ```swift
/// var generations = reader.generations
/// while let generation = try generations.next() { print(generation.number, generation.committedLength) }
/// ```
///
/// Invariant: each generation's footer ends before the one that was given out before it begins, and
/// its number is one less, so the walk ends however the footers were made.
package struct GenerationCursor: Sendable {
  private let reader: ArchiveReader
  /// The generation that comes next, if it is known already.
  private var upcoming: Generation?
  private var last: Generation?

  init(_ reader: ArchiveReader) {
    self.reader = reader
    // Without a footer there is no generation, only what was counted.
    upcoming = reader.generation.number > 0 ? reader.generation : nil
  }

  /// The next older generation, or nil behind the first.
  ///
  /// - Throws: ``ArchiveError`` if its footer is damaged or contradicts the one that names it.
  ///   After that there are no more.
  package mutating func next() throws(ArchiveError) -> Generation? {
    if let generation = upcoming {
      upcoming = nil
      last = generation
      return generation
    }
    guard let newer = last, let offset = newer.previousFooterOffset else { return nil }
    last = nil
    let older = try reader.generation(at: offset, before: newer)
    last = older
    if older.number % 128 == 0 { reader.releasePages() }
    return older
  }
}

extension ArchiveReader {
  /// What was committed, the newest generation first; nothing in a file without a footer.
  package var generations: GenerationCursor { GenerationCursor(self) }

  /// The generation whose footer lies at `offset`, which is the one before `newer`.
  fileprivate func generation(at offset: UInt64, before newer: Generation) throws(ArchiveError)
    -> Generation
  {
    try file.withBytes { (bytes) throws(ArchiveError) in
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
          offset: UInt64(offset))
      }
      return older
    }
  }
}
