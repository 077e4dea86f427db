import IPLD
import TestSupport
import Testing

/// One line of a multibase vector file: the same bytes in one of its encodings.
private struct MultibaseVector: CustomStringConvertible {
  let file: String
  let bytes: [UInt8]
  let encoding: String
  /// With the character in front that names the encoding.
  let text: String

  var description: String { "\(file): \(encoding) \(text)" }

  static func all() throws -> [MultibaseVector] {
    try Corpus.files(under: "multibase/tests", suffix: ".csv").flatMap(read)
  }

  /// The first line is `encoding, "the bytes"`, each that follows `name, "their text"`.
  private static func read(_ file: String) throws -> [MultibaseVector] {
    let lines = try Corpus.text(file).split(whereSeparator: \.isNewline).map(fields)
    guard let header = lines.first else { return [] }
    let bytes = try unescaped(header.quoted)
    return lines.dropFirst().map {
      MultibaseVector(file: file, bytes: bytes, encoding: $0.name, text: $0.quoted)
    }
  }

  private static func fields(_ line: some StringProtocol) -> (name: String, quoted: String) {
    let parts = line.split(separator: "\"", omittingEmptySubsequences: false)
    return (
      String(parts[0].prefix { $0 != "," && $0 != " " }), parts.count > 1 ? "\(parts[1])" : ""
    )
  }

  /// The bytes of a text in which `\xNN` stands for a byte.
  private static func unescaped(_ text: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let character = rest.first {
      if rest.starts(with: "\\x".utf8) {
        bytes += try [UInt8](hex: String(decoding: rest.dropFirst(2).prefix(2), as: UTF8.self))
        rest = rest.dropFirst(4)
      } else {
        bytes.append(character)
        rest = rest.dropFirst()
      }
    }
    return bytes
  }
}

@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `Multibase vectors` {
  @Test func `in base 32 are read and written`() throws {
    let vectors = try MultibaseVector.all().filter { $0.encoding == "base32" }
    try #require(!vectors.isEmpty)
    for vector in vectors {
      #expect("b" + Base32.encode(vector.bytes.span) == vector.text, "\(vector)")
      #expect(Base32.decode(vector.text.utf8.dropFirst()) == vector.bytes, "\(vector)")
    }
  }

  @Test func `in base 58 are read and written`() throws {
    let vectors = try MultibaseVector.all().filter { $0.encoding == "base58btc" }
    try #require(!vectors.isEmpty)
    for vector in vectors {
      #expect("z" + Base58.encode(vector.bytes) == vector.text, "\(vector)")
      #expect(Base58.decode(vector.text.utf8.dropFirst()) == vector.bytes, "\(vector)")
    }
  }

  /// AT Protocol's CIDs are in lower case; one spelling for each CID makes texts comparable.
  @Test func `in base 32 with capitals or padding are refused`() throws {
    let vectors = try MultibaseVector.all().filter {
      $0.encoding == "base32upper" || $0.encoding == "base32pad" && $0.text.hasSuffix("=")
    }
    try #require(!vectors.isEmpty)
    for vector in vectors {
      #expect(Base32.decode(vector.text.utf8.dropFirst()) == nil, "\(vector)")
    }
  }
}

@Suite struct `Base 32` {
  @Test func `fills the last character with zero bits`() {
    // RFC 4648 section 10, in lower case and without padding.
    let examples = [
      ("", ""), ("f", "my"), ("fo", "mzxq"), ("foo", "mzxw6"), ("foob", "mzxw6yq"),
      ("fooba", "mzxw6ytb"), ("foobar", "mzxw6ytboi"),
    ]
    for (text, encoded) in examples {
      #expect(Base32.encode(Array(text.utf8).span) == encoded)
      #expect(Base32.decode(encoded.utf8) == Array(text.utf8))
    }
  }

  @Test(arguments: [
    "MY", "mY", "m1", "m0", "m8", "m9", "m=", "my======", "m y", " my", "my ", "my\n", "é", "m-",
    "a", "mza", "mzxw6a", "mzxw6ytba",  // lengths that no bytes have
    "mz", "mb", "mzxr", "mzxw7", "mzxw6yr", "mzxw6ytbo7",  // filling bits that are not zero
  ])
  func `is refused when it is spelt otherwise`(text: String) {
    #expect(Base32.decode(text.utf8) == nil)
  }

  @Test func `of any bytes comes back`() {
    var generator = SeededGenerator()
    print("base 32 and 58: \(generator)")
    for length in 0..<80 {
      var bytes = (0..<length).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
      #expect(Base32.decode(Base32.encode(bytes.span).utf8) == bytes, "\(generator)")
      for index in 0..<Int.random(in: 0...length, using: &generator) { bytes[index] = 0 }
      #expect(Base58.decode(Base58.encode(bytes).utf8) == bytes, "\(generator)")
    }
  }
}

@Suite struct `Base 58` {
  @Test func `has a one for each zero byte in front`() {
    let examples: [([UInt8], String)] = [
      ([], ""), ([0], "1"), ([0, 0], "11"), ([0, 1], "12"), ([57], "z"), ([58], "21"),
      ([1, 0], "5R"), (Array("Hello World!".utf8), "2NEpo7TZRRrLZSi2U"),
      ([0, 0, 0x28, 0x7f, 0xb4, 0xcd], "11233QC4"),
    ]
    for (bytes, encoded) in examples {
      #expect(Base58.encode(bytes) == encoded)
      #expect(Base58.decode(encoded.utf8) == bytes)
    }
  }

  @Test(arguments: ["0", "O", "I", "l", " 1", "1 ", "2-", "é", "2NEpo7TZRRrLZSi2U\n"])
  func `is refused with any other character`(text: String) {
    #expect(Base58.decode(text.utf8) == nil)
  }

  @Test func `is refused when it is longer than any use of it`() {
    let longest = String(repeating: "1", count: Base58.maximumLength)
    #expect(Base58.decode(longest.utf8)?.count == Base58.maximumLength)
    #expect(Base58.decode((longest + "1").utf8) == nil)
  }
}

@Suite struct `Base 16` {
  @Test func `is two small digits a byte`() {
    #expect(Hex.encode([]) == "")
    #expect(Hex.encode([0x00, 0x0f, 0xf0, 0xab]) == "000ff0ab")
  }
}
