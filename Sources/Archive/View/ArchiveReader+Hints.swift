internal import IPLD
internal import Synchronization

/// What the index says of many CIDs, confirmed in the order of the file.
extension ArchiveReader {
  /// What the index says of many CIDs: places to look at.
  struct Hints: Sendable {
    /// For each CID an ordinal; `UInt64.max` if the index has none.
    var first: [UInt64] = []
    /// More ordinals for some CIDs.
    var others: [(index: Int, ordinal: UInt64)] = []
    /// The CIDs for which there are so many ordinals that they are not kept.
    var crowded: [Int] = []

    /// How many ordinals are kept for one CID.
    ///
    /// Chance never brings more: then an attacker has made keys that begin alike.
    static let maximumForOne = 16

    var count: Int { first.count + others.count }

    @inline(__always)
    func ordinal(_ hint: UInt32) -> UInt64 {
      Int(hint) < first.count ? first[Int(hint)] : others[Int(hint) - first.count].ordinal
    }

    /// The number of the CID that a hint is for.
    @inline(__always)
    func index(_ hint: UInt32) -> Int {
      Int(hint) < first.count ? Int(hint) : others[Int(hint) - first.count].index
    }
  }

  /// What became of hints.
  struct Outcome {
    /// The CIDs whose first hint led to another section, or a frame that cannot be read.
    var unconfirmed: [Int] = []
    /// Those of which another hint was right.
    var others: Found = []
    /// Those of which none was right, and all led to sections that can be read.
    var missing: [Int] = []
    /// Those of which one led to what cannot be read.
    var failed: [Int] = []
  }

