internal import ATProtocol
internal import ArgumentParser

/// What a line on standard error is about: the word in front of it, and its colour on a terminal.
enum Mark: String, CaseIterable {
  case error, damaged, lost, refused
  case incomplete, missing, unfinished, interrupted, warning, note
  case acceptedAsLost = "accepted as lost"
  case notGenuine = "not genuine"

  /// The word with a colon, in its colour.
  var text: String {
    switch self {
    case .error, .damaged, .lost, .refused, .notGenuine: Console.red("\(rawValue):")
    default: Console.yellow("\(rawValue):")
    }
  }
}

extension Console {
  /// How many lines of one kind are said at most.
  static let maximumTold = 20

  /// Says on standard error what is wrong: `carpack: damaged: …`; with --json as an object.
  static func say(_ mark: Mark, _ text: String) {
    guard isJSON else { return put(line: "carpack: \(mark.text) \(Subject.name(in: text))") }
    message(mark, text)
  }

  /// Says what is wrong with several things, the first of them, and how many there are more.
  ///
  /// - Parameters:
  ///   - mark: what they have in common.
  ///   - count: how many there are.
  ///   - texts: them, or only the first.
  ///   - verb: the command that lists all.
  static func say(
    _ mark: Mark, _ texts: some Sequence<String>, of count: Int, all verb: String? = nil
  ) {
    for text in texts.prefix(maximumTold) { say(mark, text) }
    let more = count - maximumTold
    if more > 0 {
      say(mark, "and \(Quantity.grouped(more)) more\(verb.map { ": \($0)" } ?? "")")
    }
  }

  /// Says something on standard error that is not wrong; with --json as an object.
  static func say(_ text: String) {
    if isJSON { message(.note, text) } else { put(line: text) }
  }

  /// Prints a line of results, with the archive's name in front of it where there are several.
  static func print(named line: String) { print(Subject.name(in: line)) }

  private static func message(_ mark: Mark, _ text: String) {
    report.say((mark, text))
  }

  static let report = Report<(mark: Mark, text: String)>(
    "message", "What is said on standard error beside errors."
  ) {
    Field("kind", "what it is about", .one(of: Mark.self)) { $0.mark.rawValue }
    Field("file", "the archive, where there are several") { _ in Subject.current }
    Field("text", "the words") { $0.text }
  }
}

/// The archive that is being looked at, where a command looks at several: what is said names it.
enum Subject {
  @TaskLocal static var current: String?

  /// The text, with the archive's name in front of it, unless it is named already.
  static func name(in text: String) -> String {
    guard let current, !text.contains(current) else { return text }
    return "\(current): \(text)"
  }
}

/// What every verb understands.
struct CommonOptions: ParsableArguments {
  @Flag(name: .shortAndLong, help: "Say nothing but results and what is wrong.")
  var quiet = false

  @Flag(help: "Leave the configuration file out (~/.config/carpack/config.toml).")
  var noConfig = false

  /// Says something on standard error, unless that was not wanted.
  ///
  /// A script that reads JSON finds it there.
  func say(_ text: @autoclosure () -> String) {
    if !quiet, !Console.isJSON { Console.say(text()) }
  }

  /// Says what lacks a little, unless that was not wanted.
  func say(_ mark: Mark, _ text: @autoclosure () -> String) {
    if !quiet { Console.say(mark, text()) }
  }

  /// Says what lacks a little of several things, unless that was not wanted; see ``Console``.
  func say(
    _ mark: Mark, _ texts: some Sequence<String>, of count: Int, all verb: String? = nil
  ) {
    if !quiet { Console.say(mark, texts, of: count, all: verb) }
  }

  /// Says how many records cannot be read, if there are any.
  ///
  /// - Parameters:
  ///   - records: How many there are.
  ///   - place: In which snapshot, with a colon behind it, where there are several.
  func say(_ records: UnreadableRecords, of place: String = "") {
    guard let sentence = records.sentence else { return }
    say(records.mayHideBlobs ? .incomplete : .warning, "\(place)\(sentence)")
  }
}

/// How a verb writes its results.
struct ReportOptions: ParsableArguments {
  @Flag(help: "Write JSON, one object a line.")
  var json = false

  @Flag(help: "With --json: indent it for people to read.")
  var pretty = false

  @OptionGroup var common: CommonOptions

  func validate() throws {
    if pretty, !json { throw ValidationError("--pretty goes with --json") }
  }
}

/// A verb with results that a script may read.
protocol ReportingCommand: ParsableCommand {
  var reporting: ReportOptions { get }
}

extension ReportingCommand {
  /// Whether results are JSON.
  var json: Bool { reporting.json }
  var common: CommonOptions { reporting.common }
}
