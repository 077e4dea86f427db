internal import IPLD
internal import Synchronization

/// Finding sections: through the index, which is never believed.
extension ArchiveReader {
  /// Calls `body` with the bytes in which sections are read; it says what it reads before it does.
  ///
  /// - Throws: what `body` throws; ``FetchFailure`` in its place if not all that was read came, for
  ///   then neither what it answers nor what it throws means anything.
  package func withFile<Value>(_ body: (Span<UInt8>) throws -> Value) throws -> Value {
    let outcome = Result {
      try file.withBytes(reading: []) { (bytes) throws in
        try body(bytes.extracting(first: readableLength))
      }
    }
    try file.checkFetched()
    return try outcome.get()
  }

  /// Calls `body` with the reader whose index is to be asked, which is another if this one's is
  /// damaged, and the bytes.
  func asking<Value>(_ body: (ArchiveReader, Span<UInt8>) throws -> Value) throws -> Value {
    let reader = try standIn ?? self
    return try reader.withFile { (file) throws in try body(reader, file) }
  }

  /// Where the section with this CID is; nil if it is missing.
  ///
  /// - Parameters:
  ///   - isChecking: Whether all frames of it have to hold, and not only that in which it begins.
  ///   - isRecent: Whether it was written lately, most likely.
  func locate(_ cid: CID, isChecking: Bool = false, isRecent: Bool = false) throws
    -> SectionLocation?
  {
    if let standIn = try standIn { return try standIn.locate(cid, isChecking: isChecking) }
    var failure: ArchiveError?
    do {
      let found = try withFile { (file) throws in
        try locate(cid, isChecking: isChecking, isRecent: isRecent, in: file)
      }
      if let found { return noting(found) }
    } catch let error as ArchiveError {
      failure = error
    }
    if let other = try other(after: failure) {
      return try other.locate(cid, isChecking: isChecking)
    }
    if let failure { throw failure }
    return nil
  }

  /// Where the section with this number is, or one that supersedes it.
  func locate(_ ordinal: UInt64) throws -> SectionLocation {
    if let standIn = try standIn { return try standIn.locate(ordinal) }
    do {
      let location = try withFile { (file) throws in try locate(ordinal, in: file) }
      guard location.frame.failure != nil else { return location }
      return try copy(of: ordinal) ?? noting(location)
    } catch let error as ArchiveError {
      guard ordinal < sectionCount else { throw error }
      if let copy = try copy(of: ordinal) { return copy }
      guard let other = try other(after: error) else { throw error }
      let location = try other.locate(ordinal)
      // As long as the index holds, the number has to be that of the same section there.
      if findings.withLock({ $0.isIntact == true }),
        let kept = try withFile({ (file) in keptKey(of: ordinal, in: file) }),
        (kept.key ^ location.prefix.cid.sectionKey).leadingZeroBitCount < kept.bits
      {
        throw error
      }
      return location
    }
  }

  /// Records that something is read of a frame that does not hold, if it is.
  private func noting(_ location: SectionLocation) -> SectionLocation {
    if location.frame.failure != nil { findings.withLock { $0.hasReadRemains = true } }
    return location
  }

  /// Announces that all of the index will be searched.
  func willSearch() {
    if file.isFetched { file.willReadOften(index.segments.flatMap(\.searchedRanges)) }
  }

  /// Announces the first of the frames that will be read, if they have to be fetched.
  ///
  /// - Parameters:
  ///   - limit: How many bytes are requested at a time.
  ///   - body: Hands over the frames, until they are enough.
  func willRead(upTo limit: Int, _ body: (Span<UInt8>, (FrameEntry) -> Bool) -> Void) {
    guard file.isFetched else { return }
    var (ranges, length) = ([Range<Int>](), 0)
    file.withBytes(reading: []) { bytes in
      body(bytes) { entry in
        ranges.append(entry.range)
        length += entry.range.count
        return length < limit
      }
    }
    file.willRead(ranges)
  }

  /// A frame that is no shorter and has one section holds a blob, most likely.
  private static let shortestBlob = 16 << 10

