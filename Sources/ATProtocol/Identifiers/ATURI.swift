/// The address of a repository, of a collection in it or of a record:
/// `at://AUTHORITY[/COLLECTION[/RKEY]]`.
///
/// Its rules (<https://atproto.com/specs/at-uri-scheme>, "Restricted AT URI Syntax", the form that
/// records and servers use):
///
/// - `at://` in lower case and an authority, which is a ``DID`` or a ``Handle``;
/// - then nothing, or `/` and an ``NSID``; then nothing, or `/` and a ``RecordKey``;
/// - no slash at the end, no query and no fragment;
/// - at most 8 KiB.
///
/// A handle in the authority is put in lower case, as the section "Normalization" asks, so that
/// equal addresses are equal values. An address is not proof of a content: the record under it may
/// change.
package struct ATURI: Identifier {
  /// The most bytes in an AT URI ("8 kilobytes").
  package static let maximumLength = 8192

  /// The name in messages of an AT URI.
  package static let kind = IdentifierError.Kind.atURI

  /// Whose repository it is.
  package let authority: ATIdentifier

  /// The collection, or nil if the URI means the whole repository.
  package let collection: NSID?

  /// The record's key in its collection, or nil if the URI means the collection or the repository.
  package let recordKey: RecordKey?

  /// The URI, with a handle in lower case.
  package let text: String

  /// Makes one of text that is known to be an AT URI.
  package init(checked text: String) {
    // "at:", an authority and at most two more parts, none of them empty.
    let parts = text.split(separator: "/").map(String.init)
    self.init(
      authority: ATIdentifier(checked: parts[1]),
      collection: parts.count > 2 ? NSID(checked: parts[2]) : nil,
      recordKey: parts.count > 3 ? RecordKey(checked: parts[3]) : nil)
  }

  /// The address of a repository.
  package init(authority: ATIdentifier) {
    self.init(authority: authority, collection: nil, recordKey: nil)
  }

  private init(authority: ATIdentifier, collection: NSID?, recordKey: RecordKey?) {
    self.authority = authority
    self.collection = collection
    self.recordKey = recordKey
    var text = Self.scheme + authority.text
    if let collection { text += "/" + collection.text }
    if let recordKey { text += "/" + recordKey.text }
    self.text = text
  }

  /// Where the record is in its repository, or nil if the URI does not mean a record.
  package var path: RecordPath? {
    guard let collection, let recordKey else { return nil }
    return RecordPath(collection: collection, recordKey: recordKey)
  }

  private static let scheme = "at://"
}

extension ATURI {
  /// The first rule that `bytes` break, or nil if they spell an AT URI.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = lengthFault(in: bytes) { return fault }
    if let offset = bytes.mismatch(withPrefix: scheme) { return fault(.missingScheme, at: offset) }

    let slash = UInt8(ascii: "/")
    let authorityStart = scheme.utf8.count
    let authorityEnd = bytes.end(before: slash, from: authorityStart)
    let authority = bytes.extracting(authorityStart..<authorityEnd)
    if let fault = ATIdentifier.fault(in: authority) { return fault.shifted(by: authorityStart) }
    guard authorityEnd < bytes.count else { return nil }

    let collectionStart = authorityEnd + 1
    let collectionEnd = bytes.end(before: slash, from: collectionStart)
    let collection = bytes.extracting(collectionStart..<collectionEnd)
    if let fault = NSID.fault(in: collection) { return fault.shifted(by: collectionStart) }
    guard collectionEnd < bytes.count else { return nil }

    // A record key holds no slash, no "?" and no "#", so nothing can follow it.
    let keyStart = collectionEnd + 1
    let key = bytes.extracting(keyStart..<bytes.count)
    return RecordKey.fault(in: key)?.shifted(by: keyStart)
  }
}
