package import Archive
package import IPLD

/// Everything that an archive gives back.
package struct ArchiveContents: Equatable, Sendable {
  /// Something that two ways of reading do not agree on.
  package struct Contradiction: Error, CustomStringConvertible {
    /// What a person reads.
    package let description: String
  }

  /// The CAR header.
  package let header: [UInt8]
  /// The sections in order.
  package let sections: [Block]
  /// The newest manifest.
  package let head: CID?

  /// What an archive should give back.
  package init(header: [UInt8], sections: [Block], head: CID?) {
    self.header = header
    self.sections = sections
    self.head = head
  }

  /// Reads everything, by number and by CID, and as a stream.
  ///
  /// - Throws: what the reader throws, and ``Contradiction`` if it does not come out the same each
  ///   time.
  package init(of reader: ArchiveReader) throws {
    header = try reader.carHeader
    head = reader.generation.head?.cid
    var sections: [Block] = []
    for ordinal in 0..<reader.generation.sectionCount {
      let section = try reader.section(at: ordinal)
      guard try reader.ordinal(of: section.cid) == ordinal else {
        throw Contradiction(description: "\(section.cid) is not number \(ordinal) by its CID")
      }
      guard let body = try reader.body(of: section.cid), section.bodyLength == UInt64(body.count)
      else { throw Contradiction(description: "\(section.cid) has another length by its CID") }
      sections.append(Block(cid: section.cid, bytes: body))
    }
    self.sections = sections
    var copy = header
    try reader.copySections([0..<reader.generation.sectionCount]) { copy += $0.array }
    guard copy == stream, UInt64(copy.count) == reader.generation.streamLength else {
      throw Contradiction(description: "the stream is not its sections one after another")
    }
  }

  /// The CAR that it is.
  package var stream: [UInt8] {
    var stream = header
    for block in sections { CARWriter.appendSection(block.cid, block.bytes.span, to: &stream) }
    return stream
  }

  /// What is different in `found`, in a sentence; nil if nothing is.
  package func difference(from found: ArchiveContents) -> String? {
    if header != found.header { return "the CAR header is another" }
    if head != found.head {
      return
        "the head is \(found.head.map { "\($0)" } ?? "none"), and not \(head.map { "\($0)" } ?? "none")"
    }
    let pairs = zip(sections, found.sections)
    if let place = Array(pairs).firstIndex(where: { $0 != $1 }) {
      return "section \(place) is another"
    }
    guard sections.count == found.sections.count else {
      return "there are \(found.sections.count) sections, and not \(sections.count)"
    }
    return nil
  }
}
