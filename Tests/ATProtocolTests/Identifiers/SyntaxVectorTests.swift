import ATProtocol
import TestSupport
import Testing

/// One line of a file of conformance vectors.
struct SyntaxVector: Sendable, CustomTestStringConvertible {
  let grammar: String
  let file: String
  let line: Int
  let text: String

  var testDescription: String { "\(file):\(line) \"\(text.prefix(60))\"" }

  /// The types by the names that the vectors have for their grammars.
  static let types: [String: any Identifier.Type] = [
    "atidentifier": ATIdentifier.self,
    "aturi": ATURI.self,
    "did": DID.self,
    "handle": Handle.self,
    "nsid": NSID.self,
    "recordkey": RecordKey.self,
    "tid": TID.self,
  ]

  /// All vectors of the types above in the corpus's files whose name ends with `suffix`.
  ///
  /// Lines that are empty or start with `#` are not vectors; spaces at either end of a line are
  /// part of the vector.
  static func all(suffix: String) -> [SyntaxVector] {
    Corpus.files(under: "atproto-interop-tests/syntax", suffix: suffix).flatMap { path in
      let file = String(path.split(separator: "/").last ?? "")
      let grammar = String(file.dropLast(suffix.count))
      guard types[grammar] != nil, let text = try? Corpus.text(path) else {
        return [SyntaxVector]()
      }
      return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
        .filter { !$0.element.isEmpty && !$0.element.hasPrefix("#") }
        .map {
          SyntaxVector(
            grammar: grammar, file: file, line: $0.offset + 1, text: String($0.element))
        }
    }
  }

  static let valid = all(suffix: "_syntax_valid.txt")
  static let invalid = all(suffix: "_syntax_invalid.txt")
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Identifier conformance vectors` {
  @Test(arguments: SyntaxVector.valid)
  func `accepts a valid vector`(_ vector: SyntaxVector) throws {
    let type = try #require(SyntaxVector.types[vector.grammar])
    let identifier = try type.init(vector.text)
    #expect(identifier.text.lowercased() == vector.text.lowercased())
    #expect(type.fault(inText: vector.text) == nil)
  }

  @Test(arguments: SyntaxVector.invalid)
  func `rejects an invalid vector`(_ vector: SyntaxVector) throws {
    let type = try #require(SyntaxVector.types[vector.grammar])
    #expect(throws: IdentifierError.self) { try type.init(vector.text) }
    #expect(type.fault(inText: vector.text) != nil)
  }

  @Test(arguments: SyntaxVector.types.keys.sorted())
  func `there are vectors of both sorts for every type`(_ grammar: String) {
    #expect(SyntaxVector.valid.contains { $0.grammar == grammar })
    #expect(SyntaxVector.invalid.contains { $0.grammar == grammar })
  }
}
