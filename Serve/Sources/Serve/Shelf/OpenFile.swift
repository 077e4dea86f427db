import Archive
import Foundation
import NIOCore
import SystemPackage

/// A file that is read at any place, and closed when nobody reads it any more.
final class OpenFile: Sendable {
  private let descriptor: SystemPackage.FileDescriptor

  /// Opens the file at a path.
  ///
  /// - Throws: an error of the system.
  init(_ path: String) throws {
    descriptor = try SystemPackage.FileDescriptor.open(
      SystemPackage.FilePath(path), .readOnly, options: [.closeOnExec])
  }

  deinit {
    // It was only read.
    _ = try? descriptor.close()
  }

  /// How many bytes it has now.
  var length: UInt64 { get throws { UInt64(try status().st_size) } }

  /// The number by which its file system knows it.
  var inode: UInt64 { get throws { UInt64(try status().st_ino) } }

  private func status() throws -> stat {
    var found = stat()
    guard unsafe fstat(descriptor.rawValue, &found) == 0 else { throw Errno(rawValue: errno) }
    return found
  }

  /// Appends bytes of the file.
  ///
  /// - Throws: `ArchiveError` if it has been cut off; an error of the system.
  func append(_ range: Range<Int>, to buffer: inout ByteBuffer) throws {
    var place = range.lowerBound
    while place < range.upperBound {
      let count = try unsafe buffer.writeWithUnsafeMutableBytes(
        minimumWritableBytes: range.upperBound - place
      ) { space in
        let wanted = unsafe UnsafeMutableRawBufferPointer(
          rebasing: space[0..<range.upperBound - place])
        return try unsafe descriptor.read(fromAbsoluteOffset: Int64(place), into: wanted)
      }
      guard count > 0 else { throw ArchiveError(.truncated, offset: UInt64(place)) }
      place += count
    }
  }
}
