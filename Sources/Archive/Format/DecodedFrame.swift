internal import IPLD

/// A data frame in which sections begin, and where each of them does.
///
/// Immutable, so that threads share it. A pack holds whole sections; the first frame of a large
/// section holds the beginning of that one, or all of it.
package final class DecodedFrame: Sendable {
  /// The content; none of a raw frame with a large section, which is read where it lies.
  package let bytes: [UInt8]
  /// The ordinal of the first section.
  package let firstOrdinal: UInt64
  /// Where the frame lies in the file, for messages.
  package let place: UInt64
  /// The frame as it is stored, if it is the first of a large section, and the prefix of that; nil
  /// for a pack.
  let large: (frame: DataFrame, prefix: SectionPrefix)?
  /// Why the frame does not hold, so that its sections are right only if they hash to their CIDs;
  /// nil if it does.
  package let failure: ArchiveError?
  /// Where each section begins, and where the last ends.
  private let bounds: [UInt32]

  /// How many sections begin here.
  package var count: Int { bounds.count - 1 }

  /// The first frame of a large section, and why it does not hold, if it does not.
  init(
    _ frame: DataFrame, _ prefix: SectionPrefix, _ bytes: [UInt8], firstOrdinal: UInt64,
    failure: ArchiveError? = nil
  ) {
    self.bytes = bytes
    self.firstOrdinal = firstOrdinal
    place = UInt64(frame.offset)
    self.failure = failure
    large = (frame, prefix)
    bounds = [0, UInt32(frame.contentSize)]
  }

  /// Finds the sections of a pack.
  ///
  /// - Throws: ``ArchiveError`` if they are not whole small sections.
  package init(_ bytes: [UInt8], firstOrdinal: UInt64, place: UInt64) throws(ArchiveError) {
    self.bytes = bytes
    self.firstOrdinal = firstOrdinal
    self.place = place
    failure = nil
    large = nil
    let (bounds, malformation) = Self.bounds(of: bytes.span)
    if let malformation { throw ArchiveError(.malformedSection(malformation), offset: place) }
    self.bounds = bounds
  }

  /// The sections that are left of a frame that does not hold, each as it was written.
  ///
  /// - Parameters:
  ///   - remains: What is left.
  ///   - firstOrdinal: The ordinal of the first section there was.
  ///   - place: Where the frame lies in the file, for messages.
  ///   - failure: Why it does not hold.
  ///   - number: The number that a section has in the frame, of those that are not taken; nil if it
  ///     has none.
  package init(
    _ remains: FrameRemains, firstOrdinal: UInt64, place: UInt64, _ failure: ArchiveError,
    number: (FrameRemains.Section, _ isTaken: (Int) -> Bool) -> Int? = { section, _ in
      section.number
    }
  ) {
    var numbered: [Int: FrameRemains.Section] = [:]
    for section in remains.found {
      guard let number = number(section, { numbered[$0] != nil }) else { continue }
      numbered[number] = section
    }
    var (bytes, bounds): ([UInt8], [UInt32]) = ([], [0])
    // What is lost takes no bytes.
    for number in 0..<(numbered.keys.max().map { $0 + 1 } ?? 0) {
      if let section = numbered[number] {
        CARWriter.appendPrefix(section.cid, bodyLength: UInt64(section.body.count), to: &bytes)
        bytes += remains.content[section.body]
      }
      bounds.append(UInt32(bytes.count))
    }
    (self.bytes, self.bounds) = (bytes, bounds)
    (self.firstOrdinal, self.place, self.failure) = (firstOrdinal, place, failure)
    large = nil
  }

  /// Where each section begins and the last ends, up to the first for which that is unknown, and
  /// what is wrong with that one.
  private static func bounds(of content: Span<UInt8>) -> (bounds: [UInt32], malformation: String?) {
    var bounds: [UInt32] = []
    bounds.reserveCapacity(content.count / 256 + 2)
    bounds.append(0)
    var offset = 0
    while offset < content.count {
      let start = offset
      guard case .value(let total) = Varint.read(content, at: &offset), total > 0 else {
        return (bounds, "its length is not a varint")
      }
      guard total <= UInt64(content.count - offset) else {
        return (bounds, "it does not end in its frame")
      }
      if total >= UInt64(ArchiveLimits.largeBody),
        (try? SectionPrefix(content, at: start, place: 0))?.isLarge ?? true
      {
        return (bounds, "it is large, but shares its frame")
      }
      offset += Int(total)
      bounds.append(UInt32(offset))
    }
    return (bounds, nil)
  }

  /// Where section number `index` of the frame, or what is in it of a large one, lies in ``bytes``;
  /// nowhere if it is lost.
  ///
  /// - Precondition: `index` is below ``count``.
  @inline(__always)
  package func range(_ index: Int) -> Range<Int> { Int(bounds[index])..<Int(bounds[index + 1]) }

  /// Where the sections from `lower` up to but not including `upper` lie in ``bytes``.
  package func range(from lower: Int, to upper: Int) -> Range<Int> {
    Int(bounds[lower])..<Int(bounds[upper])
  }

  /// The number, in this frame, of the section with this ordinal; nil if it is not here.
  package func index(of ordinal: UInt64) -> Int? {
    guard ordinal >= firstOrdinal, ordinal - firstOrdinal < UInt64(count) else { return nil }
    return Int(ordinal - firstOrdinal)
  }

  /// The prefix of section number `index` of the frame.
  ///
  /// - Throws: ``ArchiveError`` if it is malformed.
  @inline(__always)
  package func prefix(_ index: Int) throws(ArchiveError) -> SectionPrefix {
    if let large { return large.prefix }
    guard bounds[index] < bounds[index + 1] else {
      throw failure ?? ArchiveError(.malformedSection("it is empty"), offset: place)
    }
    let bytes = bytes
    return try SectionPrefix(bytes.span, at: Int(bounds[index]), place: place)
  }

  /// The CID of section number `index` of a pack, and where its body lies in ``bytes``.
  ///
  /// - Throws: ``ArchiveError`` if its prefix is malformed.
  func section(_ index: Int) throws(ArchiveError) -> (cid: CID, body: Range<Int>) {
    let prefix = try prefix(index)
    let range = range(index)
    return (prefix.cid, range.lowerBound + prefix.length..<range.upperBound)
  }

  /// Hashes sections of a pack.
  ///
  /// - Throws: ``ArchiveError`` at the first whose prefix is malformed.
  /// - Returns: For each its CID, where its body lies in ``bytes``, and whether it hashes to the
  ///   CID.
  func verify(_ numbers: Range<Int>) throws(ArchiveError) -> [(
    cid: CID, body: Range<Int>, verification: Multihash.Verification
  )] {
    var cids: [CID] = []
    var bodies: [Range<Int>] = []
    cids.reserveCapacity(numbers.count)
    bodies.reserveCapacity(numbers.count)
    for number in numbers {
      let section = try section(number)
      cids.append(section.cid)
      bodies.append(section.body)
    }
    let bytes = bytes
    let digests = SHA256.digests(of: bodies, in: bytes.span)
    return cids.indices.map { index in
      let body = bytes.span.extracting(bodies[index])
      return (cids[index], bodies[index], cids[index].verify(body, hashedTo: digests[index]))
    }
  }
}
