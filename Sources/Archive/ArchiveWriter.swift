public import IPLD

/// Writes an archive: sections one after another, then an index and a footer that make them count.
///
/// ```swift
/// var writer = try ArchiveWriter(storage: FileStorage.create("account.car.zst"), carHeader: header)
/// for block in blocks { try writer.append(block.cid, block.bytes.span) }
/// let generation = try writer.commit(manifest: manifest)
/// ```
///
/// 1. A section is in the index only if its bytes hashed to its CID, or nobody can tell.
/// 2. No CID is stored twice: appending one that is there answers with the number it has.
/// 3. Nothing counts before ``commit(manifest:)`` has returned. A writer that is dropped leaves a tail that readers ignore.
/// 4. A write that failed is undone, if it was of a large section; after any other nothing more is written, and every later
///    call throws `writerFailed`.
/// 5. Ordinals are given in the order of the calls, which is the order of the sections in the file.
public struct ArchiveWriter: ~Copyable {
  private let options: ArchiveOptions
  /// The generation this one is appended to.
  private let previous: Generation?
  private var log: FrameLog
  private var pending: PendingSections
  private var packs: PackQueue
  /// The section that is being received, if it is large.
  private var large: LargeSection?
  /// The section that is being received, if it is not.
  private var small: (cid: CID, length: UInt64, bytes: [UInt8])?
  private let encoder = FrameEncoder()
  private let decoder = FrameDecoder()
  /// The frame that was read back last, to see whether an equal key is the same CID.
  private var readBack: DecodedFrame?
  private var hasFailed = false

  /// Begins a new archive in a storage that is empty, and locks it.
  ///
  /// - Parameters:
  ///   - storage: Where the bytes go.
  ///   - carHeader: The CAR header with its varint in front, byte for byte.
  ///   - options: How.
  /// - Throws: ``ArchiveError`` if the storage has bytes, or the header is not one; and what the storage throws.
  public init(
    storage: any ArchiveStorage, carHeader: [UInt8], options: ArchiveOptions = ArchiveOptions()
  ) throws {
    try Self.check(carHeader)
    try storage.lock()
    let size = try storage.size
    guard size == 0 else { throw ArchiveError(.notEmpty(bytes: size)) }
    var stored: [UInt8] = []
    RawFrame.append(carHeader.span, to: &stored)
    var log = FrameLog(storage: storage, end: 0, streamLength: 0)
    try log.appendHeader(stored.span, contentSize: carHeader.count)
    self.init(log: log, previous: nil, options: options)
  }

  private init(log: FrameLog, previous: Generation?, options: ArchiveOptions) {
    let next = previous?.sectionCount ?? 0
    self.log = log
    self.previous = previous
    self.options = options
    pending = PendingSections(base: next)
    packs = PackQueue(firstOrdinal: next, options: options)
  }

  /// A header is a varint and as many bytes as it says, one at least.
  private static func check(_ carHeader: [UInt8]) throws(ArchiveError) {
    var offset = 0
    guard case .value(let length) = Varint.read(carHeader.span, at: &offset), length > 0,
      length <= UInt64(ArchiveLimits.carHeader), carHeader.count - offset == Int(length)
    else { throw ArchiveError(.malformedHeader) }
  }

  /// How many bytes the file has so far; up to 8 MiB more may be waiting.
  public var bytesWritten: UInt64 { log.end }

  /// How many sections there are, those that wait to be written included.
  public var sectionCount: UInt64 { pending.nextOrdinal }

  /// The number of the section with this CID, whether it is in the file already or waits to be written.
  ///
  /// - Throws: ``ArchiveError``, and what the storage throws, if the section to compare with cannot be read back.
  public mutating func ordinal(of cid: CID) throws -> UInt64? {
    try find(cid, among: pending.ordinals(SectionKey(cid)))
  }

  private mutating func find(_ cid: CID, among candidates: [UInt64]) throws -> UInt64? {
    for candidate in candidates where try self.cid(at: candidate) == cid { return candidate }
    return nil
  }

