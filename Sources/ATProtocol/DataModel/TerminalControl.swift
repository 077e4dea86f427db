internal import IPLD

extension Unicode.Scalar {
  /// Whether a terminal or a text view may act on this character instead of showing it.
  ///
  /// The control characters U+0000–1F and U+007F–9F; U+061C, U+200E/F, U+202A–E and U+2066–9, which
  /// change the direction of text; and U+2028/9, which end lines.
  package var isTerminalControl: Bool {
    switch value {
    case 0...0x1f, 0x7f...0x9f, 0x61c, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069: true
    default: false
    }
  }
}

extension String {
  /// Whether terminals may act on something in the text; its bytes are examined, which takes less
  /// time than its characters.
  package var mayRuleTerminal: Bool {
    let bytes = utf8Span.span
    var found = false
    for index in 0..<bytes.count {
      let byte = bytes[index]
      // Control characters, or what the others that count begin with.
      let mayBe = byte < 0x20 || byte == 0x7f || byte == 0xc2 || byte == 0xd8 || byte == 0xe2
      found = mayBe || found
    }
    return found
  }
}

extension Collection<UInt8> {
  /// Text as it can be shown in a message, whatever it holds; of a long one the start.
  package var shown: String {
    let text = prefix(200).map { byte in
      (0x21...0x7e).contains(byte) ? String(UnicodeScalar(byte)) : "\\x\(Hex.encode([byte]))"
    }
    return text.joined() + (count > 200 ? "…" : "")
  }
}
