internal import IPLD

/// The content of a data frame in which sections begin, and where each of them does.
///
/// Immutable, so that threads share it. A pack holds whole sections; the first frame of a large
/// section holds the beginning of that one, or all of it.
package final class DecodedFrame: Sendable {
  /// The content.
  package let bytes: [UInt8]
  /// The ordinal of the first section.
  package let firstOrdinal: UInt64
  /// Where the frame lies in the file, for messages.
  package let place: UInt64
  /// The prefix of the large section whose first frame this is; nil for a pack.
  package let large: SectionPrefix?
  /// Why the frame does not hold, so that its sections are right only if they hash to their CIDs;
  /// nil if it does.
  package let failure: ArchiveError?
  /// Where each section begins, and where the last ends.
  private let bounds: [UInt32]

  /// How many sections begin here.
  package var count: Int { bounds.count - 1 }

  /// Finds the sections of `bytes`.
  ///
  /// - Throws: ``ArchiveError`` if they are not whole sections, or one large one.
  package init(_ bytes: [UInt8], firstOrdinal: UInt64, place: UInt64) throws(ArchiveError) {
    self.bytes = bytes
    self.firstOrdinal = firstOrdinal
    self.place = place
    failure = nil
    let content = bytes.span
    let first = try SectionPrefix(content, at: 0, place: place)
    if first.isLarge {
      guard content.count == first.contentSize(ofFrame: 0) else {
        throw ArchiveError(.malformedSection("a large one shares its frame"), offset: place)
      }
      large = first
      bounds = [0, UInt32(content.count)]
      return
    }
    large = nil
    var bounds: [UInt32] = []
    bounds.reserveCapacity(content.count / 256 + 2)
    var offset = 0
    while offset < content.count {
      bounds.append(UInt32(offset))
      guard case .value(let total) = Varint.read(content, at: &offset), total > 0 else {
        throw ArchiveError(.malformedSection("its length is not a varint"), offset: place)
      }
      guard total <= UInt64(content.count - offset) else {
        throw ArchiveError(.malformedSection("it does not end in its frame"), offset: place)
      }
      offset += Int(total)
      guard try !Self.isLarge(content, Int(bounds[bounds.count - 1]), total, place) else {
        throw ArchiveError(.malformedSection("a large one shares its frame"), offset: place)
      }
    }
    bounds.append(UInt32(offset))
    self.bounds = bounds
  }

  /// Whether the section at `start`, of so many bytes behind its length, has to have frames of its
  /// own.
  private static func isLarge(
    _ content: Span<UInt8>, _ start: Int, _ total: UInt64, _ place: UInt64
  ) throws(ArchiveError) -> Bool {
    guard total >= UInt64(ArchiveLimits.largeBody) else { return false }
    return try SectionPrefix(content, at: start, place: place).isLarge
  }

  /// Finds the sections that can still be told apart in what is left of a damaged pack.
  package init(
    salvaging bytes: [UInt8], firstOrdinal: UInt64, place: UInt64, _ failure: ArchiveError
  ) {
    self.bytes = bytes
    self.firstOrdinal = firstOrdinal
    self.place = place
    self.failure = failure
    large = nil
    let content = bytes.span
    var bounds: [UInt32] = [0]
    var offset = 0
    while case .value(let total) = Varint.read(content, at: &offset), total > 0,
      total < UInt64(ArchiveLimits.largeBody), total <= UInt64(content.count - offset)
    {
      offset += Int(total)
      bounds.append(UInt32(offset))
    }
    self.bounds = bounds
  }

  /// Whether the lengths of its sections add up to the content.
  package var isComplete: Bool { count > 0 && Int(bounds[count]) == bytes.count }

  /// Where section number `index` of the frame, or what is in it of a large one, lies in ``bytes``.
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
    if let large { return large }
    let bytes = bytes
    return try SectionPrefix(bytes.span, at: Int(bounds[index]), place: place)
  }
}
