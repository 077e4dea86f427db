internal import IPLD

/// The form of a data frame whose content lies in it as it is (FORMAT 3.1 and 3.3): there is one
/// way only to write it.
///
/// Blocks hold 131,072 bytes, except that the last holds what is left, and that one ends after the
/// eighth byte of each occurrence of the magic in the content, after which the count begins again.
/// If the last bytes of the content and the checksum after them would spell the magic, an empty
/// block lies between them.
extension DataFrame {
  /// Appends the frame of `content`.
  ///
  /// - Precondition: `content` is not empty and within ``ArchiveLimits/frameContent``.
  package static func appendRaw(_ content: Span<UInt8>, to bytes: inout [UInt8]) {
    let checksum = UInt32(truncatingIfNeeded: XXH64.hash(content))
    let guarded = spellsMagic(endOf: content, checksum: checksum)
    appendHeader(contentSize: content.count, to: &bytes)
    var start = 0
    var cut = nextCut(in: content, after: 0)
    while start < content.count {
      let end = min(start + Self.blockContent, cut, content.count)
      appendBlockHeader(size: end - start, isLast: end == content.count && !guarded, to: &bytes)
      bytes.append(content.extracting(start..<end))
      start = end
      if end == cut { cut = nextCut(in: content, after: cut) }
    }
    if guarded { appendBlockHeader(size: 0, isLast: true, to: &bytes) }
    bytes.append(littleEndian: checksum)
  }

  /// How long the frame is of this much content in which the magic does not occur.
  static func rawLength(contentSize: Int) -> Int {
    let blocks = (contentSize + Self.blockContent - 1) / Self.blockContent
    return headerLength(contentSize: contentSize) + 3 * blocks + contentSize + 4
  }

  /// The middle of the first occurrence of the magic that has its middle after `place`; `Int.max`
  /// if there is none.
  private static func nextCut(in content: Span<UInt8>, after place: Int) -> Int {
    guard let found = ArchiveMagic.next(in: content, from: max(0, place - 7)) else { return .max }
    return found + 8
  }

  /// Whether the magic would begin in the last bytes of the content and end in the checksum.
  package static func spellsMagic(endOf content: Span<UInt8>, checksum: UInt32) -> Bool {
    let tail = min(content.count, ArchiveMagic.length - 1)
    var bytes = content.array(content.count - tail..<content.count)
    bytes.append(littleEndian: checksum)
    return ArchiveMagic.next(in: bytes.span) != nil
  }

  private static func appendBlockHeader(size: Int, isLast: Bool, to bytes: inout [UInt8]) {
    let header = UInt32(size) << 3 | (isLast ? 1 : 0)
    bytes.append(UInt8(truncatingIfNeeded: header))
    bytes.append(UInt8(truncatingIfNeeded: header >> 8))
    bytes.append(UInt8(truncatingIfNeeded: header >> 16))
  }

  /// Calls `body` with where the content of each block lies in the file, in order, less the first
  /// `skipped` bytes of all.
  ///
  /// Another program may write to the file in the meantime; what lies after the frame is not read.
  ///
  /// - Precondition: the frame was read from `file` and is raw.
  package func forEachBlock<Failure: Error>(
    droppingFirst skipped: Int = 0, in file: Span<UInt8>,
    _ body: (Range<Int>) throws(Failure) -> Void
  ) throws(Failure) {
    var place = offset + headerLength
    var (rest, isLast) = (skipped, false)
    while !isLast, let block = block(at: place, in: file) {
      isLast = file[place] & 1 == 1
      let part = block.dropFirst(rest)
      rest -= block.count - part.count
      try body(part)
      place = block.upperBound
    }
  }

  /// Where the content of the block lies whose header is at `place`; nil at the end of the frame,
  /// where there is none unless the file has changed.
  func block(at place: Int, in file: Span<UInt8>) -> Range<Int>? {
    guard place <= end - 3 else { return nil }
    return place + 3..<min(end, place + 3 + Int(Self.blockHeader(at: place, in: file) >> 3))
  }

