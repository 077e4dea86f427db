internal import ATProtocol
internal import ArgumentParser
internal import Keys
internal import Reports
internal import Repository
internal import Snapshots
internal import Terminal

/// The options that every verb has.
struct CommonOptions: ConfigurableOptions {
  static let settings = [
    Setting(name: "quiet", kind: .flag, isGeneral: true, letter: "q"),
    Setting(
      name: "age-identity", kind: .path, isGeneral: true, variables: [ArchiveKeys.variable]),
  ]

  @Flag(name: .shortAndLong, help: "Print only results and problems.")
  var quiet = false

  @Flag(help: "Ignore the configuration file (~/.config/carpack/config.toml).")
  var noConfig = false

  @Option(
    help: ArgumentHelp(
      "A file with age identities that open sealed archives; may be repeated.",
      valueName: "file"),
    completion: .file())
  var ageIdentity: [String] = []

  // Sealed archives are opened far below, as all others are.
  func validate() throws {
    ArchiveKeys.use(files: ageIdentity) { [quiet] text, isProblem in
      if isProblem {
        Console.say(.warning, text)
      } else if !quiet, !Console.isJSON {
        Console.say(text)
      }
    }
  }

  /// Prints a line on standard error, unless --quiet is set.
  ///
  /// With --json it is an object there.
  func say(_ text: @autoclosure () -> String) {
    if !quiet, !Console.isJSON { Console.say(text()) }
  }

  /// Prints a minor problem, unless --quiet is set.
  func say(_ mark: Mark, _ text: @autoclosure () -> String) {
    if !quiet { Console.say(mark, text()) }
  }

  /// Prints a minor problem with several things, unless --quiet is set; see ``Console``.
  func say(
    _ mark: Mark, _ texts: some Sequence<String>, of count: Int, all verb: String? = nil
  ) {
    if !quiet { Console.say(mark, texts, of: count, all: verb) }
  }

  /// Prints how many records cannot be read, if there are any.
  ///
  /// - Parameters:
  ///   - records: How many there are.
  ///   - place: In which snapshot, with a colon after it, where there are several.
  func say(_ records: UnreadableRecords, of place: String = "") {
    guard let sentence = records.sentence else { return }
    say(records.mayHideBlobs ? .incomplete : .warning, "\(place)\(sentence)")
  }
}

extension Quantity {
  /// The sentence about what a CAR lacks of its repository.
  static func lacking(_ inspection: RepositoryInspection) -> String {
    let (nodes, records) = (inspection.missingNodes.count, inspection.missingRecordCount)
    let what = [some(nodes, "tree node"), some(records, "record")].compactMap(\.self)
    return
      "\(what.joined(separator: " and ")) \(nodes + records == 1 ? "is" : "are") not in the CAR"
  }
}

/// How a verb writes its results.
struct ReportOptions: ParsableArguments {
  @Flag(help: "Write JSON, one object per line.")
  var json = false

  @Flag(help: "With --json: indent it for people to read.")
  var pretty = false

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if pretty, !json { throw ValidationError("--pretty goes with --json") }
  }
}

/// A verb with results that a script may read.
protocol ReportingCommand: Verb {
  var reporting: ReportOptions { get }
}

extension ReportingCommand {
  /// Whether results are JSON.
  var json: Bool { reporting.json }
  var common: CommonOptions { reporting.common }
}