  /// Announces that the packs of runs of sections will be read, from the first on, if that is
  /// not here; frames of blobs are passed over.
  package func willReadPacks(of runs: some Sequence<Range<UInt64>>) {
    willRead(upTo: 16 << 20) { bytes, add in
      var last: FrameEntry?
      for run in runs {
        guard var row = index.row(of: run.lowerBound, in: bytes) else { continue }
        if last == nil, !file.lacks(row.entry.range) { return }
        if row.entry != last {
          guard add(row.entry) else { return }
        }
        last = row.entry
        while let next = index.row(1, after: row, in: bytes) {
          row = next
          let first = row.entry.firstOrdinal
          guard first < run.upperBound else { break }
          let behind = index.row(1, after: row, in: bytes)?.entry.firstOrdinal
          let isAlone = behind ?? first <= first + 1
          if isAlone, row.entry.range.count >= Self.shortestBlob { continue }
          guard add(row.entry) else { return }
          last = row.entry
        }
      }
    }
  }

  /// Announces that sections will be read one after the other, as far as they lie elsewhere: the
  /// first of them, if the first is not here.
  package func willReadSections(_ ordinals: some Sequence<UInt64>) {
    willRead(upTo: 32 << 20) { bytes, add in
      var isFirst = true
      for ordinal in ordinals {
        guard let first = index.row(of: ordinal, in: bytes) else { return }
        if isFirst, !file.lacks(first.entry.range) { return }
        isFirst = false
        var row: ArchiveIndex.Row? = first
        while let part = row, part.entry.firstOrdinal == ordinal || part.entry == first.entry {
          guard add(part.entry) else { return }
          row = index.row(1, after: part, in: bytes)
        }
      }
    }
  }

  /// Whether a data frame begins at a place, and does not hold.
  func mayBeDamaged(at place: UInt64, in file: Span<UInt8>) -> Bool {
    guard place < UInt64(file.count) else { return false }
    self.file.willRead([Int(place)..<min(file.count, Int(place) + DataFrame.longest)])
    switch file.firstWord(at: Int(place)) {
    case SkippableFrame.voidMagic: return true
    case DataFrame.zstdMagic: break
    default: return false
    }
    // Without a valid header there is no valid frame.
    let frame = try? DataFrame(file, at: Int(place), limit: file.count)
    return frame.map { !decoder.holds($0, in: file) } ?? true
  }

  /// Another copy of a damaged section: the last intact one whose key begins alike.
  ///
  /// Only what the index keeps of the damaged section's key is known. The digest of a CAR, or the
  /// requested CID, shows whether it is the same section.
  ///
  /// - Parameters:
  ///   - ordinal: The number of the damaged section.
  ///   - isLater: Whether only one counts that was written later, and so supersedes it.
  func copy(of ordinal: UInt64, isLater: Bool = false) throws -> SectionLocation? {
    try asking { reader, file in
      guard let kept = reader.keptKey(of: ordinal, in: file) else { return nil }
      let candidates = try reader.candidates(kept.key, knownBits: kept.bits, in: file)
      for candidate in candidates.sorted(by: >)
      where isLater ? candidate > ordinal : candidate != ordinal {
        // One that is damaged as well is passed over.
        guard var location = try? reader.locate(candidate, in: file),
          reader.firstDamage(of: location, in: file) == nil
        else { continue }
        location.asked = ordinal
        return location
      }
      return nil
    }
  }

  /// The ordinals of the sections that may have this key, or one of which this many bits are alike.
  func candidates(
    _ key: UInt64, knownBits: Int = 64, part: Int? = nil, in file: Span<UInt8>
  ) throws(ArchiveError) -> [UInt64] {
    if self.file.isFetched {
      self.file.willRead(index.searchedRanges(for: key, part: part, in: file))
    }
    return try index.candidates(key, knownBits: knownBits, part: part, in: file)
  }

  /// What the index keeps of the key of a section, and how many bits that are; nil if it has none.
  func keptKey(of ordinal: UInt64, in file: Span<UInt8>) -> (key: UInt64, bits: Int)? {
    let known = findings.withLock { $0.keptKeys }
    if known == nil { self.file.willRead(index.segments.map(\.frame.range)) }
    let keys = known ?? index.keptKeys(in: file)
    if known == nil { findings.withLock { $0.keptKeys = keys } }
    let bits = index.keptBits(of: ordinal)
    guard ordinal < UInt64(keys.count), bits > 0,
      (~keys[Int(ordinal)]).leadingZeroBitCount < bits
    else { return nil }
    return (keys[Int(ordinal)], bits)
  }

