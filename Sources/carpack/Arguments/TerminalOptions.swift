internal import ArgumentParser
internal import Terminal

/// Whether what is no text is written to a terminal.
struct TerminalOptions: ParsableArguments {
  @Flag(help: "Write to a terminal, too, what is no text.")
  var forceTerminal = false

  /// Refuses to write to a terminal, unless that was asked for.
  func check() throws {
    if !forceTerminal { try Console.refuseTerminal() }
  }
}
