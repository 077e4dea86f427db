public import Archive
internal import Synchronization
public import SystemPackage

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// An archive that is being made, under a temporary name beside the one it will have.
///
/// Whoever looks at the final name sees nothing, or what was there before, until the archive is committed and on the medium. The temporary
/// name, `.NAME.partial`, is always the same, so that what a killed process has left there is gone on with.
public struct NewArchiveFile: Sendable {
  /// Where it will be.
  public let path: FilePath
  /// Where it is until then.
  public let temporaryPath: FilePath
  private let replacing: Bool
  private let opened = OpenedFile()

  /// The file that was opened under the temporary name.
  private final class OpenedFile: Sendable {
    let number = Mutex<ino_t?>(nil)
  }

  /// A file to be made at `path`.
  ///
  /// - Throws: ``BackupError/system(_:_:)`` with `EEXIST` if something is there, unless `replacing`.
  public init(_ path: FilePath, replacing: Bool) throws {
    self.path = path
    self.replacing = replacing
    let name = path.lastComponent?.string ?? "archive"
    temporaryPath =
      path.removingLastComponent().appending(".\(FileNaming.name(name)).partial")
    try refuseExisting()
  }

  /// The storage to write to.
  ///
  /// - Throws: `ArchiveError` if the file cannot be made, or another process is making it.
  public func storage() throws -> FileStorage {
    let storage = try FileStorage.openOrCreate(temporaryPath)
    opened.number.withLock { $0 = Self.number(temporaryPath) }
    return storage
  }

  /// Gives the file its name.
  ///
  /// - Parameter isKeptOtherwise: whether the temporary file stays if that fails.
  /// - Throws: ``BackupError``, also if something has come to be there meanwhile.
  public func publish(isKeptOtherwise: Bool = false) throws {
    do {
      try refuseExisting()
      guard unsafe rename(temporaryPath.string, path.string) == 0 else {
        throw BackupError.system("write \(path)", errno)
      }
    } catch {
      if !isKeptOtherwise { discard() }
      throw error
    }
    let parent = path.removingLastComponent()
    let folder = unsafe open(parent.isEmpty ? "." : parent.string, O_RDONLY | O_DIRECTORY)
    guard folder >= 0 else { throw BackupError.system("sync the folder of \(path)", errno) }
    defer { _ = close(folder) }
    // Some file systems cannot sync a folder; they say so with EINVAL, and have nothing to lose.
    guard fsync(folder) == 0 || errno == EINVAL else {
      throw BackupError.system("sync the folder of \(path)", errno)
    }
  }

  /// Gives the file the mode of another, and its owner where that is allowed.
  ///
  /// - Throws: ``BackupError`` if one of them is not there.
  func takeMode(of other: FilePath) throws {
    var (status, own) = (stat(), stat())
    guard unsafe stat(other.string, &status) == 0,
      unsafe stat(temporaryPath.string, &own) == 0
    else { throw BackupError.system("look for \(other)", errno) }
    if status.st_uid != own.st_uid || status.st_gid != own.st_gid {
      // Who may not give files away has one of his own, as with any file that he makes.
      _ = unsafe chown(temporaryPath.string, status.st_uid, status.st_gid)
    }
    guard unsafe chmod(temporaryPath.string, status.st_mode & 0o777) == 0 else {
      throw BackupError.system("write \(temporaryPath)", errno)
    }
  }

  /// The path of the file that another path leads to, whatever links are on the way.
  ///
  /// - Throws: ``BackupError`` if there is none.
  static func resolved(_ path: FilePath) throws -> FilePath {
    guard let resolved = unsafe realpath(path.string, nil) else {
      throw BackupError.system("look for \(path)", errno)
    }
    defer { unsafe free(resolved) }
    return unsafe FilePath(String(cString: resolved))
  }

  /// Removes what was written; what another process writes under the same name, or has left there, stays.
  public func discard() {
    guard let number = opened.number.withLock({ $0 }), Self.number(temporaryPath) == number else {
      return
    }
    _ = unsafe unlink(temporaryPath.string)
  }

  /// The number of the file that has this name, by which it is told from another that gets the name later.
  private static func number(_ path: FilePath) -> ino_t? {
    var status = stat()
    return unsafe lstat(path.string, &status) == 0 ? status.st_ino : nil
  }

  /// Whether something has this name, be it a link that leads nowhere.
  public static func isTaken(_ path: FilePath) -> Bool {
    var status = stat()
    return unsafe lstat(path.string, &status) == 0
  }

  /// Whether two paths lead to one file.
  public static func areSame(_ left: FilePath, _ right: FilePath) -> Bool {
    var (first, second) = (stat(), stat())
    guard unsafe stat(left.string, &first) == 0, unsafe stat(right.string, &second) == 0 else {
      // Of a file that is not there, nothing is lost.
      return false
    }
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino
  }

  private func refuseExisting() throws {
    guard !replacing, Self.isTaken(path) else { return }
    throw BackupError.system("write \(path)", EEXIST)
  }
}
