internal import Synchronization

/// The index of an archive: from a key to ordinals, and from an ordinal to the frame it lies in.
///
/// It consists of the live segments that the footer names, which are read where they lie in the
/// file; of a segment that a survey made in memory, where those are damaged; or of both, if only
/// what follows the last footer had to be surveyed.
///
/// 1. The parts cover the ordinals from 0 without gaps, each once.
/// 2. Its answers are hints: the caller verifies them.
/// 3. An ordinal that is lost lies in no frame.
package struct ArchiveIndex: Sendable {
  /// A row of the frame tables.
  package struct Row: Sendable {
    fileprivate let part: Int
    fileprivate let index: Int
    /// The table's entry for the frame.
    package let entry: FrameEntry
  }

  /// A segment, and the bytes it lies in.
  private struct Part: Sendable {
    let segment: IndexSegment
    /// The bytes; nil for the file's.
    var memory: MappedFile?
    /// Fetches the segment when it is first searched; nil if it is local.
    var elsewhere: Elsewhere?

    @inline(__always)
    func read<Value, Failure: Error>(
      _ file: Span<UInt8>, _ body: (IndexSegment, Span<UInt8>) throws(Failure) -> Value
    ) throws(Failure) -> Value {
      elsewhere?.fetch(segment)
      guard let memory else { return try body(segment, file) }
      return try memory.withBytes { (bytes) throws(Failure) in try body(segment, bytes) }
    }
  }

  /// A remote file, and whether what is searched of a segment has arrived.
  private final class Elsewhere: Sendable {
    private let file: MappedFile
    private let isFetched = Atomic(false)

    init(_ file: MappedFile) { self.file = file }

    /// Whether nothing has to be fetched to search a segment.
    func has(_ segment: IndexSegment) -> Bool {
      isFetched.load(ordering: .relaxed) || !segment.searchedRanges.contains(where: file.lacks)
    }

    func fetch(_ segment: IndexSegment) {
      guard !isFetched.load(ordering: .relaxed) else { return }
      file.willReadOften(segment.searchedRanges)
      isFetched.store(true, ordering: .relaxed)
    }
  }

  private let parts: [Part]
  /// The numbers of the parts, the largest first.
  private let bySize: [Int]

  private init(_ parts: [Part]) {
    self.parts = parts
    bySize = parts.indices.sorted { parts[$0].segment.count > parts[$1].segment.count }
  }

  /// Opens the segments that a footer names.
  ///
  /// - Parameters:
  ///   - generation: What the footer says.
  ///   - file: Where the segments lie.
  ///   - mapped: The file, if it is remote: a segment of the packed form is then fetched when
  ///     it is first searched, and believed to be the one that the footer names until it is found
  ///     damaged.
  /// - Throws: ``ArchiveError`` if one is missing, or not the one the footer means.
  package init(
    _ generation: Generation, in file: Span<UInt8>, elsewhere mapped: MappedFile? = nil
  ) throws(ArchiveError) {
    var parts: [Part] = []
    for named in generation.segments {
      if let mapped, let segment = IndexSegment(named, generation, fileLength: file.count) {
        parts.append(Part(segment: segment, elsewhere: Elsewhere(mapped)))
        continue
      }
      guard let segment = try? IndexSegment(file, at: Int(clamping: named.offset)) else {
        throw ArchiveError(.damagedIndex("no segment begins here"), offset: named.offset)
      }
      guard segment.base == named.base, segment.count == named.sectionCount,
        segment.frameCount == named.frameCount, segment.frame.checksum == named.checksum,
        segment.form == generation.features.indexForm
      else {
        throw ArchiveError(
          .damagedIndex("it is not the one the footer names"), offset: named.offset)
      }
      parts.append(Part(segment: segment, elsewhere: mapped.map { Elsewhere($0) }))
    }
    self.init(parts)
  }

  /// What is read of the segments that a footer names when they are opened, where they lie
  /// elsewhere and are not only fetched later: their headers and checksums.
  static func openedRanges(_ generation: Generation) -> [Range<Int>] {
    generation.segments.flatMap { named -> [Range<Int>] in
      let start = Int(clamping: named.offset)
      guard generation.features.indexForm == .wide, named.sectionCount > 0,
        named.sectionCount <= IndexSegment.maximumCount, named.base < 1 << 62
      else { return [] }
      let length =
        SegmentLayout(
          .wide, base: named.base, count: Int(named.sectionCount), frameCount: Int(named.frameCount)
        ).length
      let end = max(start, start.addingReportingOverflow(length).partialValue)
      return [
        start..<min(end, start + SegmentLayout.fanOutOffset),
        max(start, end - SkippableFrame.checksumLength)..<end,
      ]
    }
  }

  /// What is read of long segments to find a key, beside what is read of every segment.
  func searchedRanges(for key: UInt64, part: Int?, in file: Span<UInt8>) -> [Range<Int>] {
    (part.map { [parts[$0]] } ?? parts).flatMap { part in
      part.read(file) { segment, bytes in segment.searchedRanges(for: key, in: bytes) }
    }
  }

  /// This index, and after it a segment that was made in memory; itself if there are no bytes.
  ///
  /// - Throws: ``ArchiveError`` if the bytes are not a segment.
  func appending(_ bytes: [UInt8]) throws(ArchiveError) -> ArchiveIndex {
    guard !bytes.isEmpty else { return self }
    let memory = MappedFile(copying: bytes)
    let segment = try IndexSegment(bytes.span, at: 0)
    return ArchiveIndex(parts + [Part(segment: segment, memory: memory)])
  }

  /// The numbers of the parts in the order in which a key is looked for in one after the other:
  /// that of ordinals, or where some have to be fetched first those that are here, and then the
  /// largest, or the newest.
  func searchOrder(newestFirst: Bool) -> [Int] {
    let isHere = parts.map { part in part.elsewhere?.has(part.segment) ?? true }
    guard isHere.contains(false) else { return Array(parts.indices) }
    let order = newestFirst ? parts.indices.reversed() : bySize
    return order.filter { isHere[$0] } + order.filter { !isHere[$0] }
  }

  /// The segments that lie in the file, in order of ordinals.
  package var segments: [IndexSegment] { parts.filter { $0.memory == nil }.map(\.segment) }

  /// An empty index.
  static let empty = ArchiveIndex([])

  /// Whether some of it was made by a survey, which has no frame for what is lost.
  var mayHaveLost: Bool { parts.contains { $0.memory != nil } }

  /// The first segment in the file whose checksum does not match.
  package func firstDamaged(in file: Span<UInt8>) -> IndexSegment? {
    segments.first { !$0.frame.holds(in: file) }
  }

  /// The ordinals of the sections that may have this key, what is committed first.
  ///
  /// - Parameters:
  ///   - key: The key, or as many bits of it as are known.
  ///   - knownBits: How many that are.
  ///   - part: The number of the part that is asked; nil for all.
  ///   - file: Where the segments lie.
  /// - Throws: ``ArchiveError`` if a segment's numbers cannot be.
  /// - Returns: The ordinals.
  package func candidates(
    _ key: UInt64, knownBits: Int = 64, part: Int? = nil, in file: Span<UInt8>
  ) throws(ArchiveError) -> [UInt64] {
    var found: [UInt64] = []
    for part in part.map({ [parts[$0]] }) ?? parts {
      try part.read(file) { (segment, bytes) throws(ArchiveError) in
        try segment.forEachCandidate(key, knownBits: knownBits, in: bytes) { found.append($0) }
      }
    }
    return found
  }

  /// Visits the ordinals of sections that may have this key, those of the largest segment that has
  /// any.
  ///
  /// - Throws: ``ArchiveError`` if a segment's numbers cannot be.
  func forEachCandidate(_ key: UInt64, in file: Span<UInt8>, _ body: (UInt64) -> Void)
    throws(ArchiveError)
  {
    var isFound = false
    for number in bySize where !isFound {
      try parts[number].read(file) { (segment, bytes) throws(ArchiveError) in
        try segment.forEachCandidate(key, in: bytes) { ordinal in
          isFound = true
          body(ordinal)
        }
      }
    }
  }

  /// The first ordinal that begins in a later frame, or that no frame of the same table holds.
  func firstOrdinal(behind row: Row, in file: Span<UInt8>) -> UInt64 {
    var distance = 1
    while let next = self.row(distance, after: row, in: file) {
      if next.entry.firstOrdinal > row.entry.firstOrdinal { return next.entry.firstOrdinal }
      distance += 1
    }
    return parts[row.part].segment.end
  }

  /// The frame in which the section `ordinal` begins, if it is not lost.
  package func row(of ordinal: UInt64, in file: Span<UInt8>) -> Row? {
    guard let part = parts.firstIndex(where: { $0.segment.covers(ordinal) }) else { return nil }
    return parts[part].read(file) { (segment, bytes) in
      segment.frameIndex(of: ordinal, in: bytes).map { index in
        Row(part: part, index: index, entry: segment.frameEntry(index, in: bytes))
      }
    }
  }

  /// The frame `distance` after this one in the same table; a section never continues in another.
  package func row(_ distance: Int, after row: Row, in file: Span<UInt8>) -> Row? {
    let part = parts[row.part]
    guard distance < part.segment.frameCount - row.index else { return nil }
    let index = row.index + distance
    let entry = part.read(file) { (segment, bytes) in segment.frameEntry(index, in: bytes) }
    return Row(part: row.part, index: index, entry: entry)
  }

  /// The frame tables' entries, in order of ordinals.
  func frames(in file: Span<UInt8>) -> [FrameEntry] {
    parts.flatMap { part in part.read(file) { (segment, bytes) in segment.frames(in: bytes) } }
  }

  /// What the segments keep of the key of every ordinal; all bits set where they have none.
  func keptKeys(in file: Span<UInt8>) -> [UInt64] {
    var keys = [UInt64](repeating: .max, count: parts.reduce(0) { $0 + $1.segment.count })
    for part in parts {
      part.read(file) { (segment, bytes) in
        segment.forEachKept(in: bytes) { ordinal, key in
          if ordinal < UInt64(keys.count) { keys[Int(ordinal)] = key }
        }
      }
    }
    return keys
  }

  /// How many bits of the key of an ordinal are kept; 0 for an ordinal of which nothing is known.
  func keptBits(of ordinal: UInt64) -> Int {
    parts.first { $0.segment.covers(ordinal) }?.segment.form.keyBits(of: ordinal) ?? 0
  }
}
