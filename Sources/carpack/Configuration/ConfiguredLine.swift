internal import Terminal

/// A command line with what the configuration file adds to it.
///
/// The settings of the file come before the words that were typed, which therefore win.
struct ConfiguredLine {
  /// The words to parse.
  let words: [String]
  /// The words that were typed.
  let typed: [String]
  private let entries: [Configuration.Entry]
  private let configuration: Configuration?

  /// Adds to a command line, if it is that of a verb for which something can be set.
  ///
  /// - Throws: ``Failure`` for a file that is refused or malformed.
  init(_ arguments: [String]) throws {
    let options = CommandWords.options(arguments)
    guard let (verb, type) = Verbs.named(by: arguments),
      !options.contains(where: { Self.help.contains($0) }),
      // Otherwise it takes as long as all other parsing to find out what can be set.
      Configuration.isThere || options.contains(where: { $0.hasPrefix("--no-") })
    else {
      (words, typed, entries, configuration) = (arguments, arguments, [], nil)
      return
    }
    let settings = type.allSettings
    // "--no-quiet" takes back what the file sets, and means nothing without it.
    let negated = settings.filter { $0.negation.map(options.contains) ?? false }
    let negations = negated.compactMap(\.negation)
    typed =
      options.filter { !negations.contains($0) } + arguments.dropFirst(options.count)
    configuration = settings.isEmpty ? nil : try Configuration.ofUser()
    let found = configuration?.entries(for: settings, in: verb[0]) ?? []
    entries = found.filter { entry in
      !negated.contains { $0.name == entry.setting.name } && !entry.setting.isSaid(by: options)
    }
    words = verb + entries.flatMap(\.words) + typed.dropFirst(verb.count)
  }

  private static let help: Set<String> = ["-h", "--help", "--version", "--experimental-dump-help"]

  /// Whether the file adds anything.
  var isConfigured: Bool { !entries.isEmpty }

  /// What is wrong with the file, if the line can be parsed without what it adds.
  ///
  /// - Parameters:
  ///   - error: The result of parsing all of it.
  ///   - message: An error in words.
  ///   - parse: Parses words.
  func fault(
    _ error: any Error, _ message: (any Error) -> String, _ parse: ([String]) throws -> Void
  ) -> Failure? {
    guard isConfigured, let configuration, Self.error(typed, parse) == nil else { return nil }
    let start = Verbs.named(by: typed)?.words.count ?? 1
    for entry in entries {
      let line = Array(typed[..<start]) + entry.words + typed[start...]
      guard let error = Self.error(line, parse) else { continue }
      return ConfigurationReader.fault(
        "\"\(entry.setting.name)\": \(message(error))", at: configuration.path, line: entry.line)
    }
    return Failure(
      "\(configuration.path): its settings conflict: \(message(error))",
      hint: "--\(Configuration.absence) ignores the file", status: .usage,
      at: configuration.path)
  }

  private static func error(_ words: [String], _ parse: ([String]) throws -> Void) -> (any Error)? {
    do {
      try parse(words)
      return nil
    } catch {
      return error
    }
  }
}
