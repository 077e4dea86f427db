internal import ArgumentParser
internal import Terminal

/// Whether binary data may be written to a terminal.
struct TerminalOptions: ParsableArguments {
  @Flag(help: "Write binary data even to a terminal.")
  var forceTerminal = false

  /// Refuses to write to a terminal, unless the user forces it.
  func check() throws {
    if !forceTerminal { try Console.refuseTerminal() }
  }
}
