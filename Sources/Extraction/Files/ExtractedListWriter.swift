internal import Files
internal import IPLD
internal import LibC
internal import SystemPackage

/// Writes the list of what is extracted, while it is.
///
/// A line is handed to the system before the file that it names takes the place of another; other
/// lines a few at a time. So an interruption, a kill even, costs the memory of a few new files at
/// most, and of no replaced one.
final class ExtractedListWriter {
  /// After how many bytes lines are handed to the system: those of some forty files.
  private static let bufferLength = 1 << 12

  private let descriptor: FileDescriptor
  private let shown: String
  private var buffer: [UInt8] = []

  /// Writes to a file, which is closed in the end.
  init(_ descriptor: FileDescriptor, _ shown: String) {
    (self.descriptor, self.shown) = (descriptor, shown)
    buffer = Array(ExtractedList.header.utf8)
  }

  deinit { _ = close(descriptor.rawValue) }

  /// Adds a file.
  func append(_ path: String, _ digest: SHA256Digest) throws {
    buffer += Array("\(digest)  \(path)\n".utf8)
    if buffer.count >= Self.bufferLength { try flush() }
  }

  /// Adds lines of another list.
  func append(lines: Span<UInt8>) throws {
    try flush()
    try put(lines)
  }

  /// Hands all lines to the system.
  func flush() throws {
    guard !buffer.isEmpty else { return }
    let bytes = buffer
    buffer.removeAll(keepingCapacity: true)
    try put(bytes.span)
  }

  /// Returns when all lines are on the medium.
  func synchronize() throws {
    try flush()
    if fsync(descriptor.rawValue) != 0 { throw BackupError.system("write \(shown)", errno) }
  }

  private func put(_ bytes: Span<UInt8>) throws {
    do {
      _ = try unsafe bytes.withUnsafeBytes { try unsafe descriptor.writeAll($0) }
    } catch let error as Errno {
      throw BackupError.system("write \(shown)", error.rawValue)
    }
  }
}
