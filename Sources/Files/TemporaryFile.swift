package import Archive
internal import CGlibc
internal import IPLD
internal import LibC
internal import Synchronization
package import SystemPackage

/// A file without a name, for data too large for memory: closing it removes it, however the
/// process ends.
///
/// It lies in the folder that is given, or in the one that `TMPDIR` names, else in `/var/tmp`,
/// which is on a disk where `/tmp` may be in memory.
///
/// One that is kept at a path (``init(keptAt:startingOver:)``) stays there until it is removed.
///
/// It may be passed between threads; one at a time uses it.
package final class TemporaryFile: @unchecked Sendable {
  private let descriptor: FileDescriptor
  private var buffer: [UInt8] = []
  /// How many bytes it has.
  package private(set) var count = 0

  private static let areInMemory = Atomic<Bool>(false)

  /// Keeps all files that are created from now on in memory: their content must not reach the disk.
  package static func stayInMemory() { areInMemory.store(true, ordering: .relaxed) }

  /// An empty file.
  ///
  /// - Parameter folder: where, if it lies on a disk; nil for the folder of temporary files.
  /// - Throws: ``BackupError`` if none can be made.
  package init(in folder: FilePath? = nil) throws {
    if Self.areInMemory.load(ordering: .relaxed) {
      let file = carpack_memory_file()
      guard file >= 0 else {
        throw BackupError.system("create a temporary file in memory", -file)
      }
      descriptor = FileDescriptor(rawValue: file)
      return
    }
    let folder = folder ?? Self.defaultFolder
    descriptor = try BackupError.attempting("create a temporary file in \(folder)") {
      try FileDescriptor.openNameless(in: folder) ?? Self.openUnlinked(in: folder)
    }
    buffer.reserveCapacity(1 << 18)
  }

  /// A file that stays at a path when it is closed, and is continued from there.
  ///
  /// - Parameters:
  ///   - path: where; it is made with mode 0600.
  ///   - startingOver: whether what is there is discarded.
  /// - Throws: ``BackupError`` if it cannot be opened, or is a link.
  package init(keptAt path: FilePath, startingOver: Bool) throws {
    descriptor = try BackupError.attempting("open \(path)") {
      try FileDescriptor.open(
        path, .readWrite, options: [.create, .noFollow, .closeOnExec],
        permissions: .ownerReadWrite)
    }
    count = try BackupError.attempting("open \(path)") { [descriptor] in
      if startingOver { try descriptor.resize(to: 0) }
      return Int(try descriptor.seek(offset: 0, from: .end))
    }
    buffer.reserveCapacity(1 << 18)
  }

  deinit {
    // Nothing of it is wanted any more, and closing what has no name can lose nothing.
    _ = close(descriptor.rawValue)
  }

  /// A file that is unlinked at once, where the file system has no files without names.
  private static func openUnlinked(in folder: FilePath) throws -> FileDescriptor {
    let path = folder.appending("carpack-\(UInt64.random(in: 0 ... .max))")
    let file = try FileDescriptor.open(
      path, .readWrite, options: [.create, .exclusiveCreate, .closeOnExec],
      permissions: .ownerReadWrite)
    _ = unsafe unlink(path.string)
    return file
  }

  /// The folder of temporary files.
  package static var defaultFolder: FilePath {
    if let pointer = unsafe getenv("TMPDIR") {
      let path = unsafe String(cString: pointer)
      if !path.isEmpty { return FilePath(path) }
    }
    return unsafe access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp"
  }

  /// How many bytes a file may still take in a folder; nil if the system does not say.
  package static func room(in folder: FilePath) -> UInt64? {
    var facts = statvfs()
    guard unsafe statvfs(folder.string, &facts) == 0 else { return nil }
    return UInt64(facts.f_bavail).multipliedSaturated(by: UInt64(facts.f_frsize))
  }

  /// Appends bytes.
  package func write(_ bytes: Span<UInt8>) throws {
    if bytes.count < 1 << 16 {
      buffer.append(contentsOf: bytes)
      if buffer.count >= 1 << 18 { try flush() }
    } else {
      try flush()
      try put(bytes)
    }
    count += bytes.count
  }

  /// Truncates the file to the first `count` bytes.
  package func truncate(to count: Int) throws {
    try flush()
    try BackupError.attempting("truncate a temporary file") {
      try descriptor.resize(to: Int64(count))
      try descriptor.seek(offset: 0, from: .end)
    }
    self.count = count
  }

  /// The bytes, mapped.
  package func map() throws -> MappedFile {
    try flush()
    return try BackupError.attempting("map a temporary file") {
      try MappedFile(descriptor, closing: false)
    }
  }

  /// Calls `body` with the bytes, piece by piece, without ever having many of them in memory, as a
  /// mapped file would.
  package func read(pieces length: Int, _ body: (Span<UInt8>) throws -> Void) throws {
    try flush()
    var offset = 0
    while offset < count {
      let piece = try bytes(at: UInt64(offset), count: min(length, count - offset))
      try body(piece.span)
      offset += piece.count
    }
  }

  /// Reads this many bytes from an offset on.
  package func bytes(at offset: UInt64, count: Int) throws -> [UInt8] {
    try flush()
    return try BackupError.attempting("read a temporary file") {
      let bytes = try descriptor.read(count, at: offset)
      guard bytes.count == count else { throw Errno.ioError }
      return bytes
    }
  }

  /// The storage for an archive that is made in it, to be copied somewhere that cannot be written
  /// to twice.
  package func storage() throws -> FileStorage { try FileStorage.open(path) }

  /// Another descriptor of the file, which keeps it when this one is gone.
  package func duplicate() throws -> FileDescriptor {
    try flush()
    return try BackupError.attempting("reopen a temporary file") {
      let copy = fcntl(descriptor.rawValue, F_DUPFD_CLOEXEC, 0)
      guard copy >= 0 else { throw Errno(rawValue: errno) }
      return FileDescriptor(rawValue: copy)
    }
  }

  /// A path that opens the file as long as it is open here.
  package var path: FilePath { FilePath("/dev/fd/\(descriptor.rawValue)") }

  /// A descriptor at offset 0, for a program that reads all of it; it is open as long as the file
  /// is.
  package func beginReading() throws -> CInt {
    try flush()
    try BackupError.attempting("seek in a temporary file") {
      try descriptor.seek(offset: 0, from: .start)
    }
    return descriptor.rawValue
  }

  /// Flushes the buffer to the system.
  package func flush() throws {
    guard !buffer.isEmpty else { return }
    let bytes = buffer
    buffer.removeAll(keepingCapacity: true)
    try put(bytes.span)
  }

  private func put(_ bytes: Span<UInt8>) throws {
    try BackupError.attempting("write to a temporary file") {
      _ = try unsafe bytes.withUnsafeBytes { try unsafe descriptor.writeAll($0) }
    }
  }
}
