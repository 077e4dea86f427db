internal import Archive
internal import Files
internal import IPLD
internal import LibC
internal import SystemPackage

/// The files that were extracted into an account's folder, by this run and by earlier ones.
///
/// ```
/// begin ──► write, write … ──► finish
///   │                           └ the list of this run, and of what earlier ones wrote, gets its
///   name └ the lists of earlier runs are one; that of this run is begun beside it
/// ```
/// Whenever a run ends, the next finds each file that was replaced in one of two lists: a line is
/// handed to the system before the file that it names takes the place of another; other lines a few
/// at a time. So an interruption, even a kill, loses the record of at most a few new files.
final class ExtractedFiles {
  /// After how many bytes lines are handed to the system: those of some forty files.
  private static let bufferLength = 1 << 12
  /// How many changed files are named.
  private static let maximumChanged = 1000

  private let folder: OutputFolder
  private let account: String
  private var lists: [ExtractedList] = []
  private var lock: CInt?
  /// The list of this run, while it is written.
  private var output: CInt?
  /// Lines that were not handed to the system yet.
  private var lines: [UInt8] = []
  private var lineCount = 0
  /// Whether a line was written that no earlier list has.
  private var hasNews = false
  /// Hashes of the paths that are still among what is extracted.
  private var noted: Set<Int> = []
  /// Hashes of the paths of files that exist already with the same content, as was found out before
  /// anything was written.
  private var same: Set<Int> = []

  /// Opens the lists of a folder; there are none if it does not exist.
  ///
  /// - Throws: ``BackupError`` for lists that cannot be read, and if another run writes into the
  ///   folder.
  init(_ folder: OutputFolder, _ account: String) throws {
    (self.folder, self.account) = (folder, account)
    guard try folder.openFolder([account]) != nil else { return }
    lock = try folder.lock(account)
    for name in [FileNaming.extractedList, FileNaming.unfinishedExtractedList] {
      guard let descriptor = try folder.openFile([account, name]) else { continue }
      let file = try BackupError.attempting("read \(shown(name))") {
        try MappedFile(descriptor, closing: true)
      }
      // A disk that was full at its first write leaves an empty list.
      guard file.count > 0 else { continue }
      let isUnfinished = name == FileNaming.unfinishedExtractedList
      lists.append(try ExtractedList(file, shown(name), isUnfinished: isUnfinished))
    }
  }

  deinit { for descriptor in [lock, output].compactMap(\.self) { _ = close(descriptor) } }

  /// Whether the folder was there before.
  var isThere: Bool { lock != nil }
  /// Whether only files in the way are looked for: until ``begin()``.
  var isChecking: Bool { output == nil }

  /// Begins the list of this run.
  ///
  /// - Throws: ``BackupError``.
  func begin() throws {
    let opened = try folder.folder([account])
    if lock == nil { lock = try folder.lock(account) }
    try folder.removeLeftovers(in: account)
    if lists.contains(where: \.isUnfinished) {
      // An earlier run was interrupted. Its entries must survive another interruption.
      let tally = folder.tally
      try folder.put(OutputFile(components: [account, FileNaming.extractedList])) { sink in
        let header = Array(ExtractedList.header.utf8)
        try sink(header.span)
        for list in lists { try list.withEntries(sink) }
      } mayReplace: { _, _ in
        true
      }
      folder.tally = tally
    }
    // If the old one cannot be removed, the new one is not made.
    _ = unsafe unlinkat(opened, FileNaming.unfinishedExtractedList, 0)
    let name = FileNaming.unfinishedExtractedList
    output = try folder.create(name, in: opened, shown(name))
    lines = Array(ExtractedList.header.utf8)
  }

  /// Whether a file was written by carpack with this content.
  private func holds(_ path: String, _ digest: String) -> Bool {
    let line = ExtractedList.hash(ExtractedList.line(path, digest))
    return lists.contains { $0.lines.contains(line) }
  }

