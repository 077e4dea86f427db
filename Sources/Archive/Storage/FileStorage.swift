internal import Synchronization
package import SystemPackage

/// A file on disk, written by one process at a time.
///
/// 1. The file is locked (`flock`) as long as the object lives.
/// 2. A failed or short write is an error; nothing is written a second time behind the caller's
///    back except what a short write left over.
package final class FileStorage: ArchiveStorage {
  /// The file's path.
  package var path: FilePath { name.withLock { $0 } }
  private let name: Mutex<FilePath>
  /// Whether the file was made without a name.
  package let isNameless: Bool
  private let descriptor: FileDescriptor
  /// What it had lost at its end when it was opened.
  private let loss: WrittenSize.Loss?
  /// What it held when something was last committed, as far as that was noted.
  private let content: Mutex<WrittenSize.Content?>
  /// The end of the bytes that the system has been told to write to the medium.
  private let begun = Atomic<UInt64>(0)
  /// How many bytes are written between two such calls.
  private static let stride: UInt64 = 8 << 20

  private init(
    path: FilePath, descriptor: FileDescriptor, isNameless: Bool = false,
    loss: WrittenSize.Loss? = nil, content: WrittenSize.Content? = nil
  ) {
    name = Mutex(path)
    self.loss = loss
    self.content = Mutex(content)
    self.isNameless = isNameless
    self.descriptor = descriptor
  }

  /// Creates a file that does not exist yet, and locks it.
  ///
  /// - Parameters:
  ///   - path: Where.
  ///   - permissions: Its mode, of which the process's umask takes away.
  /// - Throws: ``ArchiveError`` if it exists already or cannot be created.
  package static func create(_ path: FilePath, permissions: FilePermissions = .newFile) throws
    -> FileStorage
  {
    let descriptor = try attempt("create \(path)") {
      do {
        return try FileDescriptor.open(
          path, .readWrite, options: [.create, .exclusiveCreate, .closeOnExec],
          permissions: permissions)
      } catch Errno.fileExists {
        throw ArchiveError(.alreadyExists(path.string))
      }
    }
    let storage = FileStorage(path: path, descriptor: descriptor)
    try storage.lock()
    // A file whose directory entry is lost with the power is lost with all that was synced into it.
    try storage.synchronizeName()
    return storage
  }

  /// Creates a file that has no name yet, in the folder of the one it will have, and locks it:
  /// `open` with `O_TMPFILE`.
  ///
  /// - Parameters:
  ///   - path: The name that it will have.
  ///   - permissions: Its mode, of which the process's umask takes away.
  /// - Returns: nil where the system or the file system does not support such files.
  /// - Throws: ``ArchiveError`` if it cannot be locked.
  package static func createNameless(
    for path: FilePath, permissions: FilePermissions = .newFile
  ) throws -> FileStorage? {
    let opened = FileDescriptor.openNameless(in: folder(of: path), permissions: permissions)
    guard let descriptor = opened else { return nil }
    let storage = FileStorage(path: path, descriptor: descriptor, isNameless: true)
    try storage.lock()
    return storage
  }

  /// Notes the name that the caller has given to the file.
  package func wasRenamed(to path: FilePath) { name.withLock { $0 = path } }

  /// A path that leads to the open file, whatever name it has.
  package var openPath: FilePath { SystemCalls.path(of: descriptor) }

  /// Opens a file, or creates it if there is none, and locks it; a symbolic link is not followed.
  ///
  /// - Parameters:
  ///   - path: Where.
  ///   - permissions: The mode of a file that is created, of which the process's umask takes away;
  ///     one that is there loses what goes beyond it.
  /// - Throws: ``ArchiveError`` if it can be neither opened nor created, or another writer has it.
  package static func openOrCreate(
    _ path: FilePath, permissions: FilePermissions = .newFile
  ) throws -> FileStorage {
    do {
      return try create(path, permissions: permissions)
    } catch let error as ArchiveError where error.reason == .alreadyExists(path.string) {
      do {
        let storage = try open(path, options: [.closeOnExec, .noFollow])
        try storage.restrict(to: permissions)
        return storage
      } catch let error as ArchiveError where error.reason == .changedMeanwhile {
        // It has just been given another name, so this one is free.
        return try create(path, permissions: permissions)
      }
    }
  }

  /// How many bytes a file has; nil if the system does not say.
  package static func size(of path: FilePath) -> UInt64? { SystemCalls.size(of: path) }

  /// Opens an existing file, and locks it.
  ///
  /// - Throws: ``ArchiveError`` if it cannot be opened, another writer has it, or it lost its name
  ///   before it was locked.
  package static func open(_ path: FilePath) throws -> FileStorage {
    try open(path, options: [.closeOnExec])
  }

  private static func open(_ path: FilePath, options: FileDescriptor.OpenOptions) throws
    -> FileStorage
  {
    let descriptor = try attempt("write to \(path)") {
      try FileDescriptor.open(path, .readWrite, options: options)
    }
    let storage = FileStorage(
      path: path, descriptor: descriptor, loss: WrittenSize.loss(of: path),
      content: WrittenSize.Note(on: path)?.content)
    try storage.lock()
    // The process that had the lock may have given the file another name, under which it is
    // another's.
    guard try storage.isInPlace else { throw ArchiveError(.changedMeanwhile) }
    return storage
  }

  deinit {
    // Closing alone would leave the lock to a process that was just being started and still has a
    // copy of the descriptor.
    unlock()
    // What was synced is safe, and what was not was never promised: an error here changes nothing.
    do { try descriptor.close() } catch {}
  }

  /// Removes all permissions but the owner's.
  ///
  /// - Throws: ``ArchiveError`` if the system refuses.
  package func restrictToOwner() throws { try restrict(to: .ownerReadWrite) }

  private func restrict(to permissions: FilePermissions) throws {
    try Self.attempt("change the mode of \(path)") {
      try SystemCalls.restrict(descriptor, to: permissions)
    }
  }

  /// How many bytes the file has.
  ///
  /// - Throws: ``ArchiveError`` if the system does not say.
  package var size: UInt64 {
    get throws {
      try Self.attempt("find the length of \(path)") {
        UInt64(try descriptor.seek(offset: 0, from: .end))
      }
    }
  }

  /// Reads `count` bytes at `offset`.
  ///
  /// - Throws: ``ArchiveError`` if the system refuses, or the file ends first.
  package func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    let bytes = try Self.attempt("read \(path)") { try descriptor.read(count, at: offset) }
    guard bytes.count == count else { throw ArchiveError(.truncated, offset: offset) }
    return bytes
  }

  /// Writes all of `bytes` at `offset`.
  ///
  /// - Throws: ``ArchiveError`` if the system refuses; some of the bytes may have been written.
  package func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    try Self.attempt("write to \(path)") {
      try SystemCalls.write(bytes, at: Int64(offset), to: descriptor)
    }
    beginSynchronizing(offset..<offset + UInt64(bytes.count))
  }

  /// Starts flushing to the medium while more is written, so that the next barrier waits less.
  private func beginSynchronizing(_ written: Range<UInt64>) {
    let start = begun.load(ordering: .relaxed)
    // A write elsewhere than at the end begins again there.
    guard start <= written.lowerBound, written.upperBound - start < 4 * Self.stride else {
      begun.store(written.upperBound, ordering: .relaxed)
      return
    }
    guard written.upperBound - start >= Self.stride else { return }
    SystemCalls.beginSynchronizing(descriptor, start..<written.upperBound)
    begun.store(written.upperBound, ordering: .relaxed)
  }

  /// Returns when everything written so far would survive a loss of power.
  ///
  /// - Throws: ``ArchiveError`` if the system cannot promise it.
  package func synchronize() throws {
    try Self.attempt("sync \(path)") { try SystemCalls.synchronizeData(descriptor) }
  }

  /// As ``synchronize()`` does; notes how long the file is then, so that it is noticed if it is cut
  /// off (``WrittenSize``).
  package func commit() throws {
    try synchronize()
    let size = try size
    // What else it holds now is not known yet.
    let isSame = WrittenSize.Note(on: openPath)?.size == size
    WrittenSize.put(
      size, loss: loss, content: isSame ? content.withLock(\.self) : nil, on: openPath)
  }

  /// Notes what the file holds since the last commit, too.
  package func note(_ newest: (WrittenSize.Content?) -> WrittenSize.Content?) throws {
    guard loss == nil else { return }
    let found = newest(content.withLock(\.self))
    content.withLock { $0 = found }
    WrittenSize.put(try size, content: found, on: openPath)
  }

  /// Truncates the file.
  ///
  /// - Throws: ``ArchiveError`` if the system refuses.
  package func truncate(to size: UInt64) throws {
    try Self.attempt("truncate \(path)") { try descriptor.resize(to: Int64(size)) }
    // This is not a loss.
    if WrittenSize.lost(of: openPath) > loss?.byteCount ?? 0 {
      WrittenSize.put(size, loss: loss, on: openPath)
    }
  }

  /// Takes the lock; does nothing if it is already held.
  ///
  /// - Throws: ``ArchiveError`` if another process has it.
  package func lock() throws {
    try Self.attempt("lock \(path)") {
      do {
        try SystemCalls.lock(descriptor)
      } catch Errno.wouldBlock {
        throw ArchiveError(.locked).of(path.string)
      }
    }
    SystemCalls.mark(descriptor, asWritten: true)
  }

  /// Releases the lock before the storage itself is freed, which another owner of it may delay.
  package func unlock() {
    SystemCalls.mark(descriptor, asWritten: false)
    SystemCalls.unlock(descriptor)
  }

  /// Whether the file under `path` is still the one that was opened; true of one that was made
  /// without a name.
  ///
  /// - Throws: ``ArchiveError`` if the system does not say.
  package var isInPlace: Bool {
    get throws {
      if isNameless { return true }
      return try Self.attempt("look for \(path)") { try SystemCalls.isSameFile(descriptor, path) }
    }
  }

  /// The file's bytes as they are now, for reading.
  ///
  /// - Throws: ``ArchiveError`` if the system refuses.
  package func map() throws -> MappedFile {
    try Self.attempt("read \(path)") { try MappedFile(descriptor, closing: false) }
  }

  /// Returns when the file's entry in its folder would survive a loss of power.
  ///
  /// For a file opened through a symbolic link, that is the folder that the link leads to.
  ///
  /// - Throws: ``ArchiveError`` if the system cannot promise it.
  package func synchronizeName() throws {
    let folder = Self.folder(of: SystemCalls.resolved(path) ?? path)
    try Self.attempt("open \(folder)") {
      let directory = try FileDescriptor.open(folder, .readOnly, options: [.directory])
      try directory.closeAfter {
        try Self.attempt("sync \(folder)") { try SystemCalls.synchronizeDirectory(directory) }
      }
    }
  }

  private static func folder(of path: FilePath) -> FilePath {
    let parent = path.removingLastComponent()
    return parent.isEmpty ? "." : parent
  }

  /// Adds to a system call's error what was being done.
  private static func attempt<Value>(_ operation: String, _ body: () throws -> Value) throws
    -> Value
  {
    do {
      return try body()
    } catch let error as Errno {
      throw ArchiveError(.system(operation: operation, code: error.rawValue))
    }
  }
}

extension FilePermissions {
  /// The permissions of others on a new file, unless the process's umask forbids them: to read.
  package static var newFile: FilePermissions { [.ownerReadWrite, .groupRead, .otherRead] }
}
