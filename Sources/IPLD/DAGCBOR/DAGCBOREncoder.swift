/// Writes values as DAG-CBOR: one encoding for each value.
///
/// The building blocks are public, so that large structures can be written without a value in
/// between.
package enum DAGCBOREncoder {
  /// The encoding of `value`.
  ///
  /// - Throws: ``DAGCBORError`` for what DAG-CBOR cannot say: floats that are not finite, integers
  ///   outside −2^64 … 2^64 − 1, nesting beyond ``DAGCBORScanner/maximumDepth``. Its offset counts
  ///   the bytes written before.
  package static func encode(_ value: IPLDValue) throws(DAGCBORError) -> [UInt8] {
    var bytes: [UInt8] = []
    try append(value, to: &bytes)
    return bytes
  }

  /// Appends the encoding of `value`; throws as ``encode(_:)`` does.
  package static func append(_ value: IPLDValue, to bytes: inout [UInt8]) throws(DAGCBORError) {
    try append(value, to: &bytes, depth: 0)
  }

  /// The recursion is on a value of the caller's own, and ends at the scanner's depth.
  private static func append(_ value: IPLDValue, to bytes: inout [UInt8], depth: Int)
    throws(DAGCBORError)
  {
    switch value {
    case .null: bytes.append(0xf6)
    case .boolean(let flag): bytes.append(flag ? 0xf5 : 0xf4)
    case .integer(let number):
      let argument = number < 0 ? -1 - number : number
      guard let argument = UInt64(exactly: argument) else {
        throw DAGCBORError(.integerOutOfRange, offset: bytes.count)
      }
      appendHead(major: number < 0 ? 1 : 0, argument, to: &bytes)
    case .float(let number):
      guard number.isFinite else { throw DAGCBORError(.notFinite, offset: bytes.count) }
      bytes.append(0xfb)
      appendBigEndian(number.bitPattern, to: &bytes)
    case .string(let text): appendString(text, to: &bytes)
    case .bytes(let content): appendBytes(content, to: &bytes)
    case .link(let cid): appendLink(cid, to: &bytes)
    case .array(let items):
      guard depth < DAGCBORScanner.maximumDepth else {
        throw DAGCBORError(.tooDeep, offset: bytes.count)
      }
      appendArrayHead(items.count, to: &bytes)
      for item in items { try append(item, to: &bytes, depth: depth + 1) }
    case .map(let map):
      guard depth < DAGCBORScanner.maximumDepth else {
        throw DAGCBORError(.tooDeep, offset: bytes.count)
      }
      appendMapHead(map.entries.count, to: &bytes)
      for entry in map.entries {
        appendString(entry.key, to: &bytes)
        try append(entry.value, to: &bytes, depth: depth + 1)
      }
    }
  }

  /// Appends the head of an array of `count` items.
  package static func appendArrayHead(_ count: Int, to bytes: inout [UInt8]) {
    appendHead(major: 4, UInt64(count), to: &bytes)
  }

  /// Appends the head of a map of `count` entries, whose keys the caller appends in DAG-CBOR's
  /// order.
  package static func appendMapHead(_ count: Int, to bytes: inout [UInt8]) {
    appendHead(major: 5, UInt64(count), to: &bytes)
  }

  /// Appends an integer that is not negative.
  package static func appendUnsigned(_ number: UInt64, to bytes: inout [UInt8]) {
    appendHead(major: 0, number, to: &bytes)
  }

  /// Appends null.
  package static func appendNull(to bytes: inout [UInt8]) { bytes.append(0xf6) }

  /// Appends a text string.
  package static func appendString(_ text: String, to bytes: inout [UInt8]) {
    let content = text.utf8
    appendHead(major: 3, UInt64(content.count), to: &bytes)
    bytes.append(contentsOf: content)
  }

  /// Appends a byte string.
  package static func appendBytes(_ content: some Collection<UInt8>, to bytes: inout [UInt8]) {
    appendHead(major: 2, UInt64(content.count), to: &bytes)
    bytes.append(contentsOf: content)
  }

  /// Appends a link: tag 42 on a byte string of a zero byte and the binary CID.
  package static func appendLink(_ cid: CID, to bytes: inout [UInt8]) {
    let content = cid.bytes
    bytes.append(0xd8)
    bytes.append(42)
    appendHead(major: 2, UInt64(content.count + 1), to: &bytes)
    bytes.append(0)
    bytes.append(contentsOf: content)
  }

  private static func appendHead(major: UInt8, _ argument: UInt64, to bytes: inout [UInt8]) {
    let major = major << 5
    switch argument {
    case 0..<24: bytes.append(major | UInt8(argument))
    case 24..<0x100:
      bytes.append(major | 24)
      bytes.append(UInt8(argument))
    case 0x100..<0x1_0000:
      bytes.append(major | 25)
      appendBigEndian(UInt16(argument), to: &bytes)
    case 0x1_0000..<0x1_0000_0000:
      bytes.append(major | 26)
      appendBigEndian(UInt32(argument), to: &bytes)
    default:
      bytes.append(major | 27)
      appendBigEndian(argument, to: &bytes)
    }
  }

  private static func appendBigEndian(_ number: some FixedWidthInteger, to bytes: inout [UInt8]) {
    var shift = number.bitWidth
    while shift > 0 {
      shift -= 8
      bytes.append(UInt8(truncatingIfNeeded: number >> shift))
    }
  }
}
