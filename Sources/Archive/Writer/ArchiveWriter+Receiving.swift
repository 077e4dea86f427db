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
    if let ordinal = try existing(cid, cid.sectionKey) { return ordinal }
    try begin(cid, length: length, isVerified: false)
    return nil
  }

  /// Appends the next bytes of the body that has begun.
  ///
  /// - Throws: ``ArchiveError`` if they are more than was announced, and what the storage throws.
  ///   The section has been cancelled then.
  package mutating func take(_ bytes: Span<UInt8>) throws {
    guard !hasFailed else { throw ArchiveError(.writerFailed(failure)) }
    do {
      guard incoming != nil else { throw ArchiveError(.noSectionOpen) }
      try incoming?.append(bytes, to: &log)
    } catch {
      try cancel()
      throw error
    }
  }

  /// Ends the body that has begun, and returns the section's number.
  ///
  /// - Throws: ``ArchiveError`` with the reason `contentMismatch` or `lengthMismatch`, and what the
  ///   storage throws. The section has been cancelled then.
  @discardableResult
  package mutating func finish() throws -> UInt64 {
    guard !hasFailed else { throw ArchiveError(.writerFailed(failure)) }
    guard let cid = incoming?.cid, let ordinal = incoming?.ordinal, let isLarge = incoming?.isLarge
    else { throw ArchiveError(.noSectionOpen) }
    do {
      try incoming?.finish(&log)
    } catch {
      try cancel()
      throw error
    }
    close()
    guard isLarge else {
      let body = buffers.content
      return try append(cid, body.span)
    }
    pending.append(cid.sectionKey)
    try checkpointIfDue()
    return ordinal
  }

  /// Forgets the section that has begun, and cuts off what of it is in the file; without one, does
  /// nothing.
  ///
  /// - Throws: what the storage throws, after which nothing more is written.
  package mutating func cancel() throws {
    guard let mark = incoming?.mark, let isLarge = incoming?.isLarge else { return }
    close()
    guard isLarge else { return }
    do {
      try log.cutBack(to: mark)
    } catch {
      hasFailed = true
      failure = ArchiveError.Cause(error)
      throw error
    }
  }

  /// Ends the section, and keeps its memory.
  private mutating func close() {
    if let memory = incoming?.buffers { buffers = memory }
    incoming = nil
  }

  mutating func begin(_ cid: CID, length: UInt64, isVerified: Bool) throws {
    let size = cid.bytes.count
    guard size <= CID.maximumLength else { throw ArchiveError(.cidTooLong(size)) }
    guard length < 1 << 62 else {
      throw ArchiveError(.bodyTooLarge(cid, length: length, limit: 1 << 62))
    }
    if length >= UInt64(ArchiveLimits.largeBody) {
      try checkRoom(frames: Int(SectionPrefix(cid, bodyLength: length).frameCount))
      try flush()
    }
    incoming = OpenSection(
      cid, bodyLength: length, ordinal: pending.nextOrdinal, log: log, level: options.level,
      encoder: encoder, buffers: &buffers, isVerified: isVerified)
  }
}
