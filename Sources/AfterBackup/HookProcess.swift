internal import LibC
internal import SystemPackage
internal import Terminal

/// A program that runs beside this one, without a shell; when its time is over it is ended with all
/// that it started.
///
/// It has a process group of its own, standard input from a file, and what it prints goes to
/// standard error, where it does not mix with results. No other open file is passed on, and no
/// variable of carpack's, which may be secrets.
package struct HookProcess {
  /// How long a program has to end after SIGTERM.
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
  /// - Returns: What is said of its end; nil of one with status 0.
  /// - Throws: ``Failure`` if it cannot be started.
  package static func run(_ words: [String], within seconds: Int64) throws -> String? {
    try runBlocking {
      try await HookProcess(words, input: -1, status: .success).end(within: seconds)
    }
  }

  /// Starts a program; one without a folder in its name is looked for where `PATH` says.
  ///
  /// - Parameters:
  ///   - words: its name and its arguments.
  ///   - input: what it reads on standard input.
  ///   - status: the exit status of the backup.
  /// - Throws: ``Failure`` if it cannot be started.
  init(_ words: [String], input: CInt, status: ExitStatus) throws {
    // Where the caller ignores the ends of its children, there would be none to wait for.
    signal(SIGCHLD, SIG_DFL)
    Self.keepFilesBack()
    let arguments = unsafe CStrings(words)
    let variables = unsafe CStrings(Self.environment(status))
    defer {
      unsafe arguments.free()
      unsafe variables.free()
    }
    #if canImport(Darwin)
      var actions: posix_spawn_file_actions_t? = nil
      var attributes: posix_spawnattr_t? = nil
    #else
      var actions = unsafe posix_spawn_file_actions_t()
      var attributes = posix_spawnattr_t()
    #endif
    unsafe posix_spawn_file_actions_init(&actions)
    unsafe posix_spawnattr_init(&attributes)
    defer {
      unsafe posix_spawn_file_actions_destroy(&actions)
      unsafe posix_spawnattr_destroy(&attributes)
    }
    if input >= 0 {
      unsafe posix_spawn_file_actions_adddup2(&actions, input, 0)
    } else {
      unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    }
    unsafe posix_spawn_file_actions_adddup2(&actions, 2, 1)
    var (none, all) = (sigset_t(), sigset_t())
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
    var number = pid_t()
    let code = unsafe posix_spawnp(
      &number, words[0], &actions, &attributes, arguments.pointers, variables.pointers)
    guard code == 0 else {
      throw Failure(
        "could not be started: \(words[0]): \(Errno(rawValue: code))",
        status: .failure)
    }
    self.number = number
  }

  /// Waits for its end, and ends it if that takes too long or the task is cancelled.
  ///
  /// - Parameter seconds: how long it may take.
  /// - Returns: What is said of the end; nil of one with status 0.
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
      // What it started may not have heard.
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

  /// The variables that it gets: those of this process but for carpack's own, and the status.
  private static func environment(_ status: ExitStatus) -> [String] {
    var variables: [String] = []
    #if canImport(Darwin)
      guard let all = unsafe _NSGetEnviron().pointee else { return [] }
    #else
      let all = unsafe environ
    #endif
    var index = 0
    while let text = unsafe all[index] {
      let variable = unsafe String(cString: text)
      if !variable.hasPrefix("CARPACK_") { variables.append(variable) }
      index += 1
    }
    return variables + ["\(Hooks.statusVariable)=\(status.number)"]
  }

  /// How many descriptors are looked at; those of archives and connections are closed for programs
  /// anyway.
  private static let maximumDescriptors = 4096

  /// Has no file that is open here stay open in programs that are started.
  private static func keepFilesBack() {
    for descriptor in 3..<CInt(maximumDescriptors) { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
  }
}
