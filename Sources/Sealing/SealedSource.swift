internal import Age
internal import Archive
internal import IPLD
internal import Synchronization

/// The bytes of a sealed archive, decrypted chunk by chunk on demand.
///
/// What does not open reads as zeros: the archive's own checksums find it, and show what is lost
/// with it. (``unproven`` decrypts it all the same.)
final class SealedSource: ByteSource {
  let file: MappedFile
  private let layout: SealedLayout
  let identity: AgeIdentity
  /// Whether what does not open reads as zeros, and not as what comes out.
  private let isProving: Bool
  private let recent = Mutex(RecentChunks())
  /// The frames that were read whole.
  private let compared = Mutex<SealedFrameWalk.Compared>([:])

  /// The chunks that were opened last: the next bytes to be read often lie in them.
  private struct RecentChunks {
    static let capacity = 8
    var chunks: [(offset: Int, bytes: [UInt8])] = []

    func chunk(at offset: Int) -> [UInt8]? { chunks.last { $0.offset == offset }?.bytes }

    mutating func add(_ bytes: [UInt8], at offset: Int) {
      if chunks.count == Self.capacity { chunks.removeFirst() }
      chunks.append((offset, bytes))
    }
  }

  init(
    _ file: MappedFile, _ layout: SealedLayout, _ identity: AgeIdentity, isProving: Bool = true
  ) {
    (self.file, self.layout, self.identity) = (file, layout, identity)
    self.isProving = isProving
  }

  var unproven: (any ByteSource)? {
    isProving ? SealedSource(file, layout, identity, isProving: false) : nil
  }

  func fetch(
    _ ranges: [Range<UInt64>], _ take: @escaping @Sendable (UInt64, [UInt8]) throws -> Void
  ) throws {
    try fetch(ranges) { piece, range in
      var bytes = [UInt8](repeating: 0, count: range.count)
      try unsafe bytes.withUnsafeMutableBytes { _ = try unsafe open(piece, range, into: $0) }
      try take(UInt64(range.lowerBound), bytes)
    }
  }