  /// What the largest segment says of each CID that says anything.
  func hints(_ count: Int, workers: Int, cid: @Sendable (Int) -> CID) throws -> Hints {
    let index = index
    let chunk = 1 << 13
    let chunks = Mutex([Hints](repeating: Hints(), count: (count + chunk - 1) / chunk))
    let failure = Mutex<(any Error)?>(nil)
    Parallel.perform((count + chunk - 1) / chunk, workers: workers) { number in
      do {
        var hints = Hints()
        hints.first.reserveCapacity(min(chunk, count - number * chunk))
        try withFile { (file) throws in
          for place in number * chunk..<min(count, (number + 1) * chunk) {
            var count = 1
            let first = try index.firstCandidate(SectionKey(cid(place)), in: file) {
              count += 1
              if count <= Hints.maximumForOne { hints.others.append((place, $0)) }
            }
            if count > Hints.maximumForOne {
              hints.others.removeLast(Hints.maximumForOne - 1)
              hints.crowded.append(place)
              hints.first.append(.max)
            } else {
              hints.first.append(first ?? .max)
            }
          }
        }
        chunks.withLock { $0[number] = hints }
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
    return chunks.withLock { chunks in
      Hints(
        first: chunks.flatMap(\.first), others: chunks.flatMap(\.others),
        crowded: chunks.flatMap(\.crowded))
    }
  }

  /// What the segments say of some CIDs that were not asked for them.
  func otherHints(_ indices: [Int], behind hints: Hints, _ cid: (Int) -> CID) throws
    -> Hints
  {
    let index = index
    var others = Hints()
    try withFile { (file) throws in
      for place in indices {
        let asked = index.segmentRange(around: hints.first[place])
        let found = try index.candidates(SectionKey(cid(place)), in: file).filter {
          !asked.contains($0)
        }
        if found.count > Hints.maximumForOne {
          others.crowded.append(place)
        } else {
          others.others += found.map { (place, $0) }
        }
      }
    }
    return others
  }

  /// Looks where hints lead, frame by frame.
  ///
  /// - Parameter each: Called with the CIDs whose first hint was right.
  func confirm(
    _ hints: Hints, workers: Int, _ asked: Asked, each: @Sendable (Found) -> Void
  ) throws -> Outcome {
    // 32 bits are enough for more CIDs than a CAR can have.
    let order = (0..<UInt32(hints.count)).filter { hints.ordinal($0) != .max }
      .sorted { hints.ordinal($0) < hints.ordinal($1) }
    let groups = groups(order, hints)
    if file.isFetched { willLook(order, groups, hints, asked) }
    let seen = Mutex<[Look]>([])
    let failure = Mutex<(any Error)?>(nil)
    Parallel.perform(groups.count, workers: workers) { number in
      do {
        var found: Found = []
        var rest: [Look] = []
        for look in try look(order[groups[number]], hints, asked) {
          if let state = look.state, Int(look.hint) < hints.first.count {
            found.append((Int(look.hint), state))
          } else {
            rest.append(look)
          }
        }
        // Each look into a frame brings some of its neighbours along.
        if number % Self.groupsBetweenReleases == 0 { file.releasePages() }
        each(found)
        if !rest.isEmpty { seen.withLock { $0 += rest } }
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
    return outcome(of: seen.withLock { $0 }, hints)
  }

  /// Tells from the hints that were not right, and from the others, what became of each CID.
  private func outcome(of looks: [Look], _ hints: Hints) -> Outcome {
    var outcome = Outcome()
    var byIndex: [Int: [Look]] = [:]
    for look in looks { byIndex[hints.index(look.hint), default: []].append(look) }
    for (index, looks) in byIndex.sorted(by: { $0.key < $1.key }) {
      if !hints.first.isEmpty {
        // A first hint that was right is not among these.
        guard looks.contains(where: { Int($0.hint) == index }) else { continue }
        outcome.unconfirmed.append(index)
      }
      if looks.contains(where: \.hasFailed) {
        outcome.failed.append(index)
      } else if let right = looks.sorted(by: { $0.hint < $1.hint }).first(where: { $0.state != nil }
      ),
        let state = right.state
      {
        outcome.others.append((index, state))
      } else {
        outcome.missing.append(index)
      }
    }
    return outcome
  }

  /// The ranges of `order` whose sections lie in one frame each.
  private func groups(_ order: [UInt32], _ hints: Hints) -> [Range<Int>] {
    var groups: [Range<Int>] = []
    let index = index
    file.withBytes { bytes in
      var start = 0
      while start < order.count {
        var end = start + 1
        let limit = index.position(of: hints.ordinal(order[start]), in: bytes).map {
          index.firstOrdinal(behind: $0, in: bytes)
        }
        while end < order.count, hints.ordinal(order[end]) < limit ?? 0 { end += 1 }
        groups.append(start..<end)
        start = end
      }
    }
    return groups
  }

  /// What was seen where a hint leads.
  private struct Look: Sendable {
    let hint: UInt32
    /// The state of the section if it is the right one.
    var state: SectionState?
    /// Whether nothing could be seen.
    var hasFailed = false
  }

  /// Looks where some hints lead, all into one frame by the index.
  private func look(
    _ group: ArraySlice<UInt32>, _ hints: Hints, _ asked: Asked
  ) throws -> [Look] {
    guard let first = group.first else { return [] }
    return try withFile { (file) throws in
      if let looks = looksByForm(group, hints, asked, in: file) { return looks }
      guard let sections = try sectionsOfFrame(hints.ordinal(first), in: file) else {
        return group.map { Look(hint: $0, hasFailed: true) }
      }
      var looks: [Look] = []
      looks.reserveCapacity(group.count)
      for hint in group {
        let ordinal = hints.ordinal(hint)
        let prefix: SectionPrefix
        switch sections {
        case .large(let only): prefix = only
        case .pack(let frame):
          guard let number = frame.index(of: ordinal) else {
            looks.append(Look(hint: hint, hasFailed: true))
            continue
          }
          prefix = try frame.prefix(number)
        }
        var look = Look(hint: hint)
        if prefix.cid == asked.cid(hints.index(hint)) {
          if case .large = sections, asked.isChecking,
            firstDamage(ofLarge: ordinal, prefix, in: file) != nil
          {
            look.hasFailed = true
          } else {
            look.state = .held(ordinal: ordinal, bodyLength: prefix.bodyLength)
          }
        }
        looks.append(look)
      }
      return looks
    }
  }

  /// Says which frames are going to be looked at, the first of them; those that are not fetched for
  /// it are left out.
  private func willLook(
    _ order: [UInt32], _ groups: [Range<Int>], _ hints: Hints, _ asked: Asked
  ) {
    let index = index
    let ranges: [Range<Int>] = file.withBytes { bytes in
      var (ranges, length) = ([Range<Int>](), 0)
      for group in groups where length < Self.lookedAtOnce {
        let hints = (order[group], hints)
        guard let first = order[group].first,
          looksByForm(hints.0, hints.1, asked, in: bytes) == nil,
          let position = index.position(of: hints.1.ordinal(first), in: bytes)
        else { continue }
        let range = index.entry(at: position, in: bytes).range
        guard range.count <= ArchiveLimits.frameContent else { continue }
        ranges.append(range)
        length += range.count
      }
      return ranges
    }
    file.willRead(ranges)
  }

  /// How many bytes of frames are asked for at a time.
  private static var lookedAtOnce: Int { 32 << 20 }

  /// What is there by the index and the lengths of frames alone, of an archive that lies elsewhere:
  /// a large section under this key, in raw frames that are as long as its body has to make them.
  ///
  /// - Returns: nil if that is not so, or not enough.
  private func looksByForm(
    _ group: ArraySlice<UInt32>, _ hints: Hints, _ asked: Asked, in file: Span<UInt8>
  ) -> [Look]? {
    guard self.file.isFetched, !asked.isChecking, let hint = group.first, group.count == 1,
      let length = asked.length(hints.index(hint)), length >= UInt64(ArchiveLimits.largeBody)
    else { return nil }
    let (index, ordinal) = (index, hints.ordinal(hint))
    let prefix = SectionPrefix(asked.cid(hints.index(hint)), bodyLength: length)
    guard let position = index.position(of: ordinal, in: file) else { return nil }
    for number in 0..<prefix.frameCount {
      guard let part = index.position(Int(clamping: number), after: position) else { return nil }
      let entry = index.entry(at: part, in: file)
      guard entry.firstOrdinal == ordinal,
        Int(entry.storedLength)
          == RawFrame.length(contentSize: prefix.contentSize(ofFrame: number))
      else { return nil }
    }
    return [Look(hint: hint, state: .held(ordinal: ordinal, bodyLength: length))]
  }

  /// After how many frames their pages are let go of.
  private static var groupsBetweenReleases: Int { 8 }

  private enum FrameSections {
    case pack(DecodedFrame)
    case large(SectionPrefix)
  }

  /// The sections that begin in the frame of this one; nil if the frame is damaged.
  private func sectionsOfFrame(_ ordinal: UInt64, in file: Span<UInt8>) throws -> FrameSections? {
    let index = index
    guard let position = index.position(of: ordinal, in: file) else { return nil }
    let entry = index.entry(at: position, in: file)
    do throws(ArchiveError) {
      guard entry.end <= UInt64(file.count) else { return nil }
      let frame = try DataFrame(file, at: Int(entry.offset), limit: Int(entry.end))
      if frame.isRaw {
        let beginning = RawFrame.content(of: frame, in: file, limit: ArchiveLimits.sectionPrefix)
        let prefix = try SectionPrefix(beginning.span, at: 0, place: entry.offset)
        if prefix.isLarge { return entry.firstOrdinal == ordinal ? .large(prefix) : nil }
      }
      let content = try decoder.content(of: try load(entry, in: file), in: file)
      let prefix = try SectionPrefix(content.span, at: 0, place: entry.offset)
      if prefix.isLarge { return entry.firstOrdinal == ordinal ? .large(prefix) : nil }
      return .pack(
        try DecodedFrame(content, firstOrdinal: entry.firstOrdinal, place: entry.offset))
    } catch {
      // Looked for one by one, what is in it may still be had; if not, that says why.
      return nil
    }
  }
}
