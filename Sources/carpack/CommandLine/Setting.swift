internal import ArgumentParser
internal import Terminal

/// What the configuration file may set: an option of the command line, under its name.
struct Setting {
  /// What its value is.
  enum Kind {
    /// `true`, or `false` for nothing.
    case flag
    /// `true` or `false`, each of which is an option.
    case choice
    /// A text or a number.
    case text
    /// A path, from `/` or `~/`: a relative one would mean another file in every folder.
    case path
    /// A text, or a list of them.
    case list
    /// A text that is never shown.
    case secret
    /// A program and its arguments; no option.
    case program
    /// A length of time; no option.
    case age
  }

  let name: String
  let kind: Kind
  /// Whether it may be set for all verbs that take it, under `[defaults]`.
  var isGeneral = false
  /// The variables that also set it: they override the file.
  var variables: [String] = []
  /// Options of which any on the command line overrides the setting.
  var rivals: [String] = []
  /// Whether `--no-NAME` undoes it although it is not a flag.
  var isTakenBack = false
  /// Its short name.
  var letter: Character?

  /// The word that undoes what the file sets.
  var negation: String? {
    (kind == .flag || isTakenBack) && !name.hasPrefix("no-") ? "--no-\(name)" : nil
  }

  /// Whether the words of a command line, or a variable, say it already.
  func isSaid(by words: some Sequence<String>) -> Bool {
    if Host.environment(variables) != nil { return true }
    return CommandWords.contain(words, [name] + rivals, letter: letter)
  }

  /// The words of a command line that say it.
  func words(_ values: [String]) -> [String] {
    switch kind {
    case .flag: values == ["true"] ? ["--\(name)"] : []
    case .choice: values == ["true"] ? ["--\(name)"] : ["--no-\(name)"]
    case .text, .path, .list, .secret, .program, .age: values.map { "--\(name)=\($0)" }
    }
  }
}

/// Options of which the configuration file may set some.
protocol ConfigurableOptions: ParsableArguments {
  static var settings: [Setting] { get }
}

extension Verb {
  /// What the file may set for it and the verbs below it: nothing, where no option leaves the file
  /// out, which those that all verbs have in common do.
  static var allSettings: [Setting] {
    let all = ([self] + page.subcommands).flatMap { $0.settings(in: $0) }
    guard all.contains(where: { $0.name == "quiet" }) else { return [] }
    return all.indices.filter { index in !all[..<index].contains { $0.name == all[index].name } }
      .map { all[$0] }
  }

  /// What the file may set of options, and of the groups that they are made of.
  private static func settings(in options: any ParsableArguments.Type) -> [Setting] {
    let own = (options as? any ConfigurableOptions.Type)?.settings ?? []
    return Mirror(reflecting: options.init()).children.reduce(into: own) { all, child in
      if let group = child.value as? any GroupOfOptions { all += settings(in: group.options) }
    }
  }
}

/// A part of a verb's options that is declared elsewhere.
private protocol GroupOfOptions {
  var options: any ParsableArguments.Type { get }
}

extension OptionGroup: GroupOfOptions {
  fileprivate var options: any ParsableArguments.Type { Value.self }
}
