internal import Archive
internal import Files
internal import IPLD
internal import LibC
internal import ObjectStore
package import SystemPackage

/// Says on this machine that something is being written to an object.
///
/// It is a locked file in the user's cache. One that is not locked was left by a process that
/// was ended: what that had begun in the store is given up, so that no part of it is kept, and paid
/// for, for ever.
package final class UploadMark: Sendable {
  private let stem: FilePath
  private let descriptor: FileDescriptor
  /// Whether a process that was ended has left it.
  let wasLeft: Bool
  /// What was written into it last, when it was made.
  let note: String
  /// How long a note may be.
  private static let longestNote = 1 << 10

  /// Marks an object; nil if another process on this machine is writing to it.
  ///
  /// - Parameters:
  ///   - address: the object.
  ///   - folder: where marks are kept.
  /// - Throws: ``BackupError`` if the mark cannot be made.
  init?(_ address: String, in folder: FilePath) throws {
    try BlobFolder.make(folder.string)
    stem = Self.stem(address, folder)
    let path = Self.file(stem, "upload")
    guard let (opened, isThere) = try Self.opened(path) else { return nil }
    (descriptor, wasLeft) = (opened, isThere)
    do {
      note = try unsafe String(unsafeUninitializedCapacity: Self.longestNote) { buffer in
        try unsafe opened.read(fromAbsoluteOffset: 0, into: UnsafeMutableRawBufferPointer(buffer))
      }
    } catch let error as Errno {
      try opened.close()
      throw BackupError.system("read \(path)", error.rawValue)
    }
  }

  /// Opens and locks a file, and answers whether it was there; nil if another process has it locked.
  private static func opened(_ path: FilePath) throws -> (FileDescriptor, Bool)? {
    while true {
      let isThere = unsafe access(path.string, F_OK) == 0
      let opened: FileDescriptor
      do {
        opened = try FileDescriptor.open(
          path, .readWrite, options: [.create, .closeOnExec, .noFollow],
          permissions: [.ownerReadWrite])
      } catch let error as Errno {
        throw BackupError.system("create \(path)", error.rawValue)
      }
      guard flock(opened.rawValue, LOCK_EX | LOCK_NB) == 0 else {
        try opened.close()
        return nil
      }
      // The process that had it may have removed it before it let go.
      var (mine, named) = (stat(), stat())
      guard unsafe fstat(opened.rawValue, &mine) == 0, unsafe stat(path.string, &named) == 0,
        mine.st_ino == named.st_ino, mine.st_dev == named.st_dev
      else {
        try opened.close()
        continue
      }
      return (opened, isThere)
    }
  }

  private static func stem(_ address: String, _ folder: FilePath) -> FilePath {
    let digest = SHA256.digest(of: Array(address.utf8).span)
    return folder.appending(String(digest.hexadecimal.prefix(32)))
  }

  /// A file for something else about an object.
  package static func file(of address: String, in folder: FilePath, ending: String) -> FilePath {
    file(stem(address, folder), ending)
  }

  private static func file(_ stem: FilePath, _ ending: String) -> FilePath {
    FilePath("\(stem).\(ending)")
  }

  /// A file beside it, for something else about the object.
  func file(ending: String) -> FilePath { Self.file(stem, ending) }

  /// Removes a file beside it.
  func removeFile(ending: String) {
    // One that stays is used again, or emptied.
    _ = unsafe unlink(file(ending: ending).string)
  }

  /// Writes a note into it, in place of the one before.
  ///
  /// - Throws: ``BackupError``.
  func write(_ note: String) throws {
    do {
      try descriptor.resize(to: 0)
      _ = try descriptor.writeAll(toAbsoluteOffset: 0, Array(note.utf8))
    } catch let error as Errno {
      throw BackupError.system("write \(file(ending: "upload"))", error.rawValue)
    }
  }

  /// Takes the mark away: what was begun is done, or given up.
  func remove() {
    // A mark that stays costs the next writer a question.
    removeFile(ending: "upload")
  }

  deinit {
    // Closing gives the lock back.
    do { try descriptor.close() } catch {}
  }
}
