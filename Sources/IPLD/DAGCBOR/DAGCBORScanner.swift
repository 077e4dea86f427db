/// Reads DAG-CBOR token by token, strictly, without building a value.
///
/// Every rule of the [DAG-CBOR specification](https://ipld.io/specs/codecs/dag-cbor/spec/) is
/// checked as the tokens go by: definite lengths, shortest heads, text keys in order (shorter
/// first, then bytewise) and once each, UTF-8, tag 42 only, floats of 64 bits that are finite.
/// ``DAGCBORProfile/atproto`` adds the rules of AT Protocol's data model.
///
/// Invariants:
/// 1. `offset` never passes the end of the bytes, and only grows.
/// 2. `current` is the innermost open array or map, or stands for the item as a whole; `outer`
///    holds what is around it, outermost first, never more than ``maximumDepth``; nothing recurses.
/// 3. A claimed count is compared with the bytes that are left before anything is made of it.
///
/// One scanner can read many items, one after the other: call ``restart()`` between them, and it
/// allocates nothing.
package struct DAGCBORScanner: Sendable {
  /// How deep arrays and maps may nest.
  ///
  /// AT Protocol asks for 32 at least; nothing that people write comes near 256.
  package static let maximumDepth = 256

  /// One step of the scan.
  ///
  /// Ranges are offsets into the bytes.
  package enum Token: Equatable, Sendable {
    /// null.
    case null
    /// false or true.
    case boolean(Bool)
    /// An integer, 0 and up.
    case unsigned(UInt64)
    /// An integer below 0: −1 minus this.
    case negative(UInt64)
    /// A float.
    case float(Double)
    /// A byte string's content.
    case bytes(Range<Int>)
    /// A text string's content.
    case string(Range<Int>)
    /// A link's CID in binary form, without the zero byte in front.
    case link(Range<Int>)
    /// An array of this many items begins.
    case array(Int)
    /// A map of this many entries begins; each is a ``key(_:)`` and what belongs to a value.
    case map(Int)
    /// A map entry's key.
    case key(Range<Int>)
    /// The innermost open array or map ends.
    case end
  }

  private struct Container {
    enum Kind { case array, map, whole }

    /// Items, or entries, not begun yet.
    var remaining: Int
    let kind: Kind
    /// In a map: whether the value of the last key is still to come.
    var awaitsValue = false
    /// In a map: where the last key lies; empty before the first.
    var lastKey = 0..<0
  }

  /// Which rules hold.
  package let profile: DAGCBORProfile
  /// The offset of the next byte to read.
  package private(set) var offset = 0

  private var current = Container(remaining: 1, kind: .whole)
  private var outer: [Container] = []

  /// A scanner at the start of an item.
  package init(profile: DAGCBORProfile = .dagCBOR) {
    self.profile = profile
    outer.reserveCapacity(16)
  }

  /// How many arrays and maps are open.
  package var depth: Int { outer.count }

  /// Goes back to the start, for another item.
  @inline(__always)
  package mutating func restart() {
    offset = 0
    current = Container(remaining: 1, kind: .whole)
    outer.removeAll(keepingCapacity: true)
  }

  /// The next token, or nil when the item, and the bytes with it, are at their end.
  ///
  /// - Throws: ``DAGCBORError`` at the first rule that is broken.
  package mutating func next(in bytes: Span<UInt8>) throws(DAGCBORError) -> Token? {
    try step(bytes)
  }

  /// Checks one item that takes up all of `bytes`.
  ///
  /// Says what cheap questions need to know, so that a closer look can be saved for the items that
  /// deserve it.
  ///
  /// - Parameters:
  ///   - bytes: one item, and nothing else.
  ///   - watchedKey: a key of up to eight bytes that ``DAGCBORSummary/hasWatchedKey`` speaks of.
  /// - Throws: ``DAGCBORError`` at the first rule that is broken.
  package mutating func check(_ bytes: Span<UInt8>, watching watchedKey: ShortKey? = nil)
    throws(DAGCBORError) -> DAGCBORSummary
  {
    restart()
    var summary = DAGCBORSummary()
    while let token = try step(bytes) {
      switch token {
      case .link: summary.linkCount += 1
      case .key(let range):
        if let watchedKey, watchedKey.matches(bytes, range) { summary.hasWatchedKey = true }
      case .map where depth == 1: summary.isMap = true
      default: break
      }
    }
    return summary
  }

  @inline(__always)
  private mutating func step(_ bytes: Span<UInt8>) throws(DAGCBORError) -> Token? {
    if current.awaitsValue {
      current.awaitsValue = false
    } else if current.remaining > 0 {
      current.remaining -= 1
      if current.kind == .map {
        let key = try readKey(bytes, after: current.lastKey)
        current.lastKey = key
        current.awaitsValue = true
        return .key(key)
      }
    } else if let around = outer.popLast() {
      current = around
      return .end
    } else {
      guard offset == bytes.count else { throw DAGCBORError(.trailingBytes, offset: offset) }
      return nil
    }
    return try readItem(bytes)
  }

  @inline(__always)
  private mutating func readItem(_ bytes: Span<UInt8>) throws(DAGCBORError) -> Token {
    let start = offset
    let (major, argument) = try readHead(bytes)
    switch major {
    case 0:
      if profile == .atproto && argument > UInt64(Int64.max) {
        throw DAGCBORError(.integerOutOfRange, offset: start)
      }
      return .unsigned(argument)
    case 1:
      if profile == .atproto && argument > UInt64(Int64.max) {
        throw DAGCBORError(.integerOutOfRange, offset: start)
      }
      return .negative(argument)
    case 2:
      return .bytes(try readContent(bytes, argument))
    case 3:
      let range = try readContent(bytes, argument)
      guard isUTF8(bytes, range) else { throw DAGCBORError(.notUTF8, offset: range.lowerBound) }
      return .string(range)
    case 4:
      return .array(try open(bytes, argument, .array, at: start))
    case 5:
      return .map(try open(bytes, argument, .map, at: start))
    case 6:
      return .link(try readLink(bytes, tag: argument, at: start))
    default:
      return try readSimple(bytes, argument, at: start)
    }
  }

  /// The major type and argument of a head.
  ///
  /// For major type 7 the argument is the additional information, not what follows.
  @inline(__always)
  private mutating func readHead(_ bytes: Span<UInt8>) throws(DAGCBORError) -> (UInt8, UInt64) {
    guard offset < bytes.count else { throw DAGCBORError(.truncated, offset: bytes.count) }
    let initial = bytes[offset]
    let information = initial & 31
    if information < 24 || initial >= 0xe0 {
      offset += 1
      return (initial >> 5, UInt64(information))
    }
    return (initial >> 5, try Self.readArgument(bytes, information, at: &offset))
  }

  /// The argument of the head at `offset` whose additional information is this, 24 or more, in its
  /// shortest form; moves `offset` after it.
  package static func readArgument(
    _ bytes: Span<UInt8>, _ information: UInt8, at offset: inout Int
  ) throws(DAGCBORError) -> UInt64 {
    let start = offset
    var at = offset + 1
    let argument: UInt64?
    let least: UInt64
    switch information {
    case 24: (argument, least) = (bytes.readByte(&at).map(UInt64.init), 24)
    case 25:
      (argument, least) = (bytes.readBigEndian(&at, as: UInt16.self).map(UInt64.init), 1 << 8)
    case 26:
      (argument, least) = (bytes.readBigEndian(&at, as: UInt32.self).map(UInt64.init), 1 << 16)
    case 27: (argument, least) = (bytes.readBigEndian(&at, as: UInt64.self), 1 << 32)
    case 31: throw DAGCBORError(.indefiniteLength, offset: start)
    default: throw DAGCBORError(.reservedHead, offset: start)
    }
    guard let argument else { throw DAGCBORError(.truncated, offset: bytes.count) }
    guard argument >= least else { throw DAGCBORError(.notMinimal, offset: start) }
    offset = at
    return argument
  }

  @inline(__always)
  private mutating func readContent(_ bytes: Span<UInt8>, _ length: UInt64) throws(DAGCBORError)
    -> Range<Int>
  {
    guard length <= UInt64(bytes.count - offset) else {
      throw DAGCBORError(.truncated, offset: bytes.count)
    }
    let range = offset..<offset + Int(length)
    offset = range.upperBound
    return range
  }

  /// Opens an array or a map: every item takes a byte at least, every entry two, so a larger count
  /// is cut short already.
  @inline(__always)
  private mutating func open(
    _ bytes: Span<UInt8>, _ count: UInt64, _ kind: Container.Kind, at start: Int
  ) throws(DAGCBORError) -> Int {
    guard count <= UInt64(bytes.count - offset) / (kind == .map ? 2 : 1) else {
      throw DAGCBORError(.truncated, offset: bytes.count)
    }
    guard outer.count < Self.maximumDepth else { throw DAGCBORError(.tooDeep, offset: start) }
    outer.append(current)
    current = Container(remaining: Int(count), kind: kind)
    return Int(count)
  }

  @inline(__always)
  private mutating func readKey(_ bytes: Span<UInt8>, after last: Range<Int>) throws(DAGCBORError)
    -> Range<Int>
  {
    let start = offset
    let (major, length) = try readHead(bytes)
    guard major == 3 else { throw DAGCBORError(.keyNotString, offset: start) }
    let key = try readContent(bytes, length)
    guard isUTF8(bytes, key) else { throw DAGCBORError(.notUTF8, offset: key.lowerBound) }
    // The first key of a map has no predecessor: its head lies before it, so no key has an upper
    // bound of 0.
    if last.upperBound > 0 && key.count <= last.count {
      try checkOrder(bytes, last, key, at: start)
    }
    return key
  }

  private func checkOrder(
    _ bytes: Span<UInt8>, _ last: Range<Int>, _ key: Range<Int>, at start: Int
  ) throws(DAGCBORError) {
    guard key.count == last.count else { throw DAGCBORError(.keysNotSorted, offset: start) }
    for index in 0..<key.count {
      let (old, new) = (bytes[last.lowerBound + index], bytes[key.lowerBound + index])
      if new > old { return }
      if new < old { throw DAGCBORError(.keysNotSorted, offset: start) }
    }
    throw DAGCBORError(.duplicateKey, offset: start)
  }

  private mutating func readLink(_ bytes: Span<UInt8>, tag: UInt64, at start: Int)
    throws(DAGCBORError) -> Range<Int>
  {
    guard tag == 42 else { throw DAGCBORError(.unknownTag, offset: start) }
    let inner = offset
    let (major, length) = try readHead(bytes)
    guard major == 2 else { throw DAGCBORError(.notALink, offset: inner) }
    let content = try readContent(bytes, length)
    guard let first = content.first, bytes[first] == 0 else {
      throw DAGCBORError(.notALink, offset: inner)
    }
    let range = first + 1..<content.upperBound
    let cid: CID
    do {
      cid = try CID(bytes.extracting(range))
    } catch {
      throw DAGCBORError(.malformedCID(error.reason), offset: range.lowerBound + error.offset)
    }
    if profile == .atproto && !cid.isATProtocolLink {
      throw DAGCBORError(.linkNotAllowed, offset: start)
    }
    return range
  }

  private mutating func readSimple(_ bytes: Span<UInt8>, _ information: UInt64, at start: Int)
    throws(DAGCBORError) -> Token
  {
    switch information {
    case 20: return .boolean(false)
    case 21: return .boolean(true)
    case 22: return .null
    case 25, 26: throw DAGCBORError(.shortFloat, offset: start)
    case 27:
      guard let bits = bytes.readBigEndian(&offset, as: UInt64.self) else {
        throw DAGCBORError(.truncated, offset: bytes.count)
      }
      if profile == .atproto { throw DAGCBORError(.floatNotAllowed, offset: start) }
      let value = Double(bitPattern: bits)
      guard value.isFinite else { throw DAGCBORError(.notFinite, offset: start) }
      return .float(value)
    case 28, 29, 30: throw DAGCBORError(.reservedHead, offset: start)
    case 31: throw DAGCBORError(.indefiniteLength, offset: start)
    default: throw DAGCBORError(.unknownSimpleValue, offset: start)
    }
  }

  /// Eight bytes at a time while they are ASCII, the library's validation from the first that is
  /// not.
  @inline(__always)
  private func isUTF8(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    var at = range.lowerBound
    while range.upperBound - at >= 8 {
      if bytes.load(at: at, as: UInt64.self) & 0x8080_8080_8080_8080 != 0 {
        return isUTF8Slowly(bytes, at..<range.upperBound)
      }
      at += 8
    }
    let rest = range.upperBound - at
    if rest > 0, bytes.count - at >= 8 {
      // What follows the text is loaded along with it and shifted out.
      let word = UInt64(littleEndian: bytes.load(at: at)) << UInt64(64 - 8 * rest)
      return word & 0x8080_8080_8080_8080 == 0 || isUTF8Slowly(bytes, at..<range.upperBound)
    }
    while at < range.upperBound {
      if bytes[at] >= 0x80 { return isUTF8Slowly(bytes, at..<range.upperBound) }
      at += 1
    }
    return true
  }

  private func isUTF8Slowly(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    do {
      _ = try UTF8Span(validating: bytes.extracting(range))
      return true
    } catch {
      return false
    }
  }
}

