/// A section that was read before, of which only the place is known where it begins.
///
/// - Precondition: of everything here, that a section of a CAR begins there; ``CARCursor`` finds
///   out whether one does.
extension CARSection {
  /// The section at `start`, and its CID.
  package static func read(at start: Int, in bytes: Span<UInt8>) -> (section: CARSection, cid: CID)
  {
    let (cidStart, end) = bounds(start, in: bytes)
    var at = cidStart
    do throws(CIDError) {
      let cid = try CID(bytes, at: &at)
      return (CARSection(start: start, cidRange: cidStart..<at, bodyRange: at..<end), cid)
    } catch {
      preconditionFailure("the section is not in these bytes")
    }
  }

  /// The CID of the section at `start`.
  package static func cid(at start: Int, in bytes: Span<UInt8>) -> CID {
    read(at: start, in: bytes).cid
  }

  /// Where the body lies of the section at `start`.
  @inline(__always)
  package static func body(at start: Int, in bytes: Span<UInt8>) -> Range<Int> {
    let (cid, end) = bounds(start, in: bytes)
    return isCommon(cid, in: bytes) ? cid + 36..<end : read(at: start, in: bytes).section.bodyRange
  }

  /// Whether the section at `start` has this CID.
  @inline(__always)
  package static func has(_ cid: CID, at start: Int, in bytes: Span<UInt8>) -> Bool {
    if let common = CommonCID(cid) { return has(common, at: start, in: bytes) }
    return self.cid(at: start, in: bytes) == cid
  }

  /// Whether the section at `start` has this CID.
  @inline(__always)
  package static func has(_ cid: CommonCID, at start: Int, in bytes: Span<UInt8>) -> Bool {
    let at = bounds(start, in: bytes).cid
    // The hash function is compared too: others have digests of 32 bytes as well.
    guard bytes.count - at >= 36 else { return false }
    return UInt32(littleEndian: bytes.load(at: at))
      == CommonCID.start | UInt32(truncatingIfNeeded: cid.codec.rawValue) << 8
      && SHA256Digest(bytes, at: at + 4) == cid.digest
  }

  /// Where the CID begins, and where the section ends.
  @inline(__always)
  private static func bounds(_ start: Int, in bytes: Span<UInt8>) -> (cid: Int, end: Int) {
    // Most sections have up to 16,383 bytes, and their lengths one byte or two.
    let first = bytes[start]
    if first < 0x80 { return (start + 1, start + 1 + Int(first)) }
    let second = bytes[start + 1]
    if second < 0x80 { return (start + 2, start + 2 + (Int(first & 0x7f) | Int(second) << 7)) }
    var at = start
    guard case .value(let length) = Varint.read(bytes, at: &at) else {
      preconditionFailure("the section is not in these bytes")
    }
    return (at, at + Int(length))
  }

  /// Whether a CID in binary form is of version 1, with SHA-256 and a codec of one byte.
  @inline(__always)
  private static func isCommon(_ cid: Int, in bytes: Span<UInt8>) -> Bool {
    bytes.count - cid >= 36
      && UInt32(littleEndian: bytes.load(at: cid)) & 0xffff_80ff == CommonCID.start
  }
}
