internal import Age
package import Archive

/// What is wrong with the frames of a sealed archive, which anybody can see; with the archive's key,
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

  /// Looks at the frames alone.
  ///
  /// - Throws: `FetchFailure`.
  package init(_ file: MappedFile) throws { try self.init(file, nil, nil) }

  /// Looks at the frames, and opens the header of each piece.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs; `FetchFailure`.
  init(_ file: MappedFile, _ layout: SealedLayout?, _ identity: AgeIdentity?) throws {
    var known: [Int: Piece] = [:]
    for piece in layout?.pieces ?? [] { known[piece.frame.lowerBound] = piece }
    do {
      if try !KeySlots(file).areBothWhole {
        note("one of the two key frames is damaged", at: 0)
      }
    } catch {
      note("\(error)", at: 0)
    }
    let lastTable = SealedFrame.last(
      .table, in: file, from: KeySlots.length, before: file.count)?.range.upperBound
    var place = KeySlots.length
    while place < file.count {
      let read = file.withBytes(reading: [
        place..<min(file.count, place + SealedStorage.longestFrame)
      ]) {
        bytes -> (frame: SealedFrame, holds: Bool)? in
        let found = SealedFrame(bytes, at: place) ?? SealedFrame.next(in: bytes, from: place + 1)
        return found.map { ($0, $0.holds(in: bytes)) }
      }
      file.releasePages()
      guard let (frame, holds) = read else { break }
      if frame.range.lowerBound > place { note("bytes are damaged", at: place) }
      place = frame.range.upperBound
      if !holds {
        note("a frame is damaged", at: frame.range.lowerBound)
        continue
      }
      switch frame.kind {
      case .piece:
        pieceCount += 1
        let piece = try identity.flatMap { try SealedLayout.piece(frame, in: file, $0) }
        if identity != nil, piece == nil {
          note("the header of a piece does not open", at: frame.range.lowerBound)
        }
        if identity != nil, known.removeValue(forKey: frame.range.lowerBound) == nil {
          note("a piece is here that is no part of the archive", at: frame.range.lowerBound)
        }
        if let end = try Self.plainEnd(frame, in: file) { plainCount = max(plainCount, end) }
      case .table, .replacement: break
      case .keySlot, nil: note("a frame is here that has no place here", at: frame.range.lowerBound)
      }
    }
    try file.checkFetched()
    if place < file.count {
      // Behind the last table, a write may have been interrupted.
      if let lastTable, place >= lastTable {
        tailCount = file.count - place
      } else {
        note("bytes are damaged", at: place)
      }
    }
    for piece in known.values.sorted(by: { $0.frame.lowerBound < $1.frame.lowerBound }) {
      note("a piece is lost", at: piece.frame.lowerBound)
    }
  }

  private static func plainEnd(_ frame: SealedFrame, in file: MappedFile) throws -> UInt64? {
    try file.withBytes(reading: [frame.range]) { bytes in
      do {
        let content = bytes.extracting(frame.content)
        let rest = try content.count - AgeHeader(parsing: content).length - AgePayload.nonceLength
        return try frame.plainOffset.addingReportingOverflow(
          UInt64(AgePayload.length(ofSealed: rest))
        ).partialValue
      } catch let error as AgeError where error.isAboutTheFile {
        return nil
      }
    }
  }

  private mutating func note(_ what: String, at place: Int) {
    guard flaws.count < Self.listLimit else { return }
    flaws.append(ArchiveError(.damagedSeal(what), offset: UInt64(place)))
  }

  /// How many are told.
  private static let listLimit = 1000
}
