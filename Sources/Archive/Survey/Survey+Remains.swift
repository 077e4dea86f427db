internal import IPLD

/// What index segments tell of that which is left of damaged frames (FORMAT 7.1).
extension Survey {
  /// How many bits of a key every segment keeps at least.
  private static let keptBits = 28

  /// Gives sections of damaged frames the ordinals under which a segment keeps their keys.
  mutating func identifySalvaged(in file: Span<UInt8>) {
    guard let tables, !salvaged.isEmpty else { return }
    var ordinals: [UInt64: [UInt64]] = [:]
    tables.keptKeys(of: lostOrdinals, in: file) { ordinal, key in
      ordinals[key.kept(Self.keptBits), default: []].append(ordinal)
    }
    var starts: [Int: UInt64] = [:]
    for index in salvaged.indices {
      let (number, _, key) = salvaged[index]
      guard let told = ordinals[key.kept(Self.keptBits)] else { continue }
      let first = starts[number] ?? start(of: frames[number], tables, told, in: file)
      starts[number] = first
      guard let ordinal = told.first(where: { $0.isWithin(first) }) else { continue }
      // The same bytes may be there under two CIDs.
      ordinals[key.kept(Self.keptBits)]?.removeAll { $0 == ordinal }
      frames[number].firstOrdinal = first
      salvaged[index].index = Int(ordinal - first)
    }
  }

  /// The ordinal with which a damaged frame begins: by a table, if it may hold one of these.
  private func start(
    of frame: Frame, _ tables: FrameTables, _ told: [UInt64], in file: Span<UInt8>
  ) -> UInt64 {
    let entry = tables.entry(ofFrameAt: Int(frame.offset), in: file)
    guard let first = entry?.firstOrdinal, told.contains(where: { $0.isWithin(first) }) else {
      return frame.firstOrdinal
    }
    return first
  }

  /// Finds the large sections with several frames that hash to their CIDs, though not every frame
  /// holds.
  mutating func recoverLarge(of mapped: MappedFile, in file: Span<UInt8>) {
    guard let tables, frames.contains(where: { !$0.isIntact }) else { return }
    let broken = Dictionary(
      frames.indices.filter { !frames[$0].isIntact }.map { (Int(frames[$0].offset), $0) },
      uniquingKeysWith: { first, _ in first })
    let decoder = FrameDecoder()
    var tried: Set<[Int]> = []
    // Tables that were made for it could name the same bytes many times.
    var budget = 1 << 26 + 4 * file.count
    tables.forEachLargeSection(in: file) { ordinal, parts in
      let numbers = parts.compactMap { broken[$0.lowerBound] }
      guard !numbers.isEmpty, budget > 0, !recovered.contains(ordinal),
        tried.insert([parts[0].lowerBound, parts.count]).inserted
      else { return }
      budget -= parts.reduce(0) { $0 + $1.count }
      let found = mapped.withUnproven(reading: parts, file) { bytes, _ in
        LargeRemains(parts, decoder, in: bytes, isLikely: { _ in true })
      }
      guard let remains = found else { return }
      recovered.insert(ordinal)
      for number in numbers {
        frames[number].firstOrdinal = ordinal
        frames[number].isContinuation = Int(frames[number].offset) != parts[0].lowerBound
      }
      if let first = broken[parts[0].lowerBound] {
        salvaged.append((first, 0, remains.prefix.cid.sectionKey))
      }
      incomplete.remove(at: parts[0].lowerBound, in: frames)
      let before = damaged.count
      damaged.removeAll { $0.cid == remains.prefix.cid }
      damagedCount -= before - damaged.count
    }
  }
}

extension UInt64 {
  /// The first bits of a key.
  fileprivate func kept(_ bits: Int) -> UInt64 { self >> UInt64(64 - bits) }

  /// Whether a frame that begins with an ordinal may hold this one.
  fileprivate func isWithin(_ first: UInt64) -> Bool {
    self >= first && self - first < UInt64(ArchiveLimits.frameContent / 5)
  }
}

extension Set<Int> {
  /// Removes the number of the frame that begins at a place.
  fileprivate mutating func remove(at place: Int, in frames: [Survey.Frame]) {
    if let number = first(where: { Int(frames[$0].offset) == place }) { remove(number) }
  }
}
