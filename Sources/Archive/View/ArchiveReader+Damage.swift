package import IPLD

/// The damage of an archive, by the checksums of its stored bytes: nothing is decompressed, and no
/// section hashed.
extension ArchiveReader {
  /// The sections of frames that do not have their checksums, except for those that were written
  /// again.
  ///
  /// It takes as long as to read the file once.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  /// - Returns: Their numbers, ascending.
  package func damagedSections() throws -> [Range<UInt64>] {
    if let standIn = try standIn { return try standIn.damagedSections() }
    let entries = try withFile { (file) in index.frames(in: file) }
    let damaged = try damagedFrames(entries)
    let places = Set(damaged.map { entries[$0].offset })
    return damaged.flatMap { number in
      ordinals(of: number, in: entries).filter { !isSuperseded($0, places) }.map { $0..<$0 + 1 }
    }.merged()
  }

  /// The numbers of the sections that have bytes in a frame of the table.
  func ordinals(of number: Int, in entries: [FrameEntry]) -> Range<UInt64> {
    let first = entries[number].firstOrdinal
    let next = number + 1 < entries.count ? entries[number + 1].firstOrdinal : sectionCount
    // A frame with the same number as the next holds part of one section.
    return first..<min(max(next, first + 1), first + UInt64(entries[number].maximumSectionCount))
  }

  /// Which of some frames do not have their checksums.
  private func damagedFrames(_ entries: [FrameEntry]) throws -> [Int] {
    // No more than 16 MiB.
    let chunk = 4
    let count = (entries.count + chunk - 1) / chunk
    return try Parallel.map(count, workers: Parallel.processorCount) { number in
      defer { file.releasePagesIfLarge() }
      return file.withBytes { bytes in
        (number * chunk..<min(entries.count, (number + 1) * chunk)).filter {
          !entries[$0].holds(in: bytes.extracting(first: readableLength))
        }
      }
    }.flatMap(\.self)
  }

  /// What is wrong with the frames of a section that has been located; nil if they have their
  /// checksums.
  func firstDamage(of location: SectionLocation, in file: Span<UInt8>) -> ArchiveError? {
    guard location.frame.large != nil, location.frame.failure == nil else {
      return location.frame.failure
    }
    do throws(ArchiveError) {
      for number in 1..<max(1, location.prefix.frameCount) {
        _ = try part(number, at: location, in: file)
      }
      return nil
    } catch {
      return error
    }
  }

  /// The numbers of the sections that begin in the same frame as this one.
  func neighbours(of ordinal: UInt64) throws -> Range<UInt64>? {
    try asking { reader, file in
      let index = reader.index
      guard let row = index.row(of: ordinal, in: file) else { return nil }
      let (first, end) = (row.entry.firstOrdinal, index.firstOrdinal(behind: row, in: file))
      // The next frame of a section with several has the same number.
      return first..<max(first + 1, min(end, first + UInt64(row.entry.maximumSectionCount)))
    }
  }

  /// A section of a damaged pack that still hashes to its CID; nil if this one does not.
  func salvaged(_ ordinal: UInt64) throws -> (cid: CID, body: [UInt8])? {
    guard let location = try located(ordinal), location.frame.failure != nil,
      location.frame.large == nil
    else { return nil }
    let bytes = location.frame.bytes
    let range = location.frame.range(location.number).dropFirst(location.prefix.length)
    return (location.prefix.cid, bytes.span.array(range))
  }

  /// The damaged sections whose frames have lost nothing: all sections in them hash to their CIDs.
  func salvageable(_ damaged: [Range<UInt64>]) throws -> [Range<UInt64>] {
    var found: [Range<UInt64>] = []
    for range in damaged {
      var ordinal = range.lowerBound
      while ordinal < range.upperBound {
        let frame = try neighbours(of: ordinal) ?? ordinal..<ordinal + 1
        if try frame.allSatisfy({ try salvaged($0) != nil || isReadable($0) }) {
          found.append(frame)
        }
        ordinal = max(frame.upperBound, ordinal + 1)
      }
    }
    return found
  }

  /// Whether a section with several frames can be read though some of these are damaged.
  func isReadable(_ ordinal: UInt64) throws -> Bool {
    do {
      let location = try locate(ordinal)
      guard location.asked == location.ordinal, location.prefix.frameCount > 1 else { return false }
      return try read(location.prefix.cid) { _ in }
    } catch let error as ArchiveError where error.faultKind != .system {
      return false
    }
  }

  /// Whether a later section has the key of one that is lost, and does not lie in a damaged frame.
  func isSuperseded(_ ordinal: UInt64, _ damaged: Set<UInt64>) -> Bool {
    // What cannot be found supersedes nothing.
    let location = try? copy(of: ordinal, isLater: true)
    return location.map { !damaged.contains($0.row.entry.offset) } ?? false
  }

  /// The numbers of all sections with a CID that are intact: joining two copies of an archive may
  /// leave several.
  ///
  /// - Throws: ``ArchiveError`` if the index cannot be read.
  package func ordinals(holding cid: CID) throws -> [UInt64] {
    try candidates(cid.sectionKey).filter { try intactCID(of: $0) == cid }
  }

  /// The CID of a section; nil if it, or the frame it is in, is damaged.
  func intactCID(of ordinal: UInt64) throws -> CID? { try intact(ordinal)?.prefix.cid }

  /// Where a section is; nil if it, or the frame it is in, is damaged.
  func intact(_ ordinal: UInt64) throws -> SectionLocation? {
    guard let location = try located(ordinal),
      try withFile({ (file) in firstDamage(of: location, in: file) }) == nil
    else { return nil }
    return location
  }

  /// Where a section is; nil if it cannot be read, or only one that supersedes it.
  private func located(_ ordinal: UInt64) throws -> SectionLocation? {
    do {
      let location = try locate(ordinal)
      return location.asked == location.ordinal ? location : nil
    } catch let error as ArchiveError where error.faultKind != .system {
      return nil
    }
  }
}

extension FrameEntry {
  /// Whether the stored bytes of the frame have their checksum.
  func holds(in file: Span<UInt8>) -> Bool {
    guard end <= UInt64(file.count), storedLength > 0 else { return false }
    return XXH64.hash(file.extracting(Int(offset)..<Int(end))) == checksum
  }

  /// More sections than a frame of any content can hold.
  var maximumSectionCount: Int { ArchiveLimits.frameContent / 5 }
}
