package import IPLD

/// Writes an archive: sections one after another, then an index and a footer that make them count.
///
/// ```swift
/// var writer = try ArchiveWriter.open(FileStorage.open("account.car.zst"), carHeader: header)
/// for block in blocks { try writer.append(block.cid, block.bytes.span) }
/// let generation = try writer.commit(manifest: manifest)
/// ```
///
/// 1. A section is in the index only if its bytes hashed to its CID, or the hash function is
///    unknown.
/// 2. No CID is stored twice, unless the stored copy is damaged: appending a CID that is already
///    stored returns its number.
/// 3. Nothing counts before `commit(manifest:)` or ``checkpoint()`` has returned. A writer that
///    is dropped leaves a tail that readers ignore, and that the next writer adopts.
/// 4. Committed bytes are never written again.
/// 5. A write that failed is undone, if it was of a large section; after any other nothing more is
///    written, and every later call throws `writerFailed`.
/// 6. Ordinals are given in the order of the calls, which is the order of the sections in the file.
package struct ArchiveWriter: ~Copyable {
  let options: ArchiveOptions
  /// The archive as it was when it was opened; nil if nothing was committed.
  let committed: ArchiveReader?
  /// What was committed last, checkpoints included.
  var previous: Generation?
  var log: FrameLog
  /// The sections appended since the archive was opened.
  var pending: PendingSections
  /// How many of ``pending``'s keys, and of the log's frames, are in an index segment already.
  var indexed = (keys: 0, frames: 0)
  var packs: PackQueue
  /// The section that is being received.
  var incoming: OpenSection?
  let encoder = FrameEncoder()
  let decoder = FrameDecoder()
  /// Memory for the next section that is received.
  var buffers: (content: [UInt8], stored: [UInt8]) = ([], [])
  /// The frame that was read back last, to see whether an equal key is the same CID.
  private var readBack: DecodedFrame?
  var hasFailed = false
  /// What failed first; nil if that is not known.
  var failure: ArchiveError.Cause?
  /// Whether a damaged section was written again, so that the next footer has to say so.
  package internal(set) var isHealing = false
  /// What readers have to know beside what they had to know before.
  var requiredFeatures: UInt64 = 0
  /// The damaged packs of which all that is left was written again, by their first sections.
  var savedFrames: Set<UInt64> = []

  /// What was committed when the archive was opened, or has been since; nil if nothing is.
  package var generation: Generation? { previous }

  /// How many sections of an interrupted write were found whole and adopted.
  package internal(set) var adoptedSectionCount: UInt64 = 0

  /// Where an end that was committed and is damaged ends, behind which everything goes; nil if
  /// there is none.
  var damageEnd: UInt64?
  /// Whether there is such an end.
  package var isBehindDamage: Bool { damageEnd != nil }

  /// The archive as it was when it was opened, for looking things up in; nil if nothing was
  /// committed.
  package var reader: ArchiveReader? { committed }

  /// Opens an archive to append to it, or begins one in a storage that is empty, and locks it.
  ///
  /// What an interrupted write has left after the last footer is adopted: whole sections that hash
  /// to their CIDs count from then on, and a whole snapshot that follows the newest becomes it.
  ///
  /// - Parameters:
  ///   - storage: Where the bytes go.
  ///   - carHeader: The CAR header, with its varint in front, with which an archive begins; not
  ///     used for one that has begun.
  ///   - options: How.
  ///   - choose: Decides which snapshots of an interrupted write count; nil for those that follow
  ///     the newest.
  /// - Throws: ``ArchiveError`` if the storage holds something else than an archive, one of which
  ///   nothing is committed and whose header is another, or one whose index is damaged; and what
  ///   the storage and `choose` throw.
  package static func open(
    _ storage: any ArchiveStorage, carHeader: [UInt8], options: ArchiveOptions = ArchiveOptions(),
    choosing choose: TailChoice? = nil
  ) throws -> ArchiveWriter {
    try DataFrame.checkHeader(carHeader.span)
    try storage.lock()
    if options.startsOver { try startOverIfNeeded(storage, carHeader) }
    return try begin(storage, carHeader, options, choose)
  }

  /// Opens an archive of which something is committed, to append to it, and locks it.
  ///
  /// - Parameters:
  ///   - storage: Where the bytes go.
  ///   - options: How.
  /// - Throws: as ``open(_:carHeader:options:)`` does; ``ArchiveError`` with the reason `noFooter`
  ///   if nothing is committed.
  package static func reopen(
    _ storage: any ArchiveStorage, options: ArchiveOptions = ArchiveOptions()
  ) throws -> ArchiveWriter {
    try storage.lock()
    guard try ArchiveReader.lastGeneration(of: storage.map()) != nil else {
      throw ArchiveError(.noFooter)
    }
    return try begin(storage, [], options)
  }

  init(log: FrameLog, committed: ArchiveReader?, options: ArchiveOptions) {
    let previous = committed?.generation
    let next = previous?.sectionCount ?? 0
    self.log = log
    self.log.parity = options.parity.map { .percent($0) }
    self.committed = committed
    self.previous = previous
    self.options = options
    pending = PendingSections(base: next)
    packs = PackQueue(firstOrdinal: next, options: options)
  }

  /// How many bytes the file has so far; up to 8 MiB more may be waiting.
  package var bytesWritten: UInt64 { log.end }

  /// How many sections there are, those that wait to be written included.
  package var sectionCount: UInt64 { pending.nextOrdinal }

  /// The number of the section with this CID, whether it is in the file already or waits to be
  /// written.
  ///
  /// - Throws: ``ArchiveError``, and what the storage throws, if the section to compare with cannot
  ///   be read back.
  package mutating func ordinal(of cid: CID) throws -> UInt64? {
    if let ordinal = try find(cid, among: pending.ordinals(cid.sectionKey)) { return ordinal }
    return try committed?.ordinal(of: cid)
  }

  mutating func find(_ cid: CID, among candidates: [UInt64]) throws -> UInt64? {
    for candidate in candidates where try self.cid(at: candidate) == cid { return candidate }
    return nil
  }

  mutating func cid(at ordinal: UInt64) throws -> CID {
    if let committed, ordinal < committed.generation.sectionCount {
      return try committed.section(at: ordinal).cid
    }
    if let pack = packs.pack(of: ordinal) { return try pack.prefix(of: ordinal).cid }
    if let frame = readBack, let index = frame.index(of: ordinal) {
      return try frame.prefix(index).cid
    }
    guard let entry = log.frame(of: ordinal) else { throw ArchiveError(.unknownOrdinal(ordinal)) }
    let stored = try log.storage.read(Int(entry.storedLength), at: entry.offset)
    let frame: DecodedFrame
    do {
      frame = try decoder.sections(
        of: DataFrame(stored.span, at: 0, limit: stored.count),
        firstOrdinal: entry.firstOrdinal, in: stored.span)
    } catch {
      throw ArchiveError(error.reason, offset: entry.offset)
    }
    readBack = frame
    guard let index = frame.index(of: ordinal) else {
      throw ArchiveError(.damagedFrame("it lacks a section"), offset: entry.offset)
    }
    return try frame.prefix(index).cid
  }

  /// Appends a section, unless it is there already, and returns its number.
  ///
  /// The body is hashed first. Under a hash function that is unknown here it is kept as it is; a
  /// verifier will say that it cannot be checked.
  ///
  /// - Throws: ``ArchiveError`` with the reason `contentMismatch` if `body` is not the block that
  ///   `cid` names, in which case nothing has happened; and what the storage throws.
  @discardableResult
  package mutating func append(_ cid: CID, _ body: Span<UInt8>) throws -> UInt64 {
    try checkUsable()
    guard cid.verify(body) != .mismatch else { throw ArchiveError(.contentMismatch(cid)) }
    return try append(verified: cid, body)
  }

  /// Appends a section whose body has been hashed already, unless it is there.
  ///
  /// - Throws: what the storage throws.
  @discardableResult
  package mutating func append(verified cid: CID, _ body: Span<UInt8>) throws -> UInt64 {
    try checkUsable()
    let key = cid.sectionKey
    if let ordinal = try existing(cid, key) { return ordinal }
    let length = cid.byteCount
    guard length <= CID.maximumLength else { throw ArchiveError(.cidTooLong(length)) }
    let ordinal = pending.nextOrdinal
    if body.count >= ArchiveLimits.largeBody {
      try begin(cid, length: UInt64(body.count), isVerified: true)
      try take(body)
      return try finish()
    }
    try checkRoom(frames: 1)
    pending.append(key)
    packs.append(cid, body, ordinal: ordinal)
    if packs.isFull { try drain(entirely: false) }
    try checkpointIfDue()
    return ordinal
  }

  /// Appends a section whose body came in pieces and has been hashed already, unless it is there.
  ///
  /// - Throws: what the storage throws.
  @discardableResult
  package mutating func append(verified cid: CID, pieces: [[UInt8]]) throws -> UInt64 {
    let length = pieces.reduce(0) { $0 + $1.count }
    guard pieces.count > 1, length >= ArchiveLimits.largeBody else {
      let body = pieces.count == 1 ? pieces[0] : Array(pieces.joined())
      return try append(verified: cid, body.span)
    }
    try checkUsable()
    if let ordinal = try existing(cid, cid.sectionKey) { return ordinal }
    try begin(cid, length: UInt64(length), isVerified: true)
    for piece in pieces { try take(piece.span) }
    return try finish()
  }

  /// Ends the current pack and hands everything to the storage.
  ///
  /// - Throws: what the storage throws.
  package mutating func flush() throws {
    try checkUsable()
    packs.close(next: pending.nextOrdinal)
    try drain()
  }

  /// Refuses a section if the segment it goes into would be longer than a frame can be.
  func checkRoom(frames: Int) throws(ArchiveError) {
    let frameCount = log.frames.count - indexed.frames + PackQueue.capacity + 1 + frames
    let count = pending.keys.count - indexed.keys + 1
    guard IndexSegment.fits(count: count, frameCount: frameCount) else {
      throw ArchiveError(.tooManySections)
    }
  }

  func checkUsable() throws(ArchiveError) {
    guard !hasFailed else { throw ArchiveError(.writerFailed(failure)) }
    guard incoming == nil else { throw ArchiveError(.sectionOpen) }
  }

  /// Writes packs that have been ended: all, or those that are compressed by now while others take
  /// their place.
  mutating func drain(entirely isEntire: Bool = true) throws {
    do {
      if isEntire { try packs.drain(into: &log) } else { try packs.advance(into: &log) }
    } catch {
      hasFailed = true
      failure = ArchiveError.Cause(error)
      throw error
    }
  }
}
