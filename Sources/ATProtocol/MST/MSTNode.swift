package import IPLD

/// A node of a Merkle Search Tree, decoded strictly.
///
/// ```
/// {e: [{k: bytes, p: integer, t: link or null, v: link}, …], l: link or null}
/// ```
/// `l` leads to the keys before the first entry; each entry's key is the first `p` bytes of the key
/// before it and then `k`; `v` is its record; `t` leads to the keys between it and the next entry.
/// Source: [repository](https://atproto.com/specs/repository), "MST structure".
package struct MSTNode: Equatable, Sendable {
  /// One key of the node.
  package struct Entry: Equatable, Sendable {
    /// How many bytes the key shares with the one before it.
    package let prefixLength: Int
    /// Where the rest of the key lies in ``MSTNode/suffixes``.
    package let suffix: Range<Int>
    let valueLink: CommonCID
    let rightLink: CommonCID?

    /// The record.
    package var value: CID { valueLink.cid }
    /// The subtree between this key and the next.
    package var right: CID? { rightLink?.cid }
  }

  let leftLink: CommonCID?
  /// The subtree before the first key.
  package var left: CID? { leftLink?.cid }
  /// The keys.
  package let entries: [Entry]
  /// The rests of all keys, one after the other.
  package let suffixes: [UInt8]

  /// Why a block is not a tree node, and at which byte of it.
  package struct Malformed: Error, Equatable, Sendable {
    /// What breaks the form.
    package let reason: DAGCBORError.Reason?
    /// Where.
    package let offset: Int

    /// A broken rule, if it is one of DAG-CBOR's, and its place.
    package init(reason: DAGCBORError.Reason?, offset: Int) {
      self.reason = reason
      self.offset = offset
    }
  }

  /// Reads a node from its block.
  ///
  /// - Throws: ``Malformed``.
  package init(_ bytes: Span<UInt8>) throws(Malformed) {
    var (entries, suffixes): ([Entry], [UInt8]) = ([], [])
    leftLink = try Self.read(bytes, &entries, &suffixes)
    (self.entries, self.suffixes) = (entries, suffixes)
  }

  /// Reads a node from its block; appends its keys to those of other nodes.
  ///
  /// Every byte of a node but keys, digests and counts is determined, so the form is compared byte
  /// for byte.
  ///
  /// - Returns: the left subtree.
  /// - Throws: ``Malformed``; some keys may have been appended.
  static func read(
    _ bytes: Span<UInt8>, _ entries: inout [Entry], _ suffixes: inout [UInt8]
  ) throws(Malformed) -> CommonCID? {
    var reader = Reader()
    try reader.expect(0xa2_61_65, count: 3, bytes)  // map of 2, key "e"
    let count = try reader.head(major: 4, bytes)
    // An entry takes 50 bytes at the least, so a larger count is cut short already.
    guard count <= bytes.count / 50 else { throw reader.malformed(.truncated) }
    for _ in 0..<count {
      try reader.expect(0xa4_61_6b, count: 3, bytes)  // map of 4, key "k"
      let suffix = try reader.content(bytes)
      try reader.expect(0x61_70, count: 2, bytes)  // key "p"
      let prefixLength = try reader.head(major: 0, bytes)
      try reader.expect(0x61_74, count: 2, bytes)  // key "t"
      let right = try reader.linkOrNull(bytes)
      try reader.expect(0x61_76, count: 2, bytes)  // key "v"
      let value = try reader.link(bytes)
      let start = suffixes.count
      suffixes.append(contentsOf: bytes.extracting(suffix))
      entries.append(
        Entry(
          prefixLength: prefixLength, suffix: start..<suffixes.count, valueLink: value,
          rightLink: right))
    }
    try reader.expect(0x61_6c, count: 2, bytes)  // key "l"
    let left = try reader.linkOrNull(bytes)
    guard reader.offset == bytes.count else { throw reader.malformed(.trailingBytes) }
    return left
  }

  /// The keys, each put together whole; nil if one shares more than the key before it has.
  ///
  /// A key that is too long to be legal is cut off.
  package var keys: [[UInt8]]? {
    var keys: [[UInt8]] = []
    var (key, length): ([UInt8], Int) = ([], 0)
    for entry in entries {
      guard Self.read(entry, suffixes, &key, from: 0, &length) != nil else { return nil }
      keys.append(key)
    }
    return keys
  }

  /// Turns the key before an entry into the key of the entry.
  ///
  /// No key is held beyond one byte more than is legal, however long the prefixes that a node
  /// claims: each entry costs a bounded time.
  ///
  /// - Parameters:
  ///   - entry: the entry.
  ///   - suffixes: the rests of all keys.
  ///   - keys: holds the key, or its start, at its end.
  ///   - start: where the key begins in it.
  ///   - length: the length of all of the key.
  /// - Returns: whether the key could share more with the one before it than it says; nil when its
  ///   prefix is longer than the key before it.
  static func read(
    _ entry: Entry, _ suffixes: [UInt8], _ keys: inout [UInt8], from start: Int,
    _ length: inout Int
  ) -> Bool? {
    guard entry.prefixLength <= length else { return nil }
    let heldLength = keys.count - start
    let couldShareMore =
      entry.prefixLength < heldLength && !entry.suffix.isEmpty
      && keys[start + entry.prefixLength] == suffixes[entry.suffix.lowerBound]
    let shared = min(entry.prefixLength, heldLength)
    keys.removeLast(heldLength - shared)
    let suffix = suffixes.span.extracting(entry.suffix)
    keys.append(contentsOf: suffix.extracting(first: RecordPath.maximumLength + 1 - shared))
    length = entry.prefixLength + entry.suffix.count
    return couldShareMore
  }

  /// The subtree before the entry with this index, or after the last.
  func child(_ index: Int) -> CID? { index == 0 ? left : entries[index - 1].right }

  /// Whether a block begins as a node does; few others do.
  package static func isLikely(_ bytes: Span<UInt8>) -> Bool {
    bytes.count >= 3 && bytes[0] == 0xa2 && bytes[1] == 0x61 && bytes[2] == UInt8(ascii: "e")
  }

  /// Steps over the fixed parts of a node.
  private struct Reader {
    var offset = 0

    func malformed(_ reason: DAGCBORError.Reason? = nil) -> Malformed {
      Malformed(reason: reason, offset: offset)
    }

    /// Steps over this many bytes that have to be these, written as one number, the first byte in
    /// front.
    @inline(__always)
    mutating func expect(_ fixed: UInt64, count: Int, _ bytes: Span<UInt8>) throws(Malformed) {
      guard bytes.count - offset >= count else { throw malformed(.truncated) }
      if bytes.count - offset >= 8 {
        let word = UInt64(bigEndian: bytes.load(at: offset))
        guard word >> UInt64(64 - 8 * count) == fixed else { throw malformed() }
      } else {
        for index in 0..<count {
          let expected = UInt8(truncatingIfNeeded: fixed >> UInt64(8 * (count - 1 - index)))
          guard bytes[offset + index] == expected else { throw malformed() }
        }
      }
      offset += count
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
      guard information < 27 else { throw malformed() }
      do throws(DAGCBORError) {
        return Int(try DAGCBORScanner.readArgument(bytes, information, at: &offset))
      } catch {
        throw Malformed(reason: error.reason, offset: error.offset)
      }
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
    mutating func linkOrNull(_ bytes: Span<UInt8>) throws(Malformed) -> CommonCID? {
      guard offset < bytes.count else { throw malformed(.truncated) }
      if bytes[offset] == 0xf6 {
        offset += 1
        return nil
      }
      return try link(bytes)
    }

    /// A link as AT Protocol has them: tag 42 on 37 bytes.
    @inline(__always)
    mutating func link(_ bytes: Span<UInt8>) throws(Malformed) -> CommonCID {
      try expect(0xd8_2a_58_25_00, count: 5, bytes)
      if let link = CommonCID(bytes, at: offset), link.cid.isATProtocolLink {
        offset += 36
        return link
      }
      let start = offset
      do throws(CIDError) {
        _ = try CID(bytes, at: &offset)
      } catch {
        throw malformed(.malformedCID(error.reason))
      }
      throw Malformed(reason: .linkNotAllowed, offset: start)
    }
  }
}
