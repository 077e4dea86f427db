internal import Archive
internal import CGlibc
internal import IPLD
internal import SystemPackage

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#endif

/// A folder that files are written into, and outside of which nothing is ever written.
///
/// Every name is one component, opened relative to the folder above it and never through a symbolic link, so that neither a name from an archive nor
/// a link that somebody left leads elsewhere. A file is written under a temporary name and gets its own when it is complete. A file that is
/// there already and holds the same is left alone; one that differs is an error, unless overwriting was asked for.
public final class OutputFolder {
  /// What came of writing a file.
  public enum Outcome: Sendable {
    /// It was written.
    case written
    /// It was there, with the same content.
    case alreadyThere
  }

  /// What has been done so far.
  public struct Tally: Equatable, Sendable {
    /// Files that were written.
    public var written = 0
    /// Their bytes.
    public var bytes: UInt64 = 0
    /// Files that were there.
    public var alreadyThere = 0
  }

  /// How many folders are kept open at a time.
  private static let maximumOpenFolders = 64

  private let path: String
  private let overwriting: Bool
  private let root: CInt
  private var folders: [String: CInt] = [:]
  private var serial = 0
  private let process = getpid()
  /// What has been done so far.
  public private(set) var tally = Tally()

  /// Opens the folder, and makes it and those above it if they are not there.
  ///
  /// - Throws: ``BackupError``.
  public init(_ path: String, overwriting: Bool = false) throws {
    self.path = path
    self.overwriting = overwriting
    var prefix = path.hasPrefix("/") ? "/" : ""
    for component in path.split(separator: "/") {
      prefix += component
      if unsafe mkdir(prefix, 0o777) != 0, errno != EEXIST {
        throw BackupError.system("make the folder \(prefix)", errno)
      }
      prefix += "/"
    }
    root = unsafe open(path.isEmpty ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard root >= 0 else { throw BackupError.system("open the folder \(path)", errno) }
  }

  deinit {
    for folder in folders.values { _ = close(folder) }
    _ = close(root)
  }

  /// Writes a file.
  ///
  /// - Parameters:
  ///   - components: the names of the folders, and last of the file.
  ///   - durably: whether the content is on the medium before the file has its name. Thousands of small files can do without, as
  ///     long as ``synchronize()`` comes before anybody is told that they are there.
  ///   - produce: writes the content piece by piece to the sink it is given; when it throws, no file appears.
  /// - Throws: ``BackupError``, and what `produce` throws.
  @discardableResult
  public func write(
    _ components: [String], durably: Bool = true,
    _ produce: ((Span<UInt8>) throws -> Void) throws -> Void
  ) throws -> Outcome {
    guard let name = components.last else { throw BackupError.hostileName("") }
    try check(name)
    let shown = ([path] + components).joined(separator: "/")
    let folder = try self.folder(components.dropLast())
    // Of thousands of small files, hardly one is there: that is found out when they get their names.
    var isThere = durably ? try regularFileExists(name, in: folder, shown) : false
    serial += 1
    let temporary = ".carpack-\(process)-\(serial).partial"
    let raw = unsafe openat(
      folder, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
    guard raw >= 0 else { throw BackupError.system("write \(shown)", errno) }
    let descriptor = FileDescriptor(rawValue: raw)
    var isKept = false
    defer {
      if !isKept { _ = unsafe unlinkat(folder, temporary, 0) }
      _ = close(raw)
    }
    var count: UInt64 = 0
    var buffer: [UInt8] = []
    func put(_ bytes: Span<UInt8>) throws {
      do {
        _ = try unsafe bytes.withUnsafeBytes { try unsafe descriptor.writeAll($0) }
      } catch let error as Errno {
        throw BackupError.system("write \(shown)", error.rawValue)
      }
    }
    try produce { bytes in
      count += UInt64(bytes.count)
      if buffer.count + bytes.count > 1 << 17, !buffer.isEmpty {
        try put(buffer.span)
        buffer.removeAll(keepingCapacity: true)
      }
      if bytes.count >= 1 << 17 { try put(bytes) } else { buffer.append(contentsOf: bytes) }
    }
    if !buffer.isEmpty { try put(buffer.span) }
    if !durably {
      isKept = unsafe carpack_rename_exclusively_in(folder, temporary, name) == 0
      // Where the system cannot do that, or the name is taken.
      if !isKept { isThere = try regularFileExists(name, in: folder, shown) }
    }
    if isThere {
      if try holdsSame(name, in: folder, as: descriptor, shown) {
        tally.alreadyThere += 1
        return .alreadyThere
      }
      guard overwriting else { throw BackupError.fileDiffers(shown) }
    }
    if durably, fsync(raw) != 0 { throw BackupError.system("write \(shown)", errno) }
    if !isKept {
      guard unsafe renameat(folder, temporary, folder, name) == 0 else {
        throw BackupError.system("write \(shown)", errno)
      }
      isKept = true
    }
    tally.written += 1
    tally.bytes += count
    return .written
  }

  /// Returns when everything that was written is on the medium.
  ///
  /// - Throws: ``BackupError`` if the system cannot say so.
  public func synchronize() throws {
    guard tally.written > 0 else { return }
    #if canImport(Glibc)
      guard carpack_synchronize_file_system(root) == 0 else {
        throw BackupError.system("write the files in \(path)", errno)
      }
    #else
      // There is no call for one file system, and the one for all cannot fail.
      sync()
    #endif
  }

  /// One component, and an ordinary one.
  private func check(_ name: String) throws {
    let bytes = name.utf8
    guard !bytes.isEmpty, name != ".", name != "..", bytes.count <= 255,
      !bytes.contains(UInt8(ascii: "/")), !bytes.contains(0)
    else { throw BackupError.hostileName(name) }
  }

  private func folder(_ components: ArraySlice<String>) throws -> CInt {
    var current = root
    var shown = ""
    for name in components {
      try check(name)
      shown += "/" + name
      if let open = folders[shown] {
        current = open
        continue
      }
      if unsafe mkdirat(current, name, 0o777) != 0, errno != EEXIST {
        throw BackupError.system("make the folder \(path)\(shown)", errno)
      }
      let opened = unsafe openat(current, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard opened >= 0 else {
        if errno == ELOOP || errno == ENOTDIR { throw BackupError.inTheWay(path + shown) }
        throw BackupError.system("open the folder \(path)\(shown)", errno)
      }
      if folders.count >= Self.maximumOpenFolders { closeFolders(except: shown) }
      folders[shown] = opened
      current = opened
    }
    return current
  }

  /// Closes the open folders that do not lead to the one that is shown.
  private func closeFolders(except shown: String) {
    for (path, folder) in folders where !shown.hasPrefix(path + "/") {
      _ = close(folder)
      folders[path] = nil
    }
  }

  private func regularFileExists(_ name: String, in folder: CInt, _ shown: String) throws -> Bool {
    var status = stat()
    guard unsafe fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      if errno == ENOENT { return false }
      throw BackupError.system("look at \(shown)", errno)
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw BackupError.inTheWay(shown) }
    return true
  }

  private func holdsSame(
    _ name: String, in folder: CInt, as new: FileDescriptor, _ shown: String
  ) throws -> Bool {
    let raw = unsafe openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
    guard raw >= 0 else { throw BackupError.system("read \(shown)", errno) }
    do {
      let old = try MappedFile(FileDescriptor(rawValue: raw), closing: true)
      let new = try MappedFile(new, closing: false)
      guard old.count == new.count else { return false }
      return old.withBytes { old in
        new.withBytes { new in
          unsafe old.withUnsafeBytes { left in
            unsafe new.withUnsafeBytes { right in unsafe left.elementsEqual(right) }
          }
        }
      }
    } catch let error as Errno {
      throw BackupError.system("read \(shown)", error.rawValue)
    }
  }
}
