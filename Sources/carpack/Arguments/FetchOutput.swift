internal import ArgumentParser
internal import Live
internal import SystemPackage
internal import Terminal

extension DownloadedFile {
  /// Writes text to a file, all of it or nothing; "-" is standard output.
  func write(to path: String, replacing: Bool) throws {
    if path == "-" {
      try read { Console.print($0) }
    } else {
      try save(to: FilePath(path), replacing: replacing)
    }
  }
}

/// Where to write a fetched piece.
struct FetchOutput: ParsableArguments {
  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("The file to write, instead of standard output (\"-\").", valueName: "file"),
    completion: .file())
  var output = "-"

  @Flag(help: "Replace the output if it exists.")
  var force = false

  @OptionGroup var terminal: TerminalOptions

  /// Refuses to write to a terminal, before anything is fetched.
  func check() throws {
    if output == "-" { try terminal.check() }
  }

  /// Writes a piece there, all of it or nothing.
  func write(_ piece: DownloadedFile) throws {
    if output == "-" {
      try Console.writeContent(forcesTerminal: terminal.forceTerminal) { try piece.read($0) }
    } else {
      try piece.save(to: FilePath(output), replacing: force)
    }
  }
}
