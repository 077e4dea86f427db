internal import IPLD

/// A text that is looked for in records, whatever the case of its letters.
package struct TextPattern: Sendable {
  /// How much of a text is shown around the place.
  private static let shown = 60

  /// The text in lower case.
  private let text: String
  /// The same as bytes, if all of them are ASCII.
  private let ascii: [UInt8]?

  /// A text to look for; nil for one without a character.
  package init?(_ text: String) {
    guard !text.isEmpty else { return nil }
    self.text = text.lowercased()
    let bytes = Array(self.text.utf8)
    ascii = bytes.allSatisfy { $0 < 0x80 } ? bytes : nil
  }

  /// The first text value of a record in which it is, as much as fits in a line; nil if it is in
  /// none.
  ///
  /// Names of fields are not looked at. What is no DAG-CBOR is no text.
  ///
  /// - Parameter block: the record's block.
  func firstMatch(in block: Span<UInt8>) -> String? {
    // Most records do not have it anywhere, and need not be decoded to know that.
    if let ascii, !Self.contains(block, ascii) { return nil }
    guard let value = try? DAGCBORDecoder.decode(block) else { return nil }
    return value.descendants.lazy.compactMap { $0.string.flatMap(excerpt) }.first
  }

  private func excerpt(of value: String) -> String? {
    let lowered = value.lowercased()
    guard let place = lowered.firstRange(of: text) else { return nil }
    // Lower case may be longer or shorter by a few letters; a glance around the place is all that
    // is asked for.
    let before = lowered.distance(from: lowered.startIndex, to: place.lowerBound)
    let start = max(0, before - Self.shown / 2)
    let piece = value.dropFirst(start).prefix(Self.shown + text.count)
    let words = piece.split(whereSeparator: \.isNewline).joined(separator: " ")
    return (start > 0 ? "…" : "") + words + (piece.endIndex < value.endIndex ? "…" : "")
  }

  /// Whether the bytes have the letters somewhere, in any case.
  private static func contains(_ bytes: Span<UInt8>, _ pattern: [UInt8]) -> Bool {
    guard bytes.count >= pattern.count else { return false }
    let first = pattern[0]
    for start in 0...bytes.count - pattern.count where lowered(bytes[start]) == first {
      var length = 1
      while length < pattern.count, lowered(bytes[start + length]) == pattern[length] {
        length += 1
      }
      if length == pattern.count { return true }
    }
    return false
  }

  @inline(__always)
  private static func lowered(_ byte: UInt8) -> UInt8 {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
  }
}
