internal import IPLD

/// Several archives in one file, one after the other: together they are a valid zstd stream.
///
/// The numbers of each count from its own beginning, so none of them means anything in another.
extension Survey {
  /// Where archives begin; one that was not glued to another begins at 0 only, or after bytes that
  /// are not an archive.
  ///
  /// One begins with a frame that holds a CAR header, if that is another one, or a footer behind it
  /// was written as far behind the beginning of its file as it lies behind that frame; or where the
  /// archive before it ends and such a footer is the first of its archive. Where all such footers
  /// are those of the archive before it, it is a copy of that, such as a disk leaves behind.
  func beginnings(in file: Span<UInt8>) -> [Int] {
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
