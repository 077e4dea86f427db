package import Archive
internal import IPLD
internal import Synchronization

/// Parity of the frames, from which a sealed archive is healed without a key (FORMAT 9.6).
extension SealedStorage {
  /// The parity of a file, as the frame before its last table tells, or one whose table is lost.
  static func parity(_ layout: SealedLayout, in file: MappedFile) -> Parity? {
    let last = layout.lastParity.flatMap {
      SealedFrame.parity.percent(endingAt: $0.upperBound, in: file)
    }
    if let table = layout.tables.last?.frame.lowerBound,
      let percent = SealedFrame.parity.percent(endingAt: table, in: file)
    {
      return Parity(percent: last ?? percent, end: table)
    }
    return last.map { Parity(percent: $0, isStale: true) }
  }

  func keepParity(percent: Int) -> Bool {
    state.withLock { state in
      if state.parity == nil { state.parity = Parity(percent: percent) }
      state.parity?.percent = percent
      return true
    }
  }

  func protect(percent: Int) throws -> UInt64? {
    let before = try file.size
    let parity = state.withLock { $0.parity }
    if let parity, parity.percent == percent, !parity.isStale, parity.end > KeySlots.length {
      let damaged = try LayerParity.assess(file.map())?.damagedCount
      if damaged == 0 { return 0 }
    }
    state.withLock { $0.parity = Parity(percent: percent, isStale: true) }
    try commit()
    // What an interrupted write had left behind the last table was cut off.
    let after = try file.size
    return after - min(before, after)
  }

  /// Protects the pieces and tables that are not protected yet.
  func protect(_ state: inout State) throws {
    guard let parity = state.parity else { return }
    try settle(&state)
    let start = parity.isStale ? KeySlots.length : parity.end
    try SealedFrame.parity.protect(
      start..<state.layout.end, percent: parity.percent, in: file.map()
    ) { place, length, group in
      let frame = try SealedFrame.bytes(.parity, number: 0, plainOffset: 0, reserving: length) {
        bytes in
        try group { bytes.append($0) }
      }
      precondition(place == state.layout.end, "parity was written at another place")
      state.layout.pass(try append(frame, &state))
    }
    state.parity?.isStale = false
  }
}

extension SealedSource {
  var parityPercent: Int? {
    SealedFrame.lastTable(in: file, before: file.count).flatMap {
      SealedFrame.parity.percent(endingAt: $0.range.lowerBound, in: file)
    }
  }

  func assessParity() throws -> ParityHealing.Report? { try LayerParity.assess(file) }
}

extension SealedLayer {
  /// The frames of a file that hold, except for parity.
  private static func intact(_ file: MappedFile) -> [Range<Int>] {
    var intact: [Range<Int>] = []
    var walk = SealedFrameWalk(file, from: 0)
    while let step = walk.next() {
      if step.holds, step.frame.kind != .parity { intact.append(step.frame.range) }
    }
    return intact
  }

  /// The key frames, from the one that was written last, wherever that lies.
  package func restoreUnprotected(of old: MappedFile, in new: any ArchiveStorage) throws {
    var best: (sequence: UInt64, bytes: [UInt8])?
    for file in [old, try new.map()] {
      var place = 0
      let end = min(file.count, Self.searchedForKeys)
      while let frame = SealedFrame.next(in: file, from: place, before: end) {
        place = frame.range.lowerBound + 1
        guard frame.kind == .keySlot, frame.range.count == KeySlots.slotLength else { continue }
        file.withBytes(reading: [frame.range]) { bytes in
          guard frame.holds(in: bytes) else { return }
          let sequence = bytes.u64(frame.range.lowerBound + KeySlots.sequenceOffset)
          guard best.map({ $0.sequence < sequence }) ?? true else { return }
          best = (sequence, bytes.array(frame.range))
        }
      }
    }
    guard let bytes = best?.bytes, try new.size >= UInt64(KeySlots.length) else { return }
    for place in [0, KeySlots.slotLength] { try new.write(bytes.span, at: UInt64(place)) }
    try new.synchronize()
  }

  /// How far from the beginning key frames are looked for.
  private static let searchedForKeys = 1 << 20

  package func keepsAll(of old: MappedFile, in new: MappedFile) throws -> Bool {
    func checksums(_ file: MappedFile) -> Set<UInt64> {
      Set(
        Self.intact(file).map { frame in
          let place = frame.upperBound - SealedFrame.checksumLength
          return file.withBytes(reading: [place..<frame.upperBound]) { $0.u64(place) }
        })
    }
    let (before, after) = (checksums(old), checksums(new))
    try old.checkFetched()
    return before.isSubset(of: after)
  }

  package func heal(_ file: any ArchiveStorage) throws -> UInt64 {
    let report = try LayerParity.heal(file, sparing: Self.intact(file.map()))
    guard report.groupCount > 0, report.isHealable else { return report.bytesHealed }
    return report.bytesHealed + (try Self.mendFrames(file))
  }

  /// Makes the frames around undamaged parity again, which protects what is in them alone.
  private static func mendFrames(_ file: any ArchiveStorage) throws -> UInt64 {
    var count: UInt64 = 0
    let map = try file.map()
    guard try LayerParity.assess(map)?.damagedCount == 0 else { return 0 }
    for region in LayerParity.regions(in: map) {
      let place = region.lowerBound - SealedFrame.contentOffset
      let frame = map.withBytes(reading: [region]) { bytes in
        SealedFrame.bytes(.parity, number: 0, plainOffset: 0, reserving: region.count) {
          $0.append(bytes.extracting(region))
        }
      }
      let isThere = map.withBytes(reading: []) { bytes in
        place + frame.count <= bytes.count
          && bytes.extracting(place..<place + frame.count).equals(frame.span)
      }
      guard !isThere else { continue }
      try file.write(frame.span, at: UInt64(place))
      count += UInt64(SealedFrame.emptyLength)
    }
    if count > 0 { try file.synchronize() }
    return count
  }
}
