import Foundation
package import SystemPackage

/// Whole files.
package enum File {
  /// Writes a file anew.
  package static func write(_ bytes: Span<UInt8>, to path: FilePath) throws {
    let descriptor = try FileDescriptor.open(
      path, .writeOnly, options: [.create, .truncate], permissions: [.ownerReadWrite])
    _ = try descriptor.closeAfter {
      try unsafe bytes.withUnsafeBytes { buffer in try unsafe descriptor.writeAll(buffer) }
    }
  }

  static func write(_ bytes: Span<UInt8>, to path: String) throws {
    try write(bytes, to: FilePath(path))
  }

  /// A path in the temporary folder that this process has for itself.
  package static func scratch(_ name: String) -> FilePath {
    FilePath("\(Environment.temporaryFolder)/carpack-fuzz-\(Environment.process)-\(name)")
  }
}

extension File {
  static func read(_ path: FilePath) throws -> [UInt8] {
    let descriptor = try FileDescriptor.open(path, .readOnly)
    return try descriptor.closeAfter {
      let count = Int(try descriptor.seek(offset: 0, from: .end))
      _ = try descriptor.seek(offset: 0, from: .start)
      var bytes = [UInt8](repeating: 0, count: count)
      let read = try unsafe bytes.withUnsafeMutableBytes { try unsafe descriptor.read(into: $0) }
      require(read == count, "a short read")
      return bytes
    }
  }

  /// Removes an existing file.
  static func remove(_ path: FilePath) throws {
    try FileManager.default.removeItem(atPath: path.string)
  }
}
