internal import LibC
package import SystemPackage

/// The fields by which a file is recognised as the same.
package struct FileIdentity: Hashable, Sendable {
  package let device, inode, size: UInt64
  /// When it was modified, in nanoseconds since 1970.
  package let modified: Int64

  /// The identity of the file to which a path leads; nil if there is none.
  package init?(_ path: FilePath) {
    guard let status = AtomicFile.status(of: path) else { return nil }
    device = UInt64(truncatingIfNeeded: status.st_dev)
    inode = UInt64(truncatingIfNeeded: status.st_ino)
    size = UInt64(clamping: status.st_size)
    #if canImport(Darwin)
      let time = status.st_mtimespec
    #else
      let time = status.st_mtim
    #endif
    modified = Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
  }
}
