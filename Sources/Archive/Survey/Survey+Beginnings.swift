internal import IPLD

/// Several archives in one file, one after the other: together they are a valid zstd stream.
///
/// The numbers of each count from its own beginning, so none of them means anything in another. A
/// layer knows where those begin that are kept in another form, such as sealed ones.
extension Survey {
  /// Where archives begin; one that was not glued to another begins at 0 only, or after bytes that
  /// are not an archive.
  ///
  /// What is committed in one is not asked whether another begins there: a blob may be an archive.
  func beginnings(in file: Span<UInt8>) -> [Int] {
    let plain = plainBeginnings(in: file)
    guard let layer = StorageLayers.current else { return plain }
    let others = unknownRanges(of: plain).compactMap { layer.beginning(in: file, among: $0) }
    return Set(plain + others).sorted()
  }

  /// Bytes that follow what is committed in each of the archives that begin at these places, or
  /// come before the first, and are not of a frame that holds.
  private func unknownRanges(of beginnings: [Int]) -> [Range<Int>] {
    var (unknown, known) = ([Range<Int>](), [Range<Int>]?.none)
    let parts = zip([0] + beginnings, beginnings + [limit])
    for (lower, upper) in parts where lower < upper && start < upper {
      let committed = footers.last { lower..<upper ~= $0.frame.offset }?.frame.end
      let rest = max(committed ?? lower, start)..<upper
      if rest.isEmpty { continue }
      let held = known ?? self.held
      known = held
      unknown += held.gaps(in: rest)
    }
    return unknown
  }

  /// The frames that hold, ascending.
  private var held: [Range<Int>] {
    var held = frames.lazy.filter(\.isIntact).map { Int($0.offset)..<Int($0.end) } + []
    if let header, header.failure == nil { held.append(header.frame.range) }
    for (_, landmark) in landmarks {
      if case .gap = landmark { continue }
      held.append(landmark.range)
    }
    return held.merged()
  }

  /// Where plain archives begin.
  ///
  /// One begins with a frame that holds a CAR header, if that is another one, or a footer behind it
  /// was written as far behind the beginning of its file as it lies behind that frame; or where the
  /// archive before it ends and such a footer is the first of its archive. Where all such footers
  /// are those of the archive before it, it is a copy of that, such as a disk leaves behind.
  private func plainBeginnings(in file: Span<UInt8>) -> [Int] {
    // By how far footers were moved.
    var moved: [Int: [SeenFooter]] = [:]
    var ends: [Int: Int] = start > 0 ? [start: 0] : [:]
    for footer in footers {
      let (offset, place) = (footer.frame.offset, footer.place)
      guard place <= UInt64(offset) else { continue }
      let shift = offset - Int(place)
      ends[footer.frame.end] = shift
      moved[shift, default: []].append(footer)
    }
    var headers: [Int: [CID]] = [:]
    for frame in frames where !frame.isIntact && frame.offset > 0 {
      headers[Int(frame.offset)] = Self.roots(at: Int(frame.offset), in: file)
    }
    var beginnings = [0]
    for place in Set(headers.keys).union(ends.keys).sorted() where place < limit {
      let before = beginnings[beginnings.count - 1]
      let (roots, followsEnd) = (headers[place], ends[place] == before)
      let counted = (moved[place] ?? []).filter { $0.frame.offset > place }
      let known = Self.roots(at: before, in: file)
      let isOther = roots != nil && roots != known && (followsEnd || known != nil)
      var isCopy = !counted.isEmpty
      for footer in counted {
        let range = footer.frame.range
        let twin = range.lowerBound - place + before..<range.upperBound - place + before
        isCopy = isCopy && file.extracting(twin).equals(file.extracting(range))
      }
      guard !isCopy else { continue }
      let hasFirst = counted.contains { $0.number == 1 }
      if isOther || roots != nil && !counted.isEmpty || followsEnd && hasFirst {
        // What lies before it may be mere bytes, not an archive.
        if before >= start, !foundAnything(in: before..<place) { beginnings.removeLast() }
        beginnings.append(place)
      }
    }
    return beginnings
  }

  /// Where plain archives may begin in bytes that are not surveyed: those of another form, which
  /// end somewhere.
  ///
  /// A footer behind each was written as far behind the beginning of its file, and a CAR header is
  /// there, or the footer is the first of its archive. A header at the first byte shows one, too.
  package static func plainBeginnings(in file: Span<UInt8>, from start: Int) -> [Int] {
    var found: Set<Int> = roots(at: start, in: file) == nil ? [] : [start]
    var place = start
    while let magic = ArchiveMagic.next(in: file, from: place) {
      place = magic + ArchiveMagic.length
      let offset = magic - 8
      guard offset >= start,
        // An error here says only that no frame begins at this place.
        let frame = try? SkippableFrame(file, at: offset), frame.kind == SkippableFrame.footer,
        Footer.segmentCount(length: frame.length) != nil, frame.holds(in: file),
        let own = Int(exactly: file.u64(frame.end - Footer.trailerLength)), own <= offset - start
      else { continue }
      let beginning = offset - own
      let isFirst = beginning == start && file.u64(offset + 48) == 1
      if isFirst || roots(at: beginning, in: file) != nil { found.insert(beginning) }
    }
    return found.sorted()
  }

  /// Where the first archive ends: where a further one begins, or where the file ends.
  func firstEnd(in file: Span<UInt8>) -> Int {
    let beginnings = beginnings(in: file)
    return beginnings.count > 1 ? beginnings[1] : limit
  }

  /// Refuses a file in which another archive begins.
  ///
  /// - Throws: ``ArchiveError`` with the reason `furtherArchive`.
  func refuseFurtherArchives(in file: Span<UInt8>) throws(ArchiveError) {
    let end = firstEnd(in: file)
    if end < limit { throw ArchiveError(.furtherArchive, at: end) }
  }

  /// The roots of the CAR header that a frame holds; nil if it holds none.
  private static func roots(at place: Int, in file: Span<UInt8>) -> [CID]? {
    // An error here says only that none is there.
    guard let (_, content) = try? DataFrame.carHeader(in: file, at: place),
      let header = try? CARHeader(content.span), header.length == content.count
    else { return nil }
    return header.roots
  }
}
