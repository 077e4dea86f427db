import Foundation
import LibC

/// The built command, and a shell to run it in.
package struct Command: Sendable {
  /// The result of a command.
  package struct Result: Sendable {
    /// The exit status; 128 and the signal's number if a signal ended it.
    package let status: Int32
    /// What it wrote to standard output.
    package let output: [UInt8]
    /// What it wrote to standard error.
    package let errors: String
    /// Standard output as text.
    package var text: String { String(decoding: output, as: UTF8.self) }
  }

  /// Where the package lies.
  package static let packageRoot = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

  /// The built command: what `CARPACK_BIN` names, else the release build, else the debug build.
  package static let path: String? = {
    if let path = ProcessInfo.processInfo.environment["CARPACK_BIN"], !path.isEmpty { return path }
    return ["release", "debug"].map { "\(packageRoot)/.build/\($0)/carpack" }
      .first(where: FileManager.default.isExecutableFile(atPath:))
  }()

  /// What a skipped test says.
  package static let absence =
    "the command has not been built, and CARPACK_BIN does not name it"

  /// Whether this system lets a process have its own view of the file system, by `unshare -rm`.
  package static let canMount: Bool = {
    guard let command = try? Command(in: TemporaryFolder()) else { return false }
    return (try? command.run("unshare -rm mount -t tmpfs none /proc").status) == 0
  }()

  /// Where commands are run.
  package let folder: TemporaryFolder
  private let binaries: TemporaryFolder

  /// A shell in a folder, in which `carpack` is the built command.
  package init(in folder: TemporaryFolder) throws {
    self.folder = folder
    binaries = try TemporaryFolder()
    guard let path = Self.path else { throw CocoaError(.fileNoSuchFile) }
    let absolute = path.hasPrefix("/") ? path : "\(Self.packageRoot)/\(path)"
    try FileManager.default.createSymbolicLink(
      atPath: binaries.file("carpack"), withDestinationPath: absolute)
  }

  /// The folder in which the command looks for its configuration, which is no person's.
  package var configurationFolder: String { binaries.file("config") }

  /// Writes a configuration file that the command accepts.
  @discardableResult
  package func configure(_ text: String) throws -> String {
    let folder = "\(configurationFolder)/carpack"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    let path = "\(folder)/config.toml"
    try text.write(toFile: path, atomically: false, encoding: .utf8)
    try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
    return path
  }

  /// Runs a line of shell.
  ///
  /// - Parameters:
  ///   - line: What is typed.
  ///   - seconds: When to end it with `SIGKILL`, if it has not ended by then; the line has to be a
  ///     single command.
  package func run(_ line: String, killedAfter seconds: Double? = nil) throws -> Result {
    guard let seconds else { return try start(line, isSingle: false).wait() }
    let running = try start(line)
    Thread.sleep(forTimeInterval: seconds)
    running.signal(SIGKILL)
    return try running.wait()
  }

  /// Runs a line of shell, and does not wait for its end.
  ///
  /// - Parameters:
  ///   - line: What is typed.
  ///   - isSingle: Whether it is a single command, which a signal then hits itself, and not the
  ///     shell that waits for it.
  ///   - environment: Variables beside those that the tests were run with.
  package func start(
    _ line: String, isSingle: Bool = true, environment: [String: String] = [:]
  ) throws -> RunningCommand {
    let process = Process()
    process.executableURL = URL(filePath: "/bin/sh")
    process.arguments = ["-c", isSingle ? "exec \(line)" : line]
    process.currentDirectoryURL = URL(filePath: folder.path)
    var variables = ProcessInfo.processInfo.environment
    variables["PATH"] = "\(binaries.path):\(variables["PATH"] ?? "/usr/bin:/bin")"
    variables["SOURCE_DATE_EPOCH"] = nil
    variables["XDG_CONFIG_HOME"] = configurationFolder
    variables["COLUMNS"] = "80"
    // On a pseudo-terminal the command would write in colours.
    variables["TERM"] = "dumb"
    process.environment = variables.merging(environment) { $1 }
    return try RunningCommand(process)
  }
}
