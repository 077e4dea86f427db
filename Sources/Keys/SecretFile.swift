internal import Age
internal import Files
internal import LibC
internal import SystemPackage
internal import Terminal

/// A short file that holds a secret: an identity, a key or a password.
///
/// It may be a pipe, such as `<(pass show KEY)`. The wait for its end is limited, and ends when the
/// task is cancelled; of what never ends (`/dev/zero`), no more than the limit is read.
package enum SecretFile {
  /// How long pipes are waited for, all of a run together: a password manager may have to be
  /// unlocked first.
  private static let patience: Duration = .seconds(60)
  /// When the wait for pipes ends; it begins with the first file that is read.
  private static let deadline = ContinuousClock.now + patience
  /// How often a wait checks whether it was cancelled.
  private static let interval: Duration = .milliseconds(100)

  /// Calls `body` with the content of a file, which is wiped afterwards.
  ///
  /// - Parameters:
  ///   - path: the file; `-` is standard input.
  ///   - limit: how many bytes it may have; of a longer one, `body` gets one more.
  ///   - deadline: when the wait for a pipe ends.
  /// - Throws: `BackupError` if it cannot be read; ``Failure`` if a pipe has not ended in time;
  ///   `CancellationError`; what `body` throws.
  package static func read<Value>(
    _ path: String, limit: Int, until deadline: ContinuousClock.Instant = deadline,
    _ body: (Span<UInt8>) throws -> Value
  ) throws -> Value {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: limit + 1, alignment: 1)
    var count = 0
    defer {
      unsafe SecretArena.wipe(UnsafeMutableRawBufferPointer(rebasing: memory[..<count]))
      unsafe memory.deallocate()
    }
    let name = path == "-" ? InputFile.standardInputName : path
    try BackupError.attempting("read \(name)") {
      guard path != "-" else {
        return try unsafe fill(memory, &count, from: .standardInput, name, until: deadline)
      }
      let file = try FileDescriptor.open(
        FilePath(path), .readOnly, options: [.closeOnExec, .nonBlocking])
      try file.closeAfter {
        try unsafe fill(memory, &count, from: file, name, until: deadline)
      }
    }
    return try body(unsafe Span(_unsafeBytes: memory[..<count]))
  }

  /// Reads until the file ends, or the memory is full.
  ///
  /// - Parameter count: how many bytes have been read.
  private static func fill(
    _ memory: UnsafeMutableRawBufferPointer, _ count: inout Int, from file: FileDescriptor,
    _ name: String, until deadline: ContinuousClock.Instant
  ) throws {
    while count < memory.count {
      try wait(for: file, name, until: deadline)
      do {
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: memory[count...])
        let step = try unsafe file.read(into: rest)
        if step == 0 { return }
        count += step
      } catch Errno.resourceTemporarilyUnavailable {
        // Another reader of the pipe was first.
      }
    }
  }

  /// Waits until a file can be read, or has ended: ordinary files always can.
  ///
  /// A pipe that no program has opened to write to it has not ended.
  private static func wait(
    for file: FileDescriptor, _ name: String, until deadline: ContinuousClock.Instant
  ) throws {
    var entry = pollfd(fd: file.rawValue, events: CShort(POLLIN), revents: 0)
    while true {
      let left = ContinuousClock.now.duration(to: deadline)
      let step = max(.zero, min(interval, left)) / .milliseconds(1)
      if unsafe poll(&entry, 1, CInt(step.rounded(.up))) > 0 { return }
      if Task.isCancelled || Interruption.received != nil { throw CancellationError() }
      guard left > .zero else {
        throw Failure(
          "could not read \(name): no program wrote to it and closed it within \(patience.components.seconds) s",
          hint: "name a file, or a pipe that a program writes to and closes", status: .noInput,
          at: name)
      }
    }
  }
}
