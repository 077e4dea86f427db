import Foundation
import LibC

/// A command that has been started.
package final class RunningCommand {
  private let process: Process
  /// Files, because a pipe that nobody empties would stop a command that has much to say on both.
  private let streams: TemporaryFolder

  init(_ process: Process) throws {
    self.process = process
    streams = try TemporaryFolder()
    let paths = (try streams.write("output", []), try streams.write("errors", []))
    let output = try FileHandle(forWritingTo: URL(filePath: paths.0))
    let errors = try FileHandle(forWritingTo: URL(filePath: paths.1))
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output
    process.standardError = errors
    // Tests run on threads that take no signals, and what they start would inherit that.
    var (none, mask) = (sigset_t(), sigset_t())
    unsafe sigemptyset(&none)
    unsafe pthread_sigmask(SIG_SETMASK, &none, &mask)
    defer { unsafe pthread_sigmask(SIG_SETMASK, &mask, nil) }
    try process.run()
    try output.close()
    try errors.close()
  }

  /// Whether it has not ended.
  package var isRunning: Bool { process.isRunning }

  /// Sends it a signal, if it has not ended.
  package func signal(_ number: Int32) {
    // Should it end right here, its number is not given to another so soon.
    if process.isRunning { kill(process.processIdentifier, number) }
  }

  /// What it has written to standard error so far.
  package func errorsSoFar() throws -> String {
    String(decoding: try streams.read("errors"), as: UTF8.self)
  }

  /// The most memory that it has had at a time, in bytes; nil where the system does not say, and
  /// after its end.
  package var peakMemory: Int? {
    let path = "/proc/\(process.processIdentifier)/status"
    guard let status = try? String(contentsOfFile: path, encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") }),
      let kilobytes = line.split(whereSeparator: { !$0.isNumber }).first.flatMap({ Int($0) })
    else { return nil }
    return kilobytes << 10
  }

  /// Waits for its end.
  package func wait() throws -> Command.Result {
    process.waitUntilExit()
    let status = process.terminationStatus
    return Command.Result(
      status: process.terminationReason == .uncaughtSignal ? 128 + status : status,
      output: try streams.read("output"),
      errors: String(decoding: try streams.read("errors"), as: UTF8.self))
  }
}
