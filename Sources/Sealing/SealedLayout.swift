internal import Age
internal import Archive
internal import IPLD

/// Where the pieces of a sealed archive lie, as its tables say, or, where these do not hold, as the
/// pieces themselves do.
///
/// 1. ``pieces`` are in the order of the archive and of the file, and none covers what another
///    does.
/// 2. What no piece holds reads as zeros; it is no longer than the bytes that lie there. Only the
///    last piece may be cut off: its first chunks, as far as they open.
/// 3. What a table says of a piece outweighs what the piece says of itself, which anyone can
///    change: its place in the archive.
struct SealedLayout: Sendable {
  /// The pieces.
  private(set) var pieces: [Piece]
  /// The tables that count.
  private(set) var tables: [PieceTable.Live]
  /// Where the next frame goes: after the last one that is whole.
  private(set) var end: Int
  /// A piece that a writer was about to put in the place of another: where it belongs, and where
  /// its frame lies, which is read instead.
  private(set) var replacement: (target: Range<Int>, frame: Range<Int>)?

  /// The last parity after the last table that holds: of a write that was not finished, or whose
  /// table is lost.
  private(set) var lastParity: Range<Int>?
  /// Pieces of which bytes were taken out, so that their frames reach over what follows.
  ///
  /// Some of their chunks can be read. What they hold is in none of ``pieces``.
  private(set) var torn: [Piece] = []
  /// Where another archive begins in the file, so that this one ends; nil if none does.
  private(set) var furtherArchive: Int?
  /// Whether a table holds, and what it describes does not lie where it says.
  private(set) var isMoved = false
  /// How many bytes of the archive were committed, as tables say.
  private(set) var committedCount = 0
  /// Where key frames lie among the pieces, as the last table says, or as they were found where no
  /// table holds.
  private(set) var keyCopies: [Int] = []
  /// Whether all that tables describe was on the medium when they were written.
  private(set) var isSynchronized = false

  /// How many bytes the archive has: also such as were committed and are lost.
  var plainCount: Int { max(pieces.last?.plain.upperBound ?? 0, committedCount) }

  /// The layout of an empty archive.
  init() { (pieces, tables, end) = ([], [], KeySlots.length) }

  /// Determines the layout.
  ///
  /// - Parameters:
  ///   - file: The sealed file.
  ///   - identity: The archive's own.
  ///   - ignoresTail: Whether what follows the last table is left alone: a writer has the file.
  /// - Throws: `AgeError` if the system lacks what age needs; `FetchFailure`.
  init(_ file: MappedFile, _ identity: AgeIdentity, ignoresTail: Bool = false) throws {
    self.init()
    var upper = file.count
    // What tables say that cannot be believed as a whole: some of it was moved.
    var unbelieved: [(place: Int, table: PieceTable)] = []
    while tables.isEmpty, let last = SealedFrame.lastTable(in: file, before: upper) {
      upper = last.range.lowerBound
      guard let table = try Self.table(last, in: file, identity) else { continue }
      guard let found = try Self.pieces(table, in: file, identity),
        Self.follows(last, found.last, table.keyCopies ?? [], in: file)
      else {
        unbelieved.append((last.range.lowerBound, table))
        continue
      }
      (pieces, tables, end) = (found, table.older, last.range.upperBound)
      (keyCopies, isSynchronized) = (table.keyCopies ?? [], table.keyCopies != nil)
      let first = table.older.last?.pieces.upperBound ?? 0
      tables.append(.init(frame: last.range, pieces: first..<pieces.count))
      committedCount = pieces.last?.plain.upperBound ?? 0
    }
    try file.checkFetched()
    guard !(ignoresTail && !tables.isEmpty) else { return }
    // Behind the last table, or everywhere.
    furtherArchive = SealedFrame.furtherArchive(in: file, from: end)
    var said: [[UInt8]: Range<Int>] = [:]
    for (place, table) in unbelieved where place < furtherArchive ?? .max {
      for piece in table.pieces { said[piece.nonce] = piece.plain }
    }
    isMoved = !said.isEmpty
    try scan(file.first(furtherArchive), identity, said)
    torn = torn.filter { pieces(holding: $0.plain).isEmpty }
    guard isMoved else { return }
    // The archive is no longer than the file, and what was taken out of it.
    let most = file.count + torn.reduce(0) { $0 + $1.takenOut }
    committedCount = said.values.map(\.upperBound).filter { $0 <= most }.max() ?? 0
    // What is left of it is not written over.
    end = max(end, furtherArchive ?? file.count)
  }

