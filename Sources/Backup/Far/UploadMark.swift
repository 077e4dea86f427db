internal import Archive
internal import IPLD
internal import ObjectStore
internal import SystemPackage

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// Says on this machine that something is being written to an object.
///
/// It is a locked file in the user's cache. One that nobody has locked was left by a process that
/// was ended: what that had begun in the store is given up, so that no part of it is kept, and paid
/// for, for ever.
final class UploadMark {
  private let path: FilePath
  private let descriptor: FileDescriptor
  /// Whether a process that was ended has left it.
  let wasLeft: Bool

  /// Marks an object; nil if another process on this machine is writing to it.
  ///
  /// - Parameters:
  ///   - address: the object.
  ///   - folder: where marks are kept.
  /// - Throws: ``BackupError`` if the mark cannot be made.
  init?(_ address: String, in folder: FilePath) throws {
    try BlobFolder.make(folder.string)
    let name = "\(SHA256.digest(of: Array(address.utf8).span).hexadecimal.prefix(32)).upload"
    path = folder.appending(name)
    let isThere = unsafe access(path.string, F_OK) == 0
    do {
      descriptor = try FileDescriptor.open(
        path, .readWrite, options: [.create, .closeOnExec, .noFollow],
        permissions: [.ownerReadWrite])
    } catch let error as Errno {
      throw BackupError.system("create \(path)", error.rawValue)
    }
    wasLeft = isThere
    guard flock(descriptor.rawValue, LOCK_EX | LOCK_NB) == 0 else {
      try descriptor.close()
      return nil
    }
  }

  /// Takes the mark away: what was begun is done, or given up.
  func remove() {
    // A mark that stays costs the next writer a question.
    _ = unsafe unlink(path.string)
  }

  deinit {
    // Closing gives the lock back.
    do { try descriptor.close() } catch {}
  }
}
