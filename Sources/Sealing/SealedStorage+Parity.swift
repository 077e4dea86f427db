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
    try state.withLock { state in
      state.parity = Parity(percent: percent, isStale: true)
      guard !state.slots.haveCopies else { return }
      state.slots.upgrade()
      try settle(&state)
      try state.slots.write(to: file)
    }
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
      let frame = try SealedFrame.parityFrame(length, group)
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

  /// The key frames, from the one that was written most often, wherever that lies.
  package func restoreUnprotected(of old: MappedFile, in new: any ArchiveStorage) throws {
    let found = try [old, new.map()].compactMap { try KeySlots.left(in: $0) }
    guard let best = found.max(by: { $0.sequence < $1.sequence }),
      try new.size >= UInt64(KeySlots.length)
    else { return }
    try best.restore(in: new)
  }

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
    var count = report.bytesHealed
    if report.groupCount > 0, report.isHealable { count += try Self.mendFrames(file) }
    return count + (try Self.mendKeys(file))
  }

  /// Puts key frames back to the beginning of a file, from where one is whole.
  private static func mendKeys(_ file: any ArchiveStorage) throws -> UInt64 {
    var slots: KeySlots
    do {
      slots = try KeySlots(file.map())
    } catch is SealedError {
      return 0
    }
    return try slots.finish(in: file) ? UInt64(KeySlots.slotLength) : 0
  }

  /// Makes the frames around undamaged parity again, which protects what is in them alone.
  private static func mendFrames(_ file: any ArchiveStorage) throws -> UInt64 {
    var count: UInt64 = 0
    let map = try file.map()
    guard try LayerParity.assess(map)?.damagedCount == 0 else { return 0 }
    for region in LayerParity.regions(in: map) {
      let place = region.lowerBound - SealedFrame.contentOffset
      let frame = try map.withBytes(reading: [region]) { bytes in
        try SealedFrame.parityFrame(region.count) { try $0(bytes.extracting(region)) }
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
