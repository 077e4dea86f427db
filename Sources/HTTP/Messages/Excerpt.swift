/// As much of what a server sent as a message can show.
package enum Excerpt {
  /// How many characters are shown.
  static let maximumLength = 200

  /// The beginning of a text in one line, without what could disturb a terminal.
  package static func of(_ text: String) -> String {
    var shown = String.UnicodeScalarView()
    // A view of scalars counts itself from the start each time.
    var count = 0
    var isAfterSpace = true
    for scalar in TokenShape.hidden(in: text).prefix(8 * maximumLength) {
      if count >= maximumLength {
        shown.append("…")
        break
      }
      if scalar.properties.isWhitespace {
        if !isAfterSpace {
          shown.append(" ")
          count += 1
        }
        isAfterSpace = true
        continue
      }
      isAfterSpace = false
      switch scalar.properties.generalCategory {
      case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
        .paragraphSeparator:
        let escape = "\\u{\(String(scalar.value, radix: 16))}"
        shown.append(contentsOf: escape.unicodeScalars)
        count += escape.utf8.count
      default:
        shown.append(scalar)
        count += 1
      }
    }
    if shown.last == " " { shown.removeLast() }
    return String(shown)
  }

  /// The beginning of bytes that should be text.
  package static func of(_ bytes: [UInt8]) -> String {
    of(String(decoding: bytes.prefix(maximumErrorBody), as: UTF8.self))
  }
}
