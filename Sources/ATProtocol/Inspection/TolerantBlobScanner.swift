internal import IPLD

/// Finds the blob references in bytes that should be a record and are not DAG-CBOR, as far as they
/// can be walked.
///
/// It walks CBOR of every kind ([RFC 8949](https://www.rfc-editor.org/rfc/rfc8949)): floats, any
/// tag, any simple value, indefinite
/// lengths, heads longer than they need to be, keys of any type in any order. Items that follow the
/// first are walked, too.
///
/// Invariants:
/// 1. `offset` only grows, by a byte at least with each item, so the walk takes a time that the
///    length of the bytes bounds.
/// 2. `open` holds the arrays and maps around the place, the innermost last, never more than
///    ``maximumDepth``; nothing recurses.
struct TolerantBlobScanner {
  /// How many arrays and maps may be open at a time: they take some 2 MB.
  static let maximumDepth = 1 << 14

  /// An array or a map that has begun.
  private struct Container {
    /// The items that are to come, keys and values counted each; nil if only a break ends it.
    var remaining: UInt64?
    let isMap: Bool
    /// In a map: whether the next item is a key.
    var isAtKey = true
    /// What is known of a map.
    var map = OpenBlobMap()
    /// Links under the key `ref` before the one in `map`: readers differ in which of several they
    /// take.
    var earlierLinks: [Range<Int>] = []

    init(_ remaining: UInt64?, isMap: Bool) {
      self.remaining = remaining
      self.isMap = isMap
    }
  }

  /// What an item is in the container it stands in.
  private enum Role { case key, value, other }

  private let vocabulary = OpenBlobMap.Vocabulary()
  private var offset = 0
  private var open: [Container] = []
  /// Whether there was a text in pieces, which may be anything that a reference is made of.
  private var hasTextInPieces = false

  /// Hands out the blob references of a record, each where its map ends.
  ///
  /// - Returns: Whether every byte was walked, so that no reference can have been overlooked.
  mutating func scan(_ record: Span<UInt8>, found: (BlobRef) -> Void) -> Bool {
    offset = 0
    hasTextInPieces = false
    open.removeAll(keepingCapacity: true)
    let isWhole = walk(record, found)
    // A map that is cut short may be a reference already.
    while let container = open.popLast() { handOut(container, record, found) }
    return isWhole && !hasTextInPieces
  }

  private mutating func walk(_ record: Span<UInt8>, _ found: (BlobRef) -> Void) -> Bool {
    while true {
      if let last = open.last, last.remaining == 0 {
        open.removeLast()
        handOut(last, record, found)
      } else if open.isEmpty, offset == record.count {
        return true
      } else if !readItem(record, found) {
        return false
      }
    }
  }

  private func handOut(_ container: Container, _ record: Span<UInt8>, _ found: (BlobRef) -> Void) {
    guard container.isMap else { return }
    var map = container.map
    if let ref = map.reference(in: record) { found(ref) }
    for link in container.earlierLinks {
      map.ref = link
      if let ref = map.reference(in: record) { found(ref) }
    }
  }

  /// Reads an item, or the beginning of an array or map, with the tags before it.
  ///
  /// - Returns: False where the bytes cannot be walked on.
  private mutating func readItem(_ record: Span<UInt8>, _ found: (BlobRef) -> Void) -> Bool {
    var tag: UInt64?
    while true {
      guard let initial = record.readByte(&offset) else { return false }
      let major = initial >> 5
      guard initial & 31 < 31 else {
        return readIndefinite(record, major, isTagged: tag != nil, found)
      }
      guard let argument = readArgument(record, initial & 31) else { return false }
      if major == 6 {
        tag = argument
        continue
      }
      return readItem(record, major, argument, tag)
    }
  }

  private mutating func readItem(
    _ record: Span<UInt8>, _ major: UInt8, _ argument: UInt64, _ tag: UInt64?
  ) -> Bool {
    let role = begin()
    switch major {
    case 0:
      if role == .value { open[open.count - 1].map.note(argument) }
    case 2, 3:
      guard let range = readContent(record, argument) else { return false }
      note(record, range, isText: major == 3, tag, role)
    case 4: return enter(argument, isMap: false)
    case 5: return enter(argument, isMap: true)
    default: break
    }
    return true
  }

  private mutating func readArgument(_ record: Span<UInt8>, _ information: UInt8) -> UInt64? {
    switch information {
    case ..<24: UInt64(information)
    case 24: record.readByte(&offset).map(UInt64.init)
    case 25: record.readBigEndian(&offset, as: UInt16.self).map(UInt64.init)
    case 26: record.readBigEndian(&offset, as: UInt32.self).map(UInt64.init)
    case 27: record.readBigEndian(&offset, as: UInt64.self)
    default: nil
    }
  }

  private mutating func readContent(_ record: Span<UInt8>, _ length: UInt64) -> Range<Int>? {
    guard let length = Int(exactly: length) else { return nil }
    return record.readRange(&offset, length: length)
  }

  /// Begins an item of the innermost container.
  private mutating func begin() -> Role {
    guard let last = open.indices.last else { return .other }
    if let remaining = open[last].remaining { open[last].remaining = remaining - 1 }
    guard open[last].isMap else { return .other }
    defer { open[last].isAtKey.toggle() }
    guard open[last].isAtKey else { return .value }
    open[last].map.count += 1
    open[last].map.key = .other
    return .key
  }

  private mutating func enter(_ count: UInt64?, isMap: Bool) -> Bool {
    guard open.count < Self.maximumDepth else { return false }
    // If a count is too large, the walk ends with the bytes.
    let remaining = count.map { isMap ? min($0, .max / 2) * 2 : $0 }
    open.append(Container(remaining, isMap: isMap))
    return true
  }

  private mutating func note(
    _ record: Span<UInt8>, _ range: Range<Int>, isText: Bool, _ tag: UInt64?, _ role: Role
  ) {
    guard role != .other else { return }
    let last = open.count - 1
    if role == .key {
      if isText { open[last].map.key = vocabulary.key(record, range) }
    } else if isText {
      open[last].map.note(text: range, in: record, vocabulary)
    } else if tag == 42, let first = range.first, record[first] == 0 {
      let earlier = open[last].map.ref
      open[last].map.note(link: first + 1..<range.upperBound)
      if let earlier, earlier != open[last].map.ref { open[last].earlierLinks.append(earlier) }
    }
  }

  /// Reads what has no length of its own: a break, a string in pieces, or the beginning of an array
  /// or map.
  private mutating func readIndefinite(
    _ record: Span<UInt8>, _ major: UInt8, isTagged: Bool, _ found: (BlobRef) -> Void
  ) -> Bool {
    switch major {
    case 2, 3:
      _ = begin()
      if major == 3 { hasTextInPieces = true }
      return readPieces(record, major)
    case 4, 5:
      _ = begin()
      return enter(nil, isMap: major == 5)
    case 7:
      guard !isTagged, let last = open.last, last.remaining == nil, last.isAtKey else {
        return false
      }
      open.removeLast()
      handOut(last, record, found)
      return true
    default: return false
    }
  }

  private mutating func readPieces(_ record: Span<UInt8>, _ major: UInt8) -> Bool {
    while let initial = record.readByte(&offset) {
      if initial == 0xff { return true }
      guard initial >> 5 == major, let length = readArgument(record, initial & 31),
        readContent(record, length) != nil
      else { return false }
    }
    return false
  }
}
