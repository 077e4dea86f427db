internal import ATProtocol
internal import Files

/// What a blob's file is called where people look through files:
/// `2025-03-22_3lkxag2q_1_plan-of-forty-beds`.
///
/// The day of the record that refers to the blob first, the beginning of its key, which of the
/// record's blobs it is, and the words that belong to it.
enum ReadableName {
  /// How much of a key that tells a time is enough: within half a minute.
  private static let shortKey = 8
  /// How much there is of any other key.
  private static let longestKey = 40

  /// The name of a blob.
  ///
  /// - Parameters:
  ///   - number: which blob of the record it is, from 1 on.
  ///   - key: the record's key in the tree.
  ///   - time: the record's time.
  ///   - text: what is said about the blob.
  ///   - isWhole: whether all of the key is in it.
  static func make(
    number: Int, of key: [UInt8], _ time: FileTime?, _ text: String, isWhole: Bool
  ) -> String {
    let rest = FileNaming.parts(of: key).rest.prefix(longestKey)
    let isShort = !isWhole && rest.count == TID.maximumLength
    let shown = String(
      decoding: rest.prefix(isShort ? shortKey : longestKey).map { byte in
        let lower = byte | 0x20
        let isLetter = UInt8(ascii: "a")...UInt8(ascii: "z") ~= lower
        let isDigit = UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte
        return isLetter ? lower : isDigit ? byte : UInt8(ascii: "-")
      }, as: UTF8.self)
    let words = Slug.make(text)
    let name = "\(time?.day ?? "undated")_\(shown)_\(number)"
    return words.isEmpty ? name : "\(name)_\(words)"
  }
}

/// Text made into a part of a name that every file system takes.
enum Slug {
  /// The most characters and bytes.
  private static let maximumCount = 60
  private static let maximumBytes = 120
  /// How much of a text is looked at.
  private static let maximumText = 1000
  /// How many marks, such as accents, a letter may have.
  private static let maximumMarks = 2

  /// Letters and digits of the text in lower case, with a hyphen for everything between.
  ///
  /// Letters of the Latin alphabet lose their accents; those of other alphabets stay as they are.
  static func make(_ text: String) -> String {
    var slug = ""
    var (count, bytes, marks) = (0, 0, 0)
    var endsLatin = true
    var isCut = false
    for scalar in text.unicodeScalars.prefix(maximumText) {
      let piece: String
      switch kind(of: scalar) {
      case .nothing: continue
      case .gap:
        if !slug.isEmpty, slug.last != "-" {
          (slug, count, bytes) = (slug + "-", count + 1, bytes + 1)
        }
        continue
      case .mark:
        guard !endsLatin, marks < maximumMarks, !slug.isEmpty, slug.last != "-" else { continue }
        marks += 1
        piece = String(scalar)
      case .letter(let text):
        endsLatin = text.utf8.allSatisfy { $0 < 0x80 }
        marks = 0
        piece = text
      }
      let length = piece.unicodeScalars.count
      guard count + length <= maximumCount, bytes + piece.utf8.count <= maximumBytes else {
        isCut = true
        break
      }
      slug += piece
      (count, bytes) = (count + length, bytes + piece.utf8.count)
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

  private enum Kind {
    case letter(String)
    case mark, gap, nothing
  }

  private static func kind(of scalar: Unicode.Scalar) -> Kind {
    switch scalar {
    case "a"..."z", "0"..."9": return .letter(String(scalar))
    case "A"..."Z": return .letter(String(scalar).lowercased())
    case "'", "\u{2019}", "\u{ad}": return .nothing
    default: break
    }
    guard scalar.value >= 0x80 else { return .gap }
    if scalar.properties.isDefaultIgnorableCodePoint { return .nothing }
    let lower = scalar.properties.lowercaseMapping
    if let plain = latin[lower] { return .letter(plain) }
    switch scalar.properties.generalCategory {
    case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .otherLetter, .modifierLetter,
      .decimalNumber:
      return .letter(lower)
    case .nonspacingMark, .spacingMark: return .mark
    default: return .gap
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