  /// Writes a file, or, until ``begin()``, finds out whether it could be written.
  ///
  /// - Throws: as ``OutputFolder/put(_:_:mayReplace:)`` does.
  func write(_ file: OutputFile, _ produce: OutputFolder.Content) throws {
    let path = file.components.joined(separator: "/")
    let hash = ExtractedList.hash(path)
    var file = file
    file.components.insert(account, at: 0)
    if isChecking {
      let found = try folder.compare(file, produce) { old, _ in holds(path, "\(old)") }
      if found?.isSame == true { same.insert(hash) }
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
        guard holds(path, "\(old)") else { return false }
        // It is listed before it takes the place of the other.
        try list(path, "\(new)")
        try flush()
        isListed = true
        return true
      }
    }
    if !lists.isEmpty { noted.insert(hash) }
    if !isListed { try list(path, "\(digest)") }
  }

  /// Adds a line to the list of this run.
  private func list(_ path: String, _ digest: String) throws {
    lines += Array(ExtractedList.line(path, digest).utf8) + [UInt8(ascii: "\n")]
    lineCount += 1
    if !holds(path, digest) { hasNews = true }
    if lines.count >= Self.bufferLength { try flush() }
  }

  /// Hands all lines to the system.
  func flush() throws {
    let bytes = lines
    lines.removeAll(keepingCapacity: true)
    if let output, !bytes.isEmpty {
      try OutputFolder.write(bytes.span, to: output, shown(FileNaming.unfinishedExtractedList))
    }
  }

  /// Ends the list.
  ///
  /// - Parameters:
  ///   - isStopped: whether the run was stopped, so that nothing stops it again.
  ///   - isUnwanted: which of the files are removed that earlier runs wrote and this one did not;
  ///     all others stay.
  /// - Returns: Files that were to be removed and no longer hold what was written.
  /// - Throws: ``BackupError``.
  func finish(isStopped: Bool = false, removing isUnwanted: (String) -> Bool) throws -> [String] {
    folder.isEnding = isStopped
    defer { folder.isEnding = false }
    var changed: [String] = []
    var emptied: Set<[String]> = []
    for list in lists {
      try list.forEach { path, digest in
        guard !noted.contains(ExtractedList.hash(path)) else { return }
        let components = [account] + path.split(separator: "/").map(String.init)
        if isUnwanted(path) {
          switch try folder.remove(components, holding: digest) {
          case true?:
            emptied.insert(components.dropLast())
            return
          case false?:
            if changed.count < Self.maximumChanged { changed.append(shown(path)) }
          case nil: break
          }
        }
        if try folder.isThere(components) { try self.list(path, digest) }
      }
    }
    for components in emptied { try folder.removeEmptyFolders(components) }
    // One that is stopped here would not know of the last files.
    folder.isEnding = true
    try publish()
    return changed
  }

  private func publish() throws {
    guard let output else { return }
    defer {
      self.output = nil
      _ = close(output)
    }
    let unfinished = FileNaming.unfinishedExtractedList
    let opened = try folder.folder([account])
    // Then the existing list is up to date.
    if !hasNews, lists.count == 1, lists[0].count == lineCount {
      _ = unsafe unlinkat(opened, unfinished, 0)
      return
    }
    try flush()
    try BackupError.check(fsync(output), "write \(shown(unfinished))")
    try folder.synchronize()
    try BackupError.attempting("write \(shown(FileNaming.extractedList))") {
      try AtomicFile.rename(
        unfinished, in: opened, to: FileNaming.extractedList, in: opened, replacing: true)
    }
  }

  private func shown(_ path: String) -> String { folder.shown([account, path]) }
}

/// The list of what was extracted into a folder: a line for each file, as `sha256sum` writes and
/// checks them.
///
/// ```
/// # carpack-extracted 1: …
/// 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
/// records/app.bsky.feed.post/3k2a.json
/// ```
/// Other programs may have written to the list, so each line has to have exactly that form. The
/// lines are not kept in memory, only a hash of each.
struct ExtractedList {
  /// How the first line begins, before the words for people.
  private static let mark = "# carpack-extracted 1"
  /// The first line.
  static let header =
    "\(mark): what \"carpack extract\" wrote here; \"sha256sum -c\" checks it\n"

