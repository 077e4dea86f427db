import IPLD

/// Blocks that a server sends after a repository and that have nothing to do with it.
package struct ForeignBlocks: Sendable, Hashable {
  /// How many.
  package var count: Int
  /// How many bytes each has; 8 at least if they are verifiable.
  package var size: Int
  /// Whether their CIDs are digests of SHA-256; otherwise their hash function is unknown.
  package var isVerifiable: Bool

  /// Blocks of this kind.
  package init(count: Int, size: Int, isVerifiable: Bool) {
    self.count = count
    self.size = size
    self.isVerifiable = isVerifiable
  }

  /// Blocks as they are written on a command line: `10000000x0?`, the question mark for an unknown
  /// hash function.
  package init?(_ text: String) {
    isVerifiable = !text.hasSuffix("?")
    let parts = (isVerifiable ? text : String(text.dropLast())).split(separator: "x")
    guard parts.count == 2, let count = Int(parts[0]), let size = Int(parts[1]) else { return nil }
    (self.count, self.size) = (count, size)
  }

  /// How many bytes their sections take.
  var length: Int {
    let section = block(0).cid.bytes.count + size
    return count * (Varint.length(of: UInt64(section)) + section)
  }

  /// One of them.
  func block(_ number: Int) -> Block {
    var bytes = [UInt8](repeating: 0xf6, count: size)
    for index in 0..<min(8, size) {
      bytes[index] = UInt8(truncatingIfNeeded: number >> (8 * index))
    }
    guard isVerifiable else {
      let digest = (0..<4).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
      let name: [UInt8] = [1, 0x55, 0x1e, 4] + digest
      do {
        return Block(cid: try CID(name.span), bytes: bytes)
      } catch {
        preconditionFailure("\(error)")
      }
    }
    return Block(cid: CID(codec: .dagCBOR, hashing: bytes.span), bytes: bytes)
  }
}
