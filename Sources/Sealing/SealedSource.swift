internal import Age
internal import Archive
internal import IPLD
internal import Synchronization

/// The bytes of a sealed archive, chunk by chunk as they are wanted.
///
/// What does not open is not handed over, so that it reads as zeros: the archive's own checksums
/// find it, and tell what is lost with it.
final class SealedSource: ByteSource {
  let file: MappedFile
  private let layout: SealedLayout
  let identity: AgeIdentity
  private let recent = Mutex(RecentChunks())

  /// The chunks that were opened last: the next ones that are wanted often lie in them.
  private struct RecentChunks {
    static let capacity = 8
    var chunks: [(offset: Int, bytes: [UInt8])] = []

    func chunk(at offset: Int) -> [UInt8]? { chunks.last { $0.offset == offset }?.bytes }

    mutating func add(_ bytes: [UInt8], at offset: Int) {
      if chunks.count == Self.capacity { chunks.removeFirst() }
      chunks.append((offset, bytes))
    }
  }

  init(_ file: MappedFile, _ layout: SealedLayout, _ identity: AgeIdentity) {
    (self.file, self.layout, self.identity) = (file, layout, identity)
  }

  func fetch(
    _ ranges: [Range<UInt64>], _ take: @escaping @Sendable (UInt64, [UInt8]) throws -> Void
  ) throws {
    let wanted = ranges.flatMap { range in
      let range = Int(range.lowerBound)..<Int(range.upperBound)
      return layout.pieces(holding: range).map { ($0, range.clamped(to: $0.plain)) }
    }
    if file.isFetched { file.willRead(wanted.map { piece, range in piece.stored(range) }) }
    let parts = wanted.flatMap { piece, range in piece.parts(of: range).map { (piece, $0) } }
    _ = try Parallel.map(parts.count, workers: Parallel.processorCount) { number in
      try open(parts[number].0, parts[number].1, take)
    }
    hasRead(parts.reduce(0) { $0 + $1.1.count })
    try file.checkFetched()
  }

  /// Lets go of the pages of a large file that have been read.
  private func hasRead(_ count: Int) {
    guard unreleased.add(count, ordering: .relaxed).newValue >= Self.heldPages else { return }
    unreleased.store(0, ordering: .relaxed)
    file.releasePages()
  }

  private let unreleased = Atomic<Int>(0)
  private static let heldPages = 32 << 20

  /// What a piece holds; nil if some of it does not open.
  ///
  /// - Throws: `AgeError` if the system lacks what age needs.
  func content(of piece: Piece) throws -> [UInt8]? {
    var bytes: [UInt8] = []
    try open(piece, piece.plain) { bytes += $1 }
    return bytes.count == piece.plain.count ? bytes : nil
  }

  /// Opens the chunks of a piece that hold some bytes.
  private func open(
    _ piece: Piece, _ range: Range<Int>, _ take: (UInt64, [UInt8]) throws -> Void
  ) throws {
    let base = piece.plain.lowerBound
    let wanted = range.lowerBound - base..<range.upperBound - base
    let chunks = piece.chunks
    // By the table; a piece that was written again has another nonce, which lies before it.
    var payload: AgePayload? = nil
    var isByTable = true
    for number in chunks.covering(wanted) {
      let plain = chunks.range(of: number)
      var bytes = recent.withLock { $0.chunk(at: base + plain.lowerBound) }
      if bytes == nil {
        if payload == nil, isByTable { payload = try piece.payload() }
        bytes = try open(piece, number, &payload)
        if bytes == nil, isByTable {
          isByTable = false
          payload = try headerPayload(piece)
          bytes = try open(piece, number, &payload)
        }
        if let bytes { recent.withLock { $0.add(bytes, at: base + plain.lowerBound) } }
      }
      guard let bytes else { continue }
      let part = plain.clamped(to: wanted)
      let start = part.lowerBound - plain.lowerBound
      try take(
        UInt64(base + part.lowerBound),
        part.count == bytes.count ? bytes : Array(bytes[start..<start + part.count]))
    }
  }

  /// Opens a chunk; nil if it does not open.
  private func open(_ piece: Piece, _ number: Int, _ payload: inout AgePayload?) throws -> [UInt8]?
  {
    guard payload != nil else { return nil }
    let chunks = piece.chunks
    let stored = chunks.sealedRange(of: number)
    let place = piece.payloadOffset + stored.lowerBound..<piece.payloadOffset + stored.upperBound
    return try file.withBytes(reading: [place]) { file in
      do {
        var bytes = [UInt8](repeating: 0, count: chunks.range(of: number).count)
        var target = bytes.mutableSpan
        try payload?.open(
          file.extracting(place), index: UInt64(number), isLast: chunks.isLast(number),
          into: &target)
        return bytes
      } catch let error as AgeError where error.isAboutTheFile {
        return nil
      }
    }
  }

  /// What opens a piece by its own header; nil if that does not hold, or is another piece's: a piece
  /// that is written again keeps its file key.
  private func headerPayload(_ piece: Piece) throws -> AgePayload? {
    let start = piece.frame.lowerBound
    let frame = file.withBytes(reading: [piece.frame]) { SealedFrame($0, at: start) }
    guard let frame, let found = try SealedLayout.piece(frame, in: file, identity),
      found.isVersion(of: piece)
    else { return nil }
    return try found.payload()
  }

  /// Whether the sealed file lies elsewhere.
  var isFar: Bool { file.isFetched }

  func flaws() throws -> [ArchiveError] {
    let check = try SealedCheck(file, layout, identity)
    guard check.tailCount > 0 else { return check.flaws }
    let tail = ArchiveError(
      .interruptedTail(bytes: UInt64(check.tailCount)),
      offset: UInt64(file.count - check.tailCount))
    return check.flaws + [tail]
  }
}

extension Piece {
  /// How many chunks are opened at a time.
  private static let chunksAtOnce = 8

  /// A range of the archive in parts that are opened one beside the other.
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

  /// Which bytes of the file hold some of the archive.
  func stored(_ range: Range<Int>) -> Range<Int> {
    let base = plain.lowerBound
    let numbers = chunks.covering(range.lowerBound - base..<range.upperBound - base)
    guard let first = numbers.first, let last = numbers.last else {
      return frame.lowerBound..<frame.lowerBound
    }
    return payloadOffset + chunks.sealedRange(of: first).lowerBound..<payloadOffset
      + chunks.sealedRange(of: last).upperBound
  }
}