  /// The longest list that is read: some seven million files.
  private static let maximumLength = 1 << 30
  /// The longest path.
  private static let maximumPath = 1024
  /// How many digits a digest has.
  private static let digits = 2 * SHA256Digest.length

  /// Whether the run that wrote the list was interrupted.
  let isUnfinished: Bool
  /// Hashes of its lines.
  let lines: Set<Int>
  /// How many lines there are.
  let count: Int
  private let file: MappedFile
  /// Where the lines stand that name files: one that was interrupted may end in half a line.
  private let entries: Range<Int>

  /// Reads a list.
  ///
  /// - Parameters:
  ///   - file: its bytes.
  ///   - shown: what a message calls it.
  ///   - isUnfinished: whether it may end in the middle of a line.
  /// - Throws: ``BackupError/malformedDocument(_:)``.
  init(_ file: MappedFile, _ shown: String, isUnfinished: Bool) throws {
    guard file.count <= Self.maximumLength else {
      throw BackupError.malformedDocument("\(shown) is over \(Self.maximumLength) bytes")
    }
    var lines: Set<Int> = []
    var (first, end, number) = (0, 0, 1)
    func malformed() -> BackupError {
      BackupError.malformedDocument(
        "\(shown) is not what carpack writes, in line \(number); without that file, what is there and differs counts as somebody else's"
      )
    }
    try file.withBytes { bytes in
      try Self.forEachLine(in: bytes) { line in
        end += line.count + 1
        if number == 1 {
          guard line.array.starts(with: Self.mark.utf8) else { throw malformed() }
          first = end
        } else {
          guard let (path, digest) = Self.entry(line) else { throw malformed() }
          lines.insert(Self.hash(Self.line(path, digest)))
        }
        number += 1
      }
    }
    // One that was interrupted may lack even its first line.
    guard isUnfinished || end == file.count else { throw malformed() }
    (self.file, self.isUnfinished, self.lines) = (file, isUnfinished, lines)
    (entries, count) = (first..<end, max(0, number - 2))
  }

  /// Visits the complete lines, without what ends them.
  private static func forEachLine(
    in bytes: Span<UInt8>, _ visit: (Span<UInt8>) throws -> Void
  ) rethrows {
    var start = 0
    for index in bytes.indices where bytes[index] == UInt8(ascii: "\n") {
      try visit(bytes.extracting(start..<index))
      start = index + 1
    }
  }

  /// The line of a file, without what ends it.
  static func line(_ path: String, _ digest: String) -> String { "\(digest)  \(path)" }

  /// What a line says; nil for one that is not of its form.
  private static func entry(_ line: Span<UInt8>) -> (path: String, digest: String)? {
    guard line.count <= digits + 2 + maximumPath else { return nil }
    let bytes = line.array
    let path = bytes.dropFirst(digits + 2)
    guard bytes.dropFirst(digits).starts(with: "  ".utf8),
      bytes.prefix(digits).allSatisfy({ (0x30...0x39) ~= $0 || (0x61...0x66) ~= $0 }),
      path.allSatisfy({ $0 >= 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "\\") }),
      let text = String(validating: path, as: UTF8.self),
      text.split(separator: "/", omittingEmptySubsequences: false)
        .allSatisfy({ OutputFolder.isName($0) })
    else { return nil }
    return (text, String(decoding: bytes.prefix(digits), as: UTF8.self))
  }

  /// A hash of a line, or of a path.
  ///
  /// It is seeded in each process, so collisions cannot be prepared.
  static func hash(_ text: String) -> Int { Array(text.utf8).hashValue }

  /// Hands out the lines that name files as they stand there.
  func withEntries(_ sink: (Span<UInt8>) throws -> Void) throws {
    try file.withBytes { try sink($0.extracting(entries)) }
  }

  /// The files and the digests of what they held, in the order of the list; a file may come several
  /// times.
  func forEach(_ body: (_ path: String, _ digest: String) throws -> Void) throws {
    try withEntries { bytes in
      try Self.forEachLine(in: bytes) { line in
        if let (path, digest) = Self.entry(line) { try body(path, digest) }
      }
    }
  }
}
