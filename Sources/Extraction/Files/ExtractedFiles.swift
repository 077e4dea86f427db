internal import Archive
internal import Files
internal import IPLD
internal import LibC
internal import SystemPackage

/// The files that were extracted into an account's folder, by this run and by earlier ones.
///
/// ```
/// begin ──► note, note … ──► finish
///   │                          └ the list of this run, and of what earlier ones wrote, gets its name
///   └ the lists of earlier runs are one; that of this run is begun beside it
/// ```
/// Whenever a run ends, the next finds each file that was replaced in one of two lists.
final class ExtractedFiles {
  private let folder: OutputFolder
  private let account: String
  private var lists: [ExtractedList] = []
  private var writer: ExtractedListWriter?
  private var lock: FileDescriptor?
  /// Whether the list that was there says all that is to be said.
  private var isUnchanged = true

  /// What is known of a folder; nothing if there is none.
  ///
  /// - Throws: ``BackupError`` for lists that cannot be read, and if another run writes into the
  ///   folder.
  init(_ folder: OutputFolder, _ account: String) throws {
    (self.folder, self.account) = (folder, account)
    guard try folder.openFolder([account]) != nil else { return }
    lock = try folder.lock(account)
    try read()
  }

  deinit { if let lock { _ = close(lock.rawValue) } }

  /// Whether the folder was there before.
  var isThere: Bool { lock != nil }

  private func read() throws {
    for (name, isUnfinished) in [
      (ExtractedName.list, false), (ExtractedName.unfinishedList, true),
    ] {
      let shown = shown(name)
      guard let folder = try folder.openFolder([account]),
        let size = try self.folder.size(of: name, in: folder.descriptor, shown),
        // A disk that was full at its first write leaves an empty list.
        size > 0
      else { continue }
      let raw = unsafe openat(
        folder.descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
      guard raw >= 0 else { throw BackupError.system("read \(shown)", errno) }
      do {
        let file = try MappedFile(FileDescriptor(rawValue: raw), closing: true)
        lists.append(try ExtractedList(file, shown, isUnfinished: isUnfinished))
      } catch let error as Errno {
        throw BackupError.system("read \(shown)", error.rawValue)
      }
    }
  }

  /// Begins the list of this run.
  ///
  /// - Throws: ``BackupError``.
  func begin() throws {
    let opened = try folder.folder([account])
    if lock == nil { lock = try folder.lock(account) }
    try folder.removeLeftovers(in: account)
    if try folder.isThere([account, ExtractedName.unfinishedList]) {
      // An earlier run was interrupted. What it knew must not be lost to another interruption.
      let temporary = folder.temporaryName()
      let both = try create(temporary)
      for list in lists { try list.append(to: both) }
      try both.synchronize()
      try rename(temporary, ExtractedName.list)
      guard unsafe unlinkat(opened.descriptor, ExtractedName.unfinishedList, 0) == 0 else {
        throw BackupError.system("remove \(shown(ExtractedName.unfinishedList))", errno)
      }
      isUnchanged = false
    }
    if lists.isEmpty { isUnchanged = false }
    writer = try create(ExtractedName.unfinishedList)
  }

  /// Whether a file was written by carpack with this content.
  func holds(_ path: String, _ digest: SHA256Digest) -> Bool {
    lists.contains { $0.holds(path, digest) }
  }

  /// Takes note of a file before it takes the place of another.
  func noteBeforeReplacing(_ path: String, _ digest: SHA256Digest) throws {
    try writer?.append(path, digest)
    try writer?.flush()
  }

  /// Takes note of a file that is there now.
  ///
  /// - Parameter isWritten: whether its line was written before it took the place of another.
  func note(_ path: String, _ digest: SHA256Digest, isWritten: Bool) throws {
    if isWritten || !holds(path, digest) { isUnchanged = false }
    for list in lists { list.note(path) }
    if !isWritten { try writer?.append(path, digest) }
  }

  /// Hands what was noted to the system.
  func flush() throws { try writer?.flush() }

  /// Ends the list.
  ///
  /// - Parameter isUnwanted: which of the files are removed that earlier runs wrote and this one
  ///   did not; all others stay.
  /// - Returns: Files that were to be removed and hold something else than what was written.
  /// - Throws: ``BackupError``.
  func finish(removing isUnwanted: (String) -> Bool) throws -> [String] {
    var changed: [String] = []
    var emptied: Set<[String]> = []
    for list in lists {
      try list.visitOthers { path, digest in
        let components = path.split(separator: "/").map(String.init)
        if isUnwanted(path) {
          switch try folder.remove([account] + components, holding: digest) {
          case true?:
            if components.count > 1 { emptied.insert([account] + components.dropLast()) }
            isUnchanged = false
            return
          case false?:
            if changed.count < Self.maximumChanged { changed.append(shown(path)) }
          case nil: break
          }
        }
        guard try folder.isThere([account] + components) else {
          isUnchanged = false
          return
        }
        try writer?.append(path, digest)
      }
    }
    for components in emptied { try folder.removeEmptyFolders(components, below: 1) }
    try publish()
    return changed
  }

  /// How many changed files are named.
  private static let maximumChanged = 1000

  /// Ends the list of a run that was stopped: what was written counts, and everything else stays.
  func stop() throws {
    folder.isEnding = true
    defer { folder.isEnding = false }
    _ = try finish { _ in false }
  }

  private func publish() throws {
    guard let writer else { return }
    self.writer = nil
    if isUnchanged {
      let opened = try folder.folder([account])
      _ = unsafe unlinkat(opened.descriptor, ExtractedName.unfinishedList, 0)
      return
    }
    try writer.synchronize()
    try folder.synchronize()
    try rename(ExtractedName.unfinishedList, ExtractedName.list)
  }

  private func create(_ name: String) throws -> ExtractedListWriter {
    let opened = try folder.folder([account])
    let raw = unsafe openat(
      opened.descriptor, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o666)
    guard raw >= 0 else { throw BackupError.system("write \(shown(name))", errno) }
    return ExtractedListWriter(FileDescriptor(rawValue: raw), shown(name))
  }

  private func rename(_ name: String, _ new: String) throws {
    let opened = try folder.folder([account])
    do {
      try AtomicFile.rename(
        name, in: opened.descriptor, to: new, in: opened.descriptor, replacing: true)
    } catch let error as Errno {
      throw BackupError.system("write \(shown(new))", error.rawValue)
    }
  }

  private func shown(_ path: String) -> String { "\(folder.path)/\(account)/\(path)" }
}
