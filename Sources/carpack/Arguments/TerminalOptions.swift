internal import ArgumentParser
internal import Terminal

/// Whether binary data may be written to a terminal.
struct TerminalOptions: ParsableArguments {
  @Flag(help: "Write binary data even to a terminal.")
  var forceTerminal = false

  /// Refuses to write to a terminal, unless that was asked for.
  func check() throws {
    if !forceTerminal { try Console.refuseTerminal() }
  }
}
