internal import Archive
package import IPLD
internal import LibC
internal import SystemPackage

/// A folder that may hold blobs, under any names, in folders within folders.
package struct BlobFolder: Sendable {
  /// Its path.
  package let path: String
  /// Whether it is a backup of a whole account, so that the CAR, the records and the metadata in it
  /// are not blobs.
  package let isAccountFolder: Bool

  /// A folder of blobs.
  package init(_ path: String, isAccountFolder: Bool = false) {
    self.path = path
    self.isAccountFolder = isAccountFolder
  }

  /// All ordinary files in it, by their paths, in the order of their names.
  ///
  /// Symbolic links to files are followed, those to folders are not.
  ///
  /// - Parameter unreadable: called for a folder that cannot be read, and decides about it; by
  ///   default that ends the search.
  /// - Throws: ``BackupError`` for a folder that cannot be read; what `unreadable` throws.
  package func files(unreadable: (BackupError) throws -> Void = { throw $0 }) throws -> [String] {
    var files: [String] = []
    var waiting = [path]
    while let folder = waiting.popLast() {
      let names: [String]
      do {
        names = try Self.names(in: folder)
      } catch let error as BackupError {
        try unreadable(error)
        continue
      }
      for name in names.sorted(by: >) {
        let full = folder == "/" ? "/\(name)" : "\(folder)/\(name)"
        guard let status = AtomicFile.status(of: FilePath(full), follows: false) else {
          throw BackupError.system("look at \(full)", errno)
        }
        let kind = status.st_mode & S_IFMT
        if kind == S_IFDIR {
          if !(isAccountFolder && name == "records") { waiting.append(full) }
          continue
        }
        let file = kind == S_IFLNK ? AtomicFile.status(of: FilePath(full)) : status
        // A link that leads nowhere is no file; but an archive that is gone is not passed over.
        let isGone = file == nil && name.hasSuffix(FileNaming.archiveEnding)
        guard isGone || file.map({ $0.st_mode & S_IFMT }) == S_IFREG else { continue }
        if !(isAccountFolder && Self.isBookkeeping(name)) { files.append(full) }
      }
    }
    return files.sorted()
  }

  /// The CAR files in it.
  ///
  /// - Throws: ``BackupError`` for a folder that cannot be read.
  package func cars() throws -> [String] {
    try BlobFolder(path).files().filter { path in
      Self.isCAR(path.split(separator: "/").last.map(String.init) ?? path)
    }
  }

  /// Whether a file's name is that of a repository, not of a blob that happens to be a CAR.
  private static func isCAR(_ name: String) -> Bool {
    name.hasSuffix(".car") && claimedCID(name)?.codec != .raw
  }

  private static func isBookkeeping(_ name: String) -> Bool {
    isCAR(name) || FileNaming.documents.contains(name) || name == FileNaming.extractedList
      || name == FileNaming.unfinishedExtractedList
  }

  /// Whether a folder has this name.
  package static func isFolder(_ path: String) -> Bool {
    AtomicFile.status(of: FilePath(path)).map { $0.st_mode & S_IFMT } == S_IFDIR
  }

  /// Creates a folder, and its missing parents.
  ///
  /// - Throws: ``BackupError`` if one cannot be created.
  package static func make(_ path: String) throws {
    var made = FilePath(path).root.map { FilePath(root: $0) } ?? FilePath("")
    for component in FilePath(path).components {
      made.append(component)
      guard unsafe mkdir(made.string, 0o777) == 0 || errno == EEXIST else {
        throw BackupError.system("make the folder \(made)", errno)
      }
    }
  }

  /// Creates a folder, but not its parents.
  ///
  /// - Returns: Whether it was created; false if it existed.
  /// - Throws: ``BackupError``.
  @discardableResult
  package static func makeLast(_ path: String) throws -> Bool {
    try AtomicFile.requireFolder(of: FilePath(path))
    if unsafe mkdir(path, 0o777) == 0 { return true }
    guard errno == EEXIST else { throw BackupError.system("make the folder \(path)", errno) }
    return false
  }

  /// The names of everything in a folder.
  ///
  /// - Parameters:
  ///   - folder: its path.
  ///   - descriptor: the same folder, if it is open.
  /// - Throws: ``BackupError`` if it cannot be opened, or not be read to its end.
  package static func names(in folder: String, open descriptor: CInt? = nil) throws -> [String] {
    // Reading it moves the place in the file, so it is opened by itself.
    let raw = try BackupError.check(
      unsafe openat(
        descriptor ?? AT_FDCWD, descriptor == nil ? folder : ".",
        O_RDONLY | O_DIRECTORY | O_CLOEXEC), "read the folder \(folder)")
    guard let stream = unsafe fdopendir(raw) else {
      throw BackupError.system("read the folder \(folder)", errno)
    }
    defer { unsafe closedir(stream) }
    return try names(in: folder) {
      guard let entry = unsafe readdir(stream) else { return nil }
      return unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
        unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) {
          unsafe String(cString: $0)
        }
      }
    }
  }

  /// The names of everything in a folder, read one by one.
  ///
  /// - Parameters:
  ///   - folder: its path, for the message.
  ///   - next: reads a name; nil at the end, and, with `errno` set, if that fails.
  /// - Throws: ``BackupError`` if it fails.
  package static func names(in folder: String, next: () -> String?) throws -> [String] {
    var names: [String] = []
    while true {
      // The end leaves it as it is.
      errno = 0
      guard let name = next() else { break }
      if name != "." && name != ".." { names.append(name) }
    }
    guard errno == 0 else { throw BackupError.system("read the folder \(folder)", errno) }
    return names
  }

  /// The CID that a file's name claims, `CID` or `CID.EXT`; nil if it claims none.
  package static func claimedCID(_ path: String) -> CID? {
    let name = path.split(separator: "/").last ?? ""
    let stem = name.prefix { $0 != "." }
    guard stem.count >= 46 else { return nil }
    // A name that is not a CID is a name like any other.
    return try? CID(stem)
  }
}
