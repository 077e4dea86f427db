/// Builds values from DAG-CBOR, by the rules of ``DAGCBORScanner``.
///
/// Decoding and encoding again gives the same bytes, for everything that decodes.
package enum DAGCBORDecoder {
  /// An array or map that is being filled.
  private enum Unfinished {
    case array([IPLDValue])
    case map([IPLDMap.Entry], key: String)
  }

  /// The value that takes up all of `bytes`.
  ///
  /// - Throws: ``DAGCBORError`` with the offset of the first byte that breaks a rule.
  package static func decode(_ bytes: Span<UInt8>, profile: DAGCBORProfile = .dagCBOR)
    throws(DAGCBORError) -> IPLDValue
  {
    var scanner = DAGCBORScanner(profile: profile)
    var open: [Unfinished] = []
    var result = IPLDValue.null
    while let token = try scanner.next(in: bytes) {
      let value: IPLDValue
      switch token {
      case .null: value = .null
      case .boolean(let flag): value = .boolean(flag)
      case .unsigned(let number): value = .integer(Int128(number))
      case .negative(let number): value = .integer(-1 - Int128(number))
      case .float(let number): value = .float(number)
      case .bytes(let range): value = .bytes(bytes.array(range))
      case .string(let range): value = .string(text(bytes, range))
      case .link(let range): value = .link(try cid(bytes, range))
      case .array(let count):
        var items: [IPLDValue] = []
        items.reserveCapacity(min(count, 64))
        open.append(.array(items))
        continue
      case .map(let count):
        var entries: [IPLDMap.Entry] = []
        entries.reserveCapacity(min(count, 64))
        open.append(.map(entries, key: ""))
        continue
      case .key(let range):
        if case .map(let entries, _)? = open.popLast() {
          open.append(.map(entries, key: text(bytes, range)))
        }
        continue
      case .end:
        switch open.removeLast() {
        case .array(let items): value = .array(items)
        case .map(let entries, _): value = .map(IPLDMap(sorted: entries))
        }
      }
      switch open.popLast() {
      case .array(var items)?:
        items.append(value)
        open.append(.array(items))
      case .map(var entries, let key)?:
        entries.append(IPLDMap.Entry(key: key, value: value))
        open.append(.map(entries, key: key))
      case nil: result = value
      }
    }
    return result
  }

  /// Text that the scanner has found to be UTF-8.
  private static func text(_ bytes: Span<UInt8>, _ range: Range<Int>) -> String {
    String(decoding: bytes.array(range), as: UTF8.self)
  }

  private static func cid(_ bytes: Span<UInt8>, _ range: Range<Int>) throws(DAGCBORError) -> CID {
    do {
      return try CID(bytes.extracting(range))
    } catch {
      throw DAGCBORError(.malformedCID(error.reason), offset: range.lowerBound + error.offset)
    }
  }
}