  private func locate(_ cid: CID, isChecking: Bool, isRecent: Bool, in file: Span<UInt8>)
    throws(ArchiveError) -> SectionLocation?
  {
    var failure: ArchiveError?
    var remains: SectionLocation?
    let key = cid.sectionKey
    for part in index.searchOrder(newestFirst: isRecent) {
      for ordinal in try candidates(key, part: part, in: file) {
        do throws(ArchiveError) {
          let location = try locate(ordinal, in: file)
          guard location.prefix.cid == cid else { continue }
          if isChecking, let damage = firstDamage(of: location, in: file) { throw damage }
          // Another copy may lie in a frame that holds.
          guard location.frame.failure != nil else { return location }
          remains = remains ?? location
        } catch {
          // Another section with the same key may be the right one. A lost section whose key is not
          // known has any CID.
          if case .lostSection = error.reason,
            (~key).leadingZeroBitCount >= index.keptBits(of: ordinal)
          {
            continue
          }
          failure = failure ?? error
        }
      }
    }
    if let remains { return remains }
    if let failure { throw failure }
    return nil
  }

  /// Where the section with this number is by this reader's index.
  func locate(_ ordinal: UInt64, in file: Span<UInt8>) throws(ArchiveError) -> SectionLocation {
    guard let row = index.row(of: ordinal, in: file) else {
      throw ArchiveError(ordinal < sectionCount ? .lostSection(ordinal) : .unknownOrdinal(ordinal))
    }
    let entry = row.entry
    if let frame = cache.frame(at: entry.offset), frame.firstOrdinal == entry.firstOrdinal {
      return try location(of: ordinal, row, in: frame, file)
    }
    let frame: DecodedFrame
    do throws(ArchiveError) {
      frame = try open(entry, in: file)
    } catch {
      // What of it still hashes to its CID is not lost. It is kept, so that this is found out once
      // for all its sections.
      frame = remains(at: row, error, in: file)
    }
    if frame.large == nil { cache.insert(frame) }
    return try location(of: ordinal, row, in: frame, file)
  }

  /// Opens a frame in which sections begin.
  ///
  /// - Parameter isChecking: Whether the stored bytes of a raw frame with a large section are
  ///   compared with their checksum; without it no more of them is read than the prefix.
  func open(_ entry: FrameEntry, isChecking: Bool = true, in file: Span<UInt8>)
    throws(ArchiveError) -> DecodedFrame
  {
    if !isChecking { self.file.willRead([entry.range]) }
    let frame =
      isChecking
      ? try load(entry, in: file)
      : try DataFrame(file, at: Int(clamping: entry.offset), limit: Int(clamping: entry.end))
    if !isChecking, !frame.isRaw { _ = try load(entry, in: file) }
    let sections = try decoder.sections(of: frame, firstOrdinal: entry.firstOrdinal, in: file)
    if let prefix = sections.large?.prefix {
      guard frame.contentSize == prefix.contentSize(ofFrame: 0) else {
        throw ArchiveError(
          .malformedSection("it is large, but shares its frame"), offset: entry.offset)
      }
    } else if !isChecking, frame.isRaw {
      _ = try load(entry, in: file)
    }
    return sections
  }

  /// What is left of a frame in which sections begin, of those that the index has there.
  private func remains(
    at row: ArchiveIndex.Row, _ failure: ArchiveError, in file: Span<UInt8>
  ) -> DecodedFrame {
    let entry = row.entry
    let range = entry.range.clamped(to: 0..<file.count)
    self.file.willRead([range])
    defer { self.file.releasePagesIfLarge() }
    if let large = largeRemains(at: row, in: file) {
      return self.file.withUnproven(reading: [range], file) { bytes, _ in
        large.beginning(firstOrdinal: entry.firstOrdinal, failure, decoder, in: bytes)
      }
    }
    let ordinals = entry.firstOrdinal..<index.firstOrdinal(behind: row, in: file)
    let remains = self.file.withUnproven(reading: [range], file) { bytes, _ in
      decoder.remains(of: range, in: bytes)
    }
    return DecodedFrame(
      remains, firstOrdinal: entry.firstOrdinal,
      place: entry.offset, failure
    ) { section, isTaken in
      // A length that is wrong may have led past others, and what is found may be a part of a blob.
      // An index that cannot be read has none of them.
      let candidates = (try? self.candidates(section.cid.sectionKey, in: file)) ?? []
      return candidates.lazy.filter(ordinals.contains)
        .map { Int($0 - entry.firstOrdinal) }.first { !isTaken($0) }
    }
  }

