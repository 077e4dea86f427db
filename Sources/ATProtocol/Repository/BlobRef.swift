package import IPLD

/// A record's reference to a blob.
///
/// Today's form is a map with `$type: "blob"`, a link `ref`, `mimeType` and `size`; the form of
/// 2022 a map of exactly `cid` and `mimeType`, both text. Either may stand anywhere in a record of
/// any kind. Source: [data model](https://atproto.com/specs/data-model), "blob type".
package struct BlobRef: Hashable, Sendable {
  /// The blob.
  package let cid: CID
  /// Its media type, as the record says.
  package let mimeType: String?
  /// Its length in bytes, as the record says.
  package let size: Int?
  /// Whether it is in the form of 2022.
  package let isLegacy: Bool

  /// A reference that says this.
  package init(cid: CID, mimeType: String?, size: Int?, isLegacy: Bool) {
    (self.cid, self.mimeType, self.size, self.isLegacy) = (cid, mimeType, size, isLegacy)
  }
}

/// Finds the blob references of a record without building a value.
///
/// Stateful only to be reused: each call stands for itself.
package struct BlobRefScanner: Sendable {
  private let vocabulary = OpenBlobMap.Vocabulary()
  private var scanner: DAGCBORScanner
  /// The open maps, and nil for each open array, without the innermost.
  private var outer: [OpenBlobMap?] = []
  /// What was found in the record that is being read.
  private var refs: [BlobRef] = []
  private var faults: [String] = []

  /// A scanner that holds records to the rules of `profile`.
  package init(profile: DAGCBORProfile = .atproto) {
    scanner = DAGCBORScanner(profile: profile)
  }

  /// Checks a record and hands out its blob references in the order in which their maps end.
  ///
  /// `malformed` is called for references that are not what they should be. Those that name
  /// something anyway are handed out too.
  ///
  /// - Returns: whether the record is a map, as every record has to be.
  /// - Throws: `DAGCBORError` for a record that breaks the profile's rules; no reference has been
  ///   handed out then.
  package mutating func scan(
    _ record: Span<UInt8>, found: (BlobRef) -> Void, malformed: (String) -> Void = { _ in }
  ) throws(DAGCBORError) -> Bool {
    refs.removeAll(keepingCapacity: true)
    faults.removeAll(keepingCapacity: true)
    let isMap = try collect(record)
    // Only what keeps the rules to its end is believed.
    for fault in faults { malformed(fault) }
    for ref in refs { found(ref) }
    return isMap
  }

  /// Whether there is nothing to say about a record, at a glance.
  ///
  /// Then it is a map that keeps the rules of the profile, and holds nothing that a blob reference
  /// is made of. Most records are; for the others, ``scan(_:found:malformed:)`` knows more.
  mutating func isPlain(_ record: Span<UInt8>) -> Bool {
    do throws(DAGCBORError) {
      let summary = try scanner.check(record, watching: vocabulary.mimeType)
      return summary.isMap && summary.linkCount == 0 && !summary.hasWatchedKey
    } catch {
      return false
    }
  }

  /// Records all references and what is wrong with them; returns whether the record is a map.
  private mutating func collect(_ record: Span<UInt8>) throws(DAGCBORError) -> Bool {
    scanner.restart()
    outer.removeAll(keepingCapacity: true)
    var isMap = false
    var current: OpenBlobMap?
    while let token = try scanner.next(in: record) {
      switch token {
      case .array:
        outer.append(current)
        current = nil
      case .map(let count):
        if scanner.depth == 1 { isMap = true }
        outer.append(current)
        current = OpenBlobMap(count: count)
      case .key(let range): current?.key = vocabulary.key(record, range)
      case .end:
        if let ref = current?.reference(in: record, malformed: { faults.append($0) }) {
          refs.append(ref)
        }
        current = outer.removeLast()
      case .string(let range): current?.note(text: range, in: record, vocabulary)
      case .unsigned(let number): current?.note(number)
      case .link(let range): current?.note(link: range)
      default: break
      }
    }
    return isMap
  }
}
