internal import Archive

/// Where archives begin in a file that holds several (FORMAT 7.4).
extension SealedFrame {
  /// Where another archive, sealed or plain, begins behind the first, which is sealed.
  ///
  /// Of most frames, only what they say of themselves is read.
  ///
  /// - Parameters:
  ///   - file: The file.
  ///   - start: Where the search begins: behind the key frames, or behind a table.
  /// - Returns: nil if none does.
  static func furtherArchive(in file: MappedFile, from start: Int = KeySlots.length) -> Int? {
    var search = BeginningSearch(file, from: start)
    return search.run()
  }

  /// Refuses a file in which another archive begins.
  ///
  /// - Throws: `ArchiveError` with the reason `furtherArchive`.
  static func refuseFurtherArchives(in file: MappedFile) throws(ArchiveError) {
    if let place = furtherArchive(in: file) {
      throw ArchiveError(.furtherArchive, offset: UInt64(place))
    }
  }

  /// Where a sealed archive begins among bytes of which no archive is known; nil if none does.
  ///
  /// A frame of it that holds shows it, even if those before it are damaged.
  static func beginning(in file: Span<UInt8>, among range: Range<Int>) -> Int? {
    var place = range.lowerBound
    var budget = 4 * range.count
    while budget > 0, let frame = next(in: file, from: place, before: range.upperBound) {
      place = frame.range.lowerBound + 1
      guard frame.range.upperBound <= range.upperBound else { continue }
      switch frame.kind {
      case .keySlot, .piece, .table: break
      case .replacement, .void, .parity, nil: continue
      }
      budget -= frame.range.count
      if frame.holds(in: file) { return frame.beginning(in: file, from: range.lowerBound) }
    }
    return nil
  }

  /// Where the archive begins to which the frame belongs, if none before it holds.
  fileprivate func beginning(in file: Span<UInt8>, from lower: Int) -> Int {
    guard kind == .keySlot else { return max(lower, range.lowerBound - KeySlots.length) }
    let next = SealedFrame(file, at: range.upperBound)
    // One that lies among the pieces does not tell.
    if next?.isBehindPieces == true { return lower }
    let first = range.lowerBound - KeySlots.slotLength
    let isSecond = next.map { $0.kind != .keySlot } ?? false
    return isSecond && first >= lower ? first : range.lowerBound
  }

  /// Whether it stands behind pieces, and what comes before it does, too.
  fileprivate var isBehindPieces: Bool { kind == .parity || kind == .table }
}

/// A search for a further archive, frame by frame.
private struct BeginningSearch {
  private let file: MappedFile
  private var place: Int
  /// Whether a piece or a table of the first archive lies before that.
  private var isBehindPieces: Bool
  /// The first key frame of the archive that holds.
  private var own: Range<Int>?
  /// Where plain archives begin, once bytes were met that are not a frame.
  private var plain: [Int]?

  init(_ file: MappedFile, from start: Int) {
    (self.file, place, isBehindPieces) = (file, start, start > KeySlots.length)
    own =
      [0, KeySlots.slotLength].lazy.compactMap { [self] place in
        frame(at: place).flatMap { $0.isKeySlot && holds($0) ? $0.range : nil }
      }.first
  }

  mutating func run() -> Int? {
    // Where bytes begin that are not a frame, and the frame that may have been torn there.
    var (lower, torn) = (place, SealedFrame?.none)
    while place < file.count {
      guard let frame = frame(at: place), mayHold(frame) else {
        let next = SealedFrame.next(in: file, from: place + 1, before: file.count)
        let end = next?.range.lowerBound ?? file.count
        if let found = plainBeginning(in: lower..<end) { return found }
        torn = torn ?? cutOffFrame(at: place)
        place = end
        continue
      }
      if let found = beginning(frame, from: lower, torn) { return found }
      isBehindPieces = isBehindPieces || frame.kind == .piece || frame.kind == .table
      (place, torn) = (frame.range.upperBound, nil)
      // A key frame that is damaged may be the first of two.
      if frame.kind != .keySlot { lower = place }
    }
    return nil
  }

  /// Whether a frame is as long as it says: a damaged length may reach over what follows.
  private func mayHold(_ frame: SealedFrame) -> Bool {
    let end = frame.range.upperBound
    return end == file.count || self.frame(at: end) != nil || holds(frame)
  }

  private func frame(at place: Int) -> SealedFrame? {
    file.withBytes(reading: [head(at: place)]) { SealedFrame($0, at: place) }
  }

  private func cutOffFrame(at place: Int) -> SealedFrame? {
    file.withBytes(reading: [head(at: place)]) { SealedFrame($0, cutOffAt: place) }
  }

  private func head(at place: Int) -> Range<Int> {
    place..<min(file.count, place + SealedFrame.emptyLength)
  }

  private func holds(_ frame: SealedFrame) -> Bool {
    file.withBytes(reading: [frame.range]) { frame.holds(in: $0) }
  }

  /// Where a further archive begins if this frame is the first of it that holds.
  private mutating func beginning(
    _ frame: SealedFrame, from lower: Int, _ torn: SealedFrame?
  ) -> Int? {
    switch frame.kind {
    case .keySlot where frame.isKeySlot && holds(frame):
      // It was moved, or what came before it is damaged.
      if own == nil, !isBehindPieces { own = frame.range }
      let next = cutOffFrame(at: frame.range.upperBound)
      // A copy among the pieces stands alone; an archive begins with two.
      if next?.isBehindPieces == true || isOwn(frame) && next?.kind != .keySlot { return nil }
      let start = file.withBytes(reading: [head(at: frame.range.upperBound)]) {
        frame.beginning(in: $0, from: lower)
      }
      return isOwn(frame) && (!isBehindPieces || repeatsFile(from: start)) ? nil : start
    case .piece where isBehindPieces && frame.number == 0 && frame.plainOffset == 0:
      // A writer was about to put it in the place of another.
      if torn?.kind == .replacement, torn?.content.lowerBound == frame.range.lowerBound {
        return nil
      }
      let own = KeySlots.length..<KeySlots.length + frame.range.count
      guard holds(frame), !isSame(frame.range, own) else { return nil }
      return max(lower, frame.range.lowerBound - KeySlots.length)
    case .keySlot, .piece, .table, .replacement, .void, .parity, nil: return nil
    }
  }

  /// Whether it is one of the key frames of the first archive.
  private func isOwn(_ frame: SealedFrame) -> Bool {
    [0, KeySlots.slotLength].contains { place in
      isSame(frame.range, place..<place + KeySlots.slotLength)
    } || own.map { isSame(frame.range, $0) } == true
  }

  /// Whether the rest of the file is a copy of what it begins with.
  private func repeatsFile(from start: Int) -> Bool {
    isSame(start..<file.count, 0..<file.count - start)
  }

  private func isSame(_ range: Range<Int>, _ other: Range<Int>) -> Bool {
    guard other.upperBound <= file.count else { return false }
    return file.withBytes(reading: [range, other]) {
      $0.extracting(range).equals($0.extracting(other))
    }
  }

  private mutating func plainBeginning(in gap: Range<Int>) -> Int? {
    let known =
      plain
      ?? file.withBytes(reading: [gap.lowerBound..<file.count]) {
        Survey.plainBeginnings(in: $0, from: gap.lowerBound)
      }
    plain = known
    return known.first(where: gap.contains)
  }
}