  func fetch(_ ranges: [Range<UInt64>], into memory: UnsafeMutableRawBufferPointer) throws {
    // Each part is written by one thread.
    nonisolated(unsafe) let memory = unsafe memory
    for lost in ranges.flatMap({ layout.lost(in: Int($0.lowerBound)..<Int($0.upperBound)) }) {
      unsafe UnsafeMutableRawBufferPointer(rebasing: memory[lost]).clear()
    }
    try fetch(ranges) { piece, range in
      let target = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[range])
      _ = try unsafe open(piece, range, into: target)
    }
  }

  /// Decrypts the parts of ranges in parallel.
  private func fetch(
    _ ranges: [Range<UInt64>], _ open: @Sendable (Piece, Range<Int>) throws -> Void
  ) throws {
    let wanted = ranges.flatMap { range in
      let range = Int(range.lowerBound)..<Int(range.upperBound)
      return (layout.pieces(holding: range) + layout.torn.filter { $0.plain.overlaps(range) })
        .map { ($0, range.clamped(to: $0.plain)) }
    }
    if file.isFetched { file.willRead(wanted.map { piece, range in piece.stored(range) }) }
    let parts = wanted.flatMap { piece, range in
      range == piece.plain ? [(piece, range)] : piece.parts(of: range).map { (piece, $0) }
    }
    _ = try Parallel.map(parts.count, workers: Parallel.processorCount) { number in
      try open(parts[number].0, parts[number].1)
    }
    hasRead(parts.reduce(0) { $0 + $1.1.count })
    try file.checkFetched()
  }

  /// Releases the pages of a large file that have been read.
  private func hasRead(_ count: Int) {
    guard unreleased.add(count, ordering: .relaxed).newValue >= Self.heldPages else { return }
    unreleased.store(0, ordering: .relaxed)
    file.releasePages()
  }

  private let unreleased = Atomic<Int>(0)
  private static let heldPages = 32 << 20

  /// The content of a piece; nil if some of it cannot be decrypted.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  func content(of piece: Piece) throws -> [UInt8]? {
    let (bytes, isWhole) = try contentOrZeros(of: piece)
    return isWhole ? bytes : nil
  }

  /// The content of a piece, with zeros for what cannot be decrypted, and whether there are none.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  func contentOrZeros(of piece: Piece) throws -> (bytes: [UInt8], isWhole: Bool) {
    var bytes = [UInt8](repeating: 0, count: piece.plain.count)
    let isWhole = try unsafe bytes.withUnsafeMutableBytes {
      try unsafe open(piece, piece.plain, into: $0)
    }
    return (bytes, isWhole)
  }

  /// Which of some bytes of the archive a piece holds in chunks that cannot be decrypted.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  private func damaged(of piece: Piece, in range: Range<Int>) throws -> [Range<Int>] {
    let (base, wanted) = (piece.plain.lowerBound, range.clamped(to: piece.plain))
    var opening = PieceOpening(piece)
    var damaged: [Range<Int>] = []
    for number in piece.chunks.covering(wanted.lowerBound - base..<wanted.upperBound - base) {
      let chunk = piece.chunks.range(of: number)
      var bytes = [UInt8](repeating: 0, count: chunk.count)
      let opens = try unsafe bytes.withUnsafeMutableBytes {
        try unsafe open(number, &opening, into: $0)
      }
      if !opens { damaged.append(base + chunk.lowerBound..<base + chunk.upperBound) }
    }
    return damaged
  }

  /// Opens the chunks of a piece that hold some bytes of the archive.
  ///
  /// - Parameter target: As long as the range; what cannot be decrypted becomes zeros.
  /// - Returns: Whether all of them opened.
  private func open(
    _ piece: Piece, _ range: Range<Int>, into target: UnsafeMutableRawBufferPointer
  ) throws -> Bool {
    let base = piece.plain.lowerBound
    let wanted = range.lowerBound - base..<range.upperBound - base
    var opening = PieceOpening(piece)
    var isWhole = true
    let isAll = !range.isEmpty && range == piece.plain
    var checksum = FrameChecksum(isAll ? piece : nil, in: file)
    for number in piece.chunks.covering(wanted) {
      checksum.read(chunk: number)
      let chunk = piece.chunks.range(of: number)
      let part = chunk.clamped(to: wanted)
      let place = part.lowerBound - wanted.lowerBound..<part.upperBound - wanted.lowerBound
      let target = unsafe UnsafeMutableRawBufferPointer(rebasing: target[place])
      if let known = recent.withLock({ $0.chunk(at: base + chunk.lowerBound) }) {
        unsafe target.copy(known, from: part.lowerBound - chunk.lowerBound)
      } else if part == chunk {
        let opens = try unsafe open(number, &opening, into: target)
        isWhole = isWhole && opens
      } else {
        // The next bytes that are wanted often lie in it, too.
        var bytes = [UInt8](repeating: 0, count: chunk.count)
        let opens = try unsafe bytes.withUnsafeMutableBytes {
          try unsafe open(number, &opening, into: $0)
        }
        isWhole = isWhole && opens
        if opens { recent.withLock { $0.add(bytes, at: base + chunk.lowerBound) } }
        unsafe target.copy(bytes, from: part.lowerBound - chunk.lowerBound)
      }
    }
    if let holds = checksum.holds {
      compared.withLock { $0[piece.frame.lowerBound] = (piece.frame.upperBound, holds) }
    }
    return isWhole
  }

  /// The checksum of a frame whose chunks are opened one after the other: what is in the
  /// processor's cache for the one is there for the other.
  private struct FrameChecksum: ~Copyable {
    private let piece: Piece?
    private let file: MappedFile
    private var hash = XXH64.Stream()

    /// Of no frame where there is no piece, or the file ends inside it.
    init(_ piece: Piece?, in file: MappedFile) {
      self.file = file
      self.piece = piece.flatMap { $0.frame.upperBound <= file.count ? $0 : nil }
      if let piece = self.piece { read(piece.frame.lowerBound..<piece.payloadOffset) }
    }

    mutating func read(chunk number: Int) {
      guard let piece else { return }
      let chunk = piece.chunks.sealedRange(of: number)
      read(piece.payloadOffset + chunk.lowerBound..<piece.payloadOffset + chunk.upperBound)
    }

    private mutating func read(_ range: Range<Int>) {
      file.withBytes(reading: [range]) { hash.update($0.extracting(range)) }
    }

    /// Whether the frame is the piece's, and holds; nil without one.
    var holds: Bool? {
      piece.map { piece in
        let (start, end) = (piece.frame.lowerBound, piece.frame.upperBound)
        let checksum = end - SealedFrame.checksumLength
        return file.withBytes(reading: [start..<start + SealedFrame.emptyLength, checksum..<end]) {
          SealedFrame($0, at: start)?.range == piece.frame && $0.u64(checksum) == hash.finish()
        }
      }
    }
  }

  /// Opens a piece with the table's entry, or else with the piece's own header: a piece that was
  /// written again has a new nonce.
  struct PieceOpening: ~Copyable {
    let piece: Piece
    var payload: AgePayload?
    var isByTable = true
    /// By how many bytes its end lies after its place, once that was requested.
    var shift: Int?
    /// Whether the last chunk that opened lies there.
    var isShifted = false

    init(_ piece: Piece) { self.piece = piece }
  }

  /// Opens a chunk of a piece; if it cannot be decrypted, the target becomes zeros.
  func open(
    _ number: Int, _ opening: inout PieceOpening, into target: UnsafeMutableRawBufferPointer
  ) throws -> Bool {
    if opening.isByTable {
      if opening.payload == nil { opening.payload = try opening.piece.payload() }
      if try unsafe openNow(number, &opening, into: target) { return true }
      opening.isByTable = false
      opening.payload = try headerPayload(opening.piece)
    }
    if try unsafe openNow(number, &opening, into: target) { return true }
    let isRead = try unsafe !isProving && openUnproven(number, opening.piece, into: target)
    if !isRead { unsafe target.clear() }
    return false
  }

  private func openNow(
    _ number: Int, _ opening: inout PieceOpening, into target: UnsafeMutableRawBufferPointer
  ) throws -> Bool {
    guard opening.payload != nil else { return false }
    opening.isShifted = false
    if try unsafe openNow(number, &opening, shift: 0, into: target) { return true }
    let shift = shift(of: &opening)
    opening.isShifted =
      try unsafe shift != 0 && openNow(number, &opening, shift: shift, into: target)
    return opening.isShifted
  }

  /// By how many bytes the end of a piece lies after its place, because bytes were put in; before
  /// it, if some were taken out.
  private func shift(of opening: inout PieceOpening) -> Int {
    if let known = opening.shift { return known }
    let piece = opening.piece
    var shift = -piece.takenOut
    if shift == 0 {
      let end = piece.frame.upperBound
      let next = SealedFrame.next(in: file, from: end, before: file.count)
      shift = next.map { $0.range.lowerBound - end } ?? 0
    }
    opening.shift = shift
    return shift
  }

  /// Opens a chunk that lies this many bytes after its place.
  private func openNow(
    _ number: Int, _ opening: inout PieceOpening, shift: Int,
    into target: UnsafeMutableRawBufferPointer
  ) throws -> Bool {
    let (piece, chunks) = (opening.piece, opening.piece.chunks)
    let stored = chunks.sealedRange(of: number)
    let start = piece.payloadOffset + shift
    let place = start + stored.lowerBound..<start + stored.upperBound
    guard place.lowerBound >= 0, place.upperBound <= file.count else { return false }
    return try file.withBytes(reading: [place]) { file in
      do {
        _ = try unsafe file.extracting(place).withUnsafeBytes { sealed in
          try unsafe opening.payload?.open(
            sealed, index: UInt64(number), isLast: piece.isLast(number), into: target)
        }
        return true
      } catch let error as AgeError where error.faultKind == .damage {
        return false
      }
    }
  }

  /// What opens a piece by its own header; nil if that does not hold, or is another piece's: a
  /// piece that is written again keeps its file key.
  private func headerPayload(_ piece: Piece) throws -> AgePayload? {
    try headerPiece(piece)?.payload()
  }

  func headerPiece(_ piece: Piece) throws -> Piece? {
    let start = piece.frame.lowerBound
    let frame = file.withBytes(reading: [piece.frame]) { SealedFrame($0, at: start) }
    guard let frame, let found = try SealedLayout.piece(frame, in: file, identity),
      found.isVersion(of: piece)
    else { return nil }
    return found
  }

  /// Which of some bytes of the archive were committed, and are lost or cannot be decrypted.
  ///
  /// What a table describes was committed. In the first version, pieces right before the last table
  /// are left out: they may never have reached the medium.
  func damaged(in range: Range<UInt64>) throws -> [Range<UInt64>] {
    let known = (Int(clamping: range.lowerBound)..<Int(clamping: range.upperBound))
      .clamped(to: 0..<layout.committedCount)
    let unsynced = layout.isSynchronized || layout.isMoved ? 0 : SealedStorage.mostUnsynced
    let border = layout.isMoved ? .max : (layout.tables.last?.frame.lowerBound ?? 0) - unsynced
    var damaged = layout.lost(in: known)
    for piece in layout.pieces(holding: known) + layout.torn
    where piece.plain.overlaps(known) && piece.frame.lowerBound < border {
      damaged += try self.damaged(of: piece, in: known)
    }
    return damaged.merged().map { UInt64($0.lowerBound)..<UInt64($0.upperBound) }
  }

  var stored: MappedFile? { file }

  var furtherArchive: Int? { layout.furtherArchive }

  /// Whether the sealed file is remote.
  var isFar: Bool { file.isFetched }

  func flaws() throws -> [ArchiveError] {
    let check = try SealedCheck(file, layout, identity, compared: compared.withLock { $0 })
    guard check.tailCount > 0 else { return check.flaws }
    let tail = ArchiveError(
      .interruptedTail(bytes: UInt64(check.tailCount)),
      offset: UInt64((layout.furtherArchive ?? file.count) - check.tailCount))
    return check.flaws + [tail]
  }
}

