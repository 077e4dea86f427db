internal import ArgumentParser
internal import Synchronization

/// A page of `Manual/`, which says what a verb is for.
///
/// Its first paragraph is the abstract; one that begins with `USAGE: ` may follow, and one that
/// begins with `COMMON: ` and names the options that people use most. A line below `EXAMPLES` is an
/// example, however long. A line `ENVIRONMENT` is followed by names of groups of variables, which
/// are in `Manual/environment.txt`.
final class ManualPage: Sendable {
  /// The verb's name.
  let name: String
  private let text: @Sendable () -> [UInt8]
  private let parent: String?
  /// The verbs that are below it.
  let subcommands: [any Verb.Type]
  /// What the page says, once it has been read.
  private let read = Mutex<Content?>(nil)

  private struct Content {
    let configuration: CommandConfiguration
    let common: [String]
    let examples: [String]
  }

  /// A page that is read when its text is first asked for.
  ///
  /// - Parameter parent: The command that verbs are below: parsed by themselves, they are not asked
  ///   for completion scripts.
  init(
    _ name: String, _ text: @autoclosure @escaping @Sendable () -> [UInt8],
    below parent: String? = Program.name, subcommands: [any Verb.Type] = []
  ) {
    (self.name, self.text, self.parent, self.subcommands) = (name, text, parent, subcommands)
  }

  var configuration: CommandConfiguration { content.configuration }

  /// The options that people use most, dashes included.
  var common: [String] { content.common }

  /// The lines of its examples.
  var examples: [String] { content.examples }

  private var content: Content {
    read.withLock { read in
      if let read { return read }
      var lines = Self.lines(text())[...]
      let abstract = Self.paragraph(&lines)
      let usage = Self.field(Self.usage, &lines)
      let common = Self.field(Self.common, &lines)?.split(separator: " ").map(String.init) ?? []
      var configuration = CommandConfiguration(
        commandName: name, abstract: abstract,
        usage: usage, discussion: Self.discussion(lines), subcommands: subcommands)
      configuration._superCommandName = parent
      let examples = lines.drop { $0 != "EXAMPLES" }.dropFirst().prefix { $0.hasPrefix(" ") }
      let content = Content(
        configuration: configuration, common: common,
        examples: examples.map { String($0.drop { $0 == " " }) })
      read = content
      return content
    }
  }

  /// Takes a paragraph that begins with a word, and returns what follows that; nil if it does not.
  private static func field(_ word: String, _ lines: inout ArraySlice<Substring>) -> String? {
    guard lines.first?.hasPrefix(word) == true else { return nil }
    return String(paragraph(&lines).dropFirst(word.count))
  }

  private static let usage = "USAGE: "
  private static let common = "COMMON: "
  private static let environment = "ENVIRONMENT "

  private static func lines(_ text: [UInt8]) -> [Substring] {
    String(decoding: text, as: UTF8.self).utf8
      .split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast()
      .map(Substring.init)
  }

  /// Takes the lines as far as the next empty one.
  private static func paragraph(_ lines: inout ArraySlice<Substring>) -> String {
    let paragraph = lines.prefix { !$0.isEmpty }
    lines = lines.dropFirst(paragraph.count + 1)
    return paragraph.joined(separator: "\n")
  }

  /// The rest of a page, with its examples and variables as they are shown.
  private static func discussion(_ lines: ArraySlice<Substring>) -> String {
    var shown: [String] = []
    var isExample = false
    for line in lines {
      if !line.hasPrefix(" ") { isExample = line == "EXAMPLES" }
      if line.hasPrefix(environment) {
        let groups = line.dropFirst(environment.count).split(separator: " ")
        shown += ["ENVIRONMENT"] + groups.flatMap(variables)
      } else if isExample, line.hasPrefix(" ") {
        shown += example(line.split(separator: " "))
      } else {
        shown.append(String(line))
      }
    }
    return shown.joined(separator: "\n")
  }

  /// The lines about a group of variables.
  private static func variables(_ group: Substring) -> [String] {
    lines(PackageResources.environment_txt).drop { $0 != group }.dropFirst()
      .prefix { !$0.isEmpty }.map(String.init)
  }

  /// How long a line of an example may be: a terminal's 80 columns less what stands in front.
  private static let maximumLine = 76

  /// An example as lines that can be copied: one that is too long continues after a backslash.
  static func example(_ words: [Substring]) -> [String] {
    var lines: [String] = []
    var line = " "
    var isQuoted = false
    for word in words {
      defer { if !word.count(where: { $0 == "\"" }).isMultiple(of: 2) { isQuoted.toggle() } }
      if !isQuoted, line.count + word.count + 3 > maximumLine {
        lines.append(line + " \\")
        line = "     "
      }
      line += " \(word)"
    }
    return lines + [line]
  }
}
