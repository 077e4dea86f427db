/// Where one section of a CAR lies.
///
/// ```
/// start        cid            body          end
/// varint(n)    CID            n − length of the CID bytes
/// ```
package struct CARSection: Equatable, Sendable {
  /// The offset of the length prefix.
  package let start: Int
  /// The CID in binary form.
  package let cidRange: Range<Int>
  /// The block's bytes.
  package let bodyRange: Range<Int>

  /// The offset after the section.
  package var end: Int { bodyRange.upperBound }
}

/// Steps through the sections of a CAR of version 1 that lies in memory or in a mapped file.
///
/// The caller passes the same bytes each time; the cursor keeps nothing but its offset, copies
/// nothing and hashes nothing.
///
/// Invariant: `offset` is the start of a section or the end of the CAR.
package struct CARCursor: Sendable {
  /// Where the next section starts.
  package private(set) var offset: Int
  /// The offset after the CAR.
  package let end: Int
  private let limits: CARLimits

  /// A cursor at the first section: at the end of the header.
  ///
  /// - Parameters:
  ///   - header: the header that was read.
  ///   - payload: the CAR's place in the bytes, header included.
  ///   - limits: how long a section may be.
  package init(header: CARHeader, payload: Range<Int>, limits: CARLimits = .mapped) {
    offset = payload.lowerBound + header.length
    end = payload.upperBound
    self.limits = limits
  }

  /// A cursor at the start of a section, with no header before it.
  package init(payload: Range<Int>, limits: CARLimits) {
    offset = payload.lowerBound
    end = payload.upperBound
    self.limits = limits
  }

  /// The next section and its CID, or nil at the clean end.
  ///
  /// - Throws: ``CARError``; after one the cursor stays where the bad section starts.
  @inline(__always)
  package mutating func next(in bytes: Span<UInt8>) throws(CARError) -> (CARSection, CID)? {
    guard offset < end else { return nil }
    precondition(end <= bytes.count, "the cursor is for other bytes")
    let start = offset
    var at = start
    let claimed: UInt64
    switch Varint.read(bytes, at: &at) {
    case .value(let value): claimed = value
    case .truncated: throw CARError(.truncatedSection, offset: start)
    case .tooLong, .notMinimal: throw CARError(.malformedLength, offset: start)
    }
    guard claimed > 0 else { throw CARError(.emptySection, offset: start) }
    guard claimed <= UInt64(limits.section) else {
      throw CARError(.sectionTooLong(limit: limits.section), offset: start)
    }
    guard at <= end, claimed <= UInt64(end - at) else {
      throw CARError(.truncatedSection, offset: start)
    }
    let sectionEnd = at + Int(claimed)
    let cidStart = at
    let cid: CID
    do {
      cid = try CID(bytes.extracting(0..<sectionEnd), at: &at)
    } catch {
      throw CARError(.malformedCID(error.reason), offset: error.offset)
    }
    offset = sectionEnd
    return (CARSection(start: start, cidRange: cidStart..<at, bodyRange: at..<sectionEnd), cid)
  }
}
