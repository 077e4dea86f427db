internal import IPLD

/// What the index says, compared with the frames.
extension SurveyAudit {
  mutating func openIndex(in file: Span<UInt8>) {
    guard generation.number > 0 else { return }
    do throws(ArchiveError) {
      let index = try ArchiveIndex(generation, in: file)
      if let damaged = index.firstDamaged(in: file) {
        throw ArchiveError(.damagedIndex("its checksum does not match"), at: damaged.frame.offset)
      }
      segments = index.segments
    } catch {
      verification.note(error)
    }
  }

  mutating func compareFrames(in file: Span<UInt8>) {
    var found: [UInt64: Int] = [:]
    for (number, frame) in survey.frames.enumerated()
    where frame.offset < UInt64(end) && frame.isIntact {
      found[frame.offset] = number
    }
    for entry in segments.flatMap({ $0.frames(in: file) }) {
      if let number = found[entry.offset], survey.frames[number].checksum == entry.checksum,
        survey.frames[number].storedLength == entry.storedLength
      {
        if listed.updateValue(number, forKey: entry.offset) != nil {
          verification.note(.damagedIndex("it names a frame twice"), at: entry.offset)
        }
      } else {
        broken.append(entry)
      }
    }
    brokenPlaces = Set(broken.map(\.offset))
    for frame in survey.frames
    where found[frame.offset] != nil && listed[frame.offset] == nil
      && !brokenPlaces.contains(frame.offset)
    {
      verification.note(
        .damagedIndex("no frame table lists a frame that is there"), at: frame.offset)
    }
    broken.sort { $0.offset < $1.offset }
  }

  /// Walks the ordinals of every segment: finds those that are lost, and the damaged frames of
  /// which none is.
  mutating func walkOrdinals(in file: Span<UInt8>) throws {
    let salvaged = salvagedIndices
    defer { superseded.sort { $0.lowerBound < $1.lowerBound } }
    for segment in segments {
      // Every ordinal before this one is accounted for.
      var next = segment.base
      let table = segment.frames(in: file)
      for (index, entry) in table.enumerated() {
        let end = index + 1 < table.count ? table[index + 1].firstOrdinal : segment.end
        guard entry.firstOrdinal < segment.end else {
          verification.note(
            .damagedIndex("a frame has sections outside its segment"),
            at: entry.offset)
          continue
        }
        noteMissing(next..<max(next, entry.firstOrdinal), at: entry.offset)
        // A frame with the same number as the next holds part of one section.
        let range = entry.firstOrdinal..<max(end, entry.firstOrdinal + 1)
        if brokenPlaces.contains(entry.offset) {
          let isSuperseded =
            isRepaired && range.count <= entry.maximumSectionCount
            && range.allSatisfy { reader.isSuperseded($0, brokenPlaces) }
          if isSuperseded {
            superseded.append(Int(entry.offset)..<Int(clamping: entry.end))
          } else if !survey.recovered.contains(entry.firstOrdinal) {
            noteLost(range, salvaged[entry.offset] ?? [])
          }
          next = max(next, range.upperBound)
        } else if let number = listed[entry.offset] {
          let frame = survey.frames[number]
          // A continuation holds a part of the section before it.
          let covered = entry.firstOrdinal + UInt64(max(1, frame.sectionCount))
          next = max(next, covered)
          if verification.isComplete, frame.holdsSections, entry.firstOrdinal < end,
            covered > end
          {
            verification.note(.damagedIndex("two frames have the same sections"), at: entry.offset)
          }
        }
      }
      noteMissing(next..<max(next, segment.end), at: UInt64(segment.frame.offset))
    }
  }

  /// Which sections of damaged frames are left, by the offsets of these.
  private var salvagedIndices: [UInt64: [Int]] {
    Dictionary(grouping: survey.salvaged) { survey.frames[$0.frame].offset }
      .mapValues { $0.map(\.index) }
  }

