internal import ArgumentParser
internal import Live
internal import Terminal

/// The options for context, which a backup requests from an app view.
struct ContextArguments: ConfigurableOptions {
  static let settings = [
    Setting(name: "context", kind: .text, isTakenBack: true),
    Setting(name: "app-view", kind: .text), Setting(name: "context-limit", kind: .text),
  ]

  @Option(
    help: ArgumentHelp(
      "Also keep the people and posts that the account's records point to, as an app view shows them: \"names\" (people only), \"posts\" (people, posts and thumbnails; the default), \"signed\" (and the proof of each post, from its author's server).",
      valueName: "what"))
  var context: ContextOptions.Kind?

  @Option(
    help: ArgumentHelp(
      "With --context: the app view (default: \(ContextOptions.publicAppView)).", valueName: "url"))
  var appView: String?

  @Option(
    help: ArgumentHelp(
      "With --context: keep at most this many people and posts, those of the newest records.",
      valueName: "n"))
  var contextLimit = ContextOptions.usualItems

  func validate() throws {
    guard 1...ContextOptions.maximumItems ~= contextLimit else {
      throw ValidationError("--context-limit takes 1 to \(ContextOptions.maximumItems)")
    }
  }

  /// The options; nil without --context.
  ///
  /// - Throws: ``Failure`` for a URL that cannot be used.
  func options() throws -> ContextOptions? {
    guard let context else { return nil }
    var options = ContextOptions(context)
    options.items = contextLimit
    if let url = try NetworkCommandOptions.url(appView, "app-view") { options.appView = url }
    return options
  }

  /// The words of a command line, with the value that `--context` has without one: an option whose
  /// value may be left out is nothing that the parser knows.
  static func completed(_ words: [String]) -> [String] {
    guard words.first == BackupCommand.page.name else { return words }
    let options = CommandWords.options(words)
    let kinds = Set(ContextOptions.Kind.allCases.map(\.rawValue))
    return options.enumerated().map { index, word in
      let next = options.dropFirst(index + 1).first
      let isBare = word == "--context" && !(next.map(kinds.contains) ?? false)
      return isBare ? "--context=\(ContextOptions.Kind.posts.rawValue)" : word
    } + words.dropFirst(options.count)
  }
}

extension ContextOptions.Kind: ExpressibleByArgument {}
