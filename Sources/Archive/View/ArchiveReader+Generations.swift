internal import IPLD
internal import Synchronization

extension ArchiveReader {
  /// Calls `body` with what was committed, write by write, from the newest back to the first, until
  /// it answers false; in a file without a footer with nothing.
  ///
  /// Each footer names the one before it, so that only footers are read. Each ends before the one
  /// that names it begins, and its number is one less, so the walk ends however they were made.
  ///
  /// - Throws: ``ArchiveError`` if a footer is damaged or contradicts the one that names it: what
  ///   lies before it can no longer be told.
  package func forEachGeneration(_ body: (Generation) -> Bool) throws(ArchiveError) {
    // Without a footer there is no generation, only what was counted.
    guard generation.number > 0 else { return }
    var newest = generation
    note(newest)
    var ahead = Self.longestBeforeFooter
    while body(newest), let offset = newest.previousFooterOffset {
      ahead = readAhead(from: newest, to: offset, ahead)
      newest = try generation(at: offset, before: newest)
      note(newest)
      if newest.number % 128 == 0 { releasePages() }
    }
  }

  /// How many sections there were at the end of each generation, the newest first, as far as the
  /// footers lead back.
  ///
  /// - Parameter limit: How many generations are looked at.
  package func generationEnds(limit: Int) -> [UInt64] {
    var ends: [UInt64] = []
    do throws(ArchiveError) {
      try forEachGeneration { generation in
        if ends.last != generation.sectionCount { ends.append(generation.sectionCount) }
        return ends.count < limit
      }
    } catch {
      // What earlier footers say is not known.
    }
    return ends
  }

  /// What the last footer says from which all earlier ones are reached, each by the one that names
  /// it; nil if there is none.
  ///
  /// What lies after it was torn or damaged, though later footers may hold.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  package static func lastReachedGeneration(of file: MappedFile) throws -> Generation? {
    var end = Int.max
    while let last = try lastGeneration(of: file, before: end) {
      do {
        try ArchiveReader(file, committed: last).forEachGeneration { _ in true }
        return last
      } catch let error as ArchiveError where error.faultKind != .system {
        end = Int(min(last.footerOffset, error.offset ?? 0))
      }
    }
    return nil
  }

  /// How much is fetched of what lies before a footer, with the manifest that it names.
  private static let longestBeforeFooter = 48 << 10
  /// How much is fetched at once of a far file whose generations are short.
  private static let longestAhead = 4 << 20

  /// Fetches what lies before a footer of a far file, if it is not there yet: twice as much each
  /// time as long as generations are short, so that many of them take few requests.
  ///
  /// - Returns: how much is fetched the next time.
  private func readAhead(from newer: Generation, to footer: UInt64, _ length: Int) -> Int {
    guard file.isFetched else { return length }
    let end = min(file.count, Int(clamping: footer) + Footer.maximumLength)
    let place = max(0, Int(clamping: footer) - Self.longestBeforeFooter)..<end
    guard file.lacks(place) else { return length }
    let isShort = newer.footerOffset - footer < UInt64(Self.longestBeforeFooter)
    let length = isShort ? length : Self.longestBeforeFooter
    file.willRead([max(0, end - length)..<end])
    return min(2 * length, Self.longestAhead)
  }

  private func note(_ generation: Generation) {
    guard file.isFetched, let head = generation.head else { return }
    findings.withLock { $0.heads[head.cid] = head.frameOffset }
  }

  /// The body of a manifest that a footer named which was read, of a remote file: the footer tells
  /// where it lies, and no index is fetched to find it; nil if it is missing.
  func headBody(_ cid: CID) throws -> [UInt8]? {
    let known = cid == generation.head?.cid ? generation.head?.frameOffset : nil
    guard cid.multihash.sha256 != nil,
      let start = (known ?? findings.withLock { $0.heads[cid] }).flatMap({ Int(exactly: $0) })
    else { return nil }
    return try withFile { (bytes) throws in
      for length in [Self.longestBeforeFooter, DataFrame.longest] where start < bytes.count {
        let end = min(bytes.count, start + length)
        file.willRead([start..<end])
        // What is not there, or does not hold, is looked for through the index.
        guard let frame = try? DataFrame(bytes, at: start, limit: end),
          let sections = try? decoder.sections(of: frame, firstOrdinal: 0, in: bytes),
          sections.large == nil, let prefix = try? sections.prefix(0), prefix.cid == cid,
          (try? check(sections, 0)) != nil
        else { continue }
        let content = sections.bytes
        return content.span.array(sections.range(0).dropFirst(prefix.length))
      }
      return nil
    }
  }

  /// The generation whose footer lies at `offset`, which is the one before `newer`.
  private func generation(at offset: UInt64, before newer: Generation) throws(ArchiveError)
    -> Generation
  {
    let start = Int(clamping: offset)
    // The manifest that it names lies before it, after no more than an index segment.
    let place =
      max(
        0, start - Self.longestBeforeFooter)..<max(
        start, min(file.count, start + Footer.maximumLength))
    return try file.withBytes(reading: [place]) { (bytes) throws(ArchiveError) in
      let committed = bytes.extracting(first: Int(generation.committedLength))
      guard let offset = Int(exactly: offset), let frame = Footer.frame(committed, at: offset)
      else {
        throw ArchiveError(
          .malformedFooter("it is damaged, but generation \(newer.number) follows it"),
          offset: offset)
      }
      let older = try Footer.read(committed, frame)
      guard older.number == newer.number - 1, older.committedLength <= newer.footerOffset,
        older.sectionCount <= newer.sectionCount, older.streamLength <= newer.streamLength,
        older.head == nil || newer.head != nil
      else {
        throw ArchiveError(
          .malformedFooter("it cannot come before generation \(newer.number)"),
          at: offset)
      }
      return older
    }
  }
}
