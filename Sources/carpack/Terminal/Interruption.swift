internal import Synchronization

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// What happens on Ctrl-C, and when a file that is being read is cut off by somebody else.
enum Interruption {
  /// The address of the name of the file to remove, as C wants it, or 0; a signal handler may neither allocate nor lock.
  private static let temporary = Atomic<UInt>(0)

  /// Handles the signals.
  static func install() {
    signal(SIGINT) { _ in Interruption.leave(130) }
    signal(SIGTERM) { _ in Interruption.leave(143) }
    signal(SIGHUP) { _ in Interruption.leave(129) }
    signal(SIGBUS) { _ in
      let text: StaticString =
        "carpack: error: a file was cut off by another program while it was being read\n"
      _ = unsafe write(2, text.utf8Start, text.utf8CodeUnitCount)
      Interruption.leave(74)
    }
  }

  /// Names the file to remove if the process is interrupted; nil for none.
  static func removeIfInterrupted(_ path: String?) {
    let copy = unsafe path.flatMap { unsafe strdup($0) }
    let old = temporary.exchange(
      UInt(bitPattern: copy), ordering: .sequentiallyConsistent)
    unsafe free(UnsafeMutableRawPointer(bitPattern: old))
  }

  private static func leave(_ status: CInt) -> Never {
    let address = temporary.load(ordering: .sequentiallyConsistent)
    if let path = unsafe UnsafePointer<CChar>(bitPattern: address) { _ = unsafe unlink(path) }
    _exit(status)
  }
}
