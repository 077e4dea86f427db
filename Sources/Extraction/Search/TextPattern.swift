internal import IPLD

/// A text that is looked for in records, whatever the case of its letters.
package struct TextPattern: Sendable {
  /// How much of the text is shown around a match.
  private static let shown = 60

  private let text: FoldedText
  /// The same as bytes, if all of them are ASCII.
  private let ascii: [UInt8]?

  /// A text to look for; nil for one without a character.
  package init?(_ text: String) {
    self.text = FoldedText(text)
    guard !self.text.scalars.isEmpty else { return nil }
    ascii =
      self.text.scalars.allSatisfy(\.isASCII) ? self.text.scalars.map { UInt8($0.value) } : nil
  }

  /// The first text value of a record that contains the pattern, as much as fits in a line; nil if
  /// none does.
  ///
  /// Names of fields are not searched. What is not DAG-CBOR has no text.
  ///
  /// - Parameter block: the record's block.
  func firstMatch(in block: Span<UInt8>) -> String? {
    // Most records do not have it anywhere, and need not be decoded to know that.
    if let ascii, !Self.mayHold(block, ascii) { return nil }
    guard let value = try? DAGCBORDecoder.decode(block) else { return nil }
    return value.descendants.lazy.compactMap { $0.string.flatMap(excerpt) }.first
  }

  /// The match and its surroundings; nil if there is none.
  func excerpt(of value: String) -> String? {
    let folded = FoldedText(value)
    guard let place = folded.range(of: text) else { return nil }
    let start = max(0, place.lowerBound - Self.shown / 2)
    let end = min(folded.composed.count, start + Self.shown + place.count)
    var piece = String.UnicodeScalarView()
    piece.append(contentsOf: folded.composed[start..<end])
    let words = String(piece).split(whereSeparator: \.isNewline).joined(separator: " ")
    return (start > 0 ? "…" : "") + words + (end < folded.composed.count ? "…" : "")
  }

  /// Whether bytes may have letters somewhere, in any case: they do, or they have a sign that folds
  /// to such letters.
  static func mayHold(_ bytes: Span<UInt8>, _ pattern: [UInt8]) -> Bool {
    let first = pattern[0]
    for start in bytes.indices {
      let byte = lowered(bytes[start])
      if byte == first, bytes.count - start >= pattern.count {
        var length = 1
        while length < pattern.count, lowered(bytes[start + length]) == pattern[length] {
          length += 1
        }
        if length == pattern.count { return true }
      } else if byte >= 0xC3, foldsToASCII(bytes, at: start) {
        return true
      }
    }
    return false
  }

  /// Whether a sign that is not ASCII, and of which the folded form has ASCII, may begin here.
  private static func foldsToASCII(_ bytes: Span<UInt8>, at start: Int) -> Bool {
    guard start + 1 < bytes.count else { return false }
    switch (bytes[start], bytes[start + 1]) {
    // ß; İ, ı; ŉ, ſ; the Greek question mark; ẚ, ẞ; a Greek accent; K; ﬀ to ﬆ.
    case (0xC3, 0x9F), (0xC4, 0xB0...0xB1), (0xC5, 0x89), (0xC5, 0xBF), (0xCD, 0xBE), (0xE1, 0xBA),
      (0xE1, 0xBF),
      (0xE2, 0x84), (0xEF, 0xAC):
      return true
    default: return false
    }
  }

  @inline(__always)
  private static func lowered(_ byte: UInt8) -> UInt8 {
    UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
  }
}
