package import IPLD

/// Finding many sections at once.
extension ArchiveReader {
  /// Which of many CIDs the archive has.
  ///
  /// - Parameters:
  ///   - count: How many CIDs there are.
  ///   - isChecking: Whether all frames of a section are compared with their checksums; without
  ///     it, of a large section, the beginning is read.
  ///   - expectedLength: How long the body of the section with a number should be; nil if that is
  ///     not known. Of a remote archive, a large section of which nothing is to be checked is not
  ///     fetched if the index and its frames' lengths agree with that.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  /// - Returns: The state of each.
  package func states(
    _ count: Int, isChecking: Bool = false,
    expectedLength: @escaping @Sendable (Int) -> UInt64? = { _ in nil },
    cid: @escaping @Sendable (Int) -> CID
  ) throws -> [SectionState] {
    let found = try find(count, workers: nil, (cid, expectedLength, isChecking))
    return found.ordinals.indices.map { place in
      if let error = found.damaged[place] { return .damaged(error) }
      let ordinal = found.ordinals[place]
      return ordinal == .max
        ? .missing : .held(ordinal: ordinal, bodyLength: found.lengths[place])
    }
  }

  /// Whether the index has the key of a CID: if not, the archive does not have it either.
  ///
  /// The key of another section is taken for it once in 2^28 times, at most, for each section.
  ///
  /// - Throws: ``ArchiveError`` if the index cannot be read.
  package func mayHold(_ cid: CID) throws -> Bool { try !candidates(cid.sectionKey).isEmpty }

  /// Which of many CIDs the archive has, by its index alone; nil if that does not hold.
  ///
  /// The key of another section is taken for one once in 2^28 times, at most, for each section.
  ///
  /// - Parameters:
  ///   - count: How many CIDs there are.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if the index cannot be read.
  package func isIndexed(_ count: Int, cid: @escaping @Sendable (Int) -> CID) throws -> [Bool]? {
    guard try standIn == nil, try isIndexIntact(after: nil) else { return nil }
    let hints = try hints(count, workers: Parallel.processorCount, cid).ordinals
    return hints.prefix(count).map { $0 != .max }
  }

  /// The ordinals of the sections that may have this key, or one of which this many bits are alike.
  func candidates(_ key: UInt64, knownBits: Int = 64) throws -> [UInt64] {
    try asking { reader, file in
      try reader.candidates(key, knownBits: knownBits, in: file)
    }
  }

