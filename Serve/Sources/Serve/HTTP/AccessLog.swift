import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
  import FoundationEssentials
#else
  import Foundation
#endif

/// One line for each request.
///
/// ```
/// 2026-11-23T18:00:00Z 127.0.0.1 GET /xrpc/com.atproto.sync.getRepo?did=… 200 34117 0.6ms
/// ```
final class AccessLog: Sendable {
  private let file: Mutex<FileDescriptor>

  /// A log that continues at the end of a file; `-` is standard error.
  ///
  /// - Throws: `Errno` if the file cannot be opened.
  init(_ path: String) throws {
    if path == "-" {
      file = Mutex(.standardError)
      return
    }
    file = Mutex(
      try FileDescriptor.open(
        FilePath(path), .writeOnly, options: [.create, .append, .closeOnExec],
        permissions: [.ownerReadWrite, .groupRead]))
  }

  /// Writes a line.
  ///
  /// - Parameter target: what was requested, without the secret path.
  func note(
    _ client: String, _ method: String, _ target: String, _ status: Int, bytes: Int,
    seconds: Double
  ) {
    let time = Date().formatted(.iso8601)
    let safe = target.unicodeScalars.prefix(2048).map { scalar in
      scalar.value > 0x20 && scalar.value < 0x7f ? String(scalar) : "?"
    }.joined()
    let tenths = (seconds * 10_000).rounded()
    let line = "\(time) \(client) \(method) \(safe) \(status) \(bytes) \(tenths / 10)ms\n"
    file.withLock { file in
      do {
        try file.writeAll(line.utf8)
      } catch {
        // A log that cannot be written must not prevent reading an archive.
      }
    }
  }
}
