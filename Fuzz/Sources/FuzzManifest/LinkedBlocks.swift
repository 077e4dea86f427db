import FuzzSupport
import IPLD

/// Blocks that link to one another, written so that links stay links when content changes.
///
/// Each block is two bytes of length, the highest bit set for a raw block, and its content. A link
/// to the block with number n is a CID whose digest is 31 bytes of 0xee and n; it is replaced by
/// the CID that the block turns out to have. Blocks link to those before them.
struct LinkedBlocks {
  /// How many blocks are read.
  private static let maximumCount = 200
  private static let marker = [UInt8](repeating: 0xee, count: 31)

  /// The blocks with their CIDs.
  private(set) var blocks: [Block] = []

  /// Reads blocks, to the end or as far as there are whole ones.
  init(_ bytes: Span<UInt8>) {
    var place = 0
    while place + 2 <= bytes.count, blocks.count < Self.maximumCount {
      let length = Int(bytes[place]) | Int(bytes[place + 1] & 0x7f) << 8
      let codec: Codec = bytes[place + 1] & 0x80 == 0 ? .dagCBOR : .raw
      place += 2
      let end = min(place + length, bytes.count)
      var content = bytes.extracting(place..<end).copy
      link(&content)
      blocks.append(Block(cid: CID(codec: codec, hashing: content.span), bytes: content))
      place = end
    }
  }

  /// Puts the digests of blocks in the places of their numbers.
  private func link(_ content: inout [UInt8]) {
    var place = 0
    while place + 32 <= content.count {
      guard content[place] == 0xee, content[place..<place + 31].elementsEqual(Self.marker),
        Int(content[place + 31]) < blocks.count,
        let digest = blocks[Int(content[place + 31])].cid.multihash.sha256
      else {
        place += 1
        continue
      }
      content.replaceSubrange(place..<place + 32, with: digest.bytes)
      place += 32
    }
  }

  /// A link to the block with a number.
  static func link(to number: Int, _ codec: UInt8 = 0x71) throws -> IPLDValue {
    let bytes = [0x01, codec, 0x12, 0x20] + marker + [UInt8(number)]
    return .link(try CID(bytes.span))
  }

  /// Writes blocks in the form that is read.
  static func encode(_ blocks: [(bytes: [UInt8], isRaw: Bool)]) -> [UInt8] {
    blocks.flatMap { block in
      [UInt8(block.bytes.count & 0xff), UInt8(block.bytes.count >> 8) | (block.isRaw ? 0x80 : 0)]
        + block.bytes
    }
  }
}