extension Piece {
  /// How many chunks are decrypted at a time.
  private static let chunksAtOnce = 8

  /// A range of the archive in parts that are decrypted in parallel.
  func parts(of range: Range<Int>) -> [Range<Int>] {
    let length = Self.chunksAtOnce * AgePayload.chunkLength
    var parts: [Range<Int>] = []
    var start = range.lowerBound
    while start < range.upperBound {
      let end = plain.lowerBound + ((start - plain.lowerBound) / length + 1) * length
      parts.append(start..<min(range.upperBound, end))
      start = end
    }
    return parts
  }

  /// Whether it is another one, or that with other bytes.
  func isVersion(of other: Piece) -> Bool {
    frame.count == other.frame.count && plain.count == other.plain.count
      && fileKey == other.fileKey
  }

  /// Which bytes of the file are read for some of the archive: the frame for all that it holds.
  func stored(_ range: Range<Int>) -> Range<Int> {
    if range == plain { return frame }
    let base = plain.lowerBound
    let numbers = chunks.covering(range.lowerBound - base..<range.upperBound - base)
    guard let first = numbers.first, let last = numbers.last else {
      return frame.lowerBound..<frame.lowerBound
    }
    return payloadOffset + chunks.sealedRange(of: first).lowerBound..<payloadOffset
      + chunks.sealedRange(of: last).upperBound
  }
}

extension UnsafeMutableRawBufferPointer {
  /// Fills the buffer with zeros.
  fileprivate func clear() {
    unsafe initializeMemory(as: UInt8.self, repeating: 0)
  }

  /// Fills the buffer with bytes of an array, from a place on.
  fileprivate func copy(_ bytes: [UInt8], from start: Int) {
    unsafe bytes.withUnsafeBytes {
      unsafe copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[start..<start + count]))
    }
  }
}