  private mutating func cid(at ordinal: UInt64) throws -> CID {
    if let pack = packs.pack(of: ordinal) { return try pack.prefix(of: ordinal).cid }
    if let frame = readBack, let index = frame.index(of: ordinal) {
      return try frame.prefix(index).cid
    }
    guard let entry = log.frame(of: ordinal) else {
      throw ArchiveError(.unknownOrdinal(ordinal))
    }
    let stored = try log.storage.read(Int(entry.storedLength), at: entry.offset)
    let content: [UInt8]
    do {
      let frame = try DataFrame(stored.span, at: 0, limit: stored.count)
      content = try decoder.content(of: frame, in: stored.span)
    } catch {
      throw ArchiveError(error.reason, offset: entry.offset)
    }
    let frame = try DecodedFrame(content, firstOrdinal: entry.firstOrdinal, place: entry.offset)
    readBack = frame
    guard let index = frame.index(of: ordinal) else {
      throw ArchiveError(.damagedFrame("a section is not in it"), offset: entry.offset)
    }
    return try frame.prefix(index).cid
  }

  /// Appends a section, unless it is there already, and answers with its number.
  ///
  /// The body is hashed first. Under a hash function that is unknown here it is kept as it is; a verifier will say that
  /// nobody can tell.
  ///
  /// - Throws: ``ArchiveError`` with the reason `contentMismatch` if `body` is not the block that `cid` names, in which case
  ///   nothing has happened; and what the storage throws.
  @discardableResult
  public mutating func append(_ cid: CID, _ body: Span<UInt8>) throws -> UInt64 {
    try checkUsable()
    guard cid.verify(body) != .mismatch else { throw ArchiveError(.contentMismatch(cid)) }
    let key = SectionKey(cid)
    if let ordinal = try existing(cid, key) { return ordinal }
    let bytes = cid.bytes
    guard bytes.count <= CID.maximumLength else { throw ArchiveError(.cidTooLong(bytes.count)) }
    let ordinal = pending.nextOrdinal
    if body.count >= ArchiveLimits.largeBody {
      try begin(cid, length: UInt64(body.count), isVerified: true)
      try take(body)
      return try finish()
    }
    try checkRoom(frames: 1)
    pending.append(key)
    packs.append(bytes, body, ordinal: ordinal)
    if packs.isFull { try drain() }
    return ordinal
  }

  /// Appends a section whose body is read piece by piece, unless it is there already, and answers with its number.
  ///
  /// The body goes straight to the end of the file, is hashed on the way, and is cut off again if it is not the right one or
  /// `next` throws. About one frame of 4 MiB is in memory at a time, twice: as it is and as it is stored.
  ///
  /// - Parameters:
  ///   - cid: Its CID.
  ///   - length: How long the body is going to be.
  ///   - next: Puts the next bytes of the body into the array, which is empty when it is called, and none at the end.
  /// - Throws: ``ArchiveError`` with the reason `contentMismatch` or `lengthMismatch`; what `next` throws; what the storage
  ///   throws.
  /// - Returns: The number of the section.
  @discardableResult
  public mutating func append(
    _ cid: CID, length: UInt64, reading next: (inout [UInt8]) throws -> Void
  ) throws -> UInt64 {
    try checkUsable()
    if let ordinal = try begin(cid, length: length) { return ordinal }
    var piece: [UInt8] = []
    do {
      repeat {
        piece.removeAll(keepingCapacity: true)
        try next(&piece)
        try take(piece.span)
      } while !piece.isEmpty
      return try finish()
    } catch {
      try cancel()
      throw error
    }
  }

  /// Ends the current pack and hands everything to the storage.
  ///
  /// - Throws: what the storage throws.
  public mutating func flush() throws {
    try checkUsable()
    packs.close(next: pending.nextOrdinal)
    try drain()
  }

