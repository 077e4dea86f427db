internal import LibC
internal import Synchronization

/// What happens on Ctrl-C, and when a file that is being read is cut off by another process.
///
/// Ctrl-C ends the process at once, except while a task is to be notified: then it does so only
/// when it comes a second time.
package enum Interruption {
  /// The address of the name of the file to remove, as C wants it, or 0; a signal handler may
  /// neither allocate nor lock.
  private static let temporary = Atomic<UInt>(0)

  /// The descriptor to write to when a signal comes, or -1 if there is none to notify, or it has
  /// been notified.
  private static let notified = Atomic<CInt>(-1)
  /// The exit status of the signal that a task was notified of, or 0.
  private static let status = Atomic<CInt>(0)
  /// The pipe is made once and stays: a handler may be about to write to it at any time.
  private static let wakeUp = Mutex<WakeUp?>(nil)

  /// Handles the signals.
  package static func install() {
    _ = farewell
    signal(SIGINT) { _ in Interruption.stop(130) }
    signal(SIGTERM) { _ in Interruption.stop(143) }
    // A command started with nohup should outlive the terminal.
    if !isIgnored(SIGHUP) { signal(SIGHUP) { _ in Interruption.stop(129) } }
    unblock(SIGINT, SIGTERM, SIGHUP)
    // A file that may not grow (ulimit -f) is an error, as a full disk is.
    signal(SIGXFSZ, SIG_IGN)
    signal(SIGBUS) { _ in
      let text: StaticString =
        "carpack: error: a file was cut off by another program while it was being read\n"
      Interruption.say(text)
      Interruption.leave(74)
    }
  }

  /// Unblocks signals that the program which started this one had blocked.
  private static func unblock(_ numbers: CInt...) {
    var signals = sigset_t()
    unsafe sigemptyset(&signals)
    for number in numbers { unsafe sigaddset(&signals, number) }
    unsafe pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  private static func isIgnored(_ number: CInt) -> Bool {
    var action = sigaction()
    unsafe sigaction(number, nil, &action)
    #if canImport(Darwin)
      let handler = unsafe action.__sigaction_u.__sa_handler
    #else
      let handler = unsafe action.__sigaction_handler.sa_handler
    #endif
    return unsafe unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// Names the file to remove if the process is interrupted; nil for none.
  ///
  /// The name's memory is never freed: a handler on another thread may be about to read it.
  package static func removeIfInterrupted(_ path: String?) {
    let copy = unsafe path.flatMap { unsafe strdup($0) }
    temporary.store(UInt(bitPattern: copy), ordering: .sequentiallyConsistent)
  }

  /// The exit status of the signal that asked for an end, if one has.
  package static var received: ExitStatus? {
    let number = status.load(ordering: .sequentiallyConsistent)
    return number == 0 ? nil : ExitStatus(number: number)
  }

  /// Whether a signal ends a task, or has, and not the process.
  package static var isDeferred: Bool {
    notified.load(ordering: .sequentiallyConsistent) >= 0 || received != nil
  }

  /// Waits for a person: until the answer, a signal ends the process at once, because nothing else
  /// is under way.
  package static func endingAtOnce<Value>(_ body: () -> Value) -> Value {
    let descriptor = notified.exchange(-1, ordering: .sequentiallyConsistent)
    defer { notified.store(descriptor, ordering: .sequentiallyConsistent) }
    if let status = received { leave(status.number) }
    return body()
  }

  /// From now on the first signal sends its exit status here instead of ending the process.
  ///
  /// - Throws: ``Failure`` if no pipe can be made.
  package static func beginNotifying() throws -> WakeUp {
    let pipe = try wakeUp.withLock { pipe in
      let made = try pipe ?? WakeUp()
      pipe = made
      return made
    }
    notified.store(pipe.descriptor, ordering: .sequentiallyConsistent)
    return pipe
  }

  /// Signals end the process again.
  package static func endNotifying() { notified.store(-1, ordering: .sequentiallyConsistent) }

  private static func stop(_ number: CInt) {
    let descriptor = notified.exchange(-1, ordering: .sequentiallyConsistent)
    guard descriptor >= 0 else {
      say(farewell)
      leave(number)
    }
    status.store(number, ordering: .sequentiallyConsistent)
    // What was interrupted looks at its own error number.
    let saved = errno
    WakeUp.send(UInt8(number), to: descriptor)
    errno = saved
  }

  /// The message when a signal ends the process: made when the handlers are installed, because a
  /// handler may not allocate.
  private static let farewell: StaticString =
    Console.isJSON
    ? "{\"schema\":\"carpack.message\",\"version\":1,\"kind\":\"interrupted\",\"file\":null,\"text\":\"a signal\"}\n"
    : Console.canRedraw ? "\r\u{1b}[Kcarpack: interrupted\n" : "carpack: interrupted\n"

  /// Puts text on standard error, unless that is a pipe that is full: it would hold the end up.
  private static func say(_ text: StaticString) {
    var entry = pollfd(fd: 2, events: CShort(POLLOUT), revents: 0)
    guard unsafe poll(&entry, 1, 0) > 0 else { return }
    _ = unsafe write(2, text.utf8Start, text.utf8CodeUnitCount)
  }

  private static func leave(_ status: CInt) -> Never {
    let address = temporary.load(ordering: .sequentiallyConsistent)
    if let path = unsafe UnsafePointer<CChar>(bitPattern: address) { _ = unsafe unlink(path) }
    _exit(status)
  }
}
