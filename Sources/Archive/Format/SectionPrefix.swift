package import IPLD

/// What stands in front of a body in the CAR stream: `varint(length) CID`, where length counts the
/// CID and the body.
package struct SectionPrefix: Sendable {
  /// The CID.
  package let cid: CID
  /// How many bytes the prefix takes.
  package let length: Int
  /// How many bytes the body takes.
  package let bodyLength: UInt64

  /// Reads the prefix at `offset`.
  ///
  /// - Throws: ``ArchiveError`` for a length or a CID that cannot be. Its offset is that of the
  ///   frame, for which `place` stands, as content has none in the file.
  package init(_ content: Span<UInt8>, at offset: Int, place: UInt64) throws(ArchiveError) {
    var end = offset
    guard case .value(let total) = Varint.read(content, at: &end) else {
      throw ArchiveError(.malformedSection("its length is not a varint"), offset: place)
    }
    let start = end
    do {
      cid = try CID(content, at: &end)
    } catch {
      throw ArchiveError(.malformedSection("\(error)"), offset: place)
    }
    guard UInt64(end - start) <= total else {
      throw ArchiveError(.malformedSection("it is shorter than its CID"), offset: place)
    }
    length = end - offset
    bodyLength = total - UInt64(end - start)
  }

  /// The prefix of a section with this CID and a body of this length.
  init(_ cid: CID, bodyLength: UInt64) {
    var bytes: [UInt8] = []
    CARWriter.appendPrefix(cid, bodyLength: bodyLength, to: &bytes)
    (self.cid, self.bodyLength, length) = (cid, bodyLength, bytes.count)
  }

  /// How many bytes the section takes in the stream.
  package var sectionLength: UInt64 { UInt64(length) + bodyLength }

  /// Whether it has frames of its own.
  package var isLarge: Bool { bodyLength >= UInt64(ArchiveLimits.largeBody) }

  /// How many frames it takes, if it is large.
  package var frameCount: UInt64 {
    (bodyLength + UInt64(ArchiveLimits.bodyPerFrame) - 1) / UInt64(ArchiveLimits.bodyPerFrame)
  }

  /// How much of the body lies in frame number `index` of a large section.
  package func bodyLength(inFrame index: UInt64) -> Int {
    let start = index * UInt64(ArchiveLimits.bodyPerFrame)
    guard start < bodyLength else { return 0 }
    return Int(min(bodyLength - start, UInt64(ArchiveLimits.bodyPerFrame)))
  }

  /// How many bytes of content frame number `index` of a large section has.
  package func contentSize(ofFrame index: UInt64) -> Int {
    bodyLength(inFrame: index) + (index == 0 ? length : 0)
  }
}