  /// Whether only tables, parity and key frames lie between the last piece that a table knows of and
  /// the table: otherwise it was moved, or bytes were put in or taken out before it.
  private static func follows(
    _ table: SealedFrame, _ last: Piece?, _ keyCopies: [Int], in file: MappedFile
  ) -> Bool {
    var walk = SealedFrameWalk(file, from: last?.frame.upperBound ?? KeySlots.length)
    while walk.place < table.range.lowerBound {
      // Whatever is left of one, its place is known.
      if keyCopies.contains(walk.place) {
        walk = SealedFrameWalk(file, from: walk.place + KeySlots.slotLength)
        continue
      }
      guard let step = walk.next(), step.holds, step.gap.isEmpty,
        step.frame.kind == .table || step.frame.kind == .parity
      else { return false }
    }
    return walk.place == table.range.lowerBound
  }

  /// What a table says; nil if it does not hold, or does not open.
  static func table(_ frame: SealedFrame, in file: MappedFile, _ identity: AgeIdentity)
    throws -> PieceTable?
  {
    try file.withBytes(reading: [frame.range]) { bytes in
      guard frame.holds(in: bytes) else { return nil }
      do {
        let content = bytes.extracting(frame.content)
        let secret = try AgeFile.openSecret(content, with: [identity])
        return try PieceTable(secret, identity)
      } catch let error as AgeError where error.faultKind == .damage {
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
        older.pieces.count == live.pieces.count, isContinued(pieces, by: older.pieces)
      else { return nil }
      pieces += older.pieces
    }
    return isContinued(pieces, by: table.pieces) ? pieces + table.pieces : nil
  }

  /// Whether each piece continues where the one before ends, and lies after it.
  private static func isContinued(_ pieces: [Piece], by more: [Piece]) -> Bool {
    var place = pieces.last?.plain.upperBound ?? 0
    var end = pieces.last?.frame.upperBound ?? KeySlots.length
    for piece in more {
      guard piece.plain.lowerBound == place, piece.frame.lowerBound >= end else { return false }
      (place, end) = (piece.plain.upperBound, piece.frame.upperBound)
    }
    return true
  }

  /// Looks for pieces from ``end`` on, frame by frame, and after damage by their magic.
  ///
  /// - Parameter said: Where pieces belong, by their nonces, as far as tables have said it.
  private mutating func scan(
    _ file: MappedFile, _ identity: AgeIdentity, _ said: [[UInt8]: Range<Int>]
  ) throws {
    // Without a table, the key frames at the beginning may have been moved, and pieces with them.
    let hasTable = !tables.isEmpty
    var walk = SealedFrameWalk(file, from: hasTable ? end : 0)
    // A piece that is there again is a copy.
    var nonces: Set<[UInt8]>?
    // Where the last frame ends that is whole and in its place.
    var whole = end
    while let step = walk.next() {
      if let torn = step.torn { try take(torn: torn, before: step.frame, in: file, identity, said) }
      switch step.frame.kind {
      case .piece:
        guard let piece = try Self.piece(step.frame, in: file, identity) else { continue }
        if nonces == nil { nonces = Set(pieces.map(\.nonce)) }
        guard nonces?.contains(piece.nonce) == false else { continue }
        if let place = said[piece.nonce]?.lowerBound {
          // The archive is no longer than the file, and what was taken out of it.
          let takenOut = torn.reduce(0) { $0 + $1.takenOut }
          guard place >= plainCount, place <= file.count + takenOut else { continue }
          append(piece.moved(to: place))
        } else {
          guard isNext(piece) else { continue }
          append(piece)
        }
        nonces?.insert(piece.nonce)
        if step.holds { whole = end }
      case .table, .void:
        if step.holds, step.gap.isEmpty { (end, whole) = (walk.place, walk.place) }
      case .replacement:
        if step.holds, walk.place == file.count { try take(step.frame, in: file, identity) }
      case .parity:
        if step.holds { lastParity = step.frame.range }
        if step.holds, step.gap.isEmpty { whole = walk.place }
      case .keySlot:
        if step.holds, !hasTable, !pieces.isEmpty { keyCopies.append(step.frame.range.lowerBound) }
        if step.holds, step.gap.isEmpty { whole = max(whole, walk.place) }
      case nil: continue
      }
    }
    // One that a write has left behind that was not finished is going to be cut off.
    keyCopies.removeAll { $0 >= end }
    if replacement == nil { try takeCutOff(at: whole, in: file, identity, said) }
  }

  /// Takes what is left of a piece inside which the file ends, or a write behind it that was not
  /// finished begins: its first chunks, as far as they open.
  private mutating func takeCutOff(
    at place: Int, in file: MappedFile, _ identity: AgeIdentity, _ said: [[UInt8]: Range<Int>]
  ) throws {
    let found = try file.withBytes(reading: [place..<file.count]) { bytes -> Piece? in
      guard let frame = SealedFrame(bytes, cutOffAt: place), frame.kind == .piece,
        let piece = try Self.piece(frame, in: file, identity),
        let count = try piece.openingCount(in: bytes), count > 0
      else { return nil }
      return piece.cutOff(after: count)
    }
    guard let found, said[found.nonce] == nil else { return }
    let before = pieces
    // Itself as it should be, and a copy of it that was not finished.
    while let last = pieces.last, last.frame.lowerBound >= place,
      last.plain.lowerBound == found.plain.lowerBound
    {
      pieces.removeLast()
    }
    guard isNext(found), !pieces.contains(where: { $0.nonce == found.nonce }) else {
      pieces = before
      return
    }
    torn.removeAll { $0.frame.lowerBound == place }
    append(found)
  }

  /// Takes a piece whose frame reaches over the next one.
  private mutating func take(
    torn frame: SealedFrame, before next: SealedFrame, in file: MappedFile,
    _ identity: AgeIdentity, _ said: [[UInt8]: Range<Int>]
  ) throws {
    guard frame.kind == .piece, let piece = try Self.piece(frame, in: file, identity) else {
      return
    }
    var found = piece.moved(to: said[piece.nonce]?.lowerBound ?? piece.plain.lowerBound)
    guard found.plain.lowerBound >= plainCount else { return }
    found.takenOut = frame.range.upperBound - next.range.lowerBound
    torn.append(found)
  }

  /// Whether a piece that was found after all others belongs there.
  private func isNext(_ piece: Piece) -> Bool {
    let end = pieces.last?.frame.upperBound ?? min(KeySlots.length, piece.frame.lowerBound)
    let copies = keyCopies.count { (end..<max(end, piece.frame.lowerBound)).contains($0) }
    let between = piece.frame.lowerBound - end - copies * KeySlots.slotLength
    // If pieces between them were lost, some bytes were lost as well.
    let takenOut = torn.reduce(0) { $0 + ($1.frame.lowerBound >= end ? $1.takenOut : 0) }
    return between >= 0 && piece.plain.lowerBound >= plainCount
      && piece.plain.lowerBound - plainCount <= between + takenOut
  }

  /// Takes a piece that was going to be written over another, if it is that with other bytes; where
  /// there is none any more, if nothing else lies there.
  private mutating func take(
    _ replacement: SealedFrame, in file: MappedFile, _ identity: AgeIdentity
  ) throws {
    let content = replacement.content
    let found = file.withBytes(reading: [replacement.range]) { bytes -> SealedFrame? in
      let frame = SealedFrame(bytes.extracting(first: content.upperBound), at: content.lowerBound)
      guard let frame, frame.range == content, frame.holds(in: bytes) else { return nil }
      return frame
    }
    guard let found, found.kind == .piece,
      let target = Int(exactly: replacement.plainOffset), target >= KeySlots.length,
      target <= replacement.range.lowerBound - content.count,
      let piece = try Self.piece(found, in: file, identity)
    else { return }
    let place = target..<target + content.count
    let number = pieces.partitioningIndex { $0.frame.upperBound > place.lowerBound }
    if number < pieces.count, pieces[number].frame.lowerBound < place.upperBound {
      let old = pieces[number]
      guard old.frame == place, piece.isVersion(of: old) else { return }
      pieces[number] = Piece(
        frame: piece.frame, plain: old.plain, fileKey: piece.fileKey, nonce: piece.nonce)
    } else {
      guard !tables.contains(where: { $0.frame.overlaps(place) }) else { return }
      // The file ended inside that one.
      if place.lowerBound >= end, isNext(piece) { pieces.append(piece) }
    }
    self.replacement = (place, content)
  }

  /// What a frame says of the piece in it, also if the file ends inside it; nil if its header does
  /// not open, or it ends as a table does and was one.
  static func piece(_ frame: SealedFrame, in file: MappedFile, _ identity: AgeIdentity) throws
    -> Piece?
  {
    try file.withBytes(reading: [frame.range.clamped(to: 0..<file.count)]) { bytes in
      do {
        let range = frame.range.clamped(to: 0..<bytes.count)
        guard !SealedFrame.isEnd(bytes.extracting(first: range.upperBound)) else { return nil }
        let content = bytes.extracting(frame.content.clamped(to: range))
        let header = try AgeHeader(parsing: content)
        let payload = header.length + AgePayload.nonceLength
        guard payload <= content.count else { return nil }
        let count = try AgePayload.length(ofSealed: frame.content.count - payload)
        guard let start = Int(exactly: frame.plainOffset), start <= Int.max - count else {
          return nil
        }
        return Piece(
          frame: frame.range, plain: start..<start + count,
          fileKey: try header.unwrap(with: [identity]),
          nonce: content.array(header.length..<payload))
      } catch let error as AgeError where error.faultKind == .damage {
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

  /// Notes that a piece was written over: tables that describe it as it was no longer count.
  mutating func replace(_ number: Int, _ piece: Piece) {
    pieces[number] = piece
    tables.removeAll { $0.pieces.upperBound > number }
  }

  /// Notes that the file was cut off where a piece began.
  mutating func truncate(to number: Int) {
    end = pieces[number].frame.lowerBound
    committedCount = min(committedCount, pieces[number].plain.lowerBound)
    pieces.removeLast(pieces.count - number)
    tables.removeAll { $0.frame.lowerBound >= end }
    keyCopies.removeAll { $0 >= end }
  }

  /// Notes pieces that were written in a place where others were lost.
  mutating func insert(_ more: [Piece], at number: Int) {
    pieces.insert(contentsOf: more, at: number)
    tables.removeAll { $0.pieces.upperBound > number }
  }

  /// Notes a table of the pieces from the `kept` oldest tables on, which was written at ``end``, and
  /// whether all before it was on the medium.
  mutating func append(table frame: Range<Int>, keeping kept: Int, isSynchronized: Bool) {
    self.isSynchronized = isSynchronized
    committedCount = plainCount
    tables.removeLast(tables.count - kept)
    let first = tables.last?.pieces.upperBound ?? 0
    tables.append(.init(frame: frame, pieces: first..<pieces.count))
    end = frame.upperBound
  }

  /// Notes a key frame that was written at ``end``.
  mutating func append(keyCopy frame: Range<Int>) {
    keyCopies.append(frame.lowerBound)
    end = frame.upperBound
  }

  /// Notes a frame that was written at ``end`` and is not a piece.
  mutating func pass(_ frame: Range<Int>) { end = frame.upperBound }

  /// How many pieces no table describes yet.
  var untabledCount: Int { pieces.count - (tables.last?.pieces.upperBound ?? 0) }

  /// The pieces before which something is missing: the bytes of the archive, and those of the file
  /// that held them.
  var gaps: [(number: Int, plain: Range<Int>, file: Range<Int>)] {
    pieces.indices.compactMap { number in
      let before = number > 0 ? pieces[number - 1] : nil
      let (piece, plain) = (pieces[number], before?.plain.upperBound ?? 0)
      guard plain < piece.plain.lowerBound else { return nil }
      let start = min(before?.frame.upperBound ?? KeySlots.length, piece.frame.lowerBound)
      return (number, plain..<piece.plain.lowerBound, start..<piece.frame.lowerBound)
    }
  }

  /// Which of these bytes of the archive no piece holds.
  func lost(in range: Range<Int>) -> [Range<Int>] {
    (pieces(holding: range).map(\.plain) + torn.map(\.plain)).merged().gaps(in: range)
  }

  /// The pieces that hold some of these bytes of the archive.
  func pieces(holding range: Range<Int>) -> ArraySlice<Piece> {
    let first = pieces.partitioningIndex { $0.plain.upperBound > range.lowerBound }
    let last = pieces.partitioningIndex { $0.plain.lowerBound >= range.upperBound }
    return first < last ? pieces[first..<last] : []
  }
}
