package import ATProtocol
package import Archive
internal import CGlibc
internal import IPLD
internal import LibC
internal import Synchronization
package import SystemPackage

/// A file that gets its name only with all of its content; every file is written through it.
///
/// | content | until then | after a kill |
/// |---|---|---|
/// | ``storage()``, ``save(to:replacing:isPrivate:_:)`` | has no name | nothing is left |
/// | the same, where the file system knows no such files | `.NAME.copy.partial` | is overwritten |
/// | ``storage(continuing:)`` | `.NAME.partial` | the next run continues it |
///
/// 1. The final name shows nothing, or what was there before, until the content is on the medium.
/// 2. What an interrupted run has left in `.NAME.partial` is continued or refused, and never lost,
///    if anything of it holds. One that a power cut tore within its first frame is replaced.
/// 3. The file is locked until it has its final name and the folder is synced, or it is discarded.
/// 4. Unless `replacing` is set, nothing under the final name is replaced.
package final class AtomicFile: Sendable {
  /// Its final path.
  package let path: FilePath
  private let replacing: Bool
  private let permissions: FilePermissions
  /// The open file, from the moment it is opened until it is published or discarded.
  private let opened = Mutex<(file: FileStorage, kind: Kind)?>(nil)

  private enum Kind {
    /// New content that no other run continues.
    case copy
    /// New content that the next run may continue.
    case begun
    /// What an interrupted run has left, and more.
    case continued
  }

  /// A file to be made at `path`.
  ///
  /// - Parameters:
  ///   - path: Where.
  ///   - replacing: Whether an existing file is replaced.
  ///   - sources: The archives that it is made of: its mode is the intersection of theirs.
  ///   - isPrivate: Whether it is for its owner alone.
  /// - Throws: ``BackupError/system(_:_:)`` with `EEXIST` if a file is there, unless `replacing`;
  ///   ``BackupError/notAFile(_:_:)`` if something else is.
  package init(
    _ path: FilePath, replacing: Bool, from sources: [FilePath] = [], isPrivate: Bool = false
  ) throws {
    (self.path, self.replacing) = (path, replacing)
    var mode: FilePermissions = isPrivate ? .ownerReadWrite : .newFile
    if replacing, let old = Self.mode(of: path) { mode = isPrivate ? mode : old }
    for source in sources.compactMap(Self.mode) { mode.formIntersection(source) }
    permissions = mode.union(.ownerReadWrite)
    try refuseExisting()
  }

  /// Where an interrupted run leaves a file that the next one continues.
  package static func leftoverPath(of path: FilePath) -> FilePath { temporary(path, ".partial") }

  /// The folder in which an interrupted run leaves the beginnings of large blobs.
  static func piecesPath(of path: FilePath) -> FilePath { temporary(path, ".pieces") }

  private static func temporary(_ path: FilePath, _ ending: String) -> FilePath {
    let name = FileNaming.name(path.lastComponent?.string ?? "file")
    return path.removingLastComponent().appending(".\(name)\(ending)")
  }

  /// A path that leads to the file as long as it is open, and else to what an interrupted run has
  /// left.
  package var temporaryPath: FilePath {
    opened.withLock { $0.map { $0.file.isNameless ? $0.file.openPath : $0.file.path } }
      ?? Self.leftoverPath(of: path)
  }

  // MARK: Content

  /// The storage for new content.
  ///
  /// - Throws: ``BackupError/leftover(_:_:)`` if an interrupted run has left something that another
  ///   may need; `ArchiveError` if the file cannot be made, or another process is making it.
  package func storage() throws -> FileStorage {
    try Self.requireFolder(of: path)
    try refuseLeftover()
    if let storage = try FileStorage.createNameless(for: path, permissions: permissions) {
      return try open(storage, .copy)
    }
    let name = Self.temporary(path, ".copy.partial")
    let storage = try FileStorage.openOrCreate(name, permissions: .ownerReadWrite)
    try open(storage, .copy).truncate(to: 0)
    return storage
  }

  /// The storage that continues what an interrupted run has left.
  ///
  /// - Parameter isContinued: Decides about an archive of which something holds: whether it is
  ///   continued, or begun again. What it throws leaves the file as it is.
  /// - Returns: The storage; the archive that is continued; and, if something was there of which
  ///   nothing holds and that is replaced, a sentence that says so.
  /// - Throws: ``BackupError/leftover(_:_:)`` for an archive that cannot be read; `ArchiveError` if
  ///   the file cannot be made, or another process is making it.
  package func storage(
    continuing isContinued: (ArchiveReader) throws -> Bool = { _ in true }
  ) throws -> (storage: any ArchiveStorage, continued: ArchiveReader?, replaced: String?) {
    try Self.requireFolder(of: path)
    let file = try open(
      FileStorage.openOrCreate(Self.leftoverPath(of: path), permissions: permissions),
      .continued)
    var replaced: String?
    do {
      if let reader = try Self.archive(in: file.map(), at: file.path) {
        if try isContinued(reader) { return (try file.archive(), reader, nil) }
      } else if try file.size > 0 {
        replaced =
          "\(file.path) held \(try file.size) bytes of an interrupted run, none of them usable; starting again"
      }
    } catch {
      release()
      throw error
    }
    opened.withLock { $0?.kind = .begun }
    try file.truncate(to: 0)
    return (try StorageLayers.begin(in: file), nil, replaced)
  }

  /// The storage for a new archive.
  ///
  /// - Parameter archives: Those that it is made of: it is kept in the way that they are.
  /// - Throws: as ``storage()`` does, and `StorageLayers.begin(in:of:)`.
  package func archiveStorage(of archives: [ArchiveReader]) throws -> any ArchiveStorage {
    try StorageLayers.begin(in: storage(), of: archives.map(\.file))
  }

  private func open(_ storage: FileStorage, _ kind: Kind) throws -> FileStorage {
    opened.withLock { $0 = (storage, kind) }
    do {
      // Another run may have finished between the first look and the lock.
      try refuseExisting()
    } catch {
      if try storage.size == 0 { remove() } else { release() }
      throw error
    }
    return storage
  }

  /// Refuses to create a file next to the remains of an interrupted run that only that run can use.
  private func refuseLeftover() throws {
    let path = Self.leftoverPath(of: path)
    guard Self.isTaken(path) else { return }
    let storage = try FileStorage.openOrCreate(path)
    guard let reader = try Self.archive(in: storage.map(), at: path) else { return }
    throw BackupError.leftover(path.string, reader.owner?.text)
  }

  /// The archive that an interrupted run has left, if anything of it holds; nil for a file that was
  /// never one, for one of which only the beginning was written, or was torn by a loss of power.
  ///
  /// - Throws: ``BackupError/leftover(_:_:)`` for an archive that cannot be read; `ArchiveError` if
  ///   the system refuses.
  private static func archive(in file: MappedFile, at path: FilePath) throws -> ArchiveReader? {
    guard file.count > 0 else { return nil }
    do {
      let reader = try ArchiveReader(file.archive())
      return reader.hasContent ? reader : nil
    } catch let error as ArchiveError {
      if error.reason == .unbegunSeal { return nil }
      if error.reason == .notAnArchive, !ArchiveReader.hasTraces(in: file) { return nil }
      throw BackupError.leftover(path.string, nil)
    }
  }

  /// What an interrupted run has left and the next one would continue, to look at: nothing is
  /// locked, and nothing made.
  ///
  /// - Throws: ``BackupError/leftover(_:_:)`` for an archive that cannot be read; `ArchiveError` if
  ///   the system refuses.
  package func leftover() throws -> ArchiveReader? {
    let path = Self.leftoverPath(of: path)
    return Self.isTaken(path) ? try Self.archive(in: MappedFile(path), at: path) : nil
  }

  // MARK: The name

  /// Renames the file to its final name, once everything in it is on the medium.
  ///
  /// A file that may be continued keeps its temporary name if that fails; others are removed.
  ///
  /// - Parameter isPrivate: Whether what is in it is for its owner alone.
  /// - Throws: ``BackupError``, also if something has appeared there in the meantime;
  ///   `ArchiveError` if the file cannot be synced.
  package func publish(isPrivate: Bool = false) throws {
    guard let (file, kind) = opened.withLock({ $0 }) else { return }
    do {
      if isPrivate { try file.restrictToOwner() }
      try file.synchronize()
      try giveName(file)
    } catch {
      if kind == .copy { remove() } else { release() }
      throw error
    }
    // A power cut may still take the name away; so the lock is held until the folder is synced.
    defer { release() }
    try file.synchronizeName()
  }

  private func giveName(_ storage: FileStorage) throws {
    guard storage.isNameless else {
      try rename(storage.path)
      return storage.wasRenamed(to: path)
    }
    // A backup may have begun in the meantime.
    try refuseLeftover()
    func link(_ name: FilePath) -> CInt? {
      let code = unsafe linkat(
        AT_FDCWD, storage.openPath.string, AT_FDCWD, name.string, AT_SYMLINK_FOLLOW)
      return code == 0 ? nil : errno
    }
    guard let code = link(path) else { return }
    try refuseExisting()
    guard code == EEXIST else { throw BackupError.system("write \(path)", code) }
    // It is replaced in one step by a file that has a name.
    let name = Self.temporary(path, ".copy.partial")
    _ = unsafe unlink(name.string)
    if let code = link(name) { throw BackupError.system("write \(path)", code) }
    do {
      try rename(name)
    } catch {
      _ = unsafe unlink(name.string)
      throw error
    }
  }

  private func rename(_ temporary: FilePath) throws {
    try BackupError.attempting("write \(path)") {
      do {
        try Self.rename(temporary.string, to: path.string, replacing: false)
      } catch Errno.fileExists {
        try refuseExisting()
        try Self.rename(temporary.string, to: path.string, replacing: true)
      }
    }
  }

  /// Renames a file, relative to open folders.
  ///
  /// Where the file system cannot refuse a name that is taken in the same step, the caller's lock
  /// keeps other runs out between the two.
  ///
  /// - Throws: `Errno`; `fileExists` if the name is taken and not `replacing`.
  package static func rename(
    _ old: String, in folder: CInt? = nil, to new: String, in target: CInt? = nil, replacing: Bool
  ) throws {
    let (folder, target) = (folder ?? AT_FDCWD, target ?? AT_FDCWD)
    if !replacing {
      errno = ENOSYS
      if unsafe carpack_rename_exclusively_in(folder, old, target, new) == 0 { return }
      guard [ENOSYS, EINVAL, ENOTSUP].contains(errno) else { throw Errno(rawValue: errno) }
      var status = stat()
      if unsafe fstatat(target, new, &status, AT_SYMLINK_NOFOLLOW) == 0 { throw Errno.fileExists }
    }
    guard unsafe renameat(folder, old, target, new) == 0 else { throw Errno(rawValue: errno) }
  }

  /// Removes the file and unlocks it; what another process has under the same name stays, and what
  /// an interrupted run had left.
  package func discard() {
    if opened.withLock({ $0?.kind == .continued }) { release() } else { remove() }
  }

  /// Runs a write, and discards the file if that fails.
  ///
  /// - Throws: what `body` throws.
  package func orDiscard<Value>(_ body: () throws -> Value) throws -> Value {
    do {
      return try body()
    } catch {
      discard()
      throw error
    }
  }

  private func remove() {
    opened.withLock { opened in
      guard let (file, _) = opened.take(), !file.isNameless else { return }
      // An error says that the system cannot tell whether it is the same file; then it stays.
      guard (try? file.isInPlace) == true else { return }
      _ = unsafe unlink(file.path.string)
    }
  }

  /// Lets the next run continue the file: it stays under its temporary name, if there is anything
  /// in it.
  package func keep() {
    let file = opened.withLock { $0?.file }
    // An empty file that stays does no harm: the next run uses it.
    if (try? file?.size) == 0 { remove() } else { release() }
  }

  /// Drops the storage, which unlocks the file when nothing else refers to it.
  private func release() { opened.withLock { $0 = nil } }

  // MARK: Mode

  /// Sets the file's mode, and where that is allowed its owner, to those of another.
  ///
  /// - Throws: ``BackupError`` if one of them is missing.
  package func takeMode(of other: FilePath) throws {
    let own = temporaryPath
    guard let status = Self.status(of: other), let before = Self.status(of: own) else {
      throw BackupError.system("look for \(other)", errno)
    }
    if status.st_uid != before.st_uid || status.st_gid != before.st_gid {
      // Only root may change the owner of a file; for others it stays the same.
      _ = unsafe chown(own.string, status.st_uid, status.st_gid)
    }
    guard unsafe chmod(own.string, status.st_mode & 0o777) == 0 else {
      throw BackupError.system("write \(path)", errno)
    }
  }

  /// Refuses to replace what is there, or, where replacing was requested, anything but a plain
  /// file.
  private func refuseExisting() throws {
    guard let status = Self.status(of: path, follows: false) else { return }
    try Self.refuse(path, status)
    guard replacing else { throw BackupError.system("write \(path)", EEXIST) }
  }

  /// The permissions of a file; nil if there is none.
  private static func mode(of path: FilePath) -> FilePermissions? {
    status(of: path).map { FilePermissions(rawValue: $0.st_mode & 0o777) }
  }
}

