package import Archive
internal import CGlibc
internal import LibC
internal import Synchronization
package import SystemPackage

/// A new archive, under a temporary name beside the one it will have.
///
/// 1. The final name shows nothing, or what was there before, until the archive is committed and on
///    the medium.
/// 2. The temporary name, `.NAME.partial`, is always the same, so that the next run finds what a
///    killed one has left.
/// 3. The file is locked from ``storage()`` until it has its final name and the folder is synced,
///    or it is discarded; who holds on to the storage makes no difference. So of several runs that
///    make the same archive one wins, and no run writes to the file of another.
/// 4. Without leave to replace, nothing that has come to be under the final name is replaced.
package struct NewArchiveFile: Sendable {
  /// Where it will be.
  package let path: FilePath
  /// Where it is until then.
  package let temporaryPath: FilePath
  private let replacing: Bool
  private let sources: [FilePath]
  private let opened = OpenedFile()

  /// The file under the temporary name, from the moment it is opened until it is published or
  /// discarded.
  private final class OpenedFile: Sendable {
    let storage = Mutex<FileStorage?>(nil)
  }

  /// A file to be made at `path`.
  ///
  /// - Parameters:
  ///   - path: where.
  ///   - replacing: whether a file that is there is replaced.
  ///   - sources: the archives that it is made of: nobody may read it who may not read one of them.
  /// - Throws: ``BackupError/system(_:_:)`` with `EEXIST` if a file is there, unless `replacing`;
  ///   ``BackupError/notAFile(_:_:)`` if something else is.
  package init(_ path: FilePath, replacing: Bool, from sources: [FilePath] = []) throws {
    self.path = path
    self.sources = sources
    self.replacing = replacing
    let name = path.lastComponent?.string ?? "archive"
    temporaryPath =
      path.removingLastComponent().appending(".\(FileNaming.name(name)).partial")
    try refuseExisting()
  }

  /// The storage to write to.
  ///
  /// - Throws: `ArchiveError` if the file cannot be made, or another process is making it;
  ///   ``BackupError`` if another process has made the archive in the meantime.
  package func storage() throws -> FileStorage {
    let storage = try FileStorage.openOrCreate(temporaryPath, permissions: permissions)
    opened.storage.withLock { $0 = storage }
    do {
      // Another run may have finished between the first look and the lock.
      try refuseExisting()
    } catch {
      if try storage.size == 0 { discard() } else { release() }
      throw error
    }
    return storage
  }

  /// Gives the file its name, once everything in it is on the medium.
  ///
  /// - Parameter isKeptOtherwise: whether the temporary file stays if that fails.
  /// - Throws: ``BackupError``, also if something has come to be there meanwhile; `ArchiveError` if
  ///   the file cannot be synced.
  package func publish(isKeptOtherwise: Bool = false) throws {
    let storage = opened.storage.withLock { $0 }
    do {
      try storage?.synchronize()
      try rename()
    } catch {
      if isKeptOtherwise { release() } else { discard() }
      throw error
    }
    // A power cut may still take the name away; so the lock is held until the folder is synced.
    defer { release() }
    try storage?.synchronizeName()
  }

  private func rename() throws {
    if !replacing {
      errno = ENOSYS
      if unsafe carpack_rename_exclusively(temporaryPath.string, path.string) == 0 { return }
      // Where there is no such call, the lock keeps other runs out between the look and the
      // renaming.
      guard [ENOSYS, EINVAL, ENOTSUP].contains(errno) else {
        throw BackupError.system("write \(path)", errno)
      }
    }
    try refuseExisting()
    guard Self.rename(temporaryPath.string, path.string) == 0 else {
      throw BackupError.system("write \(path)", errno)
    }
  }

  /// The system's `rename`.
  private static func rename(_ old: String, _ new: String) -> CInt {
    unsafe LibC.rename(old, new)
  }

  /// Gives the file the mode of another, and its owner where that is allowed.
  ///
  /// - Throws: ``BackupError`` if one of them is not there.
  package func takeMode(of other: FilePath) throws {
    var (status, own) = (stat(), stat())
    guard unsafe stat(other.string, &status) == 0,
      unsafe stat(temporaryPath.string, &own) == 0
    else { throw BackupError.system("look for \(other)", errno) }
    if status.st_uid != own.st_uid || status.st_gid != own.st_gid {
      // Only root may give a file away; anybody else keeps it as their own.
      _ = unsafe chown(temporaryPath.string, status.st_uid, status.st_gid)
    }
    guard unsafe chmod(temporaryPath.string, status.st_mode & 0o777) == 0 else {
      throw BackupError.system("write \(temporaryPath)", errno)
    }
  }

  /// The path of the file that another path leads to, whatever links are on the way.
  ///
  /// - Throws: ``BackupError`` if there is none.
  package static func resolved(_ path: FilePath) throws -> FilePath {
    guard let resolved = unsafe realpath(path.string, nil) else {
      throw BackupError.system("look for \(path)", errno)
    }
    defer { unsafe free(resolved) }
    return unsafe FilePath(String(cString: resolved))
  }

  /// Removes the file and unlocks it; what another process has under the same name stays.
  package func discard() {
    opened.storage.withLock { storage in
      guard let current = storage.take() else { return }
      // An error says that the system cannot tell whether it is the same file; then it stays.
      guard (try? current.isInPlace) == true else { return }
      _ = unsafe unlink(temporaryPath.string)
    }
  }

  /// Lets go of the storage, which unlocks the file when nothing else refers to it.
  package func release() { opened.storage.withLock { $0 = nil } }

  /// Whether something has this name, be it a link that leads nowhere.
  package static func isTaken(_ path: FilePath) -> Bool {
    var status = stat()
    return unsafe lstat(path.string, &status) == 0
  }

  /// Whether two paths lead to one file.
  package static func areSame(_ left: FilePath, _ right: FilePath) -> Bool {
    var (first, second) = (stat(), stat())
    guard unsafe stat(left.string, &first) == 0, unsafe stat(right.string, &second) == 0 else {
      // Of a file that is not there, nothing is lost.
      return false
    }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  /// The most that others may do with the temporary file: what they may do with the file that it is
  /// going to replace, and with those that it is made of.
  private var permissions: FilePermissions {
    var mode = FilePermissions.newFile
    if replacing, let old = Self.mode(of: path) { mode = old }
    for source in sources.compactMap(Self.mode) { mode.formIntersection(source) }
    return mode.union(.ownerReadWrite)
  }

  /// The permissions of a file; nil if there is none.
  private static func mode(of path: FilePath) -> FilePermissions? {
    var status = stat()
    guard unsafe stat(path.string, &status) == 0 else { return nil }
    return FilePermissions(rawValue: status.st_mode & 0o777)
  }

  /// Refuses a name that leads to something other than a plain file: it can be neither appended to
  /// nor replaced.
  ///
  /// - Throws: ``BackupError/notAFile(_:_:)``.
  package static func refuseUnlessFile(_ path: FilePath) throws {
    var status = stat()
    guard unsafe stat(path.string, &status) == 0 else {
      if unsafe lstat(path.string, &status) == 0 {
        throw BackupError.notAFile(path.string, "a symbolic link that leads nowhere")
      }
      return
    }
    try refuse(path, status)
  }

  /// Refuses to replace what is there, or, where replacing was asked for, anything but a plain
  /// file.
  private func refuseExisting() throws {
    var status = stat()
    guard unsafe lstat(path.string, &status) == 0 else { return }
    try Self.refuse(path, status)
    guard replacing else { throw BackupError.system("write \(path)", EEXIST) }
  }

  private static func refuse(_ path: FilePath, _ status: stat) throws {
    let kind: String
    switch status.st_mode & S_IFMT {
    case S_IFREG: return
    case S_IFDIR: kind = "a folder"
    case S_IFLNK: kind = "a symbolic link"
    case S_IFIFO: kind = "a named pipe"
    case S_IFSOCK: kind = "a socket"
    default: kind = "a device"
    }
    throw BackupError.notAFile(path.string, kind)
  }
}
