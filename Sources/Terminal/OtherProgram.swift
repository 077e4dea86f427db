internal import LibC
internal import SystemPackage

/// Starts other programs, without a shell.
///
/// 1. A program gets none of the files that are open here but the three that it is given.
/// 2. It gets none of carpack's variables, which may be secrets.
/// 3. It has a process group of its own, so that what ends this process does not end it, and all that
///    it starts can be ended with it. No signal is blocked or ignored in it.
package enum OtherProgram {
  /// Starts a program; one without a folder in its name is looked for where `PATH` says.
  ///
  /// - Parameters:
  ///   - words: its name and its arguments.
  ///   - files: the descriptors that it has as standard input, output and error; nil for
  ///     `/dev/null`.
  ///   - variables: more variables, as `NAME=VALUE`.
  /// - Returns: The number of the process.
  /// - Throws: `Errno` if it cannot be started.
  package static func start(
    _ words: [String], files: [CInt?] = [nil, nil, nil], adding variables: [String] = []
  ) throws -> CInt {
    keepFilesBack()
    let arguments = unsafe CStrings(words)
    let variables = unsafe CStrings(ownVariables + variables)
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
    for (number, file) in zip(CInt(0)..., files) {
      if let file {
        unsafe posix_spawn_file_actions_adddup2(&actions, file, number)
      } else {
        unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", O_RDWR, 0)
      }
    }
    var (none, all) = (sigset_t(), sigset_t())
    unsafe sigemptyset(&none)
    unsafe sigfillset(&all)
    unsafe posix_spawnattr_setsigmask(&attributes, &none)
    unsafe posix_spawnattr_setsigdefault(&attributes, &all)
    unsafe posix_spawnattr_setpgroup(&attributes, 0)
    let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
    unsafe posix_spawnattr_setflags(&attributes, Int16(flags))
    var number: pid_t = 0
    let code = unsafe posix_spawnp(
      &number, words[0], &actions, &attributes, arguments.pointers, variables.pointers)
    guard code == 0 else { throw Errno(rawValue: code) }
    return number
  }

  /// The variables of this process, without carpack's own.
  private static var ownVariables: [String] {
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
    return variables
  }

  /// The most descriptors that are checked; those of archives and connections are closed for
  /// programs anyway.
  private static let maximumDescriptors = 4096

  /// Prevents files that are open here from staying open in programs that are started.
  private static func keepFilesBack() {
    for descriptor in 3..<CInt(maximumDescriptors) { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
  }
}
