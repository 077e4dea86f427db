#if canImport(Darwin)
  internal import Foundation
#else
  // The normal forms of the standard library; Foundation's are the same, and a large library.
  @_spi(_Unicode) internal import Swift
#endif

/// A text as it is compared: canonically composed and without case, so that ß and SS, Σ and ς, or é
/// in one scalar or two, are equal.
///
/// Scalars are compared, and not characters: the beginning of a word in any script, or a sign
/// without its marks, is found. The page does the same (`fold.js`).
struct FoldedText {
  /// The text, composed (NFC).
  let composed: [Unicode.Scalar]
  /// The folded text.
  private(set) var scalars: [Unicode.Scalar] = []
  /// For each scalar of the folded text, which of the composed text it comes from.
  private(set) var sources: [Int] = []

  init(_ text: String) {
    composed = Self.composed(text)
    scalars.reserveCapacity(composed.count)
    for (place, scalar) in composed.enumerated() {
      if scalar.isASCII {
        scalars.append(Self.lowered(scalar))
        sources.append(place)
      } else {
        for folded in Self.folded(scalar) {
          scalars.append(folded)
          sources.append(place)
        }
      }
    }
  }

  private static func lowered(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
    "A"..."Z" ~= scalar ? Unicode.Scalar(UInt8(scalar.value) | 0x20) : scalar
  }

  private static func folded(_ scalar: Unicode.Scalar) -> [Unicode.Scalar] {
    var folded: [Unicode.Scalar] = []
    for upper in scalar.properties.uppercaseMapping.unicodeScalars {
      for lower in upper.properties.lowercaseMapping.unicodeScalars {
        folded.append(lower == "ς" ? "σ" : lower)
      }
    }
    guard folded.count > 1 else { return folded }
    var text = String.UnicodeScalarView()
    text.append(contentsOf: folded)
    return composed(String(text))
  }

  /// A text in normal form C.
  private static func composed(_ text: String) -> [Unicode.Scalar] {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return Array(text.unicodeScalars) }
    #if canImport(Darwin)
      return Array(text.precomposedStringWithCanonicalMapping.unicodeScalars)
    #else
      return Array(text._nfc)
    #endif
  }

  /// Where another text occurs in this one, in scalars of the composed text; nil if it does not.
  func range(of pattern: FoldedText) -> Range<Int>? {
    let (text, pattern) = (scalars, pattern.scalars)
    guard let first = pattern.first, text.count >= pattern.count else { return nil }
    for start in 0...text.count - pattern.count where text[start] == first {
      guard text[start..<start + pattern.count].elementsEqual(pattern) else { continue }
      return sources[start]..<sources[start + pattern.count - 1] + 1
    }
    return nil
  }
}
