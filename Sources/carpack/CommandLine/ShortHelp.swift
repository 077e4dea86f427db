internal import ArgumentParser
internal import Completions

/// What `-h` shows: usage, the options that people use, and two examples, on one screen.
///
/// It shows the first clause of an option's help, which has to be true and complete by itself.
/// `--help` has everything, also the options for servers and object stores.
enum ShortHelp {
  /// The most lines that it has, and the most columns of a line.
  private static let (maximumLines, columns) = (40, 80)
  /// Where descriptions begin.
  private static let indentation = 26
  private static let verbIndentation = 18
  /// Options that every verb has, which give way to those of its own.
  private static let general: Set<String> = [
    "--json", "--pretty", "--quiet", "--no-config", "--age-identity", "--allow-large", "--version",
    "--help",
  ]

  /// Whether arguments ask for it.
  static func isAsked(in arguments: [String]) -> Bool {
    let words = arguments.prefix { $0 != "--" }
    return words.isEmpty || words.contains("-h") && !words.contains("--help")
  }

  /// The help on a verb; nil if the verb does not describe itself.
  static func text(on verb: any Verb.Type, named name: [String]) -> String? {
    let command = ([Program.name] + name).joined(separator: " ")
    let configuration = verb.configuration
    var lines = wrapped(configuration.abstract, from: 0) + [""]
    guard verb.page.subcommands.isEmpty else {
      lines += ["USAGE: \(command) <verb>", ""] + verb.page.subcommands.flatMap(entry)
      return ended(lines + examples(of: verb.page), command)
    }
    guard let arguments = CommandTree(verb._dumpHelp())?.command.arguments else { return nil }
    let positionals = arguments.filter { $0.kind == .positional }
    let words = [command, "[<options>]"] + positionals.map { usage(of: $0) }
    let line = configuration.usage ?? words.joined(separator: " ")
    for (number, part) in line.split(separator: "\n").enumerated() {
      lines.append((number == 0 ? "USAGE: " : "       ") + part.drop { $0 == " " })
    }
    lines += [""]
    for argument in positionals {
      lines += entry("<\(argument.valueName ?? "")>", argument.abstract ?? "")
    }
    if !positionals.isEmpty { lines += [""] }
    let examples = examples(of: verb.page)
    let all = paired(arguments.filter { $0.kind != .positional })
    let options = sorted(all.filter { $0[0].sectionTitle == nil }, by: verb.page.common)
    var room = maximumLines - lines.count - examples.count - 2
    var count = 0
    for option in options {
      let entry = entry(label(of: option), option[0].abstract ?? "")
      guard entry.count <= room else { break }
      lines += entry
      room -= entry.count
      count += 1
    }
    return ended(lines + examples, command, rest: all.count - count)
  }

  /// The help on the command itself.
  static func text(groups: KeyValuePairs<String, [any Verb.Type]>, _ page: ManualPage) -> String {
    var lines = wrapped(page.configuration.abstract, from: 0)
    for (name, verbs) in groups {
      lines += [name.uppercased()] + verbs.flatMap(briefEntry)
    }
    lines += ["EXAMPLES"] + page.examples.prefix(3).map { "  \($0)" }
    return lines.joined(separator: "\n")
      + "\n\"\(Program.name) VERB -h\" is help on one screen, \"--help\" is all of it."
  }

  private static func ended(_ lines: [String], _ command: String, rest: Int = 0) -> String {
    let options = rest == 1 ? "1 more option" : "\(rest) more options"
    let more = rest > 0 ? "has \(options), and says what happens" : "says what happens"
    return (lines + ["", "\"\(command) --help\" \(more)."]).joined(separator: "\n")
  }

  /// How a positional argument stands in a line of usage.
  private static func usage(of argument: CommandTree.Argument) -> String {
    let name = "<\(argument.valueName ?? "")>" + (argument.isRepeating == true ? " ..." : "")
    return argument.isOptional == true ? "[\(name)]" : name
  }

  /// Two examples at most, after an empty line.
  private static func examples(of page: ManualPage) -> [String] {
    let lines = page.examples.prefix(2).flatMap { ManualPage.example($0.split(separator: " ")) }
    return lines.isEmpty ? [] : ["", "EXAMPLES"] + lines
  }

  /// The options, each flag together with its opposite: they have one description.
  private static func paired(_ options: [CommandTree.Argument]) -> [[CommandTree.Argument]] {
    options.reduce(into: []) { pairs, option in
      let text = option.abstract
      if option.kind == .flag, text != nil, pairs.last?[0].abstract == text {
        pairs[pairs.count - 1].append(option)
      } else {
        pairs.append([option])
      }
    }
  }

  /// First those that people use most, then the verb's own, then those of all verbs.
  private static func sorted(_ options: [[CommandTree.Argument]], by common: [String])
    -> [[CommandTree.Argument]]
  {
    func rank(_ option: [CommandTree.Argument]) -> Int {
      let words = option.flatMap(\.words)
      let place = common.firstIndex(where: words.contains)
      return place ?? (words.contains(where: general.contains) ? Int.max : common.count)
    }
    return options.enumerated()
      .sorted { (rank($0.element), $0.offset) < (rank($1.element), $1.offset) }.map(\.element)
  }

  private static func label(of option: [CommandTree.Argument]) -> String {
    option.map { label(of: $0) }.joined(separator: "/")
  }

  private static func label(of option: CommandTree.Argument) -> String {
    let words = option.words.sorted { $0.count < $1.count }.joined(separator: ", ")
    return option.kind == .option ? "\(words) <\(option.valueName ?? "value")>" : words
  }

  private static func entry(_ verb: any Verb.Type) -> [String] {
    entry(verb.page.name, verb.configuration.abstract)
  }

  /// A verb, and what it does; without the list behind a colon, if a line has no room for it.
  private static func briefEntry(_ verb: any Verb.Type) -> [String] {
    var text = verb.configuration.abstract
    if verbIndentation + text.count > columns, let colon = text.firstIndex(of: ":") {
      text = text[..<colon] + "."
    }
    return entry(verb.page.name, text, at: verbIndentation)
  }

  /// A label, and the first sentence about it.
  private static func entry(_ label: String, _ text: String, at indentation: Int = indentation)
    -> [String]
  {
    let sentence = firstSentence(of: text)
    let start = "  \(label)"
    guard start.count < indentation - 1 else {
      return [start] + wrapped(sentence, from: indentation)
    }
    var lines = wrapped(sentence, from: indentation)
    guard let first = lines.first else { return [start] }
    lines[0] = start + first.dropFirst(start.count)
    return lines
  }

  /// A text as far as its first full stop or semicolon that is in no brackets.
  private static func firstSentence(of text: String) -> String {
    var depth = 0
    for (place, letter) in zip(text.indices, text) {
      depth += letter == "(" ? 1 : letter == ")" ? -1 : 0
      if depth == 0, letter == "." || letter == ";", text[place...].dropFirst().first == " " {
        return text[..<place] + "."
      }
    }
    return text
  }

  /// A text in lines that begin in a column.
  private static func wrapped(_ text: String, from column: Int) -> [String] {
    let margin = String(repeating: " ", count: column)
    var lines: [String] = []
    for word in text.split(whereSeparator: \.isWhitespace) {
      if let last = lines.last, last.count + 1 + word.count <= columns {
        lines[lines.count - 1] += " \(word)"
      } else {
        lines.append(margin + word)
      }
    }
    return lines
  }
}
