internal import CGlibc
internal import Files
internal import IPLD
internal import LibC
internal import SystemPackage

/// A folder that files are written into, and outside of which nothing is ever written.
///
/// Every name is one component, opened relative to the folder above it and never through a symbolic
/// link, so that neither a name from an archive nor a link left there leads elsewhere. A file is
/// written under a temporary name and gets its own when it is complete. A file that is there
/// already and holds the same is left alone; one that differs is an error, unless overwriting was
/// asked for or the file may be replaced.
package final class OutputFolder {
  /// What came of writing a file.
  enum Outcome {
    /// It was written.
    case written
    /// It was there, with the same content.
    case alreadyThere
  }

  /// What has been done so far.
  package struct Tally: Equatable, Sendable {
    /// Files that were written.
    package var written = 0
    /// Their bytes.
    package var bytes: UInt64 = 0
    /// Those of them that took the place of another content.
    package var replaced = 0
    /// Files that were there.
    package var alreadyThere = 0
    /// Files that were removed.
    package var removed = 0
  }

  /// Hands a content, piece by piece, to the sink it is given.
  typealias Content = ((Span<UInt8>) throws -> Void) throws -> Void
  /// Decides whether a file may be replaced, by the digests of what it holds and of what it is to
  /// hold.
  typealias Replacing = (_ old: SHA256Digest, _ new: SHA256Digest) throws -> Bool

  /// A folder within, and whether it was made here, so that only what was written here is in it.
  typealias Opened = (descriptor: CInt, isNew: Bool)

  /// How many folders are kept open at a time.
  private static let maximumOpenFolders = 64

  let path: String
  let root: CInt
  private let overwriting: Bool
  private let isNew: Bool
  private let isStopping: () -> Bool
  /// Whether what has been done is being brought to its end, which is not stopped any more.
  var isEnding = false
  private var folders: [String: Opened] = [:]
  private var serial = 0
  private let process = getpid()
  /// What has been done so far.
  package internal(set) var tally = Tally()

  /// Opens the folder, and makes it and those above it if they are not there.
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
    isNew = try BlobFolder.make(path)
    root = try BackupError.check(
      unsafe open(path.isEmpty ? "." : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
      "open the folder \(path)")
  }

  deinit {
    for folder in folders.values { _ = close(folder.descriptor) }
    _ = close(root)
  }

  /// Writes a file, or replaces one of which that is allowed.
  ///
  /// - Parameters:
  ///   - file: which file, and what is known about it.
  ///   - produce: its content.
  ///   - mayReplace: decides about a file that holds something else, if overwriting was not asked
  ///     for.
  /// - Returns: What came of it, and the digest of the content.
  /// - Throws: ``BackupError``, and what `produce` and `mayReplace` throw.
  func put(
    _ file: OutputFile, _ produce: Content, mayReplace: Replacing = { _, _ in false }
  ) throws -> (outcome: Outcome, digest: SHA256Digest) {
    let (name, shown) = (try name(of: file.components), shown(file.components))
    let folder = try self.folder(file.components.dropLast(), isPrivate: file.isPrivate)
    func alreadyThere(_ digest: SHA256Digest) -> (Outcome, SHA256Digest) {
      tally.alreadyThere += 1
      return (.alreadyThere, digest)
    }
    var digest = file.digest
    // What lies in a folder that was made here was written here: a name that is taken there is
    // found out when it is given.
    var isSame =
      try folder.isNew ? nil : holds(name, in: folder, shown, &digest, produce, mayReplace)
    if isSame == true, let digest { return alreadyThere(digest) }
    let stage = try file.components.count > 1 ? self.folder(file.components.prefix(1)) : folder
    let temporary = temporaryName()
    let raw = try create(temporary, in: stage, shown, mode: file.isPrivate ? 0o600 : 0o666)
    var isKept = false
    defer {
      if !isKept { _ = unsafe unlinkat(stage.descriptor, temporary, 0) }
      _ = close(raw)
    }
    let (count, found) = try fill(raw, shown, isHashing: digest == nil, produce)
    let new = digest ?? found
    file.time?.set(raw)
    if file.isDurable { try BackupError.check(fsync(raw), "write \(shown)") }
    func rename(replacing: Bool) throws -> Bool {
      try BackupError.attempting("write \(shown)") {
        do {
          try AtomicFile.rename(
            temporary, in: stage.descriptor, to: name, in: folder.descriptor, replacing: replacing)
          return true
        } catch Errno.fileExists where !replacing {
          return false
        }
      }
    }
    if isSame == nil {
      isKept = try rename(replacing: false)
      if !isKept {
        digest = new
        isSame = try holds(name, in: folder, shown, &digest, produce, mayReplace)
        if isSame == true { return alreadyThere(new) }
      }
    }
    if !isKept { isKept = try rename(replacing: true) }
    if isSame != nil { tally.replaced += 1 }
    tally.written += 1
    tally.bytes += count
    return (.written, new)
  }

  /// Makes sure that a file could be written, and writes nothing.
  ///
  /// - Returns: Whether it is there already, and the same.
  /// - Throws: what ``put(_:_:mayReplace:)`` would throw because of what is there.
  func check(
    _ file: OutputFile, _ produce: Content, mayReplace: Replacing = { _, _ in false }
  ) throws -> Bool {
    let (name, shown) = (try name(of: file.components), shown(file.components))
    guard let folder = try openFolder(file.components.dropLast()), !folder.isNew else {
      return false
    }
    var digest = file.digest
    return try holds(name, in: folder, shown, &digest, produce, mayReplace) == true
  }

  /// Returns when everything that was written is on the medium.
  ///
  /// - Throws: ``BackupError`` if the system cannot say so.
  package func synchronize() throws {
    guard tally.written > 0 else { return }
    #if canImport(Glibc)
      try BackupError.check(carpack_synchronize_file_system(root), "write the files in \(path)")
    #else
      // There is no call for one file system, and the one for all cannot fail.
      sync()
    #endif
  }

  /// Ends the work if that was asked for.
  ///
  /// - Throws: `CancellationError`.
  func stopIfAsked() throws {
    if !isEnding, isStopping() { throw CancellationError() }
  }

  /// What a message calls a file.
  func shown(_ components: [String]) -> String { ([path] + components).joined(separator: "/") }

  /// Creates a file under a temporary name.
  func create(
    _ name: String, in folder: Opened, _ shown: String, mode: mode_t = 0o666
  ) throws -> CInt {
    try BackupError.check(
      unsafe openat(
        folder.descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode),
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

  /// A name that no other file has; what an interruption leaves of them is removed by the next run.
  func temporaryName() -> String {
    serial += 1
    return "\(Self.temporaryPrefix)\(process)-\(serial)\(Self.temporaryEnding)"
  }

  static let temporaryPrefix = ".carpack-"
  static let temporaryEnding = ExtractedName.temporaryEnding

  /// Writes a content into an open file; answers how long it is, and its digest if that was asked
  /// for.
  private func fill(_ raw: CInt, _ shown: String, isHashing: Bool, _ produce: Content) throws
    -> (count: UInt64, digest: SHA256Digest)
  {
    var count: UInt64 = 0
    var buffer: [UInt8] = []
    var hash = SHA256()
    func put(_ bytes: Span<UInt8>) throws {
      try stopIfAsked()
      try Self.write(bytes, to: raw, shown)
      if isHashing { hash.update(bytes) }
      count += UInt64(bytes.count)
    }
    try produce { bytes in
      if buffer.count + bytes.count > 1 << 17, !buffer.isEmpty {
        try put(buffer.span)
        buffer.removeAll(keepingCapacity: true)
      }
      if bytes.count >= 1 << 17 { try put(bytes) } else { buffer.append(contentsOf: bytes) }
    }
    if !buffer.isEmpty { try put(buffer.span) }
    return (count, hash.finish())
  }

  /// Whether a file that is there holds the content; nil if there is none.
  ///
  /// - Parameter digest: that of the content, which is computed if it is not known.
  /// - Throws: ``BackupError/fileDiffers(_:)`` if it does not, and may not be replaced.
  private func holds(
    _ name: String, in folder: Opened, _ shown: String, _ digest: inout SHA256Digest?,
    _ produce: Content, _ mayReplace: Replacing
  ) throws -> Bool? {
    guard let size = try size(of: name, in: folder.descriptor, shown) else { return nil }
    let new = try digest ?? Self.digest(of: produce)
    digest = new
    let old = try self.digest(of: name, size: size, in: folder.descriptor, shown)
    if old == new { return true }
    guard try mayReplace(old, new) || overwriting else { throw BackupError.fileDiffers(shown) }
    return false
  }

  static func digest(of produce: Content) throws -> SHA256Digest {
    var hash = SHA256()
    try produce { hash.update($0) }
    return hash.finish()
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
  func name(of components: [String]) throws -> String {
    let name = components.last ?? ""
    guard Self.isName(name) else { throw BackupError.hostileName(name) }
    return name
  }

  /// A folder within, which is made if it is not there.
  ///
  /// - Parameter isPrivate: whether one that is made is for its owner alone.
  func folder(_ components: ArraySlice<String>, isPrivate: Bool = false) throws -> Opened {
    guard let folder = try openFolder(components, making: isPrivate ? 0o700 : 0o777) else {
      throw BackupError.system("open the folder \(path)", ENOENT)
    }
    return folder
  }

  /// A folder within; nil if it is neither there nor to be made.
  ///
  /// - Parameter mode: that of the last folder, if it is made; nil to make none.
  func openFolder(_ components: ArraySlice<String>, making mode: mode_t? = nil) throws -> Opened? {
    try stopIfAsked()
    var current: Opened = (root, isNew)
    var shown = ""
    for (index, name) in zip(components.indices, components) {
      guard Self.isName(name) else { throw BackupError.hostileName(name) }
      shown += "/" + name
      if let open = folders[shown] {
        current = open
        continue
      }
      var isMade = false
      if let mode {
        let isLast = index == components.endIndex - 1
        isMade = unsafe mkdirat(current.descriptor, name, isLast ? mode : 0o777) == 0
        if !isMade, errno != EEXIST {
          throw BackupError.system("make the folder \(path)\(shown)", errno)
        }
      }
      let opened = unsafe openat(
        current.descriptor, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
      guard opened >= 0 else {
        if errno == ENOENT, mode == nil { return nil }
        if errno == ELOOP || errno == ENOTDIR { throw BackupError.inTheWay(path + shown) }
        throw BackupError.system("open the folder \(path)\(shown)", errno)
      }
      if folders.count >= Self.maximumOpenFolders { closeFolders(except: shown) }
      current = (opened, isMade)
      folders[shown] = current
    }
    return current
  }

  /// Closes the open folders that do not lead to the one that is shown.
  private func closeFolders(except shown: String) {
    for (path, folder) in folders where !shown.hasPrefix(path + "/") {
      _ = close(folder.descriptor)
      folders[path] = nil
    }
  }

  /// Closes the folders within, so that they can be removed.
  func closeFolders() { closeFolders(except: "") }
}

/// A file that is to be written into an ``OutputFolder``.
struct OutputFile {
  /// The names of the folders, and last of the file.
  let components: [String]
  /// Whether the content is on the medium before the file has its name.
  ///
  /// Thousands of small files can do without, as long as ``OutputFolder/synchronize()`` comes
  /// before anybody is told that they are there.
  var isDurable = true
  /// The digest of the content, where it is known beforehand.
  var digest: SHA256Digest?
  /// When the file was modified; nil for when it is written.
  var time: FileTime?
  /// Whether it is for its owner alone, with the folders that are made for it.
  package var isPrivate = false
}
