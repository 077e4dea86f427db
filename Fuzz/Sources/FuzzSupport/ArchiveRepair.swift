import IPLD

@testable import Archive

/// Makes checksums hold again in an archive whose bytes were changed, so that what they protect is
/// reached.
///
/// Steps are taken from the inside to the outside: each checksum is one of bytes that are final by
/// then.
package struct ArchiveRepair: OptionSet {
  package let rawValue: UInt8

  package init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The digests of small sections in raw frames.
  package static let digests = ArchiveRepair(rawValue: 1)
  /// The checksums of the content of data frames.
  package static let frames = ArchiveRepair(rawValue: 2)
  /// What index segments say of the checksums of data frames.
  package static let tables = ArchiveRepair(rawValue: 4)
  /// The checksums of index segments.
  package static let segments = ArchiveRepair(rawValue: 8)
  /// What footers say of where they lie and of the checksums of index segments, and their own
  /// checksums.
  package static let footers = ArchiveRepair(rawValue: 16)

  /// Repairs what this set has.
  package func apply(to bytes: inout [UInt8]) {
    if contains(.digests) || contains(.frames) { repairFrames(&bytes) }
    if contains(.tables) { repairTables(&bytes) }
    if contains(.segments) { seal(SkippableFrame.indexSegment, &bytes) }
    if contains(.footers) {
      repairFooters(&bytes)
      seal(SkippableFrame.footer, &bytes)
    }
  }

  /// Sets the checksum of every skippable frame of a kind.
  private func seal(_ kind: UInt32, _ bytes: inout [UInt8]) {
    for frame in Self.skippable(kind, in: bytes.span) {
      let checksum = XXH64.hash(bytes.span.extracting(frame.offset..<frame.end - 8))
      bytes.set(checksum, at: frame.end - 8)
    }
  }

  private func repairFrames(_ bytes: inout [UInt8]) {
    let decoder = FrameDecoder()
    var place = 0
    // Long chains of tiny frames are no better than short ones.
    for _ in 0..<256 {
      guard let (frame, isData) = Self.frame(in: bytes.span, from: place) else { return }
      place = frame.upperBound
      guard isData,
        let data = try? DataFrame(bytes.span, at: frame.lowerBound, limit: frame.upperBound)
      else { continue }
      if contains(.digests), data.isRaw, place > 0 { repairDigests(data, &bytes) }
      if contains(.frames) {
        let content = decoder.salvage(data, in: bytes.span)
        let checksum = UInt32(truncatingIfNeeded: XXH64.hash(content.span))
        bytes.set(checksum, at: data.end - 4)
      }
    }
  }

  /// The next frame of either kind at or after `place`.
  private static func frame(in file: Span<UInt8>, from place: Int) -> (Range<Int>, Bool)? {
    var place = place
    while place < file.count {
      if let frame = try? DataFrame(file, at: place, limit: file.count) {
        return (frame.range, true)
      }
      if let frame = try? SkippableFrame(file, at: place) {
        return (frame.offset..<frame.end, false)
      }
      place += 1
    }
    return nil
  }

  /// Writes the digest of each body into the CID before it, if frame and sections are of the
  /// simplest form.
  private func repairDigests(_ frame: DataFrame, _ bytes: inout [UInt8]) {
    var blocks: [Range<Int>] = []
    frame.forEachBlock(in: bytes.span) { blocks.append($0) }
    guard blocks.count == 1, let content = blocks.first else { return }
    var place = content.lowerBound
    while place < content.upperBound {
      let left = content.upperBound - place
      guard
        let prefix = try? SectionPrefix(
          bytes.span.extracting(place..<content.upperBound), at: 0, place: 0),
        prefix.cid.multihash.sha256 != nil, prefix.sectionLength <= UInt64(left)
      else { return }
      let body = place + prefix.length..<place + Int(prefix.sectionLength)
      let digest = SHA256.digest(of: bytes.span.extracting(body)).bytes
      for index in 0..<32 { bytes[body.lowerBound - 32 + index] = digest[index] }
      place = body.upperBound
    }
  }

  private func repairTables(_ bytes: inout [UInt8]) {
    for frame in Self.skippable(SkippableFrame.indexSegment, in: bytes.span) {
      guard let segment = try? IndexSegment(bytes.span, at: frame.offset) else { continue }
      let table = frame.end - 8 - FrameEntry.length * segment.frameCount
      for number in 0..<segment.frameCount {
        let entry = segment.frameEntry(number, in: bytes.span)
        guard entry.end <= UInt64(bytes.count) else { continue }
        let checksum = XXH64.hash(bytes.span.extracting(Int(entry.offset)..<Int(entry.end)))
        bytes.set(checksum, at: table + number * FrameEntry.length + 8)
      }
    }
  }

  private func repairFooters(_ bytes: inout [UInt8]) {
    for frame in Self.skippable(SkippableFrame.footer, in: bytes.span)
    where frame.length >= Footer.length(segments: 0) {
      bytes.set(UInt64(frame.offset), at: frame.end - 16)
      for number in 0..<min(16, (frame.length - Footer.length(segments: 0)) / 24) {
        let at = frame.offset + 128 + 24 * number
        let offset = Int(clamping: bytes.span.u64(at))
        guard let segment = try? IndexSegment(bytes.span, at: offset) else { continue }
        bytes.set(segment.frame.checksum, at: at + 16)
      }
    }
  }

  private static func skippable(_ kind: UInt32, in file: Span<UInt8>)
    -> [SkippableFrame]
  {
    var found: [SkippableFrame] = []
    var place = 0
    while let magic = ArchiveMagic.next(in: file, from: place) {
      if let frame = try? SkippableFrame(file, at: magic - 8), frame.kind == kind {
        found.append(frame)
      }
      place = magic + 1
    }
    return found
  }
}

extension [UInt8] {
  /// Writes an integer over the bytes at `offset`, least significant byte first.
  package mutating func set(_ value: some FixedWidthInteger & UnsignedInteger, at offset: Int) {
    for index in 0..<value.bitWidth / 8 {
      self[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index))
    }
  }
}
