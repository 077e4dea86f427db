public import IPLD
internal import Synchronization

/// Finding many sections at once.
extension ArchiveReader {
  /// A section that is there.
  public struct Match: Sendable {
    /// Its number.
    public let ordinal: UInt64
    /// How many bytes its body has.
    public let bodyLength: UInt64
  }

  /// Which of many CIDs the archive has, and how long their bodies are.
  ///
  /// - Parameters:
  ///   - count: How many CIDs there are.
  ///   - workers: How many threads.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if a frame that one of them would be in is damaged.
  /// - Returns: For each CID its section; nil if it is not there.
  public func matches(
    _ count: Int, workers: Int? = nil, cid: @Sendable (Int) -> CID
  ) throws -> [Match?] {
    let matches = Mutex([Match?](repeating: nil, count: count))
    _ = try ordinals(count, workers: workers, cid: cid) { found in
      matches.withLock { matches in
        for (index, match) in found { matches[index] = match }
      }
    }
    return matches.withLock { $0 }
  }

  /// Under which numbers the archive has many CIDs.
  ///
  /// The index is asked for each, and what it says is then confirmed in the order of the file, on
  /// all cores, so that every frame is decompressed once, whatever order the CIDs come in. Of a raw
  /// frame with a section of its own only the beginning is read. Memory is eight bytes a CID, and
  /// four for each that is there.
  ///
  /// - Parameters:
  ///   - count: How many CIDs there are.
  ///   - workers: How many threads.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if a frame that one of them would be in is damaged.
  /// - Returns: For each CID its number; `UInt64.max` if it is not there.
  public func ordinals(
    _ count: Int, workers: Int? = nil, cid: @Sendable (Int) -> CID
  ) throws -> [UInt64] {
    try ordinals(count, workers: workers, cid: cid) { _ in }
  }

  private func ordinals(
    _ count: Int, workers: Int?, cid: @Sendable (Int) -> CID,
    each: @Sendable ([(index: Int, match: Match)]) -> Void
  ) throws -> [UInt64] {
    let workers = workers ?? SystemCalls.processorCount
    var ordinals = try likelyOrdinals(count, workers: workers, cid: cid)
    let likely = ordinals
    // 32 bits are enough for more CIDs than a CAR can have.
    let order = (0..<UInt32(count)).filter { likely[Int($0)] != .max }
      .sorted { likely[Int($0)] < likely[Int($1)] }
    let groups = groups(order, likely)
    let unconfirmed = Mutex<[Int]>([])
    let failure = Mutex<(any Error)?>(nil)
    Parallel.perform(groups.count, workers: workers) { number in
      do {
        let group = order[groups[number]]
        let found = try confirm(group, likely, cid)
        // Each look into a frame brings some of its neighbours along.
        if number % Self.groupsBetweenReleases == 0 { file.releasePages() }
        each(found)
        guard found.count < group.count else { return }
        let confirmed = Set(found.map(\.index))
        let others = group.lazy.map { Int($0) }.filter { !confirmed.contains($0) }
        unconfirmed.withLock { $0 += others }
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
    for index in unconfirmed.withLock({ $0 }) {
      // Another section begins like this one, which happens once in some thousand archives; or the frame is damaged.
      let location = try locate(cid(index))
      ordinals[index] = location?.ordinal ?? .max
      guard let location else { continue }
      each([
        (index, Match(ordinal: location.ordinal, bodyLength: location.prefix.bodyLength))
      ])
    }
    return ordinals
  }

  /// What the index says first of each CID; `UInt64.max` if it has none like it.
  private func likelyOrdinals(
    _ count: Int, workers: Int, cid: @Sendable (Int) -> CID
  ) throws -> [UInt64] {
    let index = index
    let chunk = 1 << 13
    let chunks = Mutex([[UInt64]](repeating: [], count: (count + chunk - 1) / chunk))
    let failure = Mutex<(any Error)?>(nil)
    Parallel.perform((count + chunk - 1) / chunk, workers: workers) { number in
      do {
        let ordinals = try withFile { (file) throws in
          try (number * chunk..<min(count, (number + 1) * chunk)).map {
            try index.firstCandidate(SectionKey(cid($0)), in: file) ?? .max
          }
        }
        chunks.withLock { $0[number] = ordinals }
      } catch {
        failure.withLock { $0 = $0 ?? error }
      }
    }
    if let error = failure.withLock({ $0 }) { throw error }
    return chunks.withLock { $0.flatMap { $0 } }
  }

  /// The ranges of `order` whose sections lie in one frame each.
  private func groups(_ order: [UInt32], _ likely: [UInt64]) -> [Range<Int>] {
    var groups: [Range<Int>] = []
    let index = index
    file.withBytes { bytes in
      var start = 0
      while start < order.count {
        var end = start + 1
        let limit = index.position(of: likely[Int(order[start])], in: bytes).map {
          index.firstOrdinal(behind: $0, in: bytes)
        }
        while end < order.count, likely[Int(order[end])] < limit ?? 0 { end += 1 }
        groups.append(start..<end)
        start = end
      }
    }
    return groups
  }

  /// Those of some CIDs, all in one frame by the index, that are there.
  private func confirm(
    _ group: ArraySlice<UInt32>, _ likely: [UInt64], _ cid: @Sendable (Int) -> CID
  ) throws -> [(index: Int, match: Match)] {
    guard let first = group.first else { return [] }
    return try withFile { (file) throws in
      guard let sections = try sectionsOfFrame(likely[Int(first)], in: file) else { return [] }
      var found: [(index: Int, match: Match)] = []
      for index in group.lazy.map({ Int($0) }) {
        let prefix: SectionPrefix
        switch sections {
        case .large(let only): prefix = only
        case .pack(let frame):
          guard let number = frame.index(of: likely[index]) else { continue }
          prefix = try frame.prefix(number)
        }
        if prefix.cid == cid(index) {
          found.append((index, Match(ordinal: likely[index], bodyLength: prefix.bodyLength)))
        }
      }
      return found
    }
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
