internal import ArgumentParser

/// Parses its arguments and does nothing else: what a start costs that nobody can be rid of.
@main
struct ParseArguments: ParsableCommand {
  static let configuration = CommandConfiguration(commandName: "parse-arguments", version: "1.0")

  @Argument(help: "Anything.")
  var name = "nothing"

  @Flag(help: "Anything else.")
  var verbose = false

  func run() { print(name) }
}