  private mutating func noteLost(_ range: Range<UInt64>, _ salvaged: [Int]) {
    var start = range.lowerBound
    for index in salvaged {
      let saved = range.lowerBound + UInt64(index)
      guard saved >= start, saved < range.upperBound else { continue }
      verification.noteDamaged(start..<saved)
      start = saved + 1
    }
    verification.noteDamaged(start..<max(start, range.upperBound))
  }

  /// Records ordinals that no frame holds.
  private mutating func noteMissing(_ range: Range<UInt64>, at place: UInt64) {
    guard verification.isComplete, !range.isEmpty else { return }
    guard isRepaired else {
      return verification.note(.damagedIndex("it counts sections that are not there"), at: place)
    }
    for ordinal in range.prefix(Survey.listLimit)
    where !reader.isSuperseded(ordinal, brokenPlaces) {
      verification.noteDamaged(ordinal..<ordinal + 1)
      verification.note(.lostSection(ordinal), at: nil)
    }
  }

  /// Rebuilds every live segment from the frames, which must give the same bytes.
  mutating func compareSegments(in file: Span<UInt8>) throws {
    for segment in segments {
      let table = segment.frames(in: file)
      let isSorted = zip(table, table.dropFirst()).allSatisfy {
        ($0.firstOrdinal, $0.offset) < ($1.firstOrdinal, $1.offset)
      }
      let builder = IndexSegmentBuilder(
        segment.form, base: segment.base, keys: keys(of: segment, table, in: file),
        frames: table[...])
      if !isSorted
        || !builder.isEncoded(in: file, at: segment.frame.offset, length: segment.frame.length)
      {
        verification.note(
          .damagedIndex("a segment does not match the frames"),
          at: UInt64(segment.frame.offset))
      }
    }
    // A frame that lies twice in a damaged file is indexed twice when that is repaired.
    if !isRepaired { try checkRepeated() }
  }

  /// The frame that a table lists, if it holds, and sections begin in it.
  private func frame(of entry: FrameEntry) -> Survey.Frame? {
    guard let number = listed[entry.offset], survey.frames[number].holdsSections else { return nil }
    return survey.frames[number]
  }

  /// The keys of a segment's sections by what is there; those of lost ones as the segment has them.
  private func keys(of segment: IndexSegment, _ table: [FrameEntry], in file: Span<UInt8>)
    -> KeyList
  {
    var keys = [UInt64?](repeating: nil, count: segment.count)
    for entry in table {
      guard let frame = frame(of: entry) else { continue }
      let first = Int(clamping: entry.firstOrdinal - segment.base)
      for (index, key) in survey.keys(of: frame).enumerated() where first + index < keys.count {
        keys[first + index] = key
      }
    }
    var list = KeyList()
    if keys.contains(where: { $0 == nil }) {
      segment.forEachKept(in: file) { ordinal, key in
        let index = Int(ordinal - segment.base)
        keys[index] = keys[index] ?? key
      }
    }
    for key in keys { list.append(key ?? 0) }
    return list
  }

  /// Looks at sections with equal keys: the same bytes may be there under several CIDs, but no CID
  /// twice, unless the earlier is damaged.
  private mutating func checkRepeated() throws {
    var keys: [UInt64] = []
    keys.reserveCapacity(survey.keys.count)
    for number in listed.values where survey.frames[number].holdsSections {
      keys.append(contentsOf: survey.keys(of: survey.frames[number]))
    }
    keys.sort()
    var last: UInt64?
    for (key, next) in zip(keys, keys.dropFirst()) where key == next && key != last {
      last = key
      do {
        var seen = Set<CID>()
        for ordinal in try reader.candidates(key) {
          guard let cid = try reader.intactCID(of: ordinal) else { continue }
          if !seen.insert(cid).inserted { verification.note(.repeatedSection(cid), at: nil) }
        }
      } catch let error as ArchiveError {
        verification.note(error)
      }
    }
  }
}