  /// Whether the archive has a CID.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  func state(of cid: CID, isChecking: Bool) throws -> SectionState {
    do {
      guard let location = try locate(cid, isChecking: isChecking) else { return .missing }
      // It can be read, and is to be written again all the same.
      if isChecking, location.frame.large != nil, let failure = location.frame.failure {
        return .damaged(failure)
      }
      return .held(ordinal: location.ordinal, bodyLength: location.prefix.bodyLength)
    } catch let error as ArchiveError where error.faultKind != .system {
      return .damaged(error)
    }
  }

  /// Under which numbers the archive has many CIDs.
  ///
  /// - Parameters:
  ///   - count: How many CIDs there are.
  ///   - workers: How many threads.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  /// - Returns: For each CID its number; `UInt64.max` if it is missing, or damaged.
  package func ordinals(
    _ count: Int, workers: Int? = nil, cid: @escaping @Sendable (Int) -> CID
  ) throws -> [UInt64] {
    try find(count, workers: workers, (cid, { _ in nil }, false)).ordinals
  }

  /// What is asked about many sections: the CID with a number; how long its body should be, if that
  /// is known; and whether all frames of a section have to hold.
  private typealias Asked = (
    cid: @Sendable (Int) -> CID, length: @Sendable (Int) -> UInt64?, isChecking: Bool
  )

  /// What was found of many CIDs: the number of each, `UInt64.max` if it cannot be read, and the
  /// length of its body; and why some that were there cannot be read.
  private typealias Found = (ordinals: [UInt64], lengths: [UInt64], damaged: [Int: ArchiveError])

  /// Finds many sections.
  ///
  /// The index is asked for each, and what it says is then confirmed in the order of the file, on
  /// all cores, so that every frame is decompressed once, whatever order the CIDs come in. Only the
  /// beginning of a raw frame is read if it holds one section alone. The few of which the index
  /// said something else are looked for one by one.
  private func find(_ count: Int, workers: Int?, _ asked: Asked) throws -> Found {
    if let standIn = try standIn { return try standIn.find(count, workers: workers, asked) }
    let workers = workers ?? Parallel.processorCount
    let (hints, others): Hints
    do {
      (hints, others) = try self.hints(count, workers: workers, asked.cid)
    } catch let error as ArchiveError {
      guard let other = try other(after: error) else { throw error }
      return try other.find(count, workers: workers, asked)
    }
    let place: @Sendable (Int) -> Int = { $0 < count ? $0 : others[$0 - count] }
    let lengths = try confirm(
      hints, workers: workers,
      ({ asked.cid(place($0)) }, { asked.length(place($0)) }, asked.isChecking))
    var found: Found = (Array(hints[..<count]), Array(lengths[..<count]), [:])
    for (number, place) in others.enumerated()
    where lengths[count + number] < Self.unreadable && found.lengths[place] >= Self.unreadable {
      (found.ordinals[place], found.lengths[place]) =
        (hints[count + number], lengths[count + number])
    }
    let unsettled = (0..<count).filter {
      found.ordinals[$0] != .max && found.lengths[$0] >= Self.unreadable
    }
    // Something else is where the index says that these are.
    if !unsettled.isEmpty, let other = try other(after: nil) {
      return try other.find(count, workers: workers, asked)
    }
    for place in unsettled {
      let (cid, hint) = (asked.cid(place), found.ordinals[place])
      found.ordinals[place] = .max
      // Most often another section's key begins alike, and no other may be it.
      if found.lengths[place] == Self.isOther, try candidates(cid.sectionKey) == [hint] { continue }
      switch try state(of: cid, isChecking: asked.isChecking) {
      case .missing: break
      case .damaged(let error): found.damaged[place] = error
      case .held(let ordinal, let length):
        (found.ordinals[place], found.lengths[place]) = (ordinal, length)
      }
    }
    return found
  }

  /// Stands for the length of a body if another section is there.
  private static var isOther: UInt64 { .max }
  /// Stands for the length of a body that cannot be read.
  private static var unreadable: UInt64 { .max - 1 }

  /// What the index says of many CIDs, places to look at: for each the number of a section that may
  /// be it, `UInt64.max` if the index has none; after these the numbers of others, for keys of
  /// which several are alike; and the CIDs that these are for.
  private typealias Hints = (ordinals: [UInt64], others: [Int])

  /// How many hints are kept for one CID.
  ///
  /// Chance never brings more: then an attacker has made keys that begin alike, and they are looked
  /// for one by one.
  private static var maximumForOne: Int { 16 }

  /// What the index says of each CID, the largest segment asked first.
  private func hints(_ count: Int, workers: Int, _ cid: @Sendable (Int) -> CID) throws -> Hints {
    // They are all over the index.
    willSearch()
    file.willRead(index.segments.map(\.frame.range))
    let chunk = 1 << 13
    let chunks = try Parallel.map((count + chunk - 1) / chunk, workers: workers) { number in
      try withFile { (file) throws in
        var (firsts, others): ([UInt64], [(place: Int, ordinal: UInt64)]) = ([], [])
        for place in number * chunk..<min(count, (number + 1) * chunk) {
          var (first, count) = (UInt64.max, 0)
          try index.forEachCandidate(cid(place).sectionKey, in: file) { ordinal in
            count += 1
            if count == 1 {
              first = ordinal
            } else if count <= Self.maximumForOne {
              others.append((place, ordinal))
            }
          }
          firsts.append(first)
          if count > Self.maximumForOne { others.removeLast(Self.maximumForOne - 1) }
        }
        return (firsts, others)
      }
    }
    let others = chunks.flatMap(\.1)
    return (chunks.flatMap(\.0) + others.map(\.ordinal), others.map(\.place))
  }

  /// Looks where hints lead, frame by frame.
  ///
  /// - Returns: The length of each body, ``isOther`` or ``unreadable``.
  private func confirm(_ hints: [UInt64], workers: Int, _ asked: Asked) throws -> [UInt64] {
    // 32 bits are enough for more CIDs than a CAR can have.
    let order = (0..<UInt32(hints.count)).filter { hints[Int($0)] != .max }
      .sorted { hints[Int($0)] < hints[Int($1)] }
    let groups = groups(order, hints)
    if file.isFetched { willLook(order, groups, hints, asked) }
    let found = try Parallel.map(groups.count, workers: workers) { number in
      // Each read of a frame also maps some neighbouring pages.
      if number % 8 == 0 { file.releasePages() }
      return try look(order[groups[number]], hints, asked)
    }
    var lengths = [UInt64](repeating: Self.isOther, count: hints.count)
    for (group, looks) in zip(groups, found) {
      for (place, length) in zip(order[group], looks) { lengths[Int(place)] = length }
    }
    return lengths
  }

  /// The ranges of `order` whose sections lie in one frame each.
  private func groups(_ order: [UInt32], _ hints: [UInt64]) -> [Range<Int>] {
    file.withBytes(reading: []) { bytes in
      var groups: [Range<Int>] = []
      var start = 0
      while start < order.count {
        var end = start + 1
        let limit =
          index.row(of: hints[Int(order[start])], in: bytes)
          .map { index.firstOrdinal(behind: $0, in: bytes) } ?? 0
        while end < order.count, hints[Int(order[end])] < limit { end += 1 }
        groups.append(start..<end)
        start = end
      }
      return groups
    }
  }

  /// Looks where some hints lead, all into one frame by the index.
  private func look(_ group: ArraySlice<UInt32>, _ hints: [UInt64], _ asked: Asked) throws
    -> [UInt64]
  {
    try withFile { (file) throws in
      if let length = lengthByForm(group, hints, asked, in: file) { return [length] }
      do throws(ArchiveError) {
        guard let first = group.first,
          let row = index.row(of: hints[Int(first)], in: file)
        else { return group.map { _ in Self.unreadable } }
        let frame = try open(row.entry, isChecking: false, in: file)
        var lengths: [UInt64] = []
        lengths.reserveCapacity(group.count)
        for hint in group {
          let ordinal = hints[Int(hint)]
          guard let prefix = try frame.index(of: ordinal).map(frame.prefix) else {
            lengths.append(Self.unreadable)
            continue
          }
          if prefix.cid != asked.cid(Int(hint)) {
            lengths.append(Self.isOther)
          } else if asked.isChecking, frame.large != nil,
            firstDamage(of: try locate(ordinal, in: file), in: file) != nil
          {
            lengths.append(Self.unreadable)
          } else {
            lengths.append(prefix.bodyLength)
          }
        }
        return lengths
      } catch {
        // Looked up one by one, its content may still be readable; if not, that says why.
        return group.map { _ in Self.unreadable }
      }
    }
  }

  /// Announces the first of the frames that will be examined; those that are not fetched for it are
  /// left out.
  private func willLook(
    _ order: [UInt32], _ groups: [Range<Int>], _ hints: [UInt64], _ asked: Asked
  ) {
    willRead(upTo: 32 << 20) { bytes, add in
      for group in groups {
        guard lengthByForm(order[group], hints, asked, in: bytes) == nil,
          let row = index.row(of: hints[Int(order[group.lowerBound])], in: bytes),
          row.entry.range.count <= ArchiveLimits.frameContent
        else { continue }
        guard add(row.entry) else { return }
      }
    }
  }

  /// What is there by the index and the lengths of frames alone, of a remote archive: a large
  /// section under this key, in raw frames that are as long as its body has to make them.
  ///
  /// - Returns: nil if that is not so, or not enough.
  private func lengthByForm(
    _ group: ArraySlice<UInt32>, _ hints: [UInt64], _ asked: Asked, in file: Span<UInt8>
  ) -> UInt64? {
    guard self.file.isFetched, !asked.isChecking, group.count == 1,
      let hint = group.first.map({ Int($0) }), let length = asked.length(hint),
      length >= UInt64(ArchiveLimits.largeBody)
    else { return nil }
    let ordinal = hints[hint]
    let prefix = SectionPrefix(asked.cid(hint), bodyLength: length)
    guard let row = index.row(of: ordinal, in: file) else { return nil }
    for number in 0..<prefix.frameCount {
      guard let entry = index.row(Int(clamping: number), after: row, in: file)?.entry,
        entry.firstOrdinal == ordinal,
        Int(entry.storedLength)
          == DataFrame.rawLength(contentSize: prefix.contentSize(ofFrame: number))
      else { return nil }
    }
    return length
  }
}

/// Whether an archive has a section.
package enum SectionState: Sendable {
  /// It is missing.
  case missing
  /// It was there, and what is left does not hold, and why.
  case damaged(ArchiveError)
  /// It is there, as far as was examined.
  case held(ordinal: UInt64, bodyLength: UInt64)

  /// How many bytes its body has; nil if it cannot be read.
  package var bodyLength: UInt64? {
    if case .held(_, let length) = self { length } else { nil }
  }

  /// Whether something is left of it that does not hold.
  package var isDamaged: Bool { if case .damaged = self { true } else { false } }
}