  /// The three bytes in front of a block, as a number.
  @inline(__always)
  static func blockHeader(at place: Int, in file: Span<UInt8>) -> UInt32 {
    UInt32(file[place]) | UInt32(file[place + 1]) << 8 | UInt32(file[place + 2]) << 16
  }

  /// Up to `limit` bytes from the beginning of the content, together.
  package func rawContent(in file: Span<UInt8>, limit: Int = .max) -> [UInt8] {
    var content: [UInt8] = []
    content.reserveCapacity(min(contentSize, limit))
    forEachBlock(in: file) { block in
      let wanted = min(block.count, limit - content.count)
      content.append(file.extracting(block.lowerBound..<block.lowerBound + wanted))
    }
    return content
  }

  /// Frame 0 of a file, and the CAR header that it holds, its varint in front.
  ///
  /// - Throws: ``ArchiveError`` if it is damaged, or does not hold one header and nothing else.
  static func carHeader(in file: Span<UInt8>, at offset: Int = 0) throws(ArchiveError)
    -> (DataFrame, [UInt8])
  {
    // If the bytes do not begin as one, no more is read.
    let (headerLength, size) = try DataFrame.readHeader(file, at: offset, limit: file.count)
    var place = offset + headerLength + 3
    let begin = place
    guard case .value(let length) = Varint.read(file, at: &place),
      length == UInt64(max(0, size - (place - begin)))
    else { throw ArchiveError(.malformedHeader) }
    let frame = try DataFrame(file, at: offset, limit: file.count)
    guard frame.isRaw, frame.rawChecksumHolds(in: file) else {
      throw ArchiveError(.damagedFrame("it holds the CAR header"), at: offset)
    }
    let content = frame.rawContent(in: file)
    try checkHeader(content.span)
    return (frame, content)
  }

  /// Refuses what is not a varint and as many bytes as it says, one at least.
  static func checkHeader(_ content: Span<UInt8>) throws(ArchiveError) {
    var offset = 0
    guard case .value(let length) = Varint.read(content, at: &offset), length > 0,
      length <= UInt64(ArchiveLimits.carHeader), length == UInt64(content.count - offset)
    else { throw ArchiveError(.malformedHeader) }
  }

  /// Whether the content's checksum holds.
  package func rawChecksumHolds(in file: Span<UInt8>) -> Bool {
    var hash = XXH64.Stream()
    forEachBlock(in: file) { block in hash.update(file.extracting(block)) }
    let stored = file.u32(end - 4)
    return UInt32(truncatingIfNeeded: hash.finish()) == stored
  }

  /// Whether the frame is what ``appendRaw(_:to:)`` makes of its content.
  package func isCanonicalRaw(in file: Span<UInt8>) -> Bool {
    if isPlain(in: file) { return true }
    // Something is unusual: a magic that was split, or another layout. Writing the frame again
    // tells which.
    var expected: [UInt8] = []
    expected.reserveCapacity(length)
    Self.appendRaw(rawContent(in: file).span, to: &expected)
    return expected.span.equals(file.extracting(range))
  }

  /// Whether only the last block is short and no magic lies across two blocks or in one: the usual
  /// case, seen without a copy.
  private func isPlain(in file: Span<UInt8>) -> Bool {
    var isPlain = true
    var seam: [UInt8] = []
    var previous: Range<Int>?
    forEachBlock(in: file) { block in
      guard let before = previous else {
        previous = block
        return
      }
      previous = block
      guard before.count == Self.blockContent, !block.isEmpty else {
        isPlain = false
        return
      }
      seam.removeAll(keepingCapacity: true)
      seam.append(file.extracting(before.upperBound - 15..<before.upperBound))
      seam.append(file.extracting(block.lowerBound..<block.lowerBound + min(15, block.count)))
      if ArchiveMagic.next(in: seam.span) != nil { isPlain = false }
    }
    return isPlain && ArchiveMagic.next(in: file.extracting(range)) == nil
  }
}
