internal import ArgumentParser
internal import Synchronization

/// A page of `Manual/`, which says what a verb is for.
///
/// Its first paragraph is the abstract; one that begins with `USAGE: ` may follow. A line below
/// `EXAMPLES` is an example, however long. A line `ENVIRONMENT` is followed by names of groups of
/// variables, which are in `Manual/environment.txt`.
final class ManualPage: Sendable {
  /// What the verb is called.
  let name: String
  private let text: @Sendable () -> [UInt8]
  private let parent: String?
  /// The verbs that are below it.
  let subcommands: [any Verb.Type]
  /// What the page comes to, once it has been read.
  private let read = Mutex<CommandConfiguration?>(nil)

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

  var configuration: CommandConfiguration {
    read.withLock { read in
      if let read { return read }
      var lines = Self.lines(text())[...]
      let abstract = Self.paragraph(&lines)
      let usage = lines.first?.hasPrefix(Self.usage) == true ? Self.paragraph(&lines) : nil
      var configuration = CommandConfiguration(
        commandName: name, abstract: abstract,
        usage: usage.map { String($0.dropFirst(Self.usage.count)) },
        discussion: Self.discussion(lines), subcommands: subcommands)
      configuration._superCommandName = parent
      read = configuration
      return configuration
    }
  }

  private static let usage = "USAGE: "
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

  /// An example as lines that can be copied: one that is too long goes on behind a backslash.
  private static func example(_ words: [Substring]) -> [String] {
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
