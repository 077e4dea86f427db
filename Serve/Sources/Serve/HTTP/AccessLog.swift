import Foundation
import Synchronization

/// One line for each request.
///
/// ```
/// 2026-11-23T18:00:00Z 127.0.0.1 GET /xrpc/com.atproto.sync.getRepo?did=… 200 34117 0.6ms
/// ```
final class AccessLog: Sendable {
  private let file: Mutex<FileHandle>

  /// A log that goes on at the end of a file; `-` is standard error.
  ///
  /// - Throws: if the file cannot be opened.
  init(_ path: String) throws {
    if path == "-" {
      file = Mutex(.standardError)
      return
    }
    let descriptor = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o640)
    guard descriptor >= 0 else {
      throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
    }
    file = Mutex(FileHandle(fileDescriptor: descriptor, closeOnDealloc: true))
  }

  /// Writes a line.
  ///
  /// - Parameter target: what was asked for, without what nobody else may know.
  func note(
    _ client: String, _ method: String, _ target: String, _ status: Int, bytes: Int,
    seconds: Double
  ) {
    let time = Date().formatted(.iso8601)
    let safe = target.unicodeScalars.prefix(2048).map { scalar in
      scalar.value > 0x20 && scalar.value < 0x7f ? String(scalar) : "?"
    }.joined()
    let duration = String(format: "%.1fms", seconds * 1000)
    let line = "\(time) \(client) \(method) \(safe) \(status) \(bytes) \(duration)\n"
    file.withLock { file in
      do {
        try file.write(contentsOf: Data(line.utf8))
      } catch {
        // A log that cannot be written must not keep anybody from reading an archive.
      }
    }
  }
}
