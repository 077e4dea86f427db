public import IPLD
internal import Synchronization

/// Finding many sections at once.
extension ArchiveReader {
  /// How the archive stands with many CIDs.
  ///
  /// - Parameters:
  ///   - count: How many CIDs there are.
  ///   - isChecking: Whether all frames of a section are compared with their checksums; without
  ///     it, of a large section, the beginning is read.
  ///   - workers: How many threads.
  ///   - cid: The CID with a number, whichever thread asks.
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  /// - Returns: The state of each.
  public func states(
    _ count: Int, isChecking: Bool = false, workers: Int? = nil, cid: @Sendable (Int) -> CID
  ) throws -> [SectionState] {
    let states = Mutex([SectionState](repeating: .missing, count: count))
    _ = try ordinals(count, isChecking: isChecking, workers: workers, cid: cid) { found in
      states.withLock { states in
        for (index, state) in found { states[index] = state }
      }
    }
    return states.withLock { $0 }
  }

  /// How the archive stands with a CID.
  ///
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  func state(of cid: CID, isChecking: Bool) throws -> SectionState {
    do {
      guard let location = try locate(cid, isChecking: isChecking) else { return .missing }
      return .held(ordinal: location.ordinal, bodyLength: location.prefix.bodyLength)
    } catch let error as ArchiveError where !error.isOfSystem {
      return .damaged(error)
    }
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
  /// - Throws: ``ArchiveError`` if the file cannot be read.
  /// - Returns: For each CID its number; `UInt64.max` if it is not there, or damaged.
  public func ordinals(
    _ count: Int, workers: Int? = nil, cid: @Sendable (Int) -> CID
  ) throws -> [UInt64] {
    try ordinals(count, isChecking: false, workers: workers, cid: cid) { _ in }
  }

  private typealias Found = [(index: Int, state: SectionState)]

  private func ordinals(
    _ count: Int, isChecking: Bool, workers: Int?, cid: @Sendable (Int) -> CID,
    each: @Sendable (Found) -> Void
  ) throws -> [UInt64] {
    let workers = workers ?? Parallel.processorCount
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
        let found = try confirm(group, likely, isChecking: isChecking, cid)
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
      let state = try state(of: cid(index), isChecking: isChecking)
      if case .held(let ordinal, _) = state {
        ordinals[index] = ordinal
      } else {
        ordinals[index] = .max
      }
      each([(index, state)])
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
    _ group: ArraySlice<UInt32>, _ likely: [UInt64], isChecking: Bool,
    _ cid: @Sendable (Int) -> CID
  ) throws -> Found {
    guard let first = group.first else { return [] }
    return try withFile { (file) throws in
      guard let sections = try sectionsOfFrame(likely[Int(first)], in: file) else { return [] }
      var found: Found = []
      for index in group.lazy.map({ Int($0) }) {
        let prefix: SectionPrefix
        switch sections {
        case .large(let only):
          if isChecking, firstDamage(ofLarge: likely[index], only, in: file) != nil { continue }
          prefix = only
        case .pack(let frame):
          guard let number = frame.index(of: likely[index]) else { continue }
          prefix = try frame.prefix(number)
        }
        if prefix.cid == cid(index) {
          found.append((index, .held(ordinal: likely[index], bodyLength: prefix.bodyLength)))
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
