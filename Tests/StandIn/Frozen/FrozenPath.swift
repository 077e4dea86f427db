import Foundation
import LibC
import Synchronization
import TestSupport

/// A path for standard input, output or error: to a file, or, while it is frozen, to something at
/// whose other end nothing happens.
package final class FrozenPath: FrozenPartner {
  /// What is at the other end.
  package enum Kind: String, Sendable {
    /// A full pipe without a reader.
    case unread = "a pipe that nobody reads"
    /// A pipe without a writer.
    case unwritten = "a pipe that nobody writes"
    /// A terminal without input.
    case terminal = "a terminal"
  }

  /// How long a command has to come upon a pipe, in seconds; on a terminal it is seen.
  private static let arrival = 0.7

  private struct State {
    var descriptor: CInt = -1
    var frozenSince: ContinuousClock.Instant?
    var shown: [UInt8] = []
  }

  private let kind: Kind
  private let file: String
  private let folder: TemporaryFolder
  private let state = Mutex(State())

  /// A path that leads to a file as long as it is not frozen.
  package init(_ kind: Kind, else file: String = "/dev/null") throws {
    (self.kind, self.file) = (kind, file)
    folder = try TemporaryFolder()
    lead(to: file)
  }

  deinit { thaw() }

  /// The path.
  package var path: String { folder.file("path") }

  /// Whether it is frozen at present.
  package var isFrozen: Bool { state.withLock { $0.frozenSince != nil } }

  /// `TIOCSPTLCK` and `TIOCGPTN`, which Glibc does not show to Swift.
  private static let (unlock, askNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)

  package var places: [FrozenPlace] {
    // Another system has other ways to a terminal.
    #if !os(Linux)
      if kind == .terminal { return [] }
    #endif
    return [FrozenPlace(0, .silent)]
  }

  package func forgetCalls() {}

  private func lead(to target: String) {
    _ = unsafe unlink(path)
    _ = unsafe symlink(target, path)
  }

  package func freeze(_ place: FrozenPlace) {
    state.withLock { state in
      state.frozenSince = .now
      if kind == .terminal {
        state.descriptor = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        var (number, isLocked): (CInt, CInt) = (0, 0)
        _ = unsafe ioctl(state.descriptor, Self.unlock, &isLocked)
        _ = unsafe ioctl(state.descriptor, Self.askNumber, &number)
        lead(to: "/dev/pts/\(number)")
        return
      }
      let pipe = folder.file("pipe")
      _ = unsafe mkfifo(pipe, 0o600)
      // Both ends are open, so that opening one of them never waits.
      state.descriptor = unsafe open(pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC)
      let zeros = [UInt8](repeating: 0, count: 4096)
      while kind == .unread, unsafe write(state.descriptor, zeros, zeros.count) > 0 {}
      lead(to: pipe)
    }
  }

  package var frozenCall: String? {
    state.withLock { state in
      guard let begin = state.frozenSince else { return nil }
      guard kind == .terminal else {
        return .now - begin > .seconds(Self.arrival) ? kind.rawValue : nil
      }
      var piece = [UInt8](repeating: 0, count: 4096)
      let count = unsafe read(state.descriptor, &piece, piece.count)
      if count > 0 { state.shown += piece[..<count] }
      let text = String(decoding: state.shown, as: UTF8.self)
      return text.hasSuffix("[y/N] ") ? kind.rawValue : nil
    }
  }

  package func thaw() {
    lead(to: file)
    state.withLock { state in
      if state.descriptor >= 0 { close(state.descriptor) }
      state = State()
    }
  }
}

/// A program that a command runs and waits for: it ends at once, or, while it is frozen, not before
/// it is killed.
package final class FrozenProgram: FrozenPartner {
  private let folder: TemporaryFolder
  private let heedsTermination: Bool

  /// A program that heeds SIGTERM, or does not.
  package init(heedsTermination: Bool) throws {
    self.heedsTermination = heedsTermination
    folder = try TemporaryFolder()
  }

  /// What a shell has to run.
  package var script: String {
    let (switch_, started) = (folder.file("frozen"), folder.file("started"))
    let pause = heedsTermination ? "exec sleep 30" : "trap : TERM; while :; do sleep 30; done"
    return "if [ -e \(switch_) ]; then echo > \(started); \(pause); fi"
  }

  package var places: [FrozenPlace] { [FrozenPlace(0, .silent)] }

  package func forgetCalls() {}

  package func freeze(_ place: FrozenPlace) { _ = try? folder.write("frozen", []) }

  package var frozenCall: String? { folder.names().contains("started") ? "runs" : nil }

  package func thaw() {
    for name in folder.names() { _ = unsafe unlink(folder.file(name)) }
  }
}
