/// Telling which ordinal each frame begins with (FORMAT 7).
///
/// Ordinals count up as long as everything holds. Behind something that does not, the first of
/// these tells: an index segment that knows a frame with the same stored bytes; a footer or segment
/// before it, as long as everything holds from there; a footer or segment after it, likewise. A gap
/// between frames may have been only an index, so if nothing tells, the count continues as if it
/// were.
extension Survey {
  mutating func number(in file: MappedFile, _ limits: ArchiveLimits) {
    if isTiled, landmarks.allSatisfy({ $0.landmark.isPlausible }),
      file.withBytes(reading: readAgain, { agreesWithSegments(in: $0) })
    {
      countForward(known: firstOrdinal)
    } else {
      file.withBytes { bytes in
        if tables == nil { tables = FrameTables(in: bytes, release: file.releasePagesIfLarge) }
        identify(in: bytes)
      }
      countForward(known: firstOrdinal)
      countBackward()
      guess()
    }
    refuseLies(limits)
    sectionCount = end(limits)
    numberAnew()
    file.withBytes { bytes in
      identifySalvaged(in: bytes)
      recoverLarge(of: file, in: bytes)
    }
    placeSalvaged()
  }

  /// Whether every frame is where the index segments say that it is.
  private func agreesWithSegments(in file: Span<UInt8>) -> Bool {
    for (_, landmark) in landmarks {
      guard case .segment(let segment) = landmark else { continue }
      var number = 0
      // Bytes before the survey are not judged.
      for entry in segment.frames(in: file) where entry.offset >= UInt64(start) {
        while number < frames.count, frames[number].offset < entry.offset { number += 1 }
        guard number < frames.count, frames[number].offset == entry.offset,
          frames[number].checksum == entry.checksum
        else { return false }
      }
    }
    return true
  }

  /// Asks the index segments for every frame's ordinal, by its stored bytes.
  private mutating func identify(in file: Span<UInt8>) {
    for index in frames.indices where frames[index].isIntact {
      guard
        let known = tables?.frame(
          at: frames[index].offset, checksum: frames[index].checksum,
          storedLength: Int(frames[index].storedLength),
          in: file)
      else { continue }
      (frames[index].firstOrdinal, frames[index].isMoved) = (known.firstOrdinal, known.isMoved)
      if known.isContinuation, frames[index].holdsSections {
        // The beginning of its section is lost, and what looks like sections is a part of that.
        frames[index].isContinuation = true
        frames[index].sectionCount = 0
        allManifests.removeAll { $0.frame == index }
      }
    }
  }

  private mutating func countForward(known start: UInt64) {
    var next: UInt64? = start
    var passed = landmarks[...]
    for index in frames.indices {
      while let (count, landmark) = passed.first, count <= index {
        passed.removeFirst()
        if let told = landmark.tells { next = told }
        if landmark.mayHaveHeldSections { next = nil }
      }
      let frame = frames[index]
      if frame.firstOrdinal == .max {
        guard let known = next else { continue }
        frames[index].firstOrdinal = frame.isContinuation ? known - min(known, 1) : known
        if frame.isContinuation { continue }
      }
      next = frame.isDamaged ? nil : frames[index].firstOrdinal.advanced(by: frame.step)
    }
  }

  private mutating func countBackward() {
    var next: UInt64?
    var passed = landmarks[...]
    for index in frames.indices.reversed() {
      var segmentLength: UInt64 = 0
      while let (count, landmark) = passed.last, count > index {
        passed.removeLast()
        if let told = landmark.tells { next = told }
        if case .footer(let footer) = landmark { segmentLength = footer.segmentLength }
        if case .other(let frame, _) = landmark, frame.isParity {
          segmentLength -= min(segmentLength, UInt64(frame.length))
        }
        // As long as the segment that the footer after it names, it was that and no data.
        if landmark.mayHaveHeldSections, UInt64(landmark.range.count) != segmentLength {
          next = nil
        }
      }
      let frame = frames[index]
      if !frame.isDamaged, frame.firstOrdinal == .max, let known = next {
        let step = UInt64(frame.step)
        frames[index].firstOrdinal = known >= step ? known - step : .max
      }
      let first = frames[index].firstOrdinal
      // Behind a continuation stands the same ordinal as after the section's first frame.
      next = first == .max ? nil : frame.isContinuation ? first + 1 : first
    }
  }

  /// Counts on across gaps, where there is room before the next ordinal that is known.
  private mutating func guess() {
    var rooms = [UInt64](repeating: .max, count: frames.count)
    var room = UInt64.max
    for index in frames.indices.reversed() {
      rooms[index] = room
      if frames[index].firstOrdinal != .max { room = frames[index].firstOrdinal }
    }
    var end = firstOrdinal
    var isPossible = true
    for index in frames.indices {
      let frame = frames[index]
      if frame.firstOrdinal != .max {
        isPossible = !frame.isDamaged || frame.sectionCount > 0
        end = frame.firstOrdinal.advanced(by: frame.step)
      } else if isPossible, !frame.isDamaged || frame.sectionCount > 0,
        end + UInt64(frame.sectionCount) <= rooms[index]
      {
        frames[index].firstOrdinal = frame.isContinuation && end > 0 ? end - 1 : end
        certainEnd = min(certainEnd, end)
        end += UInt64(frame.sectionCount)
      } else {
        isPossible = false
        certainEnd = min(certainEnd, end)
      }
    }
  }

