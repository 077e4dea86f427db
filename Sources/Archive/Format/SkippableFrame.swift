// offset  size  field
//      0     4  5C 2A 4D 18
//      4     4  u32: the length of what follows
//      8    16  the magic
//     24     4  u32 kind
//     28     …  by kind
//  last 8    8  XXH64 of all that

/// The frame that decoders pass over and that holds what makes an archive random-access (FORMAT 4).
package struct SkippableFrame: Equatable, Sendable {
  /// The kind of an index segment.
  package static let indexSegment: UInt32 = 1
  /// The kind of a footer.
  package static let footer: UInt32 = 2
  /// The kind of a note.
  package static let note: UInt32 = 3
  /// The kind of a page of the description of a parity group.
  package static let parityPage: UInt32 = 4
  /// The kind of the parity of a group.
  package static let parity: UInt32 = 5
  /// The first four bytes, as a number.
  package static let zstdMagic: UInt32 = 0x184d_2a5c
  /// How many bytes come before what the kind defines.
  package static let headerLength = 28
  /// How many bytes come after it.
  package static let checksumLength = 8
  /// The shortest frame: a kind, and nothing in it.
  package static let minimumLength = headerLength + checksumLength

  /// What it holds; a reader passes over kinds it does not know.
  package let kind: UInt32
  /// Where it begins in the file.
  package let offset: Int
  /// Its length, all of it.
  package let length: Int
  /// The checksum in its last eight bytes.
  package let checksum: UInt64

  /// Whether it is one of the frames of a parity group.
  var isParity: Bool { kind == Self.parityPage || kind == Self.parity }
  /// Where it ends.
  package var end: Int { offset + length }
  /// Where it lies.
  package var range: Range<Int> { offset..<end }

  /// A frame of which this is known.
  init(kind: UInt32, offset: Int, length: Int, checksum: UInt64) {
    (self.kind, self.offset, self.length, self.checksum) = (kind, offset, length, checksum)
  }

  /// Reads the frame that begins at `offset`, without testing its checksum.
  ///
  /// - Throws: ``ArchiveError`` if its first bytes are others, or the file ends inside it.
  package init(_ file: Span<UInt8>, at offset: Int) throws(ArchiveError) {
    let place = UInt64(clamping: offset)
    guard offset >= 0, offset <= file.count - Self.minimumLength else {
      throw ArchiveError(.truncated, offset: place)
    }
    guard file.u32(offset) == Self.zstdMagic else {
      throw ArchiveError(.malformedFrame("it is not a skippable frame"), offset: place)
    }
    let following = Int(file.u32(offset + 4))
    guard following >= Self.minimumLength - 8, ArchiveMagic.isAt(offset + 8, in: file) else {
      throw ArchiveError(
        .malformedFrame("it is a skippable frame of an unknown type"), offset: place)
    }
    guard following <= file.count - offset - 8 else {
      throw ArchiveError(.truncated, offset: place)
    }
    self.offset = offset
    length = following + 8
    kind = file.u32(offset + 24)
    checksum = file.u64(offset + length - 8)
  }

  /// Whether its checksum holds.
  package func holds(in file: Span<UInt8>) -> Bool {
    XXH64.hash(file.extracting(offset..<end - Self.checksumLength)) == checksum
  }

  /// The first 28 bytes of a frame whose kind defines `payloadLength` bytes; nil if that is more
  /// than a frame can have.
  package static func header(_ kind: UInt32, payloadLength: Int) -> [UInt8]? {
    guard let following = UInt32(exactly: payloadLength + minimumLength - 8) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(headerLength)
    bytes.append(littleEndian: zstdMagic)
    bytes.append(littleEndian: following)
    bytes.append(contentsOf: ArchiveMagic.bytes)
    bytes.append(littleEndian: kind)
    return bytes
  }
}
