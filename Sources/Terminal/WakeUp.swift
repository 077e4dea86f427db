internal import LibC

/// A pipe through which a signal handler, which may do next to nothing, wakes up a waiting task.
package struct WakeUp: Sendable {
  private let input: CInt
  private let output: CInt

  /// Makes the pipe.
  ///
  /// - Throws: ``Failure`` if the process has no descriptors left.
  package init() throws {
    var ends: [CInt] = [-1, -1]
    guard unsafe pipe(&ends) == 0 else {
      throw Failure("could not make a pipe: error \(errno)", status: .ioError)
    }
    (output, input) = (ends[0], ends[1])
    // Programs that are started have no part in it.
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
  }

  /// The descriptor that a signal handler writes to.
  package var descriptor: CInt { input }

  /// Sends a byte.
  package func send(_ byte: UInt8) { Self.send(byte, to: input) }

  /// Sends a byte; allowed in a signal handler.
  package static func send(_ byte: UInt8, to descriptor: CInt) {
    var byte = byte
    _ = unsafe write(descriptor, &byte, 1)
  }

  /// Waits for a byte.
  package func receive() -> UInt8 {
    var byte: UInt8 = 0
    while unsafe read(output, &byte, 1) != 1 {
      // Only a signal keeps a byte from coming: both ends stay open.
      guard errno == EINTR else { return 0 }
    }
    return byte
  }
}
