/// The header of a CAR of version 1: `varint(length)` and the DAG-CBOR map
/// `{roots: [link], version: 1}`.
///
/// Source: the [CAR v1 specification](https://ipld.io/specs/transport/car/carv1/).
package struct CARHeader: Equatable, Sendable {
  /// The roots, in order.
  package let roots: [CID]
  /// How many bytes the header takes, its length prefix included.
  package let length: Int

  /// Reads the header at `start`.
  ///
  /// - Throws: ``CARError``: anything but this map, in canonical DAG-CBOR, within the limit.
  package init(_ bytes: Span<UInt8>, at start: Int = 0, limits: CARLimits = .mapped)
    throws(CARError)
  {
    let (map, end) = try Self.readMap(bytes, at: start, limits: limits)
    guard case .integer(let version)? = map["version"] else {
      throw CARError(.malformedHeader, offset: start)
    }
    guard version == 1 else {
      throw CARError(.unknownVersion(UInt64(clamping: version)), offset: start)
    }
    guard let roots = map["roots"]?.array, map.entries.count == 2 else {
      throw CARError(.malformedHeader, offset: start)
    }
    var links: [CID] = []
    for root in roots {
      guard let link = root.link else { throw CARError(.malformedHeader, offset: start) }
      links.append(link)
    }
    self.roots = links
    length = end - start
  }

  /// A header to be written.
  package init(roots: [CID]) {
    self.roots = roots
    length = Self.encode(roots).count
  }

  /// The bytes, length prefix included.
  package var bytes: [UInt8] { Self.encode(roots) }

  private static func encode(_ roots: [CID]) -> [UInt8] {
    var map: [UInt8] = []
    DAGCBOREncoder.appendMapHead(2, to: &map)
    DAGCBOREncoder.appendString("roots", to: &map)
    DAGCBOREncoder.appendArrayHead(roots.count, to: &map)
    for root in roots { DAGCBOREncoder.appendLink(root, to: &map) }
    DAGCBOREncoder.appendString("version", to: &map)
    DAGCBOREncoder.appendUnsigned(1, to: &map)
    var bytes: [UInt8] = []
    Varint.append(UInt64(map.count), to: &bytes)
    return bytes + map
  }

  /// The map after the length prefix, and where it ends.
  static func readMap(_ bytes: Span<UInt8>, at start: Int, limits: CARLimits) throws(CARError)
    -> (IPLDMap, end: Int)
  {
    var offset = start
    let claimed: UInt64
    switch Varint.read(bytes, at: &offset) {
    case .value(let value): claimed = value
    case .truncated: throw CARError(.truncatedHeader, offset: bytes.count)
    case .tooLong, .notMinimal: throw CARError(.malformedLength, offset: start)
    }
    guard claimed > 0 else { throw CARError(.malformedHeader, offset: start) }
    guard claimed <= UInt64(limits.header) else {
      throw CARError(.headerTooLong(limit: limits.header), offset: start)
    }
    guard let range = bytes.readRange(&offset, length: Int(claimed)) else {
      throw CARError(.truncatedHeader, offset: bytes.count)
    }
    let value: IPLDValue
    do {
      value = try DAGCBORDecoder.decode(bytes.extracting(range))
    } catch {
      throw CARError(.headerNotDAGCBOR(error.reason), offset: range.lowerBound + error.offset)
    }
    guard let map = value.map else { throw CARError(.malformedHeader, offset: range.lowerBound) }
    return (map, offset)
  }
}

/// The wrapper of a CAR of version 2: where the CAR of version 1 lies inside it.
///
/// ```
/// offset  0  11 bytes   pragma: 0A and the DAG-CBOR map {version: 2}
///        11  16 bytes   characteristics
///        27   8 bytes   u64 little-endian: offset of the inner CAR
///        35   8 bytes   u64 little-endian: its length
///        43   8 bytes   u64 little-endian: offset of the index, which is not read
/// ```
/// Source: the [CAR v2 specification](https://ipld.io/specs/transport/car/carv2/).
package enum CARVersion2 {
  /// How many bytes the pragma and the fixed header take.
  package static let headerLength = 51

  /// The first eleven bytes of every CAR of version 2.
  package static let pragma: [UInt8] = [
    0x0a, 0xa1, 0x67, 0x76, 0x65, 0x72, 0x73, 0x69, 0x6f, 0x6e, 0x02,
  ]

  /// Where the CAR of version 1 lies in `bytes`: all of them, unless they begin with the pragma.
  ///
  /// - Throws: ``CARError`` when the fixed header is cut short or points outside of `bytes`.
  package static func payload(of bytes: Span<UInt8>) throws(CARError) -> Range<Int> {
    guard bytes.starts(with: pragma) else { return 0..<bytes.count }
    let (start, length) = try innerLocation(bytes)
    guard start <= UInt64(bytes.count), length <= UInt64(bytes.count) - start else {
      throw CARError(.malformedVersion2, offset: pragma.count + 16)
    }
    return Int(start)..<Int(start + length)
  }

  /// What the fixed header says, checked against nothing but itself.
  package static func innerLocation(_ bytes: Span<UInt8>) throws(CARError) -> (UInt64, UInt64) {
    var offset = pragma.count + 16
    guard let start = bytes.readLittleEndian(&offset, as: UInt64.self),
      let length = bytes.readLittleEndian(&offset, as: UInt64.self),
      bytes.count >= headerLength
    else { throw CARError(.truncatedHeader, offset: bytes.count) }
    guard start >= UInt64(headerLength), start <= UInt64(Int.max), length <= UInt64(Int.max) else {
      throw CARError(.malformedVersion2, offset: pragma.count + 16)
    }
    return (start, length)
  }
}
