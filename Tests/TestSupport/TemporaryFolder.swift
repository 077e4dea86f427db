import Foundation

/// A folder that goes away with the object.
package final class TemporaryFolder: Sendable {
  /// Its path.
  package let path: String

  /// Makes an empty folder, in memory where the system has such a place.
  package init() throws {
    let memory = "/dev/shm"
    let base =
      FileManager.default.isWritableFile(atPath: memory) ? memory : NSTemporaryDirectory()
    path = "\(base)/carpack-test-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of a file in it.
  package func file(_ name: String) -> String { "\(path)/\(name)" }
}
