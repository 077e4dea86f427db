/// What is being typed at the cursor, found by parsing the words before it as the command
/// would.
struct CompletionRequest {
  /// What stands at the cursor.
  enum Place {
    case verb(of: CommandTree.Command)
    case option(of: CommandTree.Command)
    /// A value of an argument; what stands before it in the same word is `prefix`.
    case value(CommandTree.Argument, prefix: String)
    case nothing
  }

  let line: CompletionLine
  private let place: Place
  /// The values of all options on the line, before and after the cursor.
  private let options: [String: String]
  /// The archive that is named on the line.
  private let archive: String?

  init(_ line: CompletionLine, in tree: CommandTree) {
    self.line = line
    var walk = CommandWalk(tree.command)
    for word in line.before { walk.take(word) }
    place = walk.place(of: line.current)
    walk.pass(line.current)
    for word in line.after { walk.take(word) }
    options = walk.values
    archive = walk.archive
  }

  /// The completions.
  var answer: CompletionAnswer {
    switch place {
    case .nothing: CompletionAnswer()
    case .verb(let command):
      CompletionAnswer(
        candidates: (command.subcommands ?? []).filter { $0.shouldDisplay ?? true }.map { verb in
          .init(text: verb.commandName, description: Self.summary(verb.abstract))
        })
    case .option(let command): CompletionAnswer(candidates: Self.names(of: command))
    case .value(let argument, let prefix): values(of: argument, behind: prefix)
    }
  }

  /// The long names of the options of a verb, and the short names that have no long one.
  private static func names(of command: CommandTree.Command) -> [CompletionAnswer.Candidate] {
    (command.arguments ?? [])
      .filter { $0.kind != .positional }
      .flatMap { argument in
        let long = argument.words.filter { $0.hasPrefix("--") }
        return (long.isEmpty ? argument.words : long).map { word in
          CompletionAnswer.Candidate(text: word, description: summary(argument.abstract))
        }
      }
  }

  private func values(of argument: CommandTree.Argument, behind prefix: String) -> CompletionAnswer
  {
    var answer = CompletionAnswer()
    let typed = String(line.current.dropFirst(prefix.count))
    if let listed = argument.allValues ?? argument.completionKind?["list"]?["values"] {
      answer.candidates = listed.map {
        .init(text: $0, description: Self.summary(argument.allValueDescriptions?[$0]))
      }
    } else if argument.completionKind?["directory"] != nil {
      answer.files = .folders
    } else if let file = argument.completionKind?["file"] {
      answer.files = .files(suffixes: file["extensions"] ?? [])
    } else if argument.isArchive {
      answer.files = .files(suffixes: ["zst"])
    } else if let archive, let opened = ArchiveCandidates(archive, options) {
      switch (argument.kind, argument.words.first ?? argument.valueName) {
      case (.option, "--at"), (.positional, "snapshot"): answer.candidates = opened.snapshots(typed)
      case (.option, "--account"): answer.candidates = opened.accounts
      case (.option, "--collection"), (_, "collection"):
        answer.candidates = opened.collections(typed)
      case (.positional, "selector"), (.positional, "path"):
        answer.candidates = opened.selectors(typed)
      default: break
      }
    }
    answer.candidates = answer.candidates.map {
      .init(text: prefix + $0.text, description: $0.description)
    }
    return answer
  }

  /// How many characters of a menu's line a description takes at most.
  private static let maximumSummary = 72

  /// The first sentence of a help text, for one line of a menu.
  private static func summary(_ text: String?) -> String {
    let line = (text ?? "").prefix { $0 != "\n" }
    let sentence = line.firstIndex(of: ".").map { end in
      // "1.5 GB" and "example.com" do not end a sentence.
      let next = line.index(after: end)
      return next == line.endIndex || line[next] == " " ? line[..<end] : line
    }
    let text = sentence ?? line
    guard text.count > maximumSummary else { return String(text) }
    let start = text.prefix(maximumSummary)
    return start[..<(start.lastIndex(of: " ") ?? start.endIndex)] + "…"
  }
}

/// Parses the words of a line: the verb, the options, and what is in which
/// place.
struct CommandWalk {
  private var command: CommandTree.Command
  private let root: CommandTree.Command
  private var isHelp = false
  /// The option whose value comes next.
  private var awaiting: CommandTree.Argument?
  private var isBehindTerminator = false
  private var count = 0
  /// The last value of each option, by its names.
  private(set) var values: [String: String] = [:]
  /// The first archive in the places of the verb.
  private(set) var archive: String?

  init(_ root: CommandTree.Command) {
    self.root = root
    command = root
  }

  /// Parses the next word.
  mutating func take(_ word: String) {
    if let option = awaiting {
      for name in option.words { values[name] = word }
      awaiting = nil
    } else if isOption(word) {
      takeOption(word)
    } else if word == "--", !isBehindTerminator {
      isBehindTerminator = true
    } else if let verb = command.subcommand(word), count == 0 {
      if verb.commandName == "help" { isHelp = true } else { command = verb }
    } else {
      if positional(count)?.isArchive == true, archive == nil { archive = word }
      count += 1
    }
  }

  /// Parses the word that is being typed, which has no meaning yet.
  mutating func pass(_ word: String) {
    if awaiting != nil {
      awaiting = nil
    } else if !isOption(word) {
      count += 1
    }
  }

  private func isOption(_ word: String) -> Bool {
    !isBehindTerminator && word.hasPrefix("-") && word != "-" && word != "--"
  }

  private mutating func takeOption(_ word: String) {
    if let equals = word.firstIndex(of: "=") {
      for name in command.option(word[..<equals])?.words ?? [] {
        values[name] = String(word[word.index(after: equals)...])
      }
    } else if let option = command.option(word), option.kind == .option {
      awaiting = option
    }
  }

  /// What takes the n-th place; the last one may take all that follow.
  private func positional(_ number: Int) -> CommandTree.Argument? {
    let all = command.positionals
    if number < all.count { return all[number] }
    return all.last.flatMap { $0.isRepeating == true ? $0 : nil }
  }

  /// What the word that is being typed is.
  func place(of current: String) -> CompletionRequest.Place {
    if let awaiting { return .value(awaiting, prefix: "") }
    if isHelp {
      // "help fetch repo" goes down the verbs; "help" has no help.
      return command.subcommands == nil ? .nothing : .verb(of: command)
    }
    if isOption(current), let equals = current.firstIndex(of: "=") {
      guard let option = command.option(current[..<equals]), option.kind == .option else {
        return .nothing
      }
      return .value(option, prefix: String(current[...equals]))
    }
    if !isBehindTerminator, current.hasPrefix("-") { return .option(of: command) }
    if command.subcommands != nil { return count == 0 ? .verb(of: command) : .nothing }
    return positional(count).map { .value($0, prefix: "") } ?? .nothing
  }
}
