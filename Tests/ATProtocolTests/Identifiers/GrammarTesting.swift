import ATProtocol

// What the suites check of a grammar by text: a span cannot be passed through `#expect`.

extension Identifier {
  /// Whether the UTF-8 of `text` passes the check that makes no value.
  static func accepts(_ text: String) -> Bool { isValid(text.utf8.span) }

  /// The first rule that the UTF-8 of `text` breaks.
  static func fault(inText text: String) -> IdentifierError? { fault(in: text.utf8.span) }
}

/// Every text of 1 to `length` of the given letters.
func texts(of letters: [String], upTo length: Int) -> [String] {
  var found: [String] = []
  var longest = [""]
  for _ in 0..<length {
    longest = longest.flatMap { start in letters.map { start + $0 } }
    found += longest
  }
  return found
}
