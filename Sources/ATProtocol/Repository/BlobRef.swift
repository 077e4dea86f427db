public import IPLD

/// A record's reference to a blob.
///
/// Today's form is a map with `$type: "blob"`, a link `ref`, `mimeType` and `size`; the form of 2022 a map of exactly `cid` and `mimeType`, both
/// text. Either may stand anywhere in a record of any kind. Source: [data model](https://atproto.com/specs/data-model), "blob type".
public struct BlobRef: Hashable, Sendable {
  /// The blob.
  public let cid: CID
  /// Its media type, as the record says.
  public let mimeType: String?
  /// Its length in bytes, as the record says.
  public let size: Int?
  /// Whether it is in the form of 2022.
  public let isLegacy: Bool
}

/// Finds the blob references of a record without building a value.
///
/// Stateful only to be reused: each call stands for itself.
public struct BlobRefScanner: Sendable {
  /// What is known so far of a map that is open.
  private struct OpenMap {
    var count = 0
    var key = Key.other
    var isTyped = false
    var ref: Range<Int>?
    var cid: Range<Int>?
    var mimeType: Range<Int>?
    var size: Int?
  }

  private enum Key { case type, ref, cid, mimeType, size, other }

  private let mimeTypeKey = ShortKey("mimeType")
  private let sizeKey = ShortKey("size")
  private let typeKey = ShortKey("$type")
  private let refKey = ShortKey("ref")
  private let cidKey = ShortKey("cid")
  private let blob = ShortKey("blob")

  private var scanner: DAGCBORScanner
  /// The open maps, and nil for each open array, without the innermost.
  private var outer: [OpenMap?] = []

  /// A scanner that holds records to the rules of `profile`.
  public init(profile: DAGCBORProfile = .atproto) {
    scanner = DAGCBORScanner(profile: profile)
  }

  /// Checks a record and hands out its blob references in the order in which their maps end.
  ///
  /// `malformed` is told of references that are not what they should be. Those that name something all the same are handed out too.
  ///
  /// - Returns: whether the record is a map, as every record has to be.
  /// - Throws: `DAGCBORError` for a record that breaks the profile's rules; no reference has been handed out then.
  public mutating func scan(
    _ record: Span<UInt8>, found: (BlobRef) -> Void, malformed: (String) -> Void = { _ in }
  ) throws(DAGCBORError) -> Bool {
    // Today's references hold a link, those of 2022 a key "mimeType": a record with neither, as most are, has been seen enough.
    let summary = try scanner.check(record, watching: mimeTypeKey)
    if summary.linkCount > 0 || summary.hasWatchedKey {
      try collect(record, found: found, malformed: malformed)
    }
    return summary.isMap
  }

  /// Whether there is nothing to say about a record, at a glance.
  ///
  /// Then it is a map that keeps the rules of the profile, and holds nothing
  /// that a blob reference is made of. Most records are; for the others, ``scan(_:found:malformed:)`` knows more.
  mutating func isPlain(_ record: Span<UInt8>) -> Bool {
    do throws(DAGCBORError) {
      let summary = try scanner.check(record, watching: mimeTypeKey)
      return summary.isMap && summary.linkCount == 0 && !summary.hasWatchedKey
    } catch {
      return false
    }
  }

  private mutating func collect(
    _ record: Span<UInt8>, found: (BlobRef) -> Void, malformed: (String) -> Void
  ) throws(DAGCBORError) {
    scanner.restart()
    outer.removeAll(keepingCapacity: true)
    var current: OpenMap?
    while let token = try scanner.next(in: record) {
      switch token {
      case .array:
        outer.append(current)
        current = nil
      case .map(let count):
        outer.append(current)
        current = OpenMap(count: count)
      case .key(let range): current?.key = key(record, range)
      case .end:
        if let map = current, let ref = Self.reference(record, map, malformed: malformed) {
          found(ref)
        }
        current = outer.removeLast()
      default: if current != nil { note(token, in: &current, record) }
      }
    }
  }

  /// Keeps a value that a reference is made of.
  private func note(
    _ token: DAGCBORScanner.Token, in map: inout OpenMap?, _ record: Span<UInt8>
  ) {
    switch (map?.key, token) {
    case (.type, .string(let range)): map?.isTyped = blob.matches(record, range)
    case (.ref, .link(let range)): map?.ref = range
    case (.cid, .string(let range)): map?.cid = range
    case (.mimeType, .string(let range)): map?.mimeType = range
    case (.size, .unsigned(let number)): map?.size = Int(exactly: number)
    default: break
    }
  }

  private func key(_ record: Span<UInt8>, _ range: Range<Int>) -> Key {
    if typeKey.matches(record, range) { return .type }
    if refKey.matches(record, range) { return .ref }
    if cidKey.matches(record, range) { return .cid }
    if mimeTypeKey.matches(record, range) { return .mimeType }
    if sizeKey.matches(record, range) { return .size }
    return .other
  }

  private static func reference(
    _ record: Span<UInt8>, _ map: OpenMap, malformed: (String) -> Void
  ) -> BlobRef? {
    let mimeType = map.mimeType.map { String(decoding: record.array($0), as: UTF8.self) }
    if map.isTyped, let ref = map.ref {
      do throws(CIDError) {
        let cid = try CID(record.extracting(ref))
        checkCodec(cid, malformed)
        return BlobRef(cid: cid, mimeType: mimeType, size: map.size, isLegacy: false)
      } catch {
        malformed("\(error)")
        return nil
      }
    }
    if map.count == 2, let text = map.cid, let mimeType {
      let text = String(decoding: record.array(text), as: UTF8.self)
      do throws(CIDError) {
        let cid = try CID(text)
        checkCodec(cid, malformed)
        return BlobRef(cid: cid, mimeType: mimeType, size: nil, isLegacy: true)
      } catch {
        malformed("a blob reference of the old form without a valid CID: \(error)")
        return nil
      }
    }
    return nil
  }
  private static func checkCodec(_ cid: CID, _ malformed: (String) -> Void) {
    if cid.codec != .raw { malformed("a blob reference to \(cid), which is no blob's CID") }
  }
}