// MARK: Whole files

extension AtomicFile {
  /// The longest file that ``read(_:)`` reads, in bytes.
  private static let maximumLength = 4 << 20

  /// Writes a whole file.
  ///
  /// - Parameters:
  ///   - path: Where.
  ///   - replacing: Whether an existing file is replaced.
  ///   - isPrivate: Whether the file is for its owner alone, from its first byte on.
  ///   - produce: Passes the content, piece by piece, to its argument.
  /// - Returns: The file, which is locked as long as it is held.
  /// - Throws: ``BackupError`` and `ArchiveError` if the file cannot be written, or is there
  ///   already and is not to be replaced; what `produce` throws.
  @discardableResult
  package static func save(
    to path: FilePath, replacing: Bool, isPrivate: Bool = false,
    _ produce: ((Span<UInt8>) throws -> Void) throws -> Void
  ) throws -> FileStorage {
    let target = try AtomicFile(path, replacing: replacing, isPrivate: isPrivate)
    return try target.orDiscard {
      let storage = try target.storage()
      var offset: UInt64 = 0
      try produce { bytes in
        try storage.write(bytes, at: offset)
        offset += UInt64(bytes.count)
      }
      try target.publish()
      return storage
    }
  }

  /// The content of a small file, such as a key; nil if the file does not exist.
  ///
  /// - Throws: ``BackupError/system(_:_:)``; `EFBIG` for one that is too long to be such a file.
  package static func read(_ path: FilePath) throws -> [UInt8]? {
    guard isTaken(path) else { return nil }
    let file = try InputFile(path.string)
    guard file.count <= maximumLength else { throw BackupError.system("read \(path)", EFBIG) }
    return file.withBytes { $0.array(0..<$0.count) }
  }

  /// Removes a file, if it is there.
  ///
  /// - Throws: ``BackupError/system(_:_:)``.
  package static func remove(_ path: FilePath) throws {
    guard unsafe unlink(path.string) == 0 || errno == ENOENT else {
      throw BackupError.system("remove \(path)", errno)
    }
  }
}

extension ArchiveReader {
  /// The account of the archive's first repository; nil if unknown.
  package var owner: DID? {
    do {
      let header = try carHeader
      guard let root = try CARHeader(header.span).roots.first,
        let commit = try body(of: root)
      else { return nil }
      return try Commit(commit.span).did
    } catch {
      // Damaged, or not there yet.
      return nil
    }
  }
}
