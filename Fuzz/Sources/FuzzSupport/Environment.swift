import Foundation

/// What comes from outside of the process.
enum Environment {
  static subscript(name: String) -> String? {
    guard let value = ProcessInfo.processInfo.environment[name], !value.isEmpty else { return nil }
    return value
  }

  /// The process's number, for names that nobody else takes.
  static var process: Int32 { ProcessInfo.processInfo.processIdentifier }

  /// The folder for files that are of no use later: `TMPDIR`.
  static var temporaryFolder: String { NSTemporaryDirectory() }

  static func leave(_ code: CInt) -> Never { exit(code) }
}
