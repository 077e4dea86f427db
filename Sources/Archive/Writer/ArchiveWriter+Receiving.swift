package import IPLD

/// Bodies that arrive in pieces.
extension ArchiveWriter {
  /// Begins a section whose body arrives in pieces, for the caller to ``take(_:)`` and then
  /// ``finish()`` or ``cancel()``.
  ///
  /// A body of 64 KiB or more goes straight to the end of the file, is hashed on the way, and is
  /// cut off again if it is not the right one. Until it has ended nothing else is appended. About
  /// one frame of 4 MiB is in memory at a time, twice: as it is and as it is stored.
  ///
  /// - Parameters:
  ///   - cid: Its CID.
  ///   - length: How long the body is going to be.
  /// - Throws: ``ArchiveError``, and what the storage throws.
  /// - Returns: The number of the section if it is there already, in which case nothing has begun;
  ///   otherwise nil.
  package mutating func begin(_ cid: CID, length: UInt64) throws -> UInt64? {
    try checkUsable()
    let key = SectionKey(cid)
    if let ordinal = try existing(cid, key) { return ordinal }
    try begin(cid, length: length, isVerified: false)
    return nil
  }

  /// Takes the next bytes of the body that has begun.
  ///
  /// - Throws: ``ArchiveError`` if they are more than was announced, and what the storage throws.
  ///   The section has been cancelled then.
  package mutating func take(_ bytes: Span<UInt8>) throws {
    guard !hasFailed else { throw ArchiveError(.writerFailed(failure)) }
    do {
      if let body = small {
        let received = UInt64(body.bytes.count + bytes.count)
        guard received <= body.length else {
          throw ArchiveError(.lengthMismatch(body.cid, announced: body.length, received: received))
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
  /// - Throws: ``ArchiveError`` with the reason `contentMismatch` or `lengthMismatch`, and what the
  ///   storage throws. The section has been cancelled then.
  @discardableResult
  package mutating func finish() throws -> UInt64 {
    guard !hasFailed else { throw ArchiveError(.writerFailed(failure)) }
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
    endLarge()
    try checkpointIfDue()
    return ordinal
  }

  /// Forgets the section that has begun, and cuts off what of it is in the file; without one, does
  /// nothing.
  ///
  /// - Throws: what the storage throws, after which nothing more is written.
  package mutating func cancel() throws {
    small = nil
    guard let mark = large?.mark else { return }
    endLarge()
    do {
      try log.cutBack(to: mark)
    } catch {
      hasFailed = true
      failure = "\(error)"
      throw error
    }
  }

  /// Ends the large section, and keeps its memory.
  private mutating func endLarge() {
    if let memory = large?.buffers { buffers = memory }
    large = nil
  }

  mutating func begin(_ cid: CID, length: UInt64, isVerified: Bool) throws {
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
      encoder: encoder, buffers: &buffers, isVerified: isVerified)
  }
}
