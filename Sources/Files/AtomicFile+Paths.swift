internal import LibC
package import SystemPackage

/// Checks of what a path leads to, and whether that may be written to.
extension AtomicFile {
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

  /// What the system says of the file that a path leads to; nil if there is none.
  ///
  /// - Parameters:
  ///   - path: The path.
  ///   - follows: Whether it is the file that a link leads to, and not the link.
  static func status(of path: FilePath, follows: Bool = true) -> stat? {
    var status = stat()
    let code =
      follows ? unsafe stat(path.string, &status) : unsafe lstat(path.string, &status)
    return code == 0 ? status : nil
  }

  /// Whether something has this name, even a link that leads nowhere.
  package static func isTaken(_ path: FilePath) -> Bool {
    status(of: path, follows: false) != nil
  }

  /// Whether two paths lead to one file.
  package static func areSame(_ left: FilePath, _ right: FilePath) -> Bool {
    // A file that does not exist loses nothing.
    guard let first = status(of: left), let second = status(of: right) else { return false }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  /// Refuses a path in a folder that does not exist: its disk may not be mounted.
  ///
  /// - Throws: ``BackupError/noFolder(_:)``.
  package static func requireFolder(of path: FilePath) throws {
    let folder = path.removingLastComponent()
    guard !folder.isEmpty, status(of: folder) == nil, errno == ENOENT else { return }
    throw BackupError.noFolder(folder.string)
  }

  /// Refuses a name that leads to something other than a plain file: it can be neither appended to
  /// nor replaced.
  ///
  /// - Throws: ``BackupError/notAFile(_:_:)``.
  package static func refuseUnlessFile(_ path: FilePath) throws {
    if let status = status(of: path) { return try refuse(path, status) }
    guard !isTaken(path) else {
      throw BackupError.notAFile(path.string, "a symbolic link that leads nowhere")
    }
  }

  /// Refuses a file that is not a plain one.
  ///
  /// - Throws: ``BackupError/notAFile(_:_:)``.
  static func refuse(_ path: FilePath, _ status: stat) throws {
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
