import Age
import Foundation
import TestSupport
import Testing

/// A Python that has pyrage, by which the implementation in Rust is called: `CLIENT_PYTHON` names
/// it.
private enum Pyrage {
  static let python = ProcessInfo.processInfo.environment["CLIENT_PYTHON"] ?? "python3"
  static let isPresent = (try? AgeTests.run([python, "-c", "import pyrage"]))?.status == 0
  static let absence: Comment = "the Python that CLIENT_PYTHON names has no pyrage"

  /// Runs a program that reads `content`, sees its arguments in `words`, and leaves `result`.
  static func run(_ program: String, _ words: [String], _ content: [UInt8]) throws -> [UInt8] {
    let whole = """
      import sys, pyrage
      from pyrage import x25519
      content, words = sys.stdin.buffer.read(), sys.argv[1:]
      \(program)
      sys.stdout.buffer.write(result)
      """
    let (status, output) = try AgeTests.run([python, "-c", whole] + words, input: content)
    try #require(status == 0)
    return output
  }
}

/// The program `age`, the first implementation.
private enum AgeProgram {
  static let isPresent = (try? run(["age", "--version"]))?.status == 0
  static let absence: Comment = "the program age is not installed"
}

private let content = Array("what both have to agree on\n".utf8)

@Suite(.enabled(if: Pyrage.isPresent, Pyrage.absence))
struct `Files of pyrage` {
  @Test(arguments: [false, true])
  func `open here, and ours open there`(_ isArmored: Bool) throws {
    let identity = try AgeIdentity.generate()
    let theirs = try Pyrage.run(
      """
      keys = [x25519.Recipient.from_str(word) for word in words[1:]]
      result = pyrage.encrypt(content, keys, armored=words[0] == "true")
      """, ["\(isArmored)", identity.recipient.text, try AgeIdentity.generate().recipient.text],
      content)
    let isArmor = AgeArmor.isArmor(theirs.span)
    #expect(isArmor == isArmored)
    #expect(try AgeFile.open(theirs.span, with: [identity]) == content)

    let ours = try AgeFile.seal(
      content.span, for: [AgeIdentity.generate().recipient, identity.recipient],
      isArmored: isArmored)
    let back = try Pyrage.run(
      "result = pyrage.decrypt(content, [x25519.Identity.from_str(words[0])])",
      [identity.text.exposedText], ours)
    #expect(back == content)
  }

  @Test func `open here with a passphrase, and ours open there`() throws {
    let theirs = try Pyrage.run(
      "result = pyrage.passphrase.encrypt(content, words[0])", ["motdepassé"], content)
    #expect(try AgeFile.open(theirs.span, with: passphrase("motdepassé")) == content)
    let ours = try AgeFile.seal(content.span, with: passphrase("motdepassé", workFactor: 10))
    let back = try Pyrage.run(
      "result = pyrage.passphrase.decrypt(content, words[0])", ["motdepassé"], ours)
    #expect(back == content)
  }

  @Test func `have keys that are ours`() throws {
    let texts = try Pyrage.run(
      """
      key = x25519.Identity.generate()
      result = f"{key} {key.to_public()}".encode()
      """, [], [])
    let words = String(decoding: texts, as: UTF8.self).split(separator: " ").map(String.init)
    let identity = try AgeIdentity(parsing: secret(words[0]))
    #expect(identity.recipient.text == words[1])
    #expect(identity.text.exposedText == words[0])
  }
}

@Suite(.enabled(if: AgeProgram.isPresent, AgeProgram.absence))
struct `Files of the program age` {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test(arguments: [false, true], [0, 27, 65_536, 200_000])
  func `open here, and ours open there`(_ isArmored: Bool, _ length: Int) throws {
    let content = [UInt8](repeating: 5, count: length)
    let (plain, sealed, keys) = (folder.file("plain"), folder.file("sealed"), folder.file("keys"))
    try #require(try run(["age-keygen", "-o", keys]).status == 0)
    let keyFile = [UInt8](try Data(contentsOf: URL(filePath: keys)))
    let identity = try #require(try AgeIdentityFile(keyFile.span).identities.first)
    let shown = try run(["age-keygen", "-y", keys]).output
    #expect(String(decoding: shown, as: UTF8.self) == "\(identity.recipient)\n")

    try Data(content).write(to: URL(filePath: plain))
    let armor = isArmored ? ["-a"] : []
    try #require(
      try run(["age"] + armor + ["-r", identity.recipient.text, "-o", sealed, plain]).status == 0)
    let theirs = [UInt8](try Data(contentsOf: URL(filePath: sealed)))
    #expect(try AgeFile.open(theirs.span, with: [identity]) == content)
    if !isArmored { #expect(theirs.count == AgeFile.length(of: length)) }

    let ours = try AgeFile.seal(
      content.span, for: [identity.recipient], isArmored: isArmored)
    try Data(ours).write(to: URL(filePath: sealed))
    let (status, back) = try run(["age", "-d", "-i", keys, sealed])
    #expect(status == 0)
    #expect(back == content)
  }
}
