internal import IPLD
internal import Synchronization

/// Reading bodies, from packs and from frames of their own.
extension ArchiveReader {
  /// Hashes a section of a pack.
  func check(_ frame: DecodedFrame, _ index: Int) throws(ArchiveError) {
    var end = index
    guard let damaged = try firstDamaged(frame, index..<index + 1, &end) else { return }
    throw ArchiveError(.damagedSection(damaged), offset: frame.place)
  }

  /// Hashes sections of a pack; returns the first that is damaged, and in `end` its number.
  func firstDamaged(
    _ frame: DecodedFrame, _ numbers: Range<Int>, _ end: inout Int
  ) throws(ArchiveError) -> CID? {
    for (index, section) in try frame.verify(numbers).enumerated()
    where section.verification == .mismatch
      || section.verification == .cannotVerify && frame.failure != nil
    {
      end = numbers.lowerBound + index
      return section.cid
    }
    return nil
  }

  func stream(
    _ location: SectionLocation, isHashing: Bool = true, _ chunk: (Span<UInt8>) throws -> Void
  ) throws {
    let prefix = location.prefix
    guard let first = location.frame.large?.frame else {
      try check(location.frame, location.number)
      let bytes = location.frame.bytes
      let body = location.frame.range(location.number).dropFirst(prefix.length)
      if !body.isEmpty { try chunk(bytes.span.extracting(body)) }
      return
    }
    var cursor = try BodyCursor(self, location)
    var hash = BodyHash(prefix.cid)
    var isAtEnd = false
    while !isAtEnd {
      let step: Void? = try cursor.next(upTo: .max) { bytes in
        if isHashing { hash.update(bytes) }
        try chunk(bytes)
      }
      isAtEnd = step == nil
    }
    guard !isHashing || hash.finish() != .mismatch else {
      throw ArchiveError(.damagedSection(prefix.cid), at: first.offset)
    }
  }

  /// How many frames of a large section are requested at a time, where they are not here.
  private static let partsAtOnce: UInt64 = 8

  /// Announces that a large section will be read from a frame of it on.
  func willReadParts(from number: UInt64, of location: SectionLocation) {
    guard number % Self.partsAtOnce == 0 else { return }
    let last = min(location.prefix.frameCount, number + Self.partsAtOnce)
    let index = location.reader.index
    willRead(upTo: .max) { file, add in
      for number in number..<last {
        let row = index.row(Int(clamping: number), after: location.row, in: file)
        guard let row, add(row.entry) else { return }
      }
    }
  }

  /// Frame number `number` of a large section, its stored bytes checked.
  func checkedPart(_ number: UInt64, of location: SectionLocation, in file: Span<UInt8>) throws
    -> DataFrame
  {
    do throws(ArchiveError) {
      return try part(number, at: location, in: file)
    } catch {
      // Its bytes may be right, and something around them wrong.
      if let remains = location.reader.largeRemains(at: location.row, in: file),
        remains.prefix.cid == location.prefix.cid
      {
        findings.withLock { $0.hasReadRemains = true }
        return remains.frame(Int(number))
      }
      // The table may be what is wrong: in another one the section begins elsewhere. Or there is
      // another copy.
      let again =
        try location.reader.other(after: error)?.locate(location.prefix.cid)
        ?? location.reader.copy(of: location.ordinal)
      guard let again, again.prefix.cid == location.prefix.cid else { throw error }
      return try again.reader.withFile { (file) throws in try part(number, at: again, in: file) }
    }
  }

  func part(
    _ number: UInt64, at location: SectionLocation, in file: Span<UInt8>
  ) throws(ArchiveError) -> DataFrame {
    let (cid, index) = (location.prefix.cid, location.reader.index)
    guard let entry = index.row(Int(clamping: number), after: location.row, in: file)?.entry else {
      throw ArchiveError(.damagedSection(cid))
    }
    let frame = try load(entry, in: file)
    guard entry.firstOrdinal == location.ordinal,
      frame.contentSize == location.prefix.contentSize(ofFrame: number)
    else { throw ArchiveError(.damagedSection(cid), offset: entry.offset) }
    return frame
  }
}
