internal import IPLD

/// A section whose body is being received.
///
/// A large one is on its way to the end of the file, frame by frame (FORMAT 3.2): one frame's
/// content is held at a time, whatever the length of the body. Frames are written before the last
/// byte is known; if the body turns out wrong, the writer cuts the file back to ``mark``. The body
/// of a small one is held until it has ended.
struct OpenSection: ~Copyable {
  let cid: CID
  let bodyLength: UInt64
  let ordinal: UInt64
  /// Whether it has frames of its own.
  let isLarge: Bool
  /// What the file was before.
  let mark: FrameLog.Mark

  private let level: Int
  private let encoder: FrameEncoder
  /// The check of a large body; nil if it is known to be the one that the CID names.
  private var hash: BodyHash? = nil
  private var received: UInt64 = 0
  private var frameIndex: UInt64 = 0
  private let prefixLength: Int
  /// What a frame holds, or the body of a small section; and the frame as it is stored.
  private var content: [UInt8]
  private var stored: [UInt8]
  /// Set by the first frame: if that does not shrink, the others are not tried.
  private var isRaw = false

  /// Begins a section.
  ///
  /// - Parameters:
  ///   - cid: Its CID.
  ///   - bodyLength: Its body's announced length.
  ///   - ordinal: Its number.
  ///   - log: Where it goes.
  ///   - level: The zstd level.
  ///   - encoder: What makes the frames.
  ///   - buffers: Memory from the section before.
  ///   - isVerified: Whether the body is known to be the one the CID names.
  init(
    _ cid: CID, bodyLength: UInt64, ordinal: UInt64, log: FrameLog, level: Int,
    encoder: FrameEncoder, buffers: inout (content: [UInt8], stored: [UInt8]), isVerified: Bool
  ) {
    self.cid = cid
    self.bodyLength = bodyLength
    self.ordinal = ordinal
    isLarge = bodyLength >= UInt64(ArchiveLimits.largeBody)
    self.level = level
    self.encoder = encoder
    mark = log.mark
    if isLarge, !isVerified { hash = BodyHash(cid) }
    (content, stored) = ([], [])
    swap(&content, &buffers.content)
    swap(&stored, &buffers.stored)
    content.removeAll(keepingCapacity: true)
    content.reserveCapacity(
      ArchiveLimits.sectionPrefix + Int(min(bodyLength, UInt64(ArchiveLimits.bodyPerFrame))))
    if isLarge { CARWriter.appendPrefix(cid, bodyLength: bodyLength, to: &content) }
    prefixLength = content.count
  }

  /// What was received of a small section, and memory for the next.
  var buffers: (content: [UInt8], stored: [UInt8]) { (content, stored) }

  /// Appends bytes of the body.
  mutating func append(_ bytes: Span<UInt8>, to log: inout FrameLog) throws {
    received += UInt64(bytes.count)
    guard received <= bodyLength else {
      throw ArchiveError(.lengthMismatch(cid, announced: bodyLength, received: received))
    }
    guard isLarge else { return content.append(bytes) }
    hash?.update(bytes)
    var start = 0
    while start < bytes.count {
      let room = ArchiveLimits.bodyPerFrame + (frameIndex == 0 ? prefixLength : 0) - content.count
      let step = min(room, bytes.count - start)
      content.append(bytes.extracting(start..<start + step))
      start += step
      if step == room { try writeFrame(to: &log) }
    }
  }

  /// Writes what is left of a large section, and tells whether the body was the right one; that of
  /// a small one has only been counted.
  mutating func finish(_ log: inout FrameLog) throws {
    guard received == bodyLength else {
      throw ArchiveError(.lengthMismatch(cid, announced: bodyLength, received: received))
    }
    guard isLarge else { return }
    guard hash?.finish() != .mismatch else { throw ArchiveError(.contentMismatch(cid)) }
    if !content.isEmpty { try writeFrame(to: &log) }
  }

  private mutating func writeFrame(to log: inout FrameLog) throws {
    // Lent by itself while the content is.
    var frame: [UInt8] = []
    swap(&frame, &stored)
    let isCompressed = encoder.encode(content.span, level: isRaw ? nil : level, into: &frame)
    if frameIndex == 0 { isRaw = !isCompressed }
    try log.append(frame.span, contentSize: content.count, firstOrdinal: ordinal)
    swap(&frame, &stored)
    content.removeAll(keepingCapacity: true)
    frameIndex += 1
  }
}
