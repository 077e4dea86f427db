internal import Age
package import Archive
internal import IPLD

/// What is wrong with the frames of a sealed archive, which anyone can see; with the archive's key,
/// also whether each piece opens by its own header, as it has to for a reader without this program.
package struct SealedCheck {
  /// What is wrong.
  package private(set) var flaws: [ArchiveError] = []
  /// How many pieces there are, and how many bytes of the archive they hold as far as that can be
  /// told without a key.
  package private(set) var pieceCount = 0
  package private(set) var plainCount: UInt64 = 0
  /// How many bytes at the end are a write that was not finished.
  package private(set) var tailCount = 0

  /// Whether another archive begins in the file; only the first was checked.
  package var hasFurtherArchive: Bool { flaws.contains { $0.reason == .furtherArchive } }

  /// Checks the frames alone.
  ///
  /// - Throws: `FetchFailure`.
  package init(_ file: MappedFile) throws { try self.init(file, nil, nil) }

  /// Checks the frames, and decrypts the header of each piece.
  ///
  /// - Parameter compared: The frames whose checksums are known already.
  /// - Throws: `AgeError` if the system lacks what age needs; `FetchFailure`.
  init(
    _ whole: MappedFile, _ layout: SealedLayout?, _ identity: AgeIdentity?,
    compared: SealedFrameWalk.Compared = [:]
  ) throws {
    let further = layout.map(\.furtherArchive) ?? SealedFrame.furtherArchive(in: whole)
    if let further { flaws.append(ArchiveError(.furtherArchive, offset: UInt64(further))) }
    let file = whole.first(further)
    var slots: KeySlots?
    do {
      let found = try KeySlots(file)
      slots = found
      if found.number == nil {
        note("both key frames at the beginning are damaged", at: 0)
      } else if !found.areBothWhole {
        note("one of the two key frames is damaged", at: 0)
      }
    } catch let error as SealedError {
      note("\(error)", at: 0)
    }
    // Behind the last table, a write may have been interrupted.
    let committed =
      layout.flatMap { $0.isMoved ? nil : $0.tables.last?.frame.upperBound }
      ?? SealedFrame.lastTable(in: file, before: file.count)?.range.upperBound
    let end = committed ?? KeySlots.length
    if layout?.isMoved == true { note("a table describes pieces that are not there", at: end) }
    var known: [Int: (number: Int, piece: Piece)] = [:]
    for (number, piece) in (layout?.pieces ?? []).enumerated() where piece.frame.upperBound <= end {
      known[piece.frame.lowerBound] = (number, piece)
    }
    let compared = try Self.compare(layout?.pieces ?? [], in: file, known: compared)
    var walk = SealedFrameWalk(file, from: KeySlots.length, compared: compared)
    while let step = walk.next() {
      let (frame, place) = (step.frame, step.frame.range.lowerBound)
      file.releasePages()
      if frame.kind == .piece {
        pieceCount += 1
        if let end = try Self.plainEnd(frame, in: file) { plainCount = max(plainCount, end) }
      }
      // A table does not get so far that it can be told from others, unless it was there once.
      guard walk.place <= end || (frame.kind == .table && !whole.isBeingWritten) else { continue }
      // That one is going to be written again.
      if let replacement = layout?.replacement, replacement.target == frame.range { continue }
      if !step.gap.isEmpty, place <= end { note("bytes are damaged", at: step.gap.lowerBound) }
      switch frame.kind {
      case _ where !step.holds: note("a frame is damaged", at: place)
      case .piece:
        guard let identity else { break }
        try check(frame, known.removeValue(forKey: place), in: file, identity)
      case .table:
        guard let identity else { break }
        if try SealedLayout.table(frame, in: file, identity) == nil {
          note("a table cannot be decrypted", at: place)
        }
      case .keySlot:
        let isSame = try file.withBytes(reading: [frame.range]) { bytes in
          try slots.map { try KeySlots(bytes, at: place).saysSame(as: $0) }
        }
        if isSame == false { note("a key frame is not the same as the others", at: place) }
      case .void, .parity: break
      case .replacement, nil: note("a frame does not belong here", at: place)
      }
      if !step.holds { known[place] = nil }
    }
    try file.checkFetched()
    // While a writer has the file, that is its own.
    tailCount = whole.isBeingWritten ? 0 : max(0, file.count - end)
    if walk.place < end { note("bytes are damaged", at: walk.place) }
    for (_, piece) in known.values.sorted(by: { $0.number < $1.number }) {
      note("a piece is lost", at: piece.frame.lowerBound)
    }
  }

  /// Compares the checksums of the other frames, in parallel.
  private static func compare(
    _ pieces: [Piece], in file: MappedFile, known: SealedFrameWalk.Compared
  ) throws -> SealedFrameWalk.Compared {
    var compared = known
    // What lies elsewhere comes in its order.
    guard !file.isFetched else { return compared }
    let pieces = pieces.filter { known[$0.frame.lowerBound] == nil }
    for start in stride(from: 0, to: pieces.count, by: comparedAtOnce) {
      let some = pieces[start..<min(start + comparedAtOnce, pieces.count)]
      let holds = try Parallel.map(some.count, workers: Parallel.processorCount) { index in
        let range = some[some.startIndex + index].frame
        return file.withBytes(reading: [range]) { bytes in
          SealedFrame(bytes, at: range.lowerBound).map {
            $0.range == range && $0.holds(in: bytes)
          } ?? false
        }
      }
      for (piece, holds) in zip(some, holds) {
        compared[piece.frame.lowerBound] = (piece.frame.upperBound, holds)
      }
      file.releasePages()
    }
    return compared
  }

  /// How many frames are compared before their pages are released.
  private static let comparedAtOnce = 8

  /// Whether a piece is the one that it claims to be, and can be decrypted without this program.
  private mutating func check(
    _ frame: SealedFrame, _ known: (number: Int, piece: Piece)?, in file: MappedFile,
    _ identity: AgeIdentity
  ) throws {
    let place = frame.range.lowerBound
    guard let known else {
      return note("a piece is not part of the archive", at: place)
    }
    guard let piece = try SealedLayout.piece(frame, in: file, identity) else {
      return note("the header of a piece cannot be decrypted", at: place)
    }
    guard piece.isVersion(of: known.piece), piece.plain == known.piece.plain,
      frame.number == UInt64(known.number)
    else { return note("a piece belongs in another place", at: place) }
  }

  /// Where the archive's bytes in a piece end; nil if it has no age file.
  private static func plainEnd(_ frame: SealedFrame, in file: MappedFile) throws -> UInt64? {
    try file.withBytes(reading: [frame.range]) { bytes in
      do {
        let content = bytes.extracting(frame.content)
        let rest = try content.count - AgeHeader(parsing: content).length - AgePayload.nonceLength
        let (end, overflows) = try frame.plainOffset.addingReportingOverflow(
          UInt64(AgePayload.length(ofSealed: rest)))
        return overflows ? nil : end
      } catch let error as AgeError where error.faultKind == .damage {
        return nil
      }
    }
  }

  private mutating func note(_ what: String, at place: Int) {
    guard flaws.count < Self.listLimit else { return }
    flaws.append(ArchiveError(.damagedSeal(what), offset: UInt64(place)))
  }

  /// How many flaws are reported.
  private static let listLimit = 1000
}
