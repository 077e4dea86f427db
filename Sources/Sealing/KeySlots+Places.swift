internal import Archive
internal import IPLD

/// Where the key frames of a file lie, and how all of them are written.
extension KeySlots {
  /// The places at the beginning.
  private static let places = [0, slotLength]

  /// Calls `body` with the place of each key frame that holds, wherever it lies.
  static func forEach(in file: MappedFile, _ body: (Int) -> Void) {
    var place = 0
    while let frame = SealedFrame.next(in: file, from: place, before: file.count) {
      place = frame.range.lowerBound + 1
      guard frame.isKeySlot, file.withBytes(reading: [frame.range], { frame.holds(in: $0) }) else {
        continue
      }
      body(frame.range.lowerBound)
      place = frame.range.upperBound
    }
    file.releasePages()
  }

  /// Whether the two places at the beginning hold key frames, or what is left of them, and nothing
  /// that was moved there.
  static func areInPlace(in file: MappedFile) -> Bool {
    guard file.count > length else { return true }
    let read = 0..<min(file.count, length + SealedFrame.emptyLength)
    return file.withBytes(reading: [read]) { bytes in
      var (place, heldCount) = (0, 0)
      while let frame = SealedFrame.next(in: bytes, from: place, before: length) {
        guard frame.isKeySlot, places.contains(frame.range.lowerBound) else { return false }
        place = frame.range.upperBound
        if frame.holds(in: bytes) { heldCount += 1 }
      }
      return heldCount == places.count || SealedFrame(bytes, at: length) != nil
    }
  }

  /// Writes the two frames at the beginning of a file that is empty.
  ///
  /// - Throws: what the storage throws.
  mutating func begin(_ file: any ArchiveStorage) throws {
    let bytes = stored
    for (number, place) in Self.places.enumerated() {
      try file.write(bytes.span, at: UInt64(place))
      try file.synchronize()
      self.number = number
    }
    areBothWhole = true
  }

  /// Writes all key frames of a file, and the parity over them.
  ///
  /// One of the two at the beginning is written first, that which may be damaged: from then on the
  /// new ones count. The other is written last: when both say the same, all do, and no parity is
  /// left from which an old one could be made again.
  ///
  /// - Parameters:
  ///   - file: The sealed file.
  ///   - known: Where copies lie as a table says.
  /// - Throws: ``ArchiveError`` if something else lies where they belong, new parity would keep
  ///   damage, or the library for it is not installed, before anything is written; what the storage
  ///   throws.
  mutating func write(to file: any ArchiveStorage, copiesAt known: [Int] = []) throws {
    let map = try file.map()
    let found = try Self.copies(in: map, and: known)
    let bytes = stored
    let last = number ?? 1
    for place in [Self.places[1 - last]] + found where !Self.holds(bytes, at: place, in: map) {
      try file.write(bytes.span, at: UInt64(place))
      try file.synchronize()
    }
    try SealedFrame.parity.renew(over: found.map { $0..<$0 + Self.slotLength }, in: file.map) {
      place, length, group in
      // A page that somebody has put elsewhere must not write over what lies there.
      guard try SealedFrame.isParity(at: place, in: file.map()) else { return }
      let frame = try SealedFrame.parityFrame(length, group)
      try file.write(frame.span, at: UInt64(place))
    }
    if !found.isEmpty { try file.synchronize() }
    try file.write(bytes.span, at: UInt64(Self.places[last]))
    try file.synchronize()
    (number, areBothWhole) = (last, true)
  }

  /// Writes all key frames where a change of them was interrupted, or some are damaged, as far as that
  /// can be done now.
  ///
  /// - Parameters: As of ``write(to:copiesAt:)``.
  /// - Returns: Whether they were written.
  /// - Throws: what the storage throws.
  mutating func finish(in file: any ArchiveStorage, copiesAt known: [Int] = []) throws -> Bool {
    if areBothWhole {
      let map = try file.map()
      // Elsewhere it would cost a request each time.
      if map.isFetched || known.allSatisfy({ Self.holds(stored, at: $0, in: map) }) { return false }
    }
    do {
      try write(to: file, copiesAt: known)
      return true
    } catch let error as ArchiveError where error.faultKind != .system {
      // What is damaged comes first.
      return false
    }
  }

  /// Puts the two frames back to the beginning of a file in which these count.
  ///
  /// Where a copy says something else, a change was interrupted: then the second one is left out, so
  /// that a writer finishes that.
  ///
  /// - Throws: what the storage throws.
  func restore(in file: any ArchiveStorage) throws {
    let second =
      try areInAllCopies(of: file.map())
      ? stored : [UInt8](repeating: 0, count: Self.slotLength)
    try file.write(stored.span, at: 0)
    try file.write(second.span, at: UInt64(Self.slotLength))
    try file.synchronize()
  }

  /// Whether all copies among the pieces that hold say the same.
  func areInAllCopies(of file: MappedFile) -> Bool {
    var areSame = true
    let bytes = stored
    Self.forEach(in: file) { place in
      guard place >= Self.length else { return }
      areSame = areSame && Self.holds(bytes, at: place, in: file)
    }
    return areSame
  }

  /// Where the key frames lie that are not at the beginning, also such as do not hold.
  ///
  /// - Throws: ``ArchiveError`` if they cannot all be written.
  private static func copies(in file: MappedFile, and known: [Int]) throws(ArchiveError) -> [Int] {
    guard areInPlace(in: file) else {
      throw ArchiveError(.damagedSeal("bytes were inserted or lost before its pieces"), offset: 0)
    }
    var (copies, damage) = (Set(known), Int?.none)
    var walk = SealedFrameWalk(file, from: length)
    while let step = walk.next() {
      let place = step.frame.range.lowerBound
      switch step.frame.kind {
      case .keySlot: if step.frame.isKeySlot { copies.insert(place) }
      case .parity: break
      case _ where !step.holds || !step.gap.isEmpty && !known.contains(step.gap.lowerBound):
        damage = damage ?? place
      case .piece, .table, .replacement, .void, nil: break
      }
      file.releasePages()
    }
    let groups = LayerParity.regions(in: file)
    guard !groups.isEmpty, !copies.isEmpty else { return copies.sorted() }
    try ArchiveWriter.requireParityLibrary()
    damage =
      damage
      ?? groups.lazy.map { $0.lowerBound - SealedFrame.contentOffset }
      .first { !SealedFrame.isParity(at: $0, in: file) }
    if let damage {
      throw ArchiveError(
        .damagedSeal("new parity could not heal what is damaged here"), offset: UInt64(damage))
    }
    return copies.sorted()
  }

  private static func holds(_ bytes: [UInt8], at place: Int, in file: MappedFile) -> Bool {
    let range = place..<place + bytes.count
    guard range.upperBound <= file.count else { return false }
    return file.withBytes(reading: [range]) { $0.extracting(range).equals(bytes.span) }
  }
}