  /// Forgets ordinals that two frames would have, or that are further up than the file can have
  /// lost.
  ///
  /// A frame that was moved gives way to one that was not.
  private mutating func refuseLies(_ limits: ArchiveLimits) {
    let placed = frames.filter { $0.holdsSections && !$0.isMoved && $0.firstOrdinal != .max }
      .map { $0.firstOrdinal..<$0.firstOrdinal.advanced(by: $0.step) }.merged()
    for index in frames.indices where frames[index].isMoved && frames[index].holdsSections {
      let range =
        frames[index].firstOrdinal..<frames[index].firstOrdinal.advanced(by: frames[index].step)
      let next = placed.partitioningIndex { $0.upperBound > range.lowerBound }
      guard next < placed.count, placed[next].overlaps(range) else { continue }
      certainEnd = min(certainEnd, range.lowerBound)
      frames[index].firstOrdinal = .max
    }
    let budget = limits.lostOrdinals(ofFile: limit)
    let order = frames.indices.filter { frames[$0].firstOrdinal != .max }
      .sorted {
        (frames[$0].firstOrdinal, frames[$0].offset) < (frames[$1].firstOrdinal, frames[$1].offset)
      }
    var end = firstOrdinal
    var lost: UInt64 = 0
    for index in order {
      let frame = frames[index]
      if frame.isContinuation { continue }
      let skipped = frame.firstOrdinal >= end ? frame.firstOrdinal - end : 0
      guard frame.firstOrdinal >= end, lost + skipped <= budget else {
        certainEnd = min(certainEnd, frame.firstOrdinal)
        frames[index].firstOrdinal = .max
        continue
      }
      lost += skipped
      end = frame.firstOrdinal + (frame.holdsSections ? UInt64(frame.sectionCount) : 0)
    }
    // A damaged frame had no section if another begins with the same ordinal.
    let taken = Set(frames.filter { $0.holdsSections }.map(\.firstOrdinal))
    for index in order
    where frames[index].isDamaged && taken.contains(frames[index].firstOrdinal) {
      frames[index].firstOrdinal = .max
    }
  }

  /// One more than the highest ordinal there was, by what is here and by the last footer that can
  /// be right.
  private func end(_ limits: ArchiveLimits) -> UInt64 {
    var end = firstOrdinal
    for frame in frames where frame.firstOrdinal != .max && !frame.isContinuation {
      // A damaged frame had one section at least.
      end = max(end, frame.firstOrdinal + max(1, UInt64(frame.sectionCount)))
    }
    for section in salvaged where frames[section.frame].firstOrdinal != .max {
      end = max(end, frames[section.frame].firstOrdinal + UInt64(section.index) + 1)
    }
    let most = end + limits.lostOrdinals(ofFile: limit)
    for (_, landmark) in landmarks {
      if let told = landmark.tells, told > end, told <= most { end = told }
    }
    return end
  }

  /// Gives new ordinals, after all others, to frames whose ordinals are unknown.
  private mutating func numberAnew() {
    for index in frames.indices where frames[index].firstOrdinal == .max {
      if frames[index].holdsSections {
        frames[index].firstOrdinal = sectionCount
        sectionCount += UInt64(frames[index].sectionCount)
      } else if frames[index].isContinuation, index > 0 {
        let before = frames[index - 1]
        guard before.firstOrdinal != .max, !before.isDamaged else { continue }
        frames[index].firstOrdinal =
          before.holdsSections
          ? before.firstOrdinal + UInt64(before.sectionCount) - 1 : before.firstOrdinal
      }
    }
  }

  /// Assigns ordinals to what is left of damaged frames and that no index segment knows.
  ///
  /// Each is counted from the beginning of its frame. Where a length is wrong, it may have led past
  /// sections; then the ordinals after it are wrong, too, and the digest of the CAR tells.
  private mutating func placeSalvaged() {
    let lost = lostOrdinals
    let byFrame = Dictionary(grouping: salvaged, by: \.frame)
    for (number, sections) in byFrame.sorted(by: { $0.key < $1.key }) {
      let (first, indices) = (frames[number].firstOrdinal, sections.map { UInt64($0.index) })
      guard first == .max || !indices.allSatisfy({ lost.has(first + $0) }) else { continue }
      // Under new ordinals all of them are right, with holes for those that are lost.
      frames[number].firstOrdinal = sectionCount
      sectionCount += (indices.max() ?? 0) + 1
    }
  }
}

extension Survey.Frame {
  /// How far the ordinal moves on from its first.
  fileprivate var step: Int { isContinuation ? 1 : Int(sectionCount) }
}

extension Survey.Landmark {
  /// How many ordinals there are up to here, if it says so and that can be: each section that it
  /// counts takes bytes before it.
  fileprivate var tells: UInt64? {
    let told: UInt64
    switch self {
    case .segment(let segment): told = segment.end
    case .footer(let footer): told = footer.sectionCount
    case .other, .void, .gap: return nil
    }
    return told <= UInt64(range.lowerBound) ? told : nil
  }

  /// Whether sections may have been there that have ordinals.
  fileprivate var mayHaveHeldSections: Bool {
    switch self {
    case .void, .gap: true
    case .segment, .footer, .other: false
    }
  }

  /// Whether it stands where it was written, does not say what cannot be, and was no data.
  fileprivate var isPlausible: Bool {
    switch self {
    case .footer(let footer): footer.isInPlace && tells != nil
    case .segment: tells != nil
    case .other(_, let error): error == nil
    case .void, .gap: false
    }
  }
}
