internal import ATProtocol
internal import ArgumentParser
internal import Completions
internal import Files
internal import Keys
internal import Reports
internal import SystemPackage
internal import Terminal

/// The command: parses its arguments, runs a verb, and says what went wrong in one place.
@main
struct Carpack: ParsableCommand {
  static let page = ManualPage(Program.name, PackageResources.carpack_txt, below: nil)

  static var configuration: CommandConfiguration {
    var configuration = page.configuration
    configuration.version = Program.version
    configuration.groupedSubcommands = groups.map {
      CommandGroup(name: $0.key, subcommands: $0.value)
    }
    return configuration
  }

  private static let groups: KeyValuePairs<String, [any Verb.Type]> = [
    "Keep": [
      BackupCommand.self, MissingCommand.self, FillCommand.self, FetchCommand.self,
      PackCommand.self, ScheduleCommand.self, SealCommand.self, UnsealCommand.self,
      KeyCommand.self,
    ],
    "Look": [
      StatusCommand.self, InfoCommand.self, LogCommand.self, ListCommand.self, CatCommand.self,
      DiffCommand.self, FindCommand.self, StatsCommand.self, ViewCommand.self, ServeCommand.self,
    ],
    "Check": [
      VerifyCommand.self, InspectCommand.self, ProveCommand.self, VerifyProofCommand.self,
      IdentityCommand.self, ResolveCommand.self, ConfigCommand.self,
    ],
    "Give back": [
      ExtractCommand.self, ExportCommand.self, RestoreCommand.self, RehearseCommand.self,
      RecoveryKeyCommand.self,
    ],
    "Elsewhere": [PushCommand.self, PullCommand.self, FleetCommand.self],
    "Maintain": [
      PruneCommand.self, CompactCommand.self, MergeCommand.self, RepairCommand.self,
      ProtectCommand.self, ForgetContextCommand.self,
    ],
  ]

  static func main() {
    Verbs.$all.withValue(groups.flatMap { $0.value }, operation: mainWithVerbs)
  }

  private static func mainWithVerbs() {
    Memory.keepForFrames()
    Console.occupyStandardDescriptors()
    Interruption.install()
    ArchiveKeys.install()
    do {
      let arguments = Host.arguments
      if arguments.first == Completion.word {
        Completion.answer(Array(arguments.dropFirst()), in: _dumpHelp)
      }
      if arguments.first == "---schemas", arguments.count == 2 {
        try ReportDescription.write(ReportDescription.all, into: FilePath(arguments[1]))
      } else if arguments.first == "---parse" {
        // What documents tell people to type is tested with this.
        _ = try command(
          ContextArguments.completed(OldSpelling.replaced(in: Array(arguments.dropFirst()))))
      } else if let script = try CompletionScript(asked: arguments) {
        Console.print(text: script.text)
      } else if arguments.count == 1, ["--version", "-v", "-V"].contains(arguments[0]) {
        Console.print(text: Program.version)
      } else if let help = shortHelp(arguments) {
        Console.print(text: help)
      } else {
        var command = try configuredCommand(
          ContextArguments.completed(OldSpelling.replaced(in: arguments)))
        try command.run()
      }
    } catch let status as ExitStatus {
      Console.flush()
      status.leave()
    } catch let error where Failure.isOurs(error) {
      Console.flush()
      let failure = Failure(error)
      failure.say()
      failure.status.leave()
    } catch {
      Console.flush()
      // Help and version come this way too; only what is wrong with the arguments is an error.
      let status = ExitStatus(number: exitCode(for: error).rawValue)
      if status == .success, Host.arguments.contains(where: asksForHelp),
        let failure = unknownVerb()
      {
        failure.say()
        failure.status.leave()
      }
      guard status != .success else {
        Console.print(text: fullMessage(for: error))
        Console.flush()
        status.leave()
      }
      mistake(error, status).say()
      status.leave()
    }
    Console.flush()
  }
}

extension Carpack {
  /// The command that the arguments ask for.
  ///
  /// A verb that comes first and is given what it takes is parsed by itself: with all the others
  /// around it, and completions looked for before, that takes as long as the rest of a start.
  /// Whatever else there is, help and mistakes among it, is seen from the root, which knows what to
  /// say to it.
  private static func command(_ arguments: [String]) throws -> any ParsableCommand {
    if let (words, verb) = Verbs.named(by: arguments),
      let command = alone(verb, arguments.dropFirst(words.count))
    {
      return command
    }
    return try parseAsRoot(arguments)
  }

  /// The command that the arguments ask for, with what the configuration file adds to them.
  private static func configuredCommand(_ arguments: [String]) throws -> any ParsableCommand {
    let line = try ConfiguredLine(arguments)
    do {
      return try command(line.words)
    } catch {
      let fault = line.fault(error, message(for:)) { _ = try command($0) }
      // Without what the file adds, what was typed is to be seen in the message.
      if fault == nil, line.isConfigured { return try command(line.typed) }
      throw fault ?? error
    }
  }

  /// What help on one screen says; nil if it is not asked for, or not of a verb.
  private static func shortHelp(_ arguments: [String]) -> String? {
    // "carpack VERB help", unless a file has that name.
    let isAskedAtEnd =
      !words.isEmpty && arguments == words + ["help"] && !AtomicFile.isTaken("help")
    guard isAskedAtEnd || ShortHelp.isAsked(in: arguments) else { return nil }
    if words.isEmpty { return ShortHelp.text(groups: groups, page) }
    if let (name, verb) = Verbs.named(by: words) { return ShortHelp.text(on: verb, named: name) }
    guard words.count == 1, let verb = Verbs.all.first(where: { $0.page.name == words[0] }) else {
      return nil
    }
    return ShortHelp.text(on: verb, named: words)
  }

