/// A way to read the stored bytes of a frame that does not hold (FORMAT 7.1).
///
/// The place of a frame and its length follow from an index segment, or from what stands behind it,
/// even where its own header and the headers of its blocks are damaged. A raw frame can be read
/// without them; a compressed one up to the first error of its zstd stream.
///
/// What comes out may be wrong. The caller tells by the hash of what is in it.
enum FrameReading: Equatable, Sendable {
  /// Where the content of each block lies in the file.
  case raw([Range<Int>])
  /// Where the blocks lie in the file, their headers included.
  case compressed(Range<Int>)

  /// The readings of a frame, the most likely first.
  ///
  /// - Parameters:
  ///   - range: Where the frame lies, as far as is known.
  ///   - contentSize: How much content it has; nil if only its header can tell.
  ///   - file: The file.
  static func readings(
    of range: Range<Int>, contentSize: Int? = nil, in file: Span<UInt8>
  ) -> [FrameReading] {
    let range = range.prefix(DataFrame.longest)
    let (start, end) = (range.lowerBound, range.upperBound)
    var readings: [FrameReading] = []
    func add(_ reading: FrameReading) {
      if !readings.contains(reading) { readings.append(reading) }
    }
    // An error here says only that the frame's own numbers cannot be.
    let own = try? DataFrame(file, at: start, limit: end, mayBeTorn: true)
    if let own, own.isRaw {
      var blocks: [Range<Int>] = []
      own.forEachBlock(in: file) { blocks.append($0) }
      add(.raw(blocks))
    }
    let sizeInHeader = (try? DataFrame.readHeader(file, at: start, limit: end))?.contentSize
    let sizes = [contentSize, sizeInHeader].compactMap(\.self)
    for size in sizes {
      let first = start + DataFrame.headerLength(contentSize: size)
      let blocks = rawBlocks(from: first, to: end - 4, contentSize: size, in: file)
      if blocks.reduce(0, { $0 + $1.count }) == size { add(.raw(blocks)) }
    }
    for length in DataFrame.headerLengths where contentSize == nil {
      let blocks = rawBlocks(from: start + length, to: end - 4, in: file)
      // The length of the header follows from the content.
      let size = blocks.reduce(0) { $0 + $1.count }
      if DataFrame.headerLength(contentSize: size) == length { add(.raw(blocks)) }
    }
    if own?.isRaw == true { return readings }
    if readings.isEmpty {
      // Where the frame ends is not known either.
      for length in DataFrame.headerLengths {
        add(.raw(rawBlocks(from: start + length, to: end, in: file)))
      }
    }
    let lengths = sizes.map { DataFrame.headerLength(contentSize: $0) } + DataFrame.headerLengths
    for length in lengths where start + length < end { add(.compressed(start + length..<end)) }
    return readings
  }

  /// The most content that blocks of this many bytes may have: the shortest has four, and repeats
  /// one of them.
  static func maximumContent(ofBlocks length: Int) -> Int {
    min(ArchiveLimits.frameContent, (length / 4 + 1) * DataFrame.blockContent)
  }

  /// Where the blocks of a raw frame lie, whatever their headers say: each has 128 KiB of content,
  /// except for the last, and those that end inside an occurrence of the magic (FORMAT 3.3).
  ///
  /// - Parameters:
  ///   - start: Where the header of the first lies.
  ///   - end: Where the last ends at the latest.
  ///   - contentSize: How much content there is at most.
  ///   - file: The file.
  private static func rawBlocks(
    from start: Int, to end: Int, contentSize: Int = .max, in file: Span<UInt8>
  ) -> [Range<Int>] {
    var blocks: [Range<Int>] = []
    var (place, rest) = (start, contentSize)
    while rest > 0, place < end - 3 {
      let most = place + 3..<min(place + 3 + min(DataFrame.blockContent, rest), end)
      let block = most.prefix((split(in: most, in: file) ?? most.upperBound) - most.lowerBound)
      blocks.append(block)
      (place, rest) = (block.upperBound, rest - block.count)
    }
    return blocks
  }

  /// Where a block ends that is ended by the magic; nil if it is not.
  ///
  /// If one half of the magic is damaged, the other has to be where the block's header says.
  private static func split(in block: Range<Int>, in file: Span<UInt8>) -> Int? {
    func hasHalf(_ half: Range<Int>, at place: Int) -> Bool {
      place >= block.lowerBound && place <= file.count - half.count
        && half.indices.allSatisfy {
          file[place + $0 - half.lowerBound] == ArchiveMagic.bytes[$0]
        }
    }
    let header = DataFrame.blockHeader(at: block.lowerBound - 3, in: file)
    let own = block.lowerBound + Int(header >> 3)
    if header >> 1 & 3 == 0, block.contains(own),
      hasHalf(0..<8, at: own - 8) || hasHalf(8..<16, at: own + 3)
    {
      return own
    }
    var start = block.lowerBound
    while let half = file.place(of: ArchiveMagic.firstWord, from: start, before: block.upperBound) {
      if hasHalf(0..<8, at: half), hasHalf(8..<16, at: half + 11), half + 8 < block.upperBound {
        return half + 8
      }
      start = half + 1
    }
    return nil
  }
}

extension FrameDecoder {
  /// The content of a frame by one reading.
  ///
  /// - Parameters:
  ///   - reading: How the frame is read.
  ///   - size: How much content there is; nil if that is not known. Of a compressed frame then as
  ///     much is returned as one may have, and what could not be read is zero.
  ///   - file: The file.
  func content(
    by reading: FrameReading, size: Int? = nil, in file: Span<UInt8>
  ) -> [UInt8] {
    switch reading {
    case .raw(let blocks):
      var content: [UInt8] = []
      content.reserveCapacity(blocks.reduce(0) { $0 + $1.count })
      for block in blocks { content.append(file.extracting(block)) }
      return content
    case .compressed(let blocks):
      // With a header of its own, so that nothing depends on the one that is there.
      let size = size ?? FrameReading.maximumContent(ofBlocks: blocks.count)
      var frame: [UInt8] = []
      frame.reserveCapacity(blocks.count + 9)
      DataFrame.appendHeader(contentSize: size, to: &frame)
      frame.append(file.extracting(blocks))
      return salvage(frame.span, size: size)
    }
  }
}