  /// What is left of a section of several frames that do not all hold; nil if it is not that, or
  /// cannot be read.
  func largeRemains(at row: ArchiveIndex.Row, in file: Span<UInt8>) -> LargeRemains? {
    if let known = findings.withLock({ $0.largeRemains[row.entry.offset] }) { return known }
    var parts = [row.entry.range]
    while let next = index.row(parts.count, after: row, in: file)?.entry,
      next.firstOrdinal == row.entry.firstOrdinal
    {
      parts.append(next.range)
    }
    self.file.willRead(parts)
    let remains = self.file.withUnproven(reading: parts, file) { bytes, _ in
      LargeRemains(parts, decoder, in: bytes) { cid in
        (try? self.candidates(cid.sectionKey, in: file).contains(row.entry.firstOrdinal)) ?? false
      }
    }
    findings.withLock { $0.largeRemains[row.entry.offset] = .some(remains) }
    return remains
  }

  /// The content of a frame of a section of several that do not all hold; empty if it cannot be read.
  func content(ofRemains number: Int, at row: ArchiveIndex.Row, in file: Span<UInt8>) -> [UInt8] {
    guard let remains = largeRemains(at: row, in: file) else { return [] }
    return self.file.withUnproven(reading: [remains.parts[number]], file) { bytes, _ in
      remains.content(ofPart: number, decoder, in: bytes) ?? []
    }
  }

  private func location(
    of ordinal: UInt64, _ row: ArchiveIndex.Row, in frame: DecodedFrame,
    _ file: Span<UInt8>
  ) throws(ArchiveError) -> SectionLocation {
    guard let number = frame.index(of: ordinal) else {
      throw frame.failure ?? misplaced(ordinal, frame.place)
    }
    if let failure = frame.failure, frame.range(number).isEmpty { throw failure }
    return SectionLocation(
      ordinal: ordinal, asked: ordinal, prefix: try frame.prefix(number), reader: self,
      row: row, frame: frame, number: number)
  }

  /// The error for a section that is not where the table says.
  func misplaced(_ ordinal: UInt64, _ place: UInt64) -> ArchiveError {
    // An index of a repaired file has no frame for what is lost; any other index is wrong.
    index.mayHaveLost || generation.features.isRepaired
      ? ArchiveError(.lostSection(ordinal), offset: place)
      : ArchiveError(.damagedIndex("section \(ordinal) is not where the index says"), offset: place)
  }

  /// The frame that a table entry describes, its stored bytes checked.
  func load(_ entry: FrameEntry, in file: Span<UInt8>) throws(ArchiveError) -> DataFrame {
    guard entry.end <= UInt64(file.count), entry.storedLength > 0 else {
      throw ArchiveError(.damagedIndex("a frame lies outside the file"), offset: entry.offset)
    }
    let range = Int(entry.offset)..<Int(entry.end)
    // Also where it is here: what was needed last is kept longest.
    self.file.willRead([range])
    guard entry.holds(in: file) else {
      throw ArchiveError(.damagedFrame("its checksum does not match"), offset: entry.offset)
    }
    let frame = try DataFrame(file, at: range.lowerBound, limit: range.upperBound)
    guard frame.end == range.upperBound else {
      throw ArchiveError(.damagedIndex("it gives a wrong length for a frame"), offset: entry.offset)
    }
    return frame
  }
}

extension MappedFile {
  /// Announces that frame 0 will be read, of which only its own first bytes tell how long it is.
  func willReadHeader(in bytes: Span<UInt8>) {
    // Nearly all name one root.
    for length in [1 << 10, DataFrame.maximumLength(contentSize: ArchiveLimits.carHeader + 10)]
    where isFetched {
      let end = min(count, length)
      willRead([0..<end])
      // An error here says that it is not all there.
      if (try? DataFrame(bytes, at: 0, limit: min(end, bytes.count))) != nil { return }
    }
  }
}
