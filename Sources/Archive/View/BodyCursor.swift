package import IPLD

/// The body of a section, pulled piece by piece, from any place in it on.
///
/// Each piece comes from a frame whose checksum holds when reading comes to it. The body is not
/// hashed, which takes all of it: `ArchiveReader.read(_:each:)` does that.
///
/// 1. Between two pieces nothing of the body is in memory, however slowly they are asked for.
/// 2. A frame is checked once by each cursor; where it is compressed, it may be decompressed again
///    for each piece.
package struct BodyCursor {
  /// The CID.
  package let cid: CID
  /// How many bytes the body has.
  package let length: UInt64
  /// How many of them lie before the next piece.
  package private(set) var offset: UInt64

  private let reader: ArchiveReader
  private let location: SectionLocation
  /// The frame in which the next piece lies, and its number; where the header of a block of a raw
  /// frame begins, and how much content lies before it.
  private var frame: (number: UInt64, frame: DataFrame, block: (place: Int, start: Int))?

  init(_ reader: ArchiveReader, _ location: SectionLocation, from offset: UInt64 = 0) throws {
    (self.reader, self.location) = (reader, location)
    (cid, length) = (location.prefix.cid, location.prefix.bodyLength)
    self.offset = min(offset, length)
    let limit = reader.limits.content(ofFile: reader.fileSize)
    guard length <= limit else { throw ArchiveError(.tooMuchContent(limit: limit)) }
  }

  /// Hands over the next piece, of at most `limit` bytes; returns nil at the end.
  ///
  /// A piece may be shorter than `limit` before the end: up to where the next begins elsewhere.
  ///
  /// - Throws: ``ArchiveError`` if it is damaged; what `use` throws.
  package mutating func next<Value>(
    upTo limit: Int, _ use: (Span<UInt8>) throws -> Value
  ) throws -> Value? {
    guard offset < length, limit > 0 else { return nil }
    let (pack, number) = (location.frame, location.number)
    guard let first = pack.large?.frame else {
      try reader.check(pack, number)
      let bytes = pack.bytes
      let body = pack.range(number).dropFirst(location.prefix.length + Int(offset)).prefix(limit)
      offset += UInt64(body.count)
      return try use(bytes.span.extracting(body))
    }
    return try reader.withFile { (file) throws in try next(limit, of: first, file, use) }
  }

  private mutating func next<Value>(
    _ limit: Int, of first: DataFrame, _ file: Span<UInt8>, _ use: (Span<UInt8>) throws -> Value
  ) throws -> Value {
    let number = offset / UInt64(ArchiveLimits.bodyPerFrame)
    let before = number == 0 ? location.prefix.length : 0
    let start = Int(offset % UInt64(ArchiveLimits.bodyPerFrame)) + before
    if frame?.number != number {
      reader.willReadParts(from: number, of: location)
      // The first was checked when the section was found.
      let part = number == 0 ? first : try reader.checkedPart(number, of: location, in: file)
      frame = (number, part, (part.offset + part.headerLength, 0))
    }
    guard var open = frame else { preconditionFailure("it was opened just now") }
    reader.file.willRead([open.frame.range])
    defer { frame = open }
    guard open.frame.isRaw else {
      let content =
        number == 0 ? location.frame.bytes : try content(of: open.frame, number, limit, in: file)
      let piece = content.indices.dropFirst(start).prefix(limit)
      offset += UInt64(piece.count)
      return try use(content.span.extracting(piece))
    }
    var found = open.frame.block(at: open.block.place, in: file)
    while let block = found, open.block.start + block.count <= start {
      open.block = (block.upperBound, open.block.start + block.count)
      found = open.frame.block(at: open.block.place, in: file)
    }
    guard let block = found else {
      throw ArchiveError(.damagedFrame("it changed while it was read"), at: open.frame.offset)
    }
    let piece = block.dropFirst(start - open.block.start).prefix(limit)
    offset += UInt64(piece.count)
    return try use(file.extracting(piece))
  }

  /// The content of a compressed frame; kept for the next piece if this one is not all of it.
  private func content(
    of frame: DataFrame, _ number: UInt64, _ limit: Int, in file: Span<UInt8>
  ) throws(ArchiveError) -> [UInt8] {
    if let kept = reader.cache.frame(at: UInt64(frame.offset)) { return kept.bytes }
    let content =
      frame.isTorn
      ? location.reader.content(ofRemains: Int(number), at: location.row, in: file)
      : try reader.decoder.content(of: frame, in: file)
    guard content.count == frame.contentSize else {
      throw ArchiveError(.damagedFrame("it changed while it was read"), at: frame.offset)
    }
    if limit < content.count {
      // No section has the number, so that none is looked for in it.
      reader.cache.insert(DecodedFrame(frame, location.prefix, content, firstOrdinal: .max))
    }
    return content
  }
}

extension ArchiveReader {
  /// The body of the section with this CID, to be pulled from `offset` on; nil if it is not in the
  /// archive.
  ///
  /// - Throws: ``ArchiveError`` if the frame in which it begins is damaged, or it is longer than
  ///   the reader's limits allow.
  package func body(of cid: CID, from offset: UInt64) throws -> BodyCursor? {
    try locate(cid).map { try BodyCursor(self, $0, from: offset) }
  }
}
