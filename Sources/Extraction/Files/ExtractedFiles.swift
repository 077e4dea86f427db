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
  /// Which files are still among those that are extracted: a digest of the path of each.
  private var noted: Set<Int> = []
  private var writer: ExtractedListWriter?
  private var lock: FileDescriptor?
  /// Whether the list that was there says all that is to be said.
  private var isUnchanged = true
  /// The files that are there and the same, as was found out before anything was written.
  private var same: Set<Int> = []

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
  /// Whether it is only found out what is in the way: until ``begin()``.
  var isChecking: Bool { writer == nil }

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
      let file = try BackupError.attempting("read \(shown)") {
        try MappedFile(self.folder.openFile(name, in: folder.descriptor, shown), closing: true)
      }
      lists.append(try ExtractedList(file, shown, isUnfinished: isUnfinished))
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
      for list in lists { try list.forEach(both.append) }
      try both.synchronize()
      try rename(temporary, ExtractedName.list)
      try BackupError.check(
        unsafe unlinkat(opened.descriptor, ExtractedName.unfinishedList, 0),
        "remove \(shown(ExtractedName.unfinishedList))")
      isUnchanged = false
    }
    if lists.isEmpty { isUnchanged = false }
    writer = try create(ExtractedName.unfinishedList)
  }

  /// Whether a file was written by carpack with this content.
  private func holds(_ path: String, _ digest: SHA256Digest) -> Bool {
    lists.contains { $0.holds(path, digest) }
  }

  /// Writes a file, or, until ``begin()``, finds out whether it could be written.
  ///
  /// - Throws: as ``OutputFolder/put(_:_:mayReplace:)`` does.
  func write(_ file: OutputFile, _ produce: OutputFolder.Content) throws {
    let path = file.components.dropFirst().joined(separator: "/")
    let hash = ExtractedList.hash(path)
    if isChecking {
      let isSame = try folder.check(file, produce) { old, _ in holds(path, old) }
      if isSame { same.insert(hash) }
      return
    }
    var isListed = false
    let digest: SHA256Digest
    if same.contains(hash) {
      // A change that is made meanwhile stays.
      digest = try file.digest ?? OutputFolder.digest(of: produce)
      folder.tally.alreadyThere += 1
    } else {
      digest = try folder.put(file, produce) { old, new in
        guard holds(path, old) else { return false }
        // It is listed before it takes the place of the other.
        try writer?.append(path, new)
        try writer?.flush()
        isListed = true
        return true
      }.digest
    }
    if isListed || !holds(path, digest) { isUnchanged = false }
    if !lists.isEmpty { noted.insert(hash) }
    if !isListed { try writer?.append(path, digest) }
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
      try list.forEach { path, digest in
        guard !noted.contains(ExtractedList.hash(path)) else { return }
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
    let raw = try folder.create(name, in: folder.folder([account]), shown(name))
    return ExtractedListWriter(raw, shown(name))
  }

  private func rename(_ name: String, _ new: String) throws {
    let opened = try folder.folder([account])
    try BackupError.attempting("write \(shown(new))") {
      try AtomicFile.rename(
        name, in: opened.descriptor, to: new, in: opened.descriptor, replacing: true)
    }
  }

  private func shown(_ path: String) -> String { folder.shown([account, path]) }
}
