/// The place of a record in its repository: `COLLECTION/RKEY`, the key of an entry in the tree.
///
/// Its rules (<https://atproto.com/specs/repository>, "Repo Data Structure"): an ``NSID``, one
/// slash and a ``RecordKey``, with no slash in front. In the tree, paths are byte strings and are
/// ordered as such, which is the order of this type too. It is not the order of the pairs of
/// collection and record key: `-` and `.` sort before the slash.
package struct RecordPath: Identifier {
  /// The most bytes in a key of the tree.
  ///
  /// The longest NSID and the longest record key need 830. The reference implementation draws the
  /// line here, and so a reader knows when to stop before it knows what the key holds.
  package static let maximumLength = 1024

  /// What messages call a record path.
  package static let kind = IdentifierError.Kind.recordPath

  /// The path as it is written; its UTF-8 is the key in the tree.
  package let text: String

  /// Takes text that is known to be a record path.
  package init(checked text: String) { self.text = text }

  /// The path of the record that `recordKey` names in `collection`.
  package init(collection: NSID, recordKey: RecordKey) {
    self.text = "\(collection.text)/\(recordKey.text)"
  }

  /// The collection that the record is in.
  package var collection: NSID { NSID(checked: String(text.prefix { $0 != "/" })) }

  /// The record's key in its collection.
  package var recordKey: RecordKey {
    RecordKey(checked: String(text.drop { $0 != "/" }.dropFirst()))
  }
}

extension RecordPath {
  /// The first rule that `bytes` break, or nil if they spell a record path.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = lengthFault(in: bytes) { return fault }
    let slash = bytes.end(before: UInt8(ascii: "/"), from: 0)
    guard slash < bytes.count else { return fault(.tooFewSegments(minimum: 2), at: slash) }
    if let fault = NSID.fault(in: bytes.extracting(0..<slash)) { return fault }
    // A record key holds no slash, so this is the only one.
    let keyStart = slash + 1
    return RecordKey.fault(in: bytes.extracting(keyStart..<bytes.count))?.shifted(by: keyStart)
  }

  /// Whether `key` is made of what keys of the tree are made of, whatever it spells.
  ///
  /// The weaker rule of the same section: two segments separated by one slash, neither of them
  /// empty, `.` or `..`, of letters, digits and `.`, `-`, `_`, `:`, `~`. (The page leaves out the
  /// colon, which the page on record keys allows.) A key that passes and is not a record path is
  /// odd, yet the tree that holds it can be read and kept.
  package static func isTreeKey(_ key: Span<UInt8>) -> Bool {
    guard key.count <= maximumLength else { return false }
    var slash = key.count
    for index in key.indices where !RecordKey.isAllowed(key[index]) {
      guard key[index] == UInt8(ascii: "/"), slash == key.count else { return false }
      slash = index
    }
    guard slash < key.count else { return false }
    return isTreeKeySegment(key.extracting(0..<slash))
      && isTreeKeySegment(key.extracting((slash + 1)..<key.count))
  }

  /// Whether `segment`, of bytes that are allowed, could stand on either side of the slash.
  private static func isTreeKeySegment(_ segment: Span<UInt8>) -> Bool {
    guard segment.count <= 2 else { return true }
    return segment.indices.contains { segment[$0] != UInt8(ascii: ".") }
  }
}
