internal import ATProtocol
internal import ArgumentParser

/// The command: parses its arguments, runs a verb, and says what went wrong in one place.
@main
struct Carpack: ParsableCommand {
  static let name = "carpack"
  static let version = "0.1.0"

  static let configuration = CommandConfiguration(
    commandName: name,
    abstract: "One verified file for an AT Protocol account: its repository and all of its blobs.",
    discussion: """
      Results go to standard output, everything else to standard error. "-" stands for standard input or output where a file makes sense.

      EXIT STATUS
        0    everything asked for was done, and everything checked is well
        1    an error that has no number of its own
        10   incomplete: something referenced is missing (blobs, blocks), or may be, the rest is well
        11   damaged or malformed: bytes do not match what they must be
        12   not genuine: a signature or an identity that does not hold
        13   refused: content that does not match its name or CID, a hostile path or address, or too much
        64   usage
        66   input not found
        69   the server is not available, or the account is gone
        73   output cannot be created, or exists
        74   input or output failed, or the disk is full
        75   a failure that may pass: try again
        77   the login was refused
        130  interrupted
      The worst thing found decides: damaged before not genuine before refused before incomplete.
      """,
    version: version,
    subcommands: verbs)

  private static let verbs: [any ParsableCommand.Type] = [
    InspectCommand.self, BackupCommand.self, MissingCommand.self, FillCommand.self,
    FetchCommand.self, PackCommand.self,
    InfoCommand.self, LogCommand.self, DiffCommand.self,
    ListCommand.self, CatCommand.self, ExtractCommand.self, VerifyCommand.self,
    PruneCommand.self, CompactCommand.self, MergeCommand.self, RepairCommand.self,
    ResolveCommand.self,
  ]

  static func main() {
    Memory.keepForFrames()
    Console.occupyStandardDescriptors()
    Interruption.install()
    do {
      let arguments = Host.arguments
      if arguments.first == Completion.word { Completion.answer(Array(arguments.dropFirst())) }
      if let script = CompletionScript(asked: arguments) {
        Console.print(text: script.text)
      } else if arguments == ["--version"] {
        Console.print(text: version)
      } else {
        var command = try command(arguments)
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
      guard status != .success else {
        Console.print(text: fullMessage(for: error))
        Console.flush()
        status.leave()
      }
      let hint = status == .usage ? "\"carpack help\" shows what there is" : nil
      Failure(message(for: error), hint: hint, status: status).say()
      status.leave()
    }
    Console.flush()
  }
}

extension Carpack {
  /// The command that the arguments ask for.
  ///
  /// A verb that comes first and is given what it takes is parsed by itself: with all the others around it, and completions looked for before,
  /// that takes as long as the rest of a start. Whatever else there is, help and mistakes among it, is seen from the root, which knows
  /// what to say to it.
  private static func command(_ arguments: [String]) throws -> any ParsableCommand {
    if let first = arguments.first,
      let verb = verbs.first(where: { $0.configuration.commandName == first }),
      verb.configuration.subcommands.isEmpty,
      let command = alone(verb, arguments.dropFirst())
    {
      return command
    }
    return try parseAsRoot(arguments)
  }

  private static func alone(
    _ verb: any ParsableCommand.Type, _ arguments: ArraySlice<String>
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

/// What every verb understands.
struct CommonOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Say nothing but results and errors.")
  var quiet = false

  /// Says something on standard error, unless that was not wanted.
  func say(_ text: @autoclosure () -> String) {
    if !quiet { Console.say(text()) }
  }

  /// Says how many records cannot be read, if there are any.
  ///
  /// - Parameters:
  ///   - records: How many there are.
  ///   - place: In which snapshot, with a colon behind it, where there are several.
  func say(_ records: UnreadableRecords, of place: String = "") {
    guard let sentence = records.sentence else { return }
    let mark = Console.yellow(records.mayHideBlobs ? "incomplete:" : "warning:")
    say("carpack: \(mark) \(place)\(sentence)")
  }
}
