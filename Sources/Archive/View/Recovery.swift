/// What had to be done to read a file that is not as a writer leaves it.
package struct Recovery: Equatable, Sendable {
  /// Why the index was read from the frames.
  package enum Rebuild: Equatable, Sendable {
    /// No footer is valid: nothing was committed, or the end of the file is lost.
    case noFooter
    /// An index segment is damaged: where it begins.
    case damagedIndex(offset: UInt64)
  }

  /// How many bytes follow the last footer: what is whole among them can be read, and does not
  /// count.
  package var interruptedTail: UInt64 = 0
  /// Why the index was read from the frames; nil if the one in the file was used.
  package var rebuild: Rebuild?
  /// Whether what follows was committed once: it holds a footer that does not stand where it was
  /// written.
  package var isDamaged = false
  /// What is wrong if bytes that follow were committed, and are not what was written.
  package var damagedEnd: ArchiveError?
  /// Whether a writer has the file, so that what follows is on its way.
  package var isBeingWritten = false
}

extension MappedFile {
  /// What is wrong with bytes that were committed and follow the last footer that can be read; nil
  /// if there are none, or they are what was written.
  ///
  /// - Throws: ``FetchFailure``.
  package func damagedEnd(behind generation: Generation?) throws -> ArchiveError? {
    let start = generation?.committedLength ?? 0
    guard start < UInt64(count), let first = try damaged(in: start..<UInt64(count)).first else {
      return nil
    }
    return ArchiveError(.damagedEnd, offset: first.lowerBound)
  }
}

extension Recovery {
  /// What was done, and that the index was read from the frames.
  init(_ recovery: Recovery?, rebuiltAt place: UInt64) {
    self = recovery ?? Recovery()
    rebuild = rebuild ?? .damagedIndex(offset: place)
  }
}
