internal import LibC
internal import SystemPackage
internal import Terminal

/// A program that runs beside this one, without a shell; when its time is over it is ended with all
/// that it started.
///
/// What it prints goes to standard error, where it does not mix with results.
package struct HookProcess {
  /// How long a program may take to end after SIGTERM.
  private static let grace: Duration = .seconds(5)
  private static let shortestPause: Duration = .milliseconds(5)
  private static let longestPause: Duration = .milliseconds(200)
  /// The status of a program that another part of the process has waited for.
  private static let unknown: CInt = -1

  private let number: pid_t

  /// Runs a program that reads nothing.
  ///
  /// - Parameters:
  ///   - words: its name and its arguments.
  ///   - seconds: how long it may take.
  /// - Returns: How it ended, in words; nil for status 0.
  /// - Throws: ``Failure`` if it cannot be started.
  package static func run(_ words: [String], within seconds: Int64) throws -> String? {
    try runBlocking {
      try await HookProcess(words, input: nil, status: .success).end(within: seconds)
    }
  }

  /// Starts a program; one without a folder in its name is looked for where `PATH` says.
  ///
  /// - Parameters:
  ///   - words: its name and its arguments.
  ///   - input: what it reads on standard input; nil for nothing.
  ///   - status: the exit status of the backup.
  /// - Throws: ``Failure`` if it cannot be started.
  init(_ words: [String], input: CInt?, status: ExitStatus) throws {
    // Where the caller ignores the ends of its children, there would be none to wait for.
    signal(SIGCHLD, SIG_DFL)
    do {
      number = try OtherProgram.start(
        words, files: [input, 2, 2],
        adding: ["\(Hooks.statusVariable)=\(status.number)"])
    } catch let error as Errno {
      throw Failure("could not be started: \(words[0]): \(error)", status: .failure)
    }
  }

  /// Waits for its end, and ends it if that takes too long or the task is cancelled.
  ///
  /// - Parameter seconds: how long it may take.
  /// - Returns: How it ended, in words; nil for status 0.
  func end(within seconds: Int64) async -> String? {
    if let status = await wait(.seconds(seconds), isCancellable: true) {
      return Self.sentence(status)
    }
    let isInterrupted = Task.isCancelled
    kill(-number, SIGTERM)
    if await wait(Self.grace, isCancellable: false) == nil {
      kill(-number, SIGKILL)
      _ = await wait(Self.grace, isCancellable: false)
    } else {
      // Its child processes may not have received the signal.
      kill(-number, SIGKILL)
    }
    return isInterrupted
      ? "was interrupted"
      : "was stopped: it took longer than \(Quantity.duration(seconds: Double(seconds)))"
  }

  /// Waits for its end; returns its status as `waitpid` has it, nil if it has not come by then.
  private func wait(_ limit: Duration, isCancellable: Bool) async -> CInt? {
    let moment = ContinuousClock.now + limit
    var pause = Self.shortestPause
    while true {
      var status: CInt = 0
      let found = unsafe waitpid(number, &status, WNOHANG)
      if found == number { return status }
      if found < 0, errno != EINTR { return Self.unknown }
      guard .now < moment, !(isCancellable && Task.isCancelled) else { return nil }
      // A task of its own, for sleeping ends at once in one that was cancelled, where a child is
      // still to be waited for.
      _ = await Task.detached { [pause] in try await Task.sleep(for: pause) }.result
      pause = min(pause * 2, Self.longestPause)
    }
  }

  private static func sentence(_ status: CInt) -> String? {
    let (signal, number) = (status & 0x7f, status >> 8 & 0xff)
    if status == unknown { return "ended in an unknown way" }
    if signal != 0 { return "was ended by signal \(signal)" }
    return number == 0 ? nil : "ended with status \(number)"
  }
}
