/// The place of a record in its repository: `COLLECTION/RKEY`, the key of an entry in the tree.
///
/// Its rules are those of the tree's keys (<https://atproto.com/specs/repository>, "Repo Data
/// Structure"): two segments separated by one slash, neither of them empty, `.` or `..`, of
/// letters, digits and `.`, `-`, `_`, `:`, `~`. (The page leaves out the colon, which the page on
/// record keys allows.) Servers write an ``NSID`` and a ``RecordKey``; repositories of real
/// accounts have other paths as well, whose records are records like any other: ``oddity``.
///
/// In the tree, paths are byte strings and are ordered as such, which is the order of this type
/// too. It is not the order of the pairs of collection and record key: `-` and `.` sort before the
/// slash.
package struct RecordPath: Identifier {
  /// The most bytes in a key of the tree.
  ///
  /// The longest NSID and the longest record key need 830. The reference implementation draws the
  /// line here, and so a reader knows when to stop before it knows what the key holds.
  package static let maximumLength = 1024

  /// The name in messages of a record path.
  package static let kind = IdentifierError.Kind.recordPath

  /// The path as text; its UTF-8 is the key in the tree.
  package let text: String

  /// Makes one of text that is known to be a record path.
  package init(checked text: String) { self.text = text }

  /// The path of the record that `recordKey` names in `collection`.
  package init(collection: NSID, recordKey: RecordKey) {
    self.text = "\(collection.text)/\(recordKey.text)"
  }

  /// The collection that the record is in.
  package var collection: String { String(text.prefix { $0 != "/" }) }

  /// The record's key in its collection.
  package var recordKey: String { String(text.drop { $0 != "/" }.dropFirst()) }

  /// Why no server writes a record here; nil if servers do.
  package var oddity: IdentifierError? { Self.oddity(in: text.utf8.span) }
}

extension RecordPath {
  /// The first rule that `bytes` break, or nil if they spell a record path.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = lengthFault(in: bytes) { return fault }
    let slash = bytes.end(before: UInt8(ascii: "/"), from: 0)
    guard slash < bytes.count else { return fault(.tooFewSegments(minimum: 2), at: slash) }
    return segmentFault(in: bytes, 0..<slash) ?? segmentFault(in: bytes, (slash + 1)..<bytes.count)
  }

  private static func segmentFault(in bytes: Span<UInt8>, _ segment: Range<Int>)
    -> IdentifierError?
  {
    guard !segment.isEmpty else { return fault(.emptySegment, at: segment.lowerBound) }
    for index in segment where !RecordKey.isAllowed(bytes[index]) {
      return fault(.forbiddenByte(bytes[index]), at: index)
    }
    guard segment.count > 2 || segment.contains(where: { bytes[$0] != UInt8(ascii: ".") }) else {
      return fault(.relativePath, at: segment.lowerBound)
    }
    return nil
  }

  /// The first rule of paths, NSIDs and record keys that `bytes` break, or nil if servers write
  /// records there.
  package static func oddity(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = fault(in: bytes) { return fault }
    let slash = bytes.end(before: UInt8(ascii: "/"), from: 0)
    if let fault = NSID.fault(in: bytes.extracting(0..<slash)) { return fault }
    return RecordKey.fault(in: bytes.extracting((slash + 1)..<bytes.count))?.shifted(by: slash + 1)
  }
}
