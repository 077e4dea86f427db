internal import IPLD

/// A large section of several frames that do not all hold, and that hashes to its CID anyway
/// (FORMAT 7.1).
///
/// The index says where its frames lie, and the frames how long it is: each but the last has 4 MiB
/// of the body. So neither the section's own length, nor a frame's header, nor those of its blocks
/// are needed.
struct LargeRemains: Sendable {
  private(set) var prefix: SectionPrefix
  /// Where the frames lie.
  let parts: [Range<Int>]

  /// Reads and hashes all of it.
  ///
  /// - Parameters:
  ///   - parts: Where its frames lie, in order.
  ///   - decoder: Decompresses them.
  ///   - file: The file.
  ///   - isLikely: Whether a CID may be that of the section.
  /// - Returns: nil if it does not have several frames, or does not hash to its CID.
  init?(
    _ parts: [Range<Int>], _ decoder: FrameDecoder, in file: Span<UInt8>, isLikely: (CID) -> Bool
  ) {
    guard parts.count > 1, let last = parts.last,
      parts.allSatisfy({ $0.count > 4 && $0.upperBound <= file.count }),
      parts.reduce(0, { $0 + $1.count }) <= file.count
    else { return nil }
    self.parts = parts
    let before = UInt64(parts.count - 1) * UInt64(ArchiveLimits.bodyPerFrame)
    for size in Self.contentSizes(ofFrameIn: last, in: file) {
      let bodyLength = before + UInt64(size)
      guard let prefix = Self.prefix(parts[0], bodyLength: bodyLength, decoder, in: file),
        isLikely(prefix.cid), prefix.frameCount == UInt64(parts.count)
      else { continue }
      self.prefix = prefix
      var hash = BodyHash(prefix.cid)
      for number in parts.indices {
        guard let content = content(ofPart: number, decoder, in: file) else { break }
        hash.update(content.span.extracting(droppingFirst: number == 0 ? prefix.length : 0))
      }
      if hash.finish() == .matches { return }
    }
    return nil
  }

  /// The content of one of its frames; nil if no reading has as much as it must.
  func content(ofPart number: Int, _ decoder: FrameDecoder, in file: Span<UInt8>) -> [UInt8]? {
    let size = prefix.contentSize(ofFrame: UInt64(number))
    return decoder.content(ofPart: parts[number], size: size, in: file)
  }

  /// One of its frames, of which only the place is known.
  func frame(_ number: Int) -> DataFrame {
    DataFrame(remainsIn: parts[number], contentSize: prefix.contentSize(ofFrame: UInt64(number)))
  }

  /// The frame in which it begins.
  func beginning(
    firstOrdinal: UInt64, _ failure: ArchiveError, _ decoder: FrameDecoder, in file: Span<UInt8>
  ) -> DecodedFrame {
    DecodedFrame(
      frame(0), prefix, content(ofPart: 0, decoder, in: file) ?? [], firstOrdinal: firstOrdinal,
      failure: failure)
  }

  /// How much content the last frame may have.
  private static func contentSizes(ofFrameIn range: Range<Int>, in file: Span<UInt8>) -> [Int] {
    var sizes: [Int] = []
    // An error here says only that its header does not tell.
    let header = try? DataFrame.readHeader(file, at: range.lowerBound, limit: range.upperBound)
    if let size = header?.contentSize { sizes.append(size) }
    for case .raw(let blocks) in FrameReading.readings(of: range, in: file) {
      let size = blocks.reduce(0) { $0 + $1.count }
      if !sizes.contains(size) { sizes.append(size) }
    }
    return sizes.filter { $0 > 0 && $0 <= ArchiveLimits.bodyPerFrame }
  }

  /// What stands in front of a body of this length; nil if it is not a CID of the usual length.
  private static func prefix(
    _ first: Range<Int>, bodyLength: UInt64, _ decoder: FrameDecoder, in file: Span<UInt8>
  ) -> SectionPrefix? {
    let nothing: [UInt8] = []
    let usual = SectionPrefix(CID(codec: .raw, hashing: nothing.span), bodyLength: bodyLength)
    let size = usual.contentSize(ofFrame: 0)
    guard let content = decoder.content(ofPart: first, size: size, in: file) else { return nil }
    var start = usual.length - usual.cid.byteCount
    // An error here says only that none is there.
    guard let cid = try? CID(content.span, at: &start), start == usual.length else { return nil }
    return SectionPrefix(cid, bodyLength: bodyLength)
  }
}

extension FrameDecoder {
  /// The content of a frame that has this much of it: by the reading that has the checksum, or by
  /// the first that has as much.
  fileprivate func content(ofPart range: Range<Int>, size: Int, in file: Span<UInt8>) -> [UInt8]? {
    let checksum = file.u32(range.upperBound - 4)
    var first: [UInt8]?
    for reading in FrameReading.readings(of: range, contentSize: size, in: file) {
      let content = content(by: reading, size: size, in: file)
      guard content.count == size else { continue }
      if UInt32(truncatingIfNeeded: XXH64.hash(content.span)) == checksum { return content }
      first = first ?? content
    }
    return first
  }
}
