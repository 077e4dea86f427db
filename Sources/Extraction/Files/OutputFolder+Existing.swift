internal import Files
internal import IPLD
internal import LibC
internal import SystemPackage

/// What is in the folder already.
extension OutputFolder {
  /// How many bytes an ordinary file of this name has; nil if there is none.
  ///
  /// - Throws: ``BackupError/inTheWay(_:)`` if something else has the name.
  func size(of name: String, in folder: CInt, _ shown: String) throws -> Int? {
    var status = stat()
    guard unsafe fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      if errno == ENOENT { return nil }
      throw BackupError.system("look at \(shown)", errno)
    }
    guard status.st_mode & S_IFMT == S_IFREG else { throw BackupError.inTheWay(shown) }
    return Int(status.st_size)
  }

  /// The digest of what a file holds.
  ///
  /// - Parameter size: how many bytes it had a moment ago.
  func digest(of name: String, size: Int, in folder: CInt, _ shown: String) throws -> SHA256Digest {
    let file = try openFile(name, in: folder, shown)
    defer { _ = close(file.rawValue) }
    var hash = SHA256()
    var buffer = [UInt8](repeating: 0, count: max(1, min(size, Self.pieceLength)))
    while true {
      try stopIfAsked()
      let count = try BackupError.attempting("read \(shown)") {
        try unsafe buffer.withUnsafeMutableBytes { try unsafe file.read(into: $0) }
      }
      if count == 0 { return hash.finish() }
      hash.update(buffer.span.extracting(0..<count))
    }
  }

  /// Opens a file that is there to be read.
  func openFile(_ name: String, in folder: CInt, _ shown: String) throws -> FileDescriptor {
    FileDescriptor(
      rawValue: try BackupError.check(
        unsafe openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
        "read \(shown)"))
  }

  /// How much of a file is read at a time.
  private static let pieceLength = 1 << 16

  /// Whether a file, or something else, has this name.
  func isThere(_ components: [String]) throws -> Bool {
    let name = try name(of: components)
    do {
      guard let folder = try openFolder(components.dropLast()) else { return false }
      var status = stat()
      return unsafe fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0
    } catch BackupError.inTheWay {
      // A link is no folder of this one.
      return false
    }
  }

  /// Removes a file, if it holds what it is said to hold.
  ///
  /// - Returns: Whether it does, and is gone; nil if it was not there.
  /// - Throws: ``BackupError``.
  func remove(_ components: [String], holding digest: SHA256Digest) throws -> Bool? {
    let (name, shown) = (try name(of: components), shown(components))
    do {
      guard let folder = try openFolder(components.dropLast()),
        let size = try size(of: name, in: folder.descriptor, shown)
      else { return nil }
      guard try self.digest(of: name, size: size, in: folder.descriptor, shown) == digest else {
        return false
      }
      try BackupError.check(unsafe unlinkat(folder.descriptor, name, 0), "remove \(shown)")
    } catch BackupError.inTheWay {
      return false
    }
    tally.removed += 1
    return true
  }

  /// Removes a folder, and those above it, down to a depth, if nothing is in them.
  func removeEmptyFolders(_ components: [String], below depth: Int) throws {
    closeFolders()
    var components = components
    while components.count > depth, let name = components.popLast() {
      guard let above = try openFolder(components[...]),
        unsafe unlinkat(above.descriptor, name, AT_REMOVEDIR) == 0
      else { return }
    }
  }

  /// Removes what interrupted runs have left of files in a folder.
  func removeLeftovers(in folder: String) throws {
    guard let opened = try openFolder([folder]), !opened.isNew else { return }
    let shown = shown([folder])
    for name in try BlobFolder.names(in: shown, open: opened.descriptor)
    where Self.isTemporary(name) {
      guard unsafe unlinkat(opened.descriptor, name, 0) == 0 || errno == ENOENT else {
        throw BackupError.system("remove \(shown)/\(name)", errno)
      }
    }
  }

  /// Whether a name is one of those that files have until they are complete.
  private static func isTemporary(_ name: String) -> Bool {
    guard name.hasPrefix(temporaryPrefix), name.hasSuffix(temporaryEnding) else { return false }
    return name.utf8.dropFirst(temporaryPrefix.utf8.count).dropLast(temporaryEnding.utf8.count)
      .allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 || $0 == UInt8(ascii: "-") }
  }

  /// Whether the file system takes names for the same that differ in upper and lower case only.
  ///
  /// - Parameter folder: a folder that is there, with letters in its name.
  func foldsCase(_ folder: String) -> Bool {
    let (other, one) = (folder.uppercased(), folder)
    var (first, second) = (stat(), stat())
    guard other != one, unsafe fstatat(root, one, &first, AT_SYMLINK_NOFOLLOW) == 0,
      unsafe fstatat(root, other, &second, AT_SYMLINK_NOFOLLOW) == 0
    else { return false }
    return first.st_ino == second.st_ino && first.st_dev == second.st_dev
  }

  /// Keeps other runs from writing into a folder for as long as the answer is open.
  ///
  /// - Throws: ``BackupError/busy(_:)`` if one does.
  func lock(_ folder: String) throws -> FileDescriptor? {
    guard let opened = try openFolder([folder]) else { return nil }
    let shown = shown([folder])
    let raw = try BackupError.check(
      unsafe openat(opened.descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
      "open the folder \(shown)")
    // Some file systems have no locks; there, nothing tells of another run.
    if flock(raw, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
      _ = close(raw)
      throw BackupError.busy(shown)
    }
    return FileDescriptor(rawValue: raw)
  }
}
