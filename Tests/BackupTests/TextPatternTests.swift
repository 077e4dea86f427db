import IPLD
import TestSupport
import Testing

@testable import Extraction

@Suite struct `A text that is looked for` {
  private func isFound(_ pattern: String, in text: String) throws -> Bool {
    let block = try DAGCBOREncoder.encode(.map(["text": .string(text)]))
    return try #require(TextPattern(pattern)).firstMatch(in: block.span) != nil
  }

  @Test(arguments: [
    ("Δ ΟΔΟΣ", "οδος"), ("Straße", "STRASSE"), ("STRASSE", "straße"), ("हिन्दी", "हि"),
    ("हिन्दी", "हिन्द"), ("தமிழ்", "தமி"), ("ภาษาไทย", "ภาษ"), ("❤️", "❤"), ("👍🏽", "👍"),
    ("שָׁלוֹם", "ש"), ("سَلام", "س"), ("می\u{200C}خواهم", "می"), ("cafe\u{301}", "café"),
    ("café", "cafe\u{301}"), ("ﬁn", "FIN"), ("300 \u{212A}", "300 k"), ("日本語です", "本語"),
  ])
  func `is found as people write it`(_ text: String, _ pattern: String) throws {
    #expect(try isFound(pattern, in: "before \(text) behind"))
  }

  @Test(arguments: [("été", "ete"), ("straße", "strase"), ("", "a"), ("ab", "abc")])
  func `is not found where it is not`(_ text: String, _ pattern: String) throws {
    #expect(try !isFound(pattern, in: text))
  }

  @Test func `that is ASCII is found in every sign that folds to it`() throws {
    for value in UInt32(0x80)...0x10_FFFF {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let text = String(scalar)
      let folded = FoldedText(text).scalars
      for letter in folded where letter.isASCII {
        #expect(try isFound(String(letter), in: text), "\(String(value, radix: 16))")
      }
    }
  }

  @Test func `is shown with what stands around it`() throws {
    let text =
      String(repeating: "ä ", count: 40) + "NEEDLE\nin a haystack "
      + String(repeating: "ö", count: 90)
    let excerpt = try #require(TextPattern("needle")?.excerpt(of: text))
    #expect(excerpt.hasPrefix("…") && excerpt.hasSuffix("…"))
    #expect(excerpt.contains("ä NEEDLE in a haystack ö"))
  }
}
