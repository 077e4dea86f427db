import IPLD

/// Reads JSON by the letter of RFC 8259, and links and bytes by AT Protocol's rules.
///
/// Invariants:
/// 1. `offset` never passes the end of the text, and only grows.
/// 2. `open` holds the arrays and objects that have begun and not ended; nothing recurses.
/// 3. `values` holds the finished items of all of them, outermost first, and `keys` the keys of all
///    objects among them.
struct JSONParser {
  private struct Unfinished {
    let isObject: Bool
    let start: Int
    let firstValue: Int
    let firstKey: Int
  }

  let bytes: [UInt8]
  var offset = 0
  private var open: [Unfinished] = []
  private var values: [IPLDValue] = []
  private var keys: [(text: String, offset: Int)] = []

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// The value that takes up the whole text.
  mutating func parse() throws(JSONError) -> IPLDValue {
    try checkText()
    let value = try next()
    guard offset == bytes.count else { throw error(.trailingText) }
    return value
  }

  /// The values that make up the whole text, one at least, with nothing but space between them.
  mutating func parseAll() throws(JSONError) -> [IPLDValue] {
    try checkText()
    var values = [try next()]
    while offset < bytes.count { values.append(try next()) }
    return values
  }

  private func checkText() throws(JSONError) {
    do {
      _ = try UTF8Span(validating: bytes.span)
    } catch {
      throw JSONError(.notUTF8, offset: error.byteOffsets.lowerBound)
    }
  }

  /// The next value, and the space after it.
  private mutating func next() throws(JSONError) -> IPLDValue {
    while true {
      guard try beginValue() else { continue }
      // A value has ended, and perhaps what it stands in ends with it.
      while let innermost = open.last {
        if try goesOn(innermost) { break }
        try close(innermost)
      }
      guard open.isEmpty else { continue }
      skipSpace()
      return values.removeLast()
    }
  }

  /// Reads a scalar or an empty array or object, or else the start of a full one: then the answer
  /// is false.
  private mutating func beginValue() throws(JSONError) -> Bool {
    switch try peek() {
    case UInt8(ascii: "{"): return try begin(isObject: true)
    case UInt8(ascii: "["): return try begin(isObject: false)
    case UInt8(ascii: "\""): values.append(.string(try readString()))
    case UInt8(ascii: "t"): try read("true", .boolean(true))
    case UInt8(ascii: "f"): try read("false", .boolean(false))
    case UInt8(ascii: "n"): try read("null", .null)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
      values.append(try readNumber())
    default: throw error(.unexpectedByte)
    }
    return true
  }

  private mutating func begin(isObject: Bool) throws(JSONError) -> Bool {
    guard open.count < DAGCBORScanner.maximumDepth else { throw error(.tooDeep) }
    let unfinished = Unfinished(
      isObject: isObject, start: offset, firstValue: values.count, firstKey: keys.count)
    open.append(unfinished)
    offset += 1
    if try peek() == Self.end(of: unfinished) {
      offset += 1
      try close(unfinished)
      return true
    }
    if isObject { try readKey() }
    return false
  }

  /// Steps over a comma and the key after it, or over the end of what is open: then the answer is
  /// false.
  private mutating func goesOn(_ innermost: Unfinished) throws(JSONError) -> Bool {
    switch try peek() {
    case UInt8(ascii: ","):
      offset += 1
      if innermost.isObject { try readKey() }
      return true
    case Self.end(of: innermost):
      offset += 1
      return false
    default: throw error(.unexpectedByte)
    }
  }

  private static func end(of unfinished: Unfinished) -> UInt8 {
    unfinished.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")
  }

  /// Makes one value of all the items of what has ended.
  private mutating func close(_ unfinished: Unfinished) throws(JSONError) {
    open.removeLast()
    let items = values[unfinished.firstValue...]
    let value: IPLDValue
    if unfinished.isObject {
      value = try Self.object(keys[unfinished.firstKey...], items, at: unfinished.start)
    } else {
      value = .array(Array(items))
    }
    values.removeSubrange(unfinished.firstValue...)
    keys.removeSubrange(unfinished.firstKey...)
    values.append(value)
  }

  private static func object(
    _ keys: ArraySlice<(text: String, offset: Int)>, _ items: ArraySlice<IPLDValue>, at start: Int
  ) throws(JSONError) -> IPLDValue {
    for key in keys {
      switch key.text {
      case DataModelJSON.linkKey:
        // The text has to be the canonical one.
        guard keys.count == 1, let text = items.first?.string, let cid = try? CID(text),
          cid.description == text
        else { throw JSONError(.malformedLink, offset: start) }
        return .link(cid)
      case DataModelJSON.bytesKey:
        guard keys.count == 1, let text = items.first?.string, let bytes = Base64.decode(text)
        else { throw JSONError(.malformedBytes, offset: start) }
        return .bytes(bytes)
      default: break
      }
    }
    let entries = zip(keys, items).map { IPLDMap.Entry(key: $0.text, value: $1) }
    guard let map = IPLDMap(unsorted: entries) else {
      var seen: Set<[UInt8]> = []
      let repeated = keys.first { !seen.insert(Array($0.text.utf8)).inserted }
      throw JSONError(.duplicateKey, offset: repeated?.offset ?? start)
    }
    return .map(map)
  }

  private mutating func readKey() throws(JSONError) {
    try expect(UInt8(ascii: "\""))
    let start = offset
    keys.append((try readString(), start))
    try expect(UInt8(ascii: ":"))
    offset += 1
  }

  /// Makes sure that a byte is the next; it stays to be read.
  private mutating func expect(_ byte: UInt8) throws(JSONError) {
    guard try peek() == byte else { throw error(.unexpectedByte) }
  }

  /// Reads a word that stands for a value.
  private mutating func read(_ word: String, _ value: IPLDValue) throws(JSONError) {
    for letter in word.utf8 {
      guard offset < bytes.count else { throw error(.truncated) }
      guard bytes[offset] == letter else { throw error(.unexpectedByte) }
      offset += 1
    }
    values.append(value)
  }

  /// An error at the next byte.
  func error(_ reason: JSONError.Reason) -> JSONError { JSONError(reason, offset: offset) }

  /// The next byte that is not white space; it stays to be read.
  private mutating func peek() throws(JSONError) -> UInt8 {
    skipSpace()
    guard offset < bytes.count else { throw error(.truncated) }
    return bytes[offset]
  }

  private mutating func skipSpace() {
    while offset < bytes.count {
      switch bytes[offset] {
      case 0x20, 0x09, 0x0a, 0x0d: offset += 1
      default: return
      }
    }
  }
}
