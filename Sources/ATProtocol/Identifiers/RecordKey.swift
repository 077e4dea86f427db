/// The name of a record within its collection, such as a ``TID`` or `self`.
///
/// Its rules (<https://atproto.com/specs/record-key>, "Record Key Syntax"):
///
/// - letters, digits and `.`, `-`, `_`, `:`, `~`;
/// - at least 1 and at most 512 bytes;
/// - neither `.` nor `..`.
///
/// Case matters. Those rules also keep a record key harmless as part of a path or a URI.
package struct RecordKey: Identifier {
  /// The most bytes in a record key.
  package static let maximumLength = 512

  /// The name in messages of a record key.
  package static let kind = IdentifierError.Kind.recordKey

  /// The record key as text.
  package let text: String

  /// Makes one of text that is known to be a record key.
  package init(checked text: String) { self.text = text }

  /// The record key that a timestamp makes.
  package init(_ tid: TID) {
    self.init(checked: tid.text)
  }
}

extension RecordKey {
  /// The first rule that `bytes` break, or nil if they spell a record key.
  package static func fault(in bytes: Span<UInt8>) -> IdentifierError? {
    if let fault = lengthFault(in: bytes) { return fault }
    for index in bytes.indices where !isAllowed(bytes[index]) {
      return fault(.forbiddenByte(bytes[index]), at: index)
    }
    let dot = UInt8(ascii: ".")
    if bytes[0] == dot, bytes.count == 1 || (bytes.count == 2 && bytes[1] == dot) {
      return fault(.relativePath, at: 0)
    }
    return nil
  }

  /// Whether `byte` may stand in a record key.
  @inline(__always)
  static func isAllowed(_ byte: UInt8) -> Bool {
    byte < 0x80 && (byte < 0x40 ? allowedLow : allowedHigh) >> UInt64(byte & 0x3f) & 1 == 1
  }

  /// The bytes 0x00 … 0x3F that may stand in a record key, one bit each: `-`, `.`, `0`–`9`, `:`.
  private static let allowedLow: UInt64 = 0x07ff_6000_0000_0000
  /// The bytes 0x40 … 0x7F: `A`–`Z`, `_`, `a`–`z`, `~`.
  private static let allowedHigh: UInt64 = 0x47ff_fffe_87ff_fffe
}