  /// Makes everything that was appended count: writes the index, waits until it is on the medium, writes the footer, waits
  /// again.
  ///
  /// - Parameter manifest: The newest manifest, which has to be the section appended last, or nil to keep the one there is.
  /// - Throws: ``ArchiveError`` with the reason `commitUncertain` if the very last wait failed, so that opening the file
  ///   again has to tell; with another reason if the manifest cannot be one; and what the storage throws. Except for the
  ///   first, nothing is committed then.
  /// - Returns: What is committed now.
  public consuming func commit(manifest: CID?) throws -> Generation {
    var writer = self
    return try writer.seal(manifest: manifest)
  }

  private mutating func seal(manifest: CID?) throws -> Generation {
    try checkUsable()
    var head = previous?.head
    if let manifest {
      guard let ordinal = try ordinal(of: manifest) else {
        throw ArchiveError(.unknownManifest(manifest))
      }
      packs.isolateLast(ordinal)
      try flush()
      head = try newHead(manifest, ordinal)
    }
    try flush()
    var segments = previous?.segments ?? []
    if let segment = try writeSegment() { segments.append(segment) }
    try log.storage.synchronize()
    let generation = Generation(
      number: (previous?.number ?? 0) + 1, footerOffset: log.end,
      previousFooterOffset: previous?.footerOffset,
      committedLength: log.end + UInt64(Footer.length(segments: segments.count)),
      sectionCount: pending.nextOrdinal,
      streamLength: log.streamLength, head: head, segments: segments,
      features: previous?.features ?? FeatureFlags())
    let footer = try Footer.encode(generation)
    try log.append(footer.span)
    do {
      try log.storage.synchronize()
    } catch let error as ArchiveError {
      guard case .system(_, let code) = error.reason else { throw error }
      throw ArchiveError(.commitUncertain(code: code))
    }
    return generation
  }

  /// A manifest is alone in its frame, so that whoever reads the footer has it with one request more.
  private func newHead(_ manifest: CID, _ ordinal: UInt64) throws(ArchiveError)
    -> Generation.Head
  {
    guard let frame = log.frame(of: ordinal), frame.firstOrdinal == ordinal,
      let place = log.frames.firstIndex(where: { $0.firstOrdinal == ordinal })
    else { throw ArchiveError(.manifestNotAlone(manifest)) }
    let next = log.frames[place...].first { $0.firstOrdinal != ordinal }?.firstOrdinal
    guard (next ?? pending.nextOrdinal) == ordinal + 1 else {
      throw ArchiveError(.manifestNotAlone(manifest))
    }
    return Generation.Head(cid: manifest, ordinal: ordinal, frameOffset: frame.offset)
  }

  private mutating func writeSegment() throws -> Generation.Segment? {
    guard pending.keys.count > 0 else { return nil }
    let base = pending.base
    let frames = log.frames[...]
    let builder = IndexSegmentBuilder(base: base, keys: pending.keys, frames: frames)
    let offset = log.end
    var log = self.log
    let checksum = try builder.encode { piece in try log.append(piece) }
    self.log = log
    return Generation.Segment(
      offset: offset, base: base, sectionCount: UInt32(pending.keys.count),
      frameCount: UInt32(frames.count), checksum: checksum)
  }
}

/// Bodies that arrive in pieces.
extension ArchiveWriter {
  /// Begins a section whose body arrives in pieces, for the caller to ``take(_:)`` and then ``finish()`` or ``cancel()``.
  ///
  /// A body of 64 KiB or more goes straight to the end of the file, is hashed on the way, and is cut off again if it is not
  /// the right one. Until it has ended nothing else is appended. About one frame of 4 MiB is in memory at a time, twice: as it
  /// is and as it is stored.
  ///
  /// - Parameters:
  ///   - cid: Its CID.
  ///   - length: How long the body is going to be.
  /// - Throws: ``ArchiveError``, and what the storage throws.
  /// - Returns: The number of the section if it is there already, in which case nothing has begun; otherwise nil.
  public mutating func begin(_ cid: CID, length: UInt64) throws -> UInt64? {
    try checkUsable()
    let key = SectionKey(cid)
    if let ordinal = try existing(cid, key) { return ordinal }
    try begin(cid, length: length, isVerified: false)
    return nil
  }

