public import IPLD

/// A node of a Merkle Search Tree, decoded strictly.
///
/// ```
/// {e: [{k: bytes, p: integer, t: link or null, v: link}, …], l: link or null}
/// ```
/// `l` leads to the keys before the first entry; each entry's key is the first `p` bytes of the key before it and then `k`; `v` is
/// its record; `t` leads to the keys between it and the next entry. Source:
/// [repository](https://atproto.com/specs/repository), "MST structure".
public struct MSTNode: Equatable, Sendable {
  /// One key of the node.
  public struct Entry: Equatable, Sendable {
    /// How many bytes the key shares with the one before it.
    public let prefixLength: Int
    /// Where the rest of the key lies in ``MSTNode/suffixes``.
    public let suffix: Range<Int>
    /// The record.
    public let value: CID
    /// The subtree between this key and the next.
    public let right: CID?
  }

  /// The subtree before the first key.
  public let left: CID?
  /// The keys.
  public let entries: [Entry]
  /// The rests of all keys, one after the other.
  public let suffixes: [UInt8]

  /// Why a block is not a tree node, and at which byte of it.
  public struct Malformed: Error, Equatable, Sendable {
    /// What breaks the form.
    public let reason: DAGCBORError.Reason?
    /// Where.
    public let offset: Int

    /// A broken rule, if it is one of DAG-CBOR's, and its place.
    public init(reason: DAGCBORError.Reason?, offset: Int) {
      self.reason = reason
      self.offset = offset
    }
  }

  /// Reads a node from its block.
  ///
  /// Every byte of a node but keys, digests and counts is determined, so the form is compared byte for byte.
  ///
  /// - Throws: ``Malformed``.
  public init(_ bytes: Span<UInt8>) throws(Malformed) {
    var reader = Reader()
    try reader.expect([0xa2, 0x61, 0x65], bytes)  // map of 2, key "e"
    let count = try reader.head(major: 4, bytes)
    // An entry takes 50 bytes at the least, so a larger count is cut short already.
    guard count <= bytes.count / 50 else { throw reader.malformed(.truncated) }
    var entries: [Entry] = []
    entries.reserveCapacity(count)
    var suffixes: [UInt8] = []
    suffixes.reserveCapacity(count * 16)
    for _ in 0..<count {
      try reader.expect([0xa4, 0x61, 0x6b], bytes)  // map of 4, key "k"
      let suffix = try reader.content(bytes)
      try reader.expect([0x61, 0x70], bytes)  // key "p"
      let prefixLength = try reader.head(major: 0, bytes)
      try reader.expect([0x61, 0x74], bytes)  // key "t"
      let right = try reader.linkOrNull(bytes)
      try reader.expect([0x61, 0x76], bytes)  // key "v"
      let value = try reader.link(bytes)
      let start = suffixes.count
      for index in suffix { suffixes.append(bytes[index]) }
      entries.append(
        Entry(
          prefixLength: prefixLength, suffix: start..<suffixes.count, value: value, right: right))
    }
    try reader.expect([0x61, 0x6c], bytes)  // key "l"
    left = try reader.linkOrNull(bytes)
    guard reader.offset == bytes.count else { throw reader.malformed(.trailingBytes) }
    self.entries = entries
    self.suffixes = suffixes
  }

  /// Steps over the fixed parts of a node.
  private struct Reader {
    var offset = 0

    func malformed(_ reason: DAGCBORError.Reason? = nil) -> Malformed {
      Malformed(reason: reason, offset: offset)
    }

    @inline(__always)
    mutating func expect(_ fixed: StaticArray, _ bytes: Span<UInt8>) throws(Malformed) {
      guard bytes.count - offset >= fixed.count else { throw malformed(.truncated) }
      for index in 0..<fixed.count where bytes[offset + index] != fixed[index] {
        throw malformed()
      }
      offset += fixed.count
    }

    /// The argument of a head of this major type, in its shortest form.
    @inline(__always)
    mutating func head(major: UInt8, _ bytes: Span<UInt8>) throws(Malformed) -> Int {
      guard offset < bytes.count else { throw malformed(.truncated) }
      let initial = bytes[offset]
      guard initial >> 5 == major else { throw malformed() }
      let information = initial & 31
      if information < 24 {
        offset += 1
        return Int(information)
      }
      return try longHead(information, bytes)
    }

    private mutating func longHead(_ information: UInt8, _ bytes: Span<UInt8>) throws(Malformed)
      -> Int
    {
      var at = offset + 1
      let value: UInt64?
      let least: UInt64
      switch information {
      case 24: (value, least) = (bytes.readByte(&at).map(UInt64.init), 24)
      case 25: (value, least) = (bytes.readBigEndian(&at, as: UInt16.self).map(UInt64.init), 0x100)
      case 26:
        (value, least) = (bytes.readBigEndian(&at, as: UInt32.self).map(UInt64.init), 0x1_0000)
      default: throw malformed()
      }
      guard let value else { throw malformed(.truncated) }
      guard value >= least else { throw malformed(.notMinimal) }
      offset = at
      return Int(value)
    }

    @inline(__always)
    mutating func content(_ bytes: Span<UInt8>) throws(Malformed) -> Range<Int> {
      let length = try head(major: 2, bytes)
      guard let range = bytes.readRange(&offset, length: length) else {
        throw malformed(.truncated)
      }
      return range
    }

    @inline(__always)
    mutating func linkOrNull(_ bytes: Span<UInt8>) throws(Malformed) -> CID? {
      guard offset < bytes.count else { throw malformed(.truncated) }
      if bytes[offset] == 0xf6 {
        offset += 1
        return nil
      }
      return try link(bytes)
    }

    /// A link as AT Protocol has them: tag 42 on 37 bytes.
    @inline(__always)
    mutating func link(_ bytes: Span<UInt8>) throws(Malformed) -> CID {
      try expect([0xd8, 0x2a, 0x58, 0x25, 0x00], bytes)
      let start = offset
      let cid: CID
      do throws(CIDError) {
        cid = try CID(bytes, at: &offset)
      } catch {
        throw malformed(.malformedCID(error.reason))
      }
      guard offset - start == 36, cid.isATProtocolLink else {
        throw Malformed(reason: .linkNotAllowed, offset: start)
      }
      return cid
    }
  }
}

/// Up to eight bytes written out in the source, held without an allocation.
private struct StaticArray: ExpressibleByArrayLiteral {
  let count: Int
  private let word: UInt64

  @inline(__always)
  init(arrayLiteral elements: UInt8...) {
    count = elements.count
    word = elements.reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  @inline(__always)
  subscript(index: Int) -> UInt8 { UInt8(truncatingIfNeeded: word >> (8 * UInt64(index))) }
}
