internal import Age
internal import Archive
internal import IPLD

/// Where the pieces of a sealed archive lie, as its tables say, or, where these do not hold, as the
/// pieces themselves do.
///
/// 1. ``pieces`` are in the order of the archive, and none covers what another does.
/// 2. What no whole piece holds reads as zeros.
struct SealedLayout: Sendable {
  /// The pieces.
  private(set) var pieces: [Piece]
  /// The tables that count.
  private(set) var tables: [PieceTable.Live]
  /// Where the next frame goes: behind the last one that is whole.
  private(set) var end: Int
  /// A piece that a writer was about to put in the place of another: where it belongs, and where its
  /// frame lies.
  private(set) var replacement: (target: Int, frame: Range<Int>)?

  /// How many bytes the archive has.
  var plainCount: Int { pieces.last?.plain.upperBound ?? 0 }

  /// Of an archive in which nothing is yet.
  init() { (pieces, tables, end) = ([], [], KeySlots.length) }

  /// Finds out.
  ///
  /// - Parameters:
  ///   - file: The sealed file.
  ///   - identity: The archive's own.
  ///   - ignoresTail: Whether what follows the last table is left alone: a writer has the file.
  /// - Throws: `AgeError` if the system lacks what age needs; `FetchFailure`.
  init(_ file: MappedFile, _ identity: AgeIdentity, ignoresTail: Bool = false) throws {
    self.init()
    let last = SealedFrame.last(.table, in: file, from: end, before: file.count)
    if let last, let table = try Self.table(last, in: file, identity) {
      if let found = try Self.pieces(table, in: file, identity) {
        (pieces, tables) = (found, table.older)
        let first = table.older.last?.pieces.upperBound ?? 0
        tables.append(.init(frame: last.range, pieces: first..<pieces.count))
        end = last.range.upperBound
      }
    }
    try file.checkFetched()
    guard !(ignoresTail && end > KeySlots.length) else { return }
    // Behind the last table, or everywhere.
    try scan(file, identity)
  }

  private static func table(_ frame: SealedFrame, in file: MappedFile, _ identity: AgeIdentity)
    throws -> PieceTable?
  {
    try file.withBytes(reading: [frame.range]) { bytes in
      guard frame.holds(in: bytes) else { return nil }
      do {
        let content = bytes.extracting(frame.content)
        let secret = try AgeFile.openSecret(content, with: [identity])
        return PieceTable(secret, before: frame.range.lowerBound)
      } catch let error as AgeError where error.isAboutTheFile {
        return nil
      }
    }
  }

  /// All pieces, by a table and the older ones that it names; nil if one of those does not hold.
  private static func pieces(_ table: PieceTable, in file: MappedFile, _ identity: AgeIdentity)
    throws -> [Piece]?
  {
    var pieces: [Piece] = []
    file.willRead(table.older.map(\.frame))
    for live in table.older {
      guard
        let frame = file.withBytes(
          reading: [live.frame], { SealedFrame($0, at: live.frame.lowerBound) }),
        frame.kind == .table, frame.range == live.frame,
        let older = try Self.table(frame, in: file, identity),
        // Of its own it describes some; those before them belong to tables older still.
        older.pieces.count == live.pieces.count
      else { return nil }
      pieces += older.pieces
    }
    pieces += table.pieces
    // Each goes on where the one before ends.
    var (place, isWhole) = (0, true)
    for piece in pieces {
      isWhole = isWhole && piece.plain.lowerBound == place
      place = piece.plain.upperBound
    }
    return isWhole ? pieces : nil
  }

  /// Looks for pieces from ``end`` on, frame by frame, and behind damage by their magic.
  private mutating func scan(_ file: MappedFile, _ identity: AgeIdentity) throws {
    var place = end
    while place < file.count {
      let found = file.withBytes(reading: [place..<file.count]) { bytes in
        SealedFrame(bytes, at: place) ?? SealedFrame.next(in: bytes, from: place + 1)
      }
      guard let frame = found else { return }
      place = frame.range.upperBound
      let holds = file.withBytes(reading: [frame.range]) { frame.holds(in: $0) }
      switch frame.kind {
      case .piece:
        guard let piece = try Self.piece(frame, in: file, identity) else { continue }
        try take(piece)
        if holds { end = place }
      case .table: if holds { end = place }
      case .replacement:
        if holds, place == file.count {
          replacement = (Int(clamping: frame.plainOffset), frame.content)
        }
      case .keySlot, nil: continue
      }
    }
  }

  /// Adds a piece that was found, unless it covers what another does.
  private mutating func take(_ piece: Piece) throws {
    guard piece.plain.lowerBound >= plainCount else { return }
    pieces.append(piece)
  }

  /// What a frame says of the piece in it; nil if its header does not open.
  static func piece(_ frame: SealedFrame, in file: MappedFile, _ identity: AgeIdentity) throws
    -> Piece?
  {
    try file.withBytes(reading: [frame.range]) { bytes in
      do {
        let content = bytes.extracting(frame.content)
        let header = try AgeHeader(parsing: content)
        let payload = header.length + AgePayload.nonceLength
        guard payload <= content.count else { return nil }
        let count = try AgePayload.length(ofSealed: content.count - payload)
        guard let start = Int(exactly: frame.plainOffset), start <= Int.max - count else {
          return nil
        }
        return Piece(
          frame: frame.range, plain: start..<start + count,
          fileKey: try header.unwrap(with: [identity]),
          nonce: content.array(header.length..<payload))
      } catch let error as AgeError where error.isAboutTheFile {
        return nil
      }
    }
  }

  // MARK: Writing

  /// Notes a piece that was written at ``end``.
  mutating func append(_ piece: Piece) {
    pieces.append(piece)
    end = piece.frame.upperBound
  }

  /// Notes that a piece was written over.
  mutating func replace(_ number: Int, _ piece: Piece) { pieces[number] = piece }

  /// Notes a table of the pieces from the `kept` oldest tables on, which was written at ``end``.
  mutating func append(table frame: Range<Int>, keeping kept: Int) {
    tables.removeLast(tables.count - kept)
    let first = tables.last?.pieces.upperBound ?? 0
    tables.append(.init(frame: frame, pieces: first..<pieces.count))
    end = frame.upperBound
  }

  /// How many pieces no table describes yet.
  var untabledCount: Int { pieces.count - (tables.last?.pieces.upperBound ?? 0) }

  /// The pieces that hold some of these bytes of the archive.
  func pieces(holding range: Range<Int>) -> ArraySlice<Piece> {
    let first = pieces.partitioningIndex { $0.plain.upperBound > range.lowerBound }
    let last = pieces.partitioningIndex { $0.plain.lowerBound >= range.upperBound }
    return first < last ? pieces[first..<last] : []
  }
}
