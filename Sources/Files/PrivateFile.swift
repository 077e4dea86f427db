internal import Archive
internal import LibC
package import SystemPackage

/// Small files that are for their owner alone: keys, and the journal of a restore.
///
/// 1. No other user may read one at any time (mode 0600 from its first byte on).
/// 2. It has its name only with all of its content, which is on the medium by then.
package enum PrivateFile {
  /// The longest file that is read, in bytes.
  package static let maximumLength = 4 << 20

  /// Writes a file.
  ///
  /// - Parameter replacing: whether one that is there is replaced.
  /// - Throws: ``BackupError/system(_:_:)``, `EEXIST` among them.
  package static func write(_ bytes: [UInt8], to path: FilePath, replacing: Bool) throws {
    let folder = path.removingLastComponent()
    let name = path.lastComponent?.string ?? "file"
    let temporary = folder.appending(".\(name).\(UInt32.random(in: .min ... .max))")
    try system("write \(path)") {
      let file = try FileDescriptor.open(
        temporary, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
        permissions: .ownerReadWrite)
      do {
        try file.closeAfter {
          _ = try file.writeAll(bytes)
          guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
        }
        try publish(temporary, as: path, replacing: replacing)
      } catch {
        _ = unsafe unlink(temporary.string)
        throw error
      }
      try synchronize(folder.isEmpty ? "." : folder)
    }
  }

  /// What a file holds; nil if there is none.
  ///
  /// - Throws: ``BackupError/system(_:_:)``; `EFBIG` for one that is too long to be such a file.
  package static func read(_ path: FilePath) throws -> [UInt8]? {
    try system("read \(path)") {
      let file: FileDescriptor
      do {
        file = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
      } catch Errno.noSuchFileOrDirectory {
        return nil
      }
      return try file.closeAfter {
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
          let count = try unsafe buffer.withUnsafeMutableBytes { try unsafe file.read(into: $0) }
          guard count > 0 else { return content }
          content += buffer.prefix(count)
          guard content.count <= maximumLength else { throw Errno.fileTooLarge }
        }
      }
    }
  }

  /// Removes a file, if it is there.
  package static func remove(_ path: FilePath) throws {
    try system("remove \(path)") {
      guard unsafe unlink(path.string) == 0 || errno == ENOENT else {
        throw Errno(rawValue: errno)
      }
    }
  }

  private static func publish(_ temporary: FilePath, as path: FilePath, replacing: Bool) throws {
    if replacing {
      guard unsafe rename(temporary.string, path.string) == 0 else {
        throw Errno(rawValue: errno)
      }
    } else {
      // A link is refused where the name is taken, which a renaming is not.
      guard unsafe link(temporary.string, path.string) == 0 else { throw Errno(rawValue: errno) }
      _ = unsafe unlink(temporary.string)
    }
  }

  private static func synchronize(_ folder: FilePath) throws {
    let descriptor = try FileDescriptor.open(folder, .readOnly, options: [.closeOnExec])
    try descriptor.closeAfter {
      guard fsync(descriptor.rawValue) == 0 || errno == EINVAL else {
        throw Errno(rawValue: errno)
      }
    }
  }

  private static func system<Value>(_ operation: String, _ body: () throws -> Value) throws -> Value
  {
    do {
      return try body()
    } catch let error as Errno {
      throw BackupError.system(operation, error.rawValue)
    }
  }
}