  private static func asksForHelp(_ word: String) -> Bool {
    ["help", "-h", "--help"].contains(word)
  }

  /// What is wrong with the arguments, and where help is.
  private static func mistake(_ error: any Error, _ status: ExitStatus) -> Failure {
    if let failure = misplacedOption() ?? unknownVerb() { return failure }
    let verb = Verbs.all.first { $0.page.name == words.first }
    let text = withoutFarGuess(message(for: error))
    let spelling = spellings.first {
      text.contains("is invalid for") && text.hasSuffix("<\($0.value)>'")
    }
    if let spelling {
      return Failure(text, hint: "\(spelling.hint)", status: status)
    }
    if text.contains("'--port'") {
      return Failure(
        text, hint: "\"--bind 127.0.0.1:8080\" says where it listens", status: status)
    }
    let name = Verbs.named(by: words)?.words ?? [verb?.page.name].compactMap { $0 }
    let command = ([Program.name] + name).joined(separator: " ")
    if text == "Unknown option '-o'" || text == "Unknown option '--output'" {
      return Failure(
        text, hint: "\"\(command) … > FILE\" writes the output to a file", status: status)
    }
    return Failure(
      text, hint: status == .usage ? "\"\(command) --help\" shows what it takes" : nil,
      status: status)
  }

  /// A message, without the option that the parser guesses if it is too unlike what was typed: of
  /// the parser's own limit, three letters, a short option has no more.
  private static func withoutFarGuess(_ message: String) -> String {
    let parts = message.split(separator: "'")
    guard parts.count == 5, parts[2] == ". Did you mean " else { return message }
    let (typed, guess) = (parts[1].drop { $0 == "-" }, parts[3].drop { $0 == "-" })
    let isNear = !Suggestion.words(like: String(typed), among: [String(guess)]).isEmpty
    return isNear ? message : "\(parts[0])'\(parts[1])'"
  }

  /// How values are written that people have to guess.
  private static let spellings = [
    (value: "age", hint: "a length of time is a number and a unit: 90m, 20h, 7d, 2w"),
    (value: "size", hint: "a size is a number and a unit: 500kB, 20MB, 1.5GB, 2GiB"),
    (value: "time", hint: "a time is a date, or how long ago: 2025, 2025-03, 2025-03-22, 30d"),
  ]

  /// The arguments that are not options; help on a verb is that verb's.
  private static let words = {
    let words = Host.arguments.filter { !$0.hasPrefix("-") }
    if words.first == "help" { return Array(words.drop { $0 == "help" }) }
    return words.last == "help" ? words.dropLast() : words
  }()

  /// The error for an option before the verb; nil if there is none.
  private static func misplacedOption() -> Failure? {
    guard let option = Host.arguments.first, option.hasPrefix("-"),
      let verb = words.first(where: { word in Verbs.all.contains { $0.page.name == word } })
    else { return nil }
    return Failure(
      "\(option) must come after the verb",
      hint: "options follow it: carpack \(verb) \(option) …", status: .usage)
  }

  /// The error for an unknown verb in the first argument, or in the second below that; nil if the
  /// verb exists.
  private static func unknownVerb() -> Failure? {
    guard let first = words.first else { return nil }
    if let failure = unknown(first, among: Verbs.all, below: Program.name) { return failure }
    let parts = Verbs.all.first { $0.page.name == first }?.page.subcommands ?? []
    guard let second = words.dropFirst().first, !parts.isEmpty else { return nil }
    return unknown(second, among: parts, below: "\(Program.name) \(first)")
  }

  /// What verbs are called by other programs.
  private static let otherNames = [
    "list": "ls", "dir": "ls", "show": "cat", "get": "cat", "search": "find", "grep": "find",
    "history": "log", "unpack": "extract", "migrate": "restore", "move": "restore",
    "check": "verify", "test": "verify", "download": "backup", "sync": "backup",
    "whois": "resolve", "version": "--version", "completion": "--generate-completion-script bash",
    "completions": "--generate-completion-script bash",
  ]

  /// The error for an unknown verb; nil if the verb exists.
  private static func unknown(
    _ word: String, among verbs: [any Verb.Type], below command: String
  ) -> Failure? {
    let names = verbs.map { $0.page.name }
    guard !names.contains(word) else { return nil }
    let alike = command == Program.name ? otherNames[word].map { [$0] } : nil
    let near = (alike ?? Suggestion.words(like: word, among: names)).map { "\"\(command) \($0)\"" }
    return Failure(
      "there is no \"\(command) \(word)\"",
      hint: near.isEmpty
        ? "\"\(command) --help\" lists the verbs"
        : "did you mean \(near.joined(separator: " or "))?",
      status: .usage)
  }

  private static func alone(
    _ verb: any Verb.Type, _ arguments: ArraySlice<String>
  ) -> (any ParsableCommand)? {
    do {
      let command = try verb.parseAsRoot(Array(arguments))
      return type(of: command) == verb ? command : nil
    } catch {
      // The root comes upon the same mistake, and says it.
      return nil
    }
  }
}
