internal import Archive
internal import CGlibc
internal import Files
internal import IPLD
internal import LibC
internal import SystemPackage

/// A folder that files are written into, and outside of which nothing is ever written.
///
/// 1. Every name is one component, opened relative to the folder above it and never through a
///    symbolic link, so that neither a name from an archive nor a link left there leads elsewhere.
/// 2. A file is written under a temporary name and gets its own when it is complete.
/// 3. An existing file with the same content is left alone; one that differs is an error, unless
///    overwriting was requested or the file may be replaced.
package final class OutputFolder {
  /// What has been done so far.
  package struct Tally: Equatable, Sendable {
    /// Files that were written.
    package var written = 0
    /// Their bytes.
    package var bytes: UInt64 = 0
    /// Those of them that replaced other content.
    package var replaced = 0
    /// Files that existed already with this content.
    package var alreadyThere = 0
    /// Files that were removed.
    package var removed = 0
  }

  /// Hands a content, piece by piece, to the sink it is given.
  typealias Content = ((Span<UInt8>) throws -> Void) throws -> Void
  /// Decides whether a file may be replaced, by the digests of its content and of the new content.
  typealias Replacing = (_ old: SHA256Digest, _ new: SHA256Digest) throws -> Bool

  /// How much of a file is read at a time.
  private static let pieceLength = 1 << 16

  private let path: String
  private let root: CInt
  private let overwriting: Bool
  private let isStopping: () -> Bool
  /// Whether the work is being finished, which is not stopped any more.
  var isEnding = false
  /// The folders that are open: each lies in the one before it, the first in the root.
  private var chain: [(name: String, descriptor: CInt)] = []
  private var serial = 0
  /// What has been done so far.
  package internal(set) var tally = Tally()

  /// Opens the folder, and creates it and its parents if they do not exist.
  ///
  /// - Parameters:
  ///   - path: the folder.
  ///   - overwriting: whether files that hold something else are replaced.
  ///   - isStopping: is asked now and then; once it says so, writing throws `CancellationError` and
  ///     leaves no half a file.
  /// - Throws: ``BackupError``.
  package init(
    _ path: String, overwriting: Bool = false, isStopping: @escaping () -> Bool = { false }
  ) throws {
    (self.path, self.overwriting, self.isStopping) = (path, overwriting, isStopping)
    try BlobFolder.make(path)
    root = try BackupError.check(
      unsafe open(path.isEmpty ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
      "open the folder \(path)")
  }

  deinit {
    closeFolders(after: 0)
    _ = close(root)
  }

  /// A file's name in messages.
  func shown(_ components: [String]) -> String { ([path] + components).joined(separator: "/") }

  /// Throws if the work is to be stopped.
  ///
  /// - Throws: `CancellationError`.
  private func stopIfAsked() throws {
    if !isEnding, isStopping() { throw CancellationError() }
  }

  /// Returns when everything that was written is on the medium.
  ///
  /// - Throws: ``BackupError`` if the system cannot say so.
  func synchronize() throws {
    guard tally.written > 0 else { return }
    #if canImport(Glibc)
      try BackupError.check(carpack_synchronize_file_system(root), "write the files in \(path)")
    #else
      // There is no call for one file system, and the one for all cannot fail.
      sync()
    #endif
  }

  // MARK: Writing

  /// Writes a file, or replaces one of which that is allowed.
  ///
  /// - Parameters:
  ///   - file: which file, and what is known about it.
  ///   - produce: its content.
  ///   - mayReplace: decides about a file that holds something else, if overwriting was not asked
  ///     for.
  /// - Returns: The digest of the content.
  /// - Throws: ``BackupError``, and what `produce` and `mayReplace` throw.
  @discardableResult
  func put(
    _ file: OutputFile, _ produce: Content, mayReplace: Replacing = { _, _ in false }
  ) throws -> SHA256Digest {
    let (name, shown) = (try name(of: file.components), shown(file.components))
    var old = try compare(file, produce, mayReplace)
    if let old, old.isSame {
      tally.alreadyThere += 1
      return old.digest
    }
    let folder = try folder(file.components.dropLast(), making: file.isPrivate ? 0o700 : 0o777)
    let stage = try self.folder(file.components.dropLast().prefix(1))
    serial += 1
    let temporary = "\(Self.temporaryPrefix)\(getpid())-\(serial)\(FileNaming.temporaryEnding)"
    let raw = try create(temporary, in: stage, shown, mode: file.isPrivate ? 0o600 : 0o666)
    var isKept = false
    defer {
      if !isKept { _ = unsafe unlinkat(stage, temporary, 0) }
      _ = close(raw)
    }
    let known = old?.digest ?? file.digest
    var count: UInt64 = 0
    var hash = SHA256()
    try produce { bytes in
      try stopIfAsked()
      try Self.write(bytes, to: raw, shown)
      if known == nil { hash.update(bytes) }
      count += UInt64(bytes.count)
    }
    let digest = known ?? hash.finish()
    file.time?.set(raw)
    if file.isDurable { try BackupError.check(fsync(raw), "write \(shown)") }
    func giveName(replacing: Bool) throws {
      try AtomicFile.rename(temporary, in: stage, to: name, in: folder, replacing: replacing)
      isKept = true
    }
    try BackupError.attempting("write \(shown)") {
      do {
        try giveName(replacing: old != nil)
      } catch Errno.fileExists where old == nil {
        // It appeared in the meantime.
        var known = file
        known.digest = digest
        old = try compare(known, produce, mayReplace)
        if old?.isSame != true { try giveName(replacing: true) }
      }
    }
    guard isKept else {
      tally.alreadyThere += 1
      return digest
    }
    if old != nil { tally.replaced += 1 }
    tally.written += 1
    tally.bytes += count
    return digest
  }

  /// Whether an existing file holds the content, and the digest of that; nil if there is none.
  ///
  /// - Throws: ``BackupError/fileDiffers(_:)`` if it does not, and may not be replaced; what
  ///   ``put(_:_:mayReplace:)`` would throw because of what else is there.
  func compare(
    _ file: OutputFile, _ produce: Content, _ mayReplace: Replacing
  ) throws -> (isSame: Bool, digest: SHA256Digest)? {
    guard let old = try digest(of: file.components) else { return nil }
    let new = try file.digest ?? Self.digest(of: produce)
    if old == new { return (true, new) }
    guard try mayReplace(old, new) || overwriting else {
      throw BackupError.fileDiffers(shown(file.components))
    }
    return (false, new)
  }

  static func digest(of produce: Content) throws -> SHA256Digest {
    var hash = SHA256()
    try produce { hash.update($0) }
    return hash.finish()
  }

  /// Creates a file that does not exist.
  func create(_ name: String, in folder: CInt, _ shown: String, mode: mode_t = 0o666) throws -> CInt
  {
    try BackupError.check(
      unsafe openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode),
      "write \(shown)")
  }

  /// Writes all of these bytes.
  static func write(_ bytes: Span<UInt8>, to raw: CInt, _ shown: String) throws {
    try BackupError.attempting("write \(shown)") {
      _ = try unsafe bytes.withUnsafeBytes {
        try unsafe FileDescriptor(rawValue: raw).writeAll($0)
      }
    }
  }

  /// The prefix of files' names until they are complete.
  private static let temporaryPrefix = ".carpack-"

  /// Removes unfinished files that interrupted runs have left in a folder.
  func removeLeftovers(in folder: String) throws {
    let (opened, shown) = (try self.folder([folder]), shown([folder]))
    let (start, end) = (Self.temporaryPrefix, FileNaming.temporaryEnding)
    for name in try BlobFolder.names(in: shown, open: opened)
    where name.hasPrefix(start) && name.hasSuffix(end)
      && name.dropFirst(start.count).dropLast(end.count).allSatisfy({ "-0123456789".contains($0) })
    {
      guard unsafe unlinkat(opened, name, 0) == 0 || errno == ENOENT else {
        throw BackupError.system("remove \(shown)/\(name)", errno)
      }
    }
  }

  // MARK: What is there

  /// What the system says of a file or anything else with this name; nil if there is nothing.
  private func status(of components: [String]) throws -> stat? {
    let name = try name(of: components)
    guard let folder = try openFolder(components.dropLast()) else { return nil }
    var status = stat()
    if unsafe fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 { return status }
    guard errno == ENOENT else {
      throw BackupError.system("look at \(shown(components))", errno)
    }
    return nil
  }

  /// Whether a file, or something else, has this name.
  func isThere(_ components: [String]) throws -> Bool {
    do {
      return try status(of: components) != nil
    } catch BackupError.inTheWay {
      // A link is not a folder of this one.
      return false
    }
  }

  /// Opens an ordinary file to be read; nil if there is none.
  ///
  /// - Throws: ``BackupError/inTheWay(_:)`` if something else has the name.
  func openFile(_ components: [String]) throws -> FileDescriptor? {
    guard let status = try status(of: components) else { return nil }
    let shown = shown(components)
    guard status.st_mode & S_IFMT == S_IFREG, let name = components.last else {
      throw BackupError.inTheWay(shown)
    }
    let raw = try BackupError.check(
      unsafe openat(
        folder(components.dropLast()), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC),
      "read \(shown)")
    return FileDescriptor(rawValue: raw)
  }

  /// The digest of what a file holds; nil if there is none.
  private func digest(of components: [String]) throws -> SHA256Digest? {
    guard let file = try openFile(components) else { return nil }
    defer { _ = close(file.rawValue) }
    var hash = SHA256()
    var offset: UInt64 = 0
    while true {
      try stopIfAsked()
      let piece = try BackupError.attempting("read \(shown(components))") {
        try file.read(Self.pieceLength, at: offset)
      }
      hash.update(piece.span)
      offset += UInt64(piece.count)
      if piece.count < Self.pieceLength { return hash.finish() }
    }
  }

  /// Removes a file, if it holds what it is said to hold.
  ///
  /// - Parameters:
  ///   - components: which file.
  ///   - digest: the digest of its content, as text.
  /// - Returns: Whether it held that, and is removed; nil if there was no file.
  /// - Throws: ``BackupError``.
  func remove(_ components: [String], holding digest: String) throws -> Bool? {
    do {
      guard let old = try self.digest(of: components) else { return nil }
      guard "\(old)" == digest else { return false }
      try BackupError.check(
        unsafe unlinkat(folder(components.dropLast()), name(of: components), 0),
        "remove \(shown(components))")
    } catch BackupError.inTheWay {
      return false
    }
    tally.removed += 1
    return true
  }

  /// Removes a folder, and those above it except for the outermost, if nothing is in them.
  func removeEmptyFolders(_ components: [String]) throws {
    var components = components
    while components.count > 1, let name = components.popLast() {
      closeFolders(after: components.count)
      guard let above = try openFolder(components[...]),
        unsafe unlinkat(above, name, AT_REMOVEDIR) == 0
      else { return }
    }
  }

  /// Whether the file system treats names as equal that differ in upper and lower case only.
  ///
  /// - Parameter folder: an existing folder, with letters in its name.
  func foldsCase(_ folder: String) throws -> Bool {
    guard folder.uppercased() != folder, let one = try status(of: [folder]),
      let other = try status(of: [folder.uppercased()])
    else { return false }
    return one.st_ino == other.st_ino && one.st_dev == other.st_dev
  }

  /// Keeps other runs from writing into a folder for as long as the answer is open.
  ///
  /// - Throws: ``BackupError/busy(_:)`` if one does.
  func lock(_ folder: String) throws -> CInt {
    let (opened, shown) = (try self.folder([folder]), shown([folder]))
    let raw = try BackupError.check(
      unsafe openat(opened, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), "open the folder \(shown)")
    // A program that this one is just starting holds the lock of a run before until it runs itself.
    // Some file systems have no locks; there, nothing tells of another run.
    var attempts = 50
    while flock(raw, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
      attempts -= 1
      guard attempts > 0 else {
        _ = close(raw)
        throw BackupError.busy(shown)
      }
      usleep(20_000)
    }
    return raw
  }

  // MARK: Folders within

  /// Whether a name is one component, and an ordinary one.
  static func isName(_ name: some StringProtocol) -> Bool {
    let bytes = name.utf8
    return !bytes.isEmpty && name != "." && name != ".." && bytes.count <= 255
      && !bytes.contains(UInt8(ascii: "/")) && !bytes.contains(0)
  }

  /// The name of a file.
  ///
  /// - Throws: ``BackupError/hostileName(_:)`` for one that no file may have.
  private func name(of components: [String]) throws -> String {
    let name = components.last ?? ""
    guard Self.isName(name) else { throw BackupError.hostileName(name) }
    return name
  }

  /// A folder within, which is created if it does not exist.
  ///
  /// - Parameters:
  ///   - components: the names of those above it, and its own.
  ///   - mode: its mode, if it is made.
  func folder(_ components: ArraySlice<String>, making mode: mode_t = 0o777) throws -> CInt {
    guard let folder = try openFolder(components, making: mode) else {
      throw BackupError.system("open the folder \(path)", ENOENT)
    }
    return folder
  }

  /// A folder within; nil if it is neither there nor to be made.
  ///
  /// - Parameters:
  ///   - components: the names of those above it, and its own.
  ///   - mode: its mode, if it is made; nil to make none.
  func openFolder(_ components: ArraySlice<String>, making mode: mode_t? = nil) throws -> CInt? {
    try stopIfAsked()
    let open = zip(chain, components).prefix { $0.name == $1 }.count
    if open < components.count { closeFolders(after: open) }
    var current = open > 0 ? chain[open - 1].descriptor : root
    for (depth, name) in components.enumerated().dropFirst(open) {
      guard Self.isName(name) else { throw BackupError.hostileName(name) }
      let shown = shown(Array(components.prefix(depth + 1)))
      if let mode {
        let isLast = depth == components.count - 1
        guard unsafe mkdirat(current, name, isLast ? mode : 0o777) == 0 || errno == EEXIST else {
          throw BackupError.system("make the folder \(shown)", errno)
        }
      }
      let opened = unsafe openat(current, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard opened >= 0 else {
        if errno == ENOENT, mode == nil { return nil }
        if errno == ELOOP || errno == ENOTDIR { throw BackupError.inTheWay(shown) }
        throw BackupError.system("open the folder \(shown)", errno)
      }
      chain.append((name, opened))
      current = opened
    }
    return current
  }

  /// Closes the open folders except for this many outer ones.
  private func closeFolders(after depth: Int) {
    while chain.count > depth { _ = close(chain.removeLast().descriptor) }
  }
}

/// A file that is to be written into an ``OutputFolder``.
struct OutputFile {
  /// The names of the folders, and last of the file.
  var components: [String]
  /// Whether the content is on the medium before the file has its name.
  ///
  /// Thousands of small files can do without, as long as ``OutputFolder/synchronize()`` comes
  /// before they are reported.
  var isDurable = true
  /// The digest of the content, where it is known beforehand.
  var digest: SHA256Digest?
  /// When the file was modified; nil for when it is written.
  var time: Moment?
  /// Whether only its owner may read it and the folders that are made for it.
  var isPrivate = false
}
