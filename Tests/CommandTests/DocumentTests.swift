import Foundation
import TestSupport
import Testing

/// What the documents tell people to type, and to write into their configuration.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `What documents tell people to type` {
  /// A block between two lines of three backticks.
  private struct DocumentBlock {
    let file: String
    let language: Substring
    let lines: [Substring]
  }

  private static func blocks() throws -> [DocumentBlock] {
    let folder = Command.packageRoot + "/Docs"
    let names = try FileManager.default.contentsOfDirectory(atPath: folder)
      .filter { $0.hasSuffix(".md") }.sorted()
    return try (["README.md"] + names.map { "Docs/\($0)" }).flatMap { file in
      let text = try String(
        contentsOfFile: "\(Command.packageRoot)/\(file)", encoding: .utf8)
      var blocks: [DocumentBlock] = []
      var open: (language: Substring, lines: [Substring])?
      for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
        if line.hasPrefix("```") {
          if let (language, lines) = open {
            blocks.append(DocumentBlock(file: file, language: language, lines: lines))
            open = nil
          } else {
            open = (line.dropFirst(3), [])
          }
        } else {
          open?.lines.append(line)
        }
      }
      return blocks
    }
  }

  /// Stands for something that is too long to be written out.
  private static let examples = [
    ("did:plc:…", "did:plc:ewvi7nxzyoun6zhxrhs64oiz"),
    ("age1…", "age19jp3y3hh5kduumtxvjztrfq6rfrplwxmelx4weaw7ztzskxu338qsvk48q"),
    ("bafkrei…", "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"),
    ("did:key:zDna…", "did:key:zDnaerDaTF5BXEavCrfRZEk316dpbLsfPDZ3WJ5hRTPFU2169"),
    ("…", ""),
  ]

  /// The words of a line, without what follows them: other programs, files, what is said of it.
  private static func words(_ line: Substring) -> String? {
    var text = line.hasPrefix("$ ") ? line.dropFirst(2) : line
    guard text.hasPrefix("carpack ") else { return nil }
    for end in ["   ", " # ", " | ", " > ", " && ", "; ", " 2>"] {
      if let place = text.range(of: end) { text = text[..<place.lowerBound] }
    }
    return examples.reduce(String(text)) { $0.replacing($1.0, with: $1.1) }
  }

  @Test func `can be typed`() throws {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    var count = 0
    for block in try Self.blocks() where ["", "sh", "console"].contains(block.language) {
      // A line that ends in a backslash continues in the next one, which may be indented.
      let text = block.lines.joined(separator: "\n")
        .replacing("\\\n    ", with: "").replacing("\\\n", with: " ")
      for line in text.split(separator: "\n") {
        guard let words = Self.words(line), words != "carpack head 1" else { continue }
        count += 1
        let result = try command.run(
          words.replacing("carpack ", with: "carpack ---parse ", maxReplacements: 1))
        #expect(result.status == 0, "\(block.file): \(line): \(result.errors)")
      }
    }
    #expect(count > 40)
  }

  @Test func `can be pasted into the configuration`() throws {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    var count = 0
    for block in try Self.blocks() where block.language == "toml" {
      count += 1
      let path = command.configurationFolder + "/carpack"
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
      try block.lines.joined(separator: "\n")
        .write(toFile: path + "/config.toml", atomically: true, encoding: .utf8)
      let result = try command.run("carpack config")
      #expect(result.status == 0, "\(block.file): \(result.errors)")
    }
    #expect(count >= 3)
  }
}