  /// Takes the next bytes of the body that has begun.
  ///
  /// - Throws: ``ArchiveError`` if they are more than was announced, and what the storage throws. The section has been
  ///   cancelled then.
  public mutating func take(_ bytes: Span<UInt8>) throws {
    guard !hasFailed else { throw ArchiveError(.writerFailed) }
    do {
      if let body = small {
        let received = UInt64(body.bytes.count + bytes.count)
        guard received <= body.length else {
          throw ArchiveError(
            .lengthMismatch(body.cid, announced: body.length, received: received))
        }
        small?.bytes.append(bytes)
      } else {
        guard large != nil else { throw ArchiveError(.noSectionOpen) }
        try large?.append(bytes, to: &log)
      }
    } catch {
      try cancel()
      throw error
    }
  }

  /// Ends the body that has begun, and answers with the section's number.
  ///
  /// - Throws: ``ArchiveError`` with the reason `contentMismatch` or `lengthMismatch`, and what the storage throws. The
  ///   section has been cancelled then.
  @discardableResult
  public mutating func finish() throws -> UInt64 {
    guard !hasFailed else { throw ArchiveError(.writerFailed) }
    if let body = small {
      small = nil
      let received = UInt64(body.bytes.count)
      guard received == body.length else {
        throw ArchiveError(.lengthMismatch(body.cid, announced: body.length, received: received))
      }
      return try append(body.cid, body.bytes.span)
    }
    guard let cid = large?.cid, let ordinal = large?.ordinal else {
      throw ArchiveError(.noSectionOpen)
    }
    do {
      try large?.finish(&log)
      pending.append(SectionKey(cid))
    } catch {
      try cancel()
      throw error
    }
    large = nil
    return ordinal
  }

  /// Forgets the section that has begun, and cuts off what of it is in the file; without one, does nothing.
  ///
  /// - Throws: what the storage throws, after which nothing more is written.
  public mutating func cancel() throws {
    small = nil
    guard let mark = large?.mark else { return }
    large = nil
    do {
      try log.cutBack(to: mark)
    } catch {
      hasFailed = true
      throw error
    }
  }

  private mutating func begin(_ cid: CID, length: UInt64, isVerified: Bool) throws {
    let size = cid.bytes.count
    guard size <= CID.maximumLength else { throw ArchiveError(.cidTooLong(size)) }
    guard length < 1 << 62 else {
      throw ArchiveError(.bodyTooLarge(cid, length: length, limit: 1 << 62))
    }
    guard length >= UInt64(ArchiveLimits.largeBody) else {
      small = (cid, length, [])
      return
    }
    let frames =
      (length + UInt64(ArchiveLimits.bodyPerFrame) - 1) / UInt64(ArchiveLimits.bodyPerFrame)
    try checkRoom(frames: Int(frames))
    try flush()
    large = LargeSection(
      cid, bodyLength: length, ordinal: pending.nextOrdinal, log: log, level: options.level,
      encoder: encoder, isVerified: isVerified)
  }

  /// The number of the section if it is there already.
  private mutating func existing(_ cid: CID, _ key: SectionKey) throws -> UInt64? {
    let candidates = pending.ordinals(key)
    if let ordinal = try find(cid, among: candidates) { return ordinal }
    guard candidates.count < ArchiveLimits.aliases else {
      throw ArchiveError(.tooManyAliases(cid))
    }
    return nil
  }

  /// Refuses a section if the segment it goes into would be longer than a frame can be.
  private func checkRoom(frames: Int) throws(ArchiveError) {
    let frameCount = log.frames.count + PackQueue.capacity + 1 + frames
    guard IndexSegment.fits(count: pending.keys.count + 1, frameCount: frameCount) else {
      throw ArchiveError(.tooManySections)
    }
  }

  private func checkUsable() throws(ArchiveError) {
    guard !hasFailed else { throw ArchiveError(.writerFailed) }
    guard large == nil, small == nil else { throw ArchiveError(.sectionOpen) }
  }

  private mutating func drain() throws {
    do {
      try packs.drain(into: &log)
    } catch {
      hasFailed = true
      throw error
    }
  }
}
