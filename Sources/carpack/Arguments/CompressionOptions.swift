internal import ArgumentParser

/// How hard a new archive is compressed.
struct CompressionOptions: ConfigurableOptions {
  static let settings = [
    Setting(name: "level", kind: .text, isGeneral: true)
  ]

  @Option(
    help: ArgumentHelp(
      "The zstd level, 1 to 19; media is never compressed harder than is worthwhile.",
      valueName: "n"))
  var level = 3

  func validate() throws {
    guard (1...19).contains(level) else { throw ValidationError("--level takes 1 to 19") }
  }
}
