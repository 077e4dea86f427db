internal import IPLD

/// The live segments together: from a key to ordinals, and from an ordinal to the frame it lies in.
///
/// 1. The segments cover the ordinals from 0 without gaps, each once, as the footer promised.
/// 2. It is read in place and believes nothing: what it answers is a place to look at.
package struct ArchiveIndex: Sendable {
  /// A data frame's place in the frame tables.
  package struct Position: Equatable, Sendable {
    /// Which segment.
    package let segment: Int
    /// Which entry of its table.
    package let index: Int
  }

  /// The segments, in order of ordinals.
  package let segments: [IndexSegment]
  /// What is used in their place when they are damaged.
  package let rebuilt: RebuiltIndex?
  /// The numbers of the segments, the largest first.
  private let bySize: [Int]

  /// An index that was read from the frames.
  package init(_ rebuilt: RebuiltIndex) {
    segments = []
    bySize = []
    self.rebuilt = rebuilt
  }

  /// Opens the segments that a footer names.
  ///
  /// - Throws: ``ArchiveError`` if one is not there, or not the one the footer means.
  package init(_ generation: Generation, in file: Span<UInt8>) throws(ArchiveError) {
    var segments: [IndexSegment] = []
    for named in generation.segments {
      let segment = try IndexSegment(file, at: Int(clamping: named.offset))
      guard segment.base == named.base, segment.count == named.sectionCount,
        segment.frameCount == named.frameCount, segment.frame.checksum == named.checksum
      else {
        throw ArchiveError(
          .damagedIndex("it is not the one the footer names"), offset: named.offset)
      }
      segments.append(segment)
    }
    self.segments = segments
    bySize = segments.indices.sorted { segments[$0].count > segments[$1].count }
    rebuilt = nil
  }

  /// The first segment whose checksum does not hold.
  package func firstDamaged(in file: Span<UInt8>) -> IndexSegment? {
    segments.first { !$0.frame.holds(in: file) }
  }

  /// The ordinals of the sections that may have this key, the newest segment's first.
  ///
  /// - Throws: ``ArchiveError`` if a segment's numbers cannot be.
  package func candidates(_ key: SectionKey, in file: Span<UInt8>) throws(ArchiveError)
    -> [UInt64]
  {
    if let rebuilt { return rebuilt.candidates(key) }
    var found: [UInt64] = []
    for segment in segments.reversed() {
      found.append(contentsOf: try segment.candidates(key, in: file))
    }
    return found
  }

  /// The ordinal of some section that may have this key, the largest segment asked first; nil if none may.
  ///
  /// - Throws: ``ArchiveError`` if a segment's numbers cannot be.
  func firstCandidate(_ key: SectionKey, in file: Span<UInt8>) throws(ArchiveError) -> UInt64? {
    if let rebuilt { return rebuilt.candidates(key).first }
    for number in bySize {
      if let first = try segments[number].firstCandidate(key, in: file) { return first }
    }
    return nil
  }

  /// The first ordinal that begins in a later frame; nil behind the last.
  func firstOrdinal(behind position: Position, in file: Span<UInt8>) -> UInt64? {
    let first = entry(at: position, in: file).firstOrdinal
    var distance = 1
    while let next = self.position(distance, after: position) {
      let ordinal = entry(at: next, in: file).firstOrdinal
      if ordinal > first { return ordinal }
      distance += 1
    }
    return rebuilt == nil ? segments[position.segment].end : nil
  }

  /// The frame in which the section `ordinal` begins.
  package func position(of ordinal: UInt64, in file: Span<UInt8>) -> Position? {
    if let rebuilt {
      return rebuilt.frameIndex(of: ordinal).map { Position(segment: 0, index: $0) }
    }
    guard let number = segments.firstIndex(where: { $0.base <= ordinal && ordinal < $0.end }),
      let index = segments[number].frameIndex(of: ordinal, in: file)
    else { return nil }
    return Position(segment: number, index: index)
  }

  /// What the table says of a frame.
  package func entry(at position: Position, in file: Span<UInt8>) -> FrameEntry {
    if let rebuilt { return rebuilt.frames[position.index] }
    return segments[position.segment].frameEntry(position.index, in: file)
  }

  /// The frame `distance` behind this one in the same table; a section never goes on in another.
  package func position(_ distance: Int, after position: Position) -> Position? {
    let count = rebuilt?.frames.count ?? segments[position.segment].frameCount
    guard distance < count - position.index else { return nil }
    return Position(segment: position.segment, index: position.index + distance)
  }
}
