/// Finds what looks like a JSON web token (RFC 7519), to hide it in everything that a message
/// quotes.
///
/// A server may put tokens where none belong, also ones that were never sent from here.
enum TokenShape {
  /// What stands for a token.
  static let replacement = "…"
  /// How much of a text is examined, in scalars; more of it is never shown.
  private static let maximumLength = maximumErrorBody
  /// How a header begins: `{"` in base 64.
  private static let beginning = Array("eyJ".unicodeScalars)
  /// The least length of a word that begins like a header and is hidden, whatever follows.
  private static let minimumHeader = 12
  /// The least length of three parts with dots between that are hidden: no host name ends like
  /// that.
  private static let minimumPart = 16

  /// A text without what looks like tokens.
  static func hidden(in text: String) -> [Unicode.Scalar] {
    var shown: [Unicode.Scalar] = []
    var word: [Unicode.Scalar] = []
    func end(_ word: inout [Unicode.Scalar]) {
      shown += isToken(word) ? Array(replacement.unicodeScalars) : word
      word.removeAll(keepingCapacity: true)
    }
    for scalar in text.unicodeScalars.prefix(maximumLength) {
      if isTokenCharacter(scalar) {
        word.append(scalar)
      } else {
        end(&word)
        shown.append(scalar)
      }
    }
    end(&word)
    return shown
  }

  /// Whether a word begins like a token, or has three long parts with dots between.
  private static func isToken(_ word: [Unicode.Scalar]) -> Bool {
    if word.count >= minimumHeader, word.starts(with: beginning) { return true }
    let parts = word.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count >= 3 && parts.allSatisfy { $0.count >= minimumPart }
  }

  /// The characters of base 64 for URLs, and the dot.
  private static func isTokenCharacter(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar {
    case "a"..."z", "A"..."Z", "0"..."9", "-", "_", ".": true
    default: false
    }
  }
}
