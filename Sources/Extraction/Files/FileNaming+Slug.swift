internal import Files

/// Text made into a part of a name that every file system accepts.
extension FileNaming {
  /// The most characters and bytes.
  private static let (maximumCount, maximumBytes) = (60, 120)
  /// How much of a text is read.
  private static let maximumText = 1000
  /// How many marks, such as accents, a letter may have.
  private static let maximumMarks = 2

  /// Letters and digits of the text in lower case, with a hyphen for everything between.
  ///
  /// Letters of the Latin alphabet lose their accents; those of other alphabets stay as they are.
  static func slug(_ text: String) -> String {
    var slug = ""
    var (marks, endsLatin, isCut) = (0, true, false)
    for scalar in text.unicodeScalars.prefix(maximumText) {
      let piece = letters(for: scalar)
      if piece.isEmpty { continue }
      if piece == "-" {
        if !slug.isEmpty, slug.last != "-" { slug += piece }
        continue
      }
      switch scalar.properties.generalCategory {
      case .nonspacingMark, .spacingMark:
        guard !endsLatin, marks < maximumMarks, !slug.isEmpty, slug.last != "-" else { continue }
        marks += 1
      default:
        (endsLatin, marks) = (piece.utf8.allSatisfy { $0 < 0x80 }, 0)
      }
      let longer = slug + piece
      isCut = longer.unicodeScalars.count > maximumCount || longer.utf8.count > maximumBytes
      if isCut { break }
      slug = longer
    }
    // Half a word is dropped, unless that would leave little.
    if isCut, let hyphen = slug.lastIndex(of: "-"),
      slug.distance(from: slug.startIndex, to: hyphen) * 2 > slug.count
    {
      slug = String(slug[..<hyphen])
    }
    while slug.last == "-" { slug.removeLast() }
    return slug
  }

  /// What stands for a character: letters, a digit or a mark; nothing for one that is passed over;
  /// a hyphen for any other.
  private static func letters(for scalar: Unicode.Scalar) -> String {
    switch scalar {
    case "a"..."z", "0"..."9": return String(scalar)
    case "A"..."Z": return String(scalar).lowercased()
    case "'", "\u{2019}", "\u{ad}": return ""
    case "\0"..."\u{7f}": return "-"
    default: break
    }
    if scalar.properties.isDefaultIgnorableCodePoint { return "" }
    let lower = scalar.properties.lowercaseMapping
    if let plain = latin[lower] { return plain }
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .otherLetter, .modifierLetter,
      .decimalNumber:
      return lower
    case .nonspacingMark, .spacingMark: return String(scalar)
    default: return "-"
    }
  }

  /// Letters of languages that are written in the Latin alphabet, as they are written without it.
  private static let latin: [String: String] = {
    let rows = [
      "a": "àáâãåāăąǎ", "ae": "äæ", "c": "çćĉċč", "d": "ďđð", "e": "èéêëēĕėęě", "g": "ĝğġģ",
      "h": "ĥħ", "i": "ìíîïĩīĭįıǐ", "j": "ĵ", "k": "ķ", "l": "ĺļľŀł", "n": "ñńņňŉŋ",
      "o": "òóôõøōŏőǒ", "oe": "öœ", "r": "ŕŗř", "s": "śŝşšș", "ss": "ß", "t": "ţťŧț",
      "th": "þ", "u": "ùúûũūŭůűųǔ", "ue": "ü", "w": "ŵ", "y": "ýÿŷ", "z": "źżž",
    ]
    var table: [String: String] = [:]
    for (plain, letters) in rows {
      for letter in letters.unicodeScalars { table[String(letter)] = plain }
    }
    return table
  }()
}
