internal import IPLD

extension ArchiveStorage {
  /// Makes bytes that count no more into frames that decoders pass over; fewer than eight stay as
  /// they are.
  ///
  /// - Returns: How many bytes were made into such frames.
  func void(_ range: Range<Int>) throws -> Int {
    // In pieces that fit into memory, of which the last is long enough, too.
    let maximum = 4 << 20
    var start = range.lowerBound
    while range.upperBound - start >= VoidFrame.headerLength {
      let rest = range.upperBound - start
      let length = rest < maximum + VoidFrame.headerLength ? rest : maximum
      let bytes = try read(length, at: UInt64(start))
      let patches = VoidFrame.patches(for: bytes.span)
      for (offset, patch) in patches {
        try write(patch.span, at: UInt64(start + offset))
      }
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
      try synchronize()
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