/// Which rules a scanner or decoder holds its bytes to.
package enum DAGCBORProfile: Sendable, CaseIterable {
  /// DAG-CBOR as IPLD specifies it.
  case dagCBOR
  /// AT Protocol's data model on top: no floats, integers within 64 bits signed, links of version 1
  /// with SHA-256 to DAG-CBOR or raw ([data model](https://atproto.com/specs/data-model)).
  case atproto
}

/// What ``DAGCBORScanner/check(_:watching:)`` noticed on its way.
package struct DAGCBORSummary: Equatable, Sendable {
  /// How many links there are.
  package var linkCount = 0
  /// Whether some map has the watched key.
  package var hasWatchedKey = false
  /// Whether the item is a map.
  package var isMap = false

  /// Nothing noticed.
  package init() {}
}

/// A map key of at most eight bytes, compared as one integer.
package struct ShortKey: Equatable, Sendable {
  @usableFromInline
  let word: UInt64
  @usableFromInline
  let length: Int

  /// The key.
  ///
  /// - Precondition: its UTF-8 has one to eight bytes.
  package init(_ text: StaticString) {
    precondition((1...8).contains(text.utf8CodeUnitCount))
    length = text.utf8CodeUnitCount
    word = unsafe text.withUTF8Buffer { unsafe $0.reversed() }.reduce(0) { $0 << 8 | UInt64($1) }
  }

  /// Whether the bytes in `range` are this key.
  @inlinable @inline(__always)
  package func matches(_ bytes: Span<UInt8>, _ range: Range<Int>) -> Bool {
    guard range.count == length else { return false }
    if length == 8 {
      return UInt64(littleEndian: bytes.load(at: range.lowerBound, as: UInt64.self)) == word
    }
    var rest = word
    for index in range {
      if bytes[index] != UInt8(truncatingIfNeeded: rest) { return false }
      rest >>= 8
    }
    return true
  }
}
