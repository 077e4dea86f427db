internal import CGlibc
internal import LibC
package import SystemPackage

/// The system calls that swift-system has no function for.
///
/// Those that can fail in a way that matters throw `Errno`.
enum SystemCalls {
  /// Writes all of some bytes: `pwrite`.
  ///
  /// Linux keeps what comes at once in one large page of its cache where it can, and to get such
  /// pages takes several times as long as to get small ones.
  static func write(_ bytes: Span<UInt8>, at offset: Int64, to descriptor: FileDescriptor) throws {
    var written = 0
    while written < bytes.count {
      let part = bytes.extracting(written..<min(bytes.count, written + writtenAtOnce))
      written += try unsafe part.withUnsafeBytes {
        try unsafe descriptor.writeAll(toAbsoluteOffset: offset + Int64(written), $0)
      }
    }
  }

  private static let writtenAtOnce = 256 << 10

  /// Waits until the file's bytes are on the medium: `fdatasync`, and `fcntl` with `F_FULLFSYNC` on
  /// Darwin, where `fsync` stops at the drive's cache.
  static func synchronizeData(_ descriptor: FileDescriptor) throws {
    #if canImport(Darwin)
      try check { fcntl(descriptor.rawValue, F_FULLFSYNC) }
    #else
      try check { fdatasync(descriptor.rawValue) }
    #endif
  }

  /// Starts writing a part of a file to the medium, without waiting for it: `sync_file_range` on
  /// Linux.
  ///
  /// It guarantees nothing; it shortens the wait that does.
  static func beginSynchronizing(_ descriptor: FileDescriptor, _ range: Range<UInt64>) {
    carpack_begin_synchronizing(descriptor.rawValue, Int64(range.lowerBound), Int64(range.count))
  }

  /// Waits until a directory's entries are on the medium: `fsync`.
  ///
  /// Some file systems cannot sync a directory; they say so with `EINVAL`, and have nothing to
  /// lose.
  static func synchronizeDirectory(_ descriptor: FileDescriptor) throws {
    do { try check { fsync(descriptor.rawValue) } } catch Errno.invalidArgument {}
  }

  /// The path of the file that another path leads to, without symbolic links; nil if there is none:
  /// `realpath`.
  static func resolved(_ path: FilePath) -> FilePath? {
    guard let resolved = unsafe realpath(path.string, nil) else { return nil }
    defer { unsafe free(resolved) }
    return unsafe FilePath(String(cString: resolved))
  }

  /// A path that leads to an open file.
  static func path(of descriptor: FileDescriptor) -> FilePath {
    #if os(Linux)
      FilePath("/proc/self/fd/\(descriptor.rawValue)")
    #else
      FilePath("/dev/fd/\(descriptor.rawValue)")
    #endif
  }

  /// Takes the advisory lock of a file without waiting: `flock`.
  static func lock(_ descriptor: FileDescriptor) throws {
    try check { flock(descriptor.rawValue, LOCK_EX | LOCK_NB) }
  }

  /// Marks a file as being written to, for as long as the descriptor is open, or removes the mark:
  /// `fcntl` with `F_OFD_SETLK`.
  ///
  /// The mark is a lock of the first byte. Readers ask whether it could be taken, and never take
  /// it; what keeps a second writer away is ``lock(_:)``.
  static func mark(_ descriptor: FileDescriptor, asWritten isWritten: Bool) {
    // A file system without such locks refuses: readers then cannot tell that the file is being
    // written to.
    var mark = firstByte(isWritten ? F_WRLCK : F_UNLCK)
    _ = unsafe fcntl(descriptor.rawValue, openFileSetLock, &mark)
  }

  /// Whether another open file is marked as being written to: `fcntl` with `F_OFD_GETLK`.
  static func isBeingWritten(_ descriptor: FileDescriptor) -> Bool {
    var mark = firstByte(F_WRLCK)
    guard unsafe fcntl(descriptor.rawValue, openFileGetLock, &mark) == 0 else { return false }
    return mark.l_type != Int16(F_UNLCK)
  }

  /// The lock of a file's first byte, of a type such as `F_WRLCK`.
  private static func firstByte(_ type: CInt) -> flock {
    var range = flock()
    range.l_type = Int16(type)
    range.l_whence = Int16(SEEK_SET)
    range.l_len = 1
    return range
  }

  // The C headers hide these numbers behind a macro that Swift does not set.
  #if canImport(Darwin)
    private static let openFileSetLock: CInt = 90
    private static let openFileGetLock: CInt = 92
  #else
    private static let openFileSetLock: CInt = 37
    private static let openFileGetLock: CInt = 36
  #endif

  /// Releases the advisory lock of a file, for all copies of the descriptor: `flock`.
  static func unlock(_ descriptor: FileDescriptor) {
    // It fails only for what is not an open file, and then there is no lock.
    _ = flock(descriptor.rawValue, LOCK_UN)
  }

  /// Removes from a file's mode everything beyond these permissions: `fchmod`.
  static func restrict(_ descriptor: FileDescriptor, to permissions: FilePermissions) throws {
    var status = stat()
    try check { unsafe fstat(descriptor.rawValue, &status) }
    let mode = status.st_mode & 0o777
    let allowed = mode & permissions.rawValue
    if mode != allowed { try check { fchmod(descriptor.rawValue, allowed) } }
  }

  /// Whether a path leads to an open file: `fstat` and `stat`.
  static func isSameFile(_ descriptor: FileDescriptor, _ path: FilePath) throws -> Bool {
    var (open, named) = (stat(), stat())
    try check { unsafe fstat(descriptor.rawValue, &open) }
    do {
      try check { unsafe stat(path.string, &named) }
    } catch Errno.noSuchFileOrDirectory {
      return false
    }
    return open.st_dev == named.st_dev && open.st_ino == named.st_ino
  }

  /// How many bytes the file has that a path leads to: `stat`; nil if the system does not say.
  static func size(of path: FilePath) -> UInt64? {
    var status = stat()
    return unsafe stat(path.string, &status) == 0 ? UInt64(status.st_size) : nil
  }

  /// Maps `length` bytes of a file for reading: `mmap`.
  ///
  /// - Parameter isShared: Whether what is written to the file later has to be seen.
  static func map(_ descriptor: FileDescriptor, length: Int, isShared: Bool = false) throws
    -> UnsafeRawPointer
  {
    let kind = isShared ? MAP_SHARED : MAP_PRIVATE
    let address = unsafe mmap(nil, length, PROT_READ, kind, descriptor.rawValue, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else {
      throw Errno(rawValue: errno)
    }
    return UnsafeRawPointer(address)
  }

  /// Maps a file of which bytes can be replaced in memory alone, and zeros behind it: `mmap`.
  static func mapPatched(_ descriptor: FileDescriptor, length: Int, capacity: Int) throws
    -> UnsafeRawPointer
  {
    let memory = unsafe try reserveMemory(length: capacity)
    guard length > 0 else { return UnsafeRawPointer(memory) }
    let address = unsafe mmap(
      memory, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, descriptor.rawValue, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else {
      let error = errno
      unsafe unmap(memory, length: capacity)
      throw Errno(rawValue: error)
    }
    return UnsafeRawPointer(address)
  }

  /// Maps memory that is in no file and no core file, and takes room only where it is written to:
  /// `mmap`.
  static func reserveMemory(length: Int) throws -> UnsafeMutableRawPointer {
    let address = unsafe mmap(nil, length, PROT_READ | PROT_WRITE, emptyMemory, -1, 0)
    guard let address = unsafe address, unsafe address != MAP_FAILED else {
      throw Errno(rawValue: errno)
    }
    unsafe keepOutOfCores(address, length: length)
    return unsafe address
  }

  private static let emptyMemory = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE

  /// Moves pages of such memory to another place in it, over what is there: `mremap` with
  /// `MREMAP_DONTUNMAP`, known to Linux since 5.7.
  ///
  /// - Returns: Whether they were moved; then they have left zeros.
  static func movePages(
    from: UnsafeMutableRawPointer, to: UnsafeMutableRawPointer, length: Int
  ) -> Bool {
    let isMoved = unsafe carpack_move_pages(from, to, length) == 0
    // What they left is a mapping of its own, and a process may not have many: new memory joins the
    // mappings beside it. What a call that failed has taken away from the other place is put back.
    let kind = emptyMemory | MAP_FIXED
    let empty = unsafe isMoved ? from : to
    let isThere = unsafe mmap(empty, length, PROT_READ | PROT_WRITE, kind, -1, 0) != MAP_FAILED
    precondition(isMoved || isThere, "there is no room for a mapping")
    if isThere { unsafe keepOutOfCores(empty, length: length) }
    return isMoved
  }

  /// Replaces a mapping by zeros.
  ///
  /// - Returns: Whether they are there; for want of room for the mapping itself, what was there
  /// stays.
  @discardableResult
  static func mapZeros(over address: UInt, length: Int) -> Bool {
    let place = unsafe UnsafeMutableRawPointer(bitPattern: address)
    let kind = emptyMemory | MAP_FIXED
    return unsafe mmap(place, length, PROT_READ, kind, -1, 0) != MAP_FAILED
  }

  /// Brings a mapping's pages in at once, which costs less than one by one as they are touched:
  /// `madvise` with `MADV_POPULATE_READ`, known to Linux since 5.14.
  static func populate(_ address: UnsafeRawPointer, length: Int) {
    #if os(Linux)
      // Where it is not known, the pages come as they are touched.
      _ = unsafe madvise(UnsafeMutableRawPointer(mutating: address), length, 22)
    #endif
  }

  /// Releases a mapping's pages, which come back when they are touched: `madvise` with
  /// `MADV_DONTNEED`.
  static func release(_ address: UnsafeRawPointer, length: Int) {
    // Advice that is not taken costs memory, and nothing else.
    _ = unsafe madvise(UnsafeMutableRawPointer(mutating: address), length, Int32(MADV_DONTNEED))
  }

  /// Keeps a mapping out of core files: `madvise` with `MADV_DONTDUMP`, where there is that advice.
  static func keepOutOfCores(_ address: UnsafeRawPointer, length: Int) {
    #if os(Linux)
      _ = unsafe madvise(UnsafeMutableRawPointer(mutating: address), length, 16)
    #endif
  }

  /// Frees the disk space of a part of a file, which then reads as zeros: `fallocate` with
  /// `FALLOC_FL_PUNCH_HOLE`, `fcntl` with `F_PUNCHHOLE` on Darwin.
  ///
  /// A file system that does not support it keeps the space.
  static func punchHole(_ descriptor: FileDescriptor, _ range: Range<UInt64>) {
    #if canImport(Darwin)
      var hole = fpunchhole_t(
        fp_flags: 0, reserved: 0, fp_offset: off_t(range.lowerBound), fp_length: off_t(range.count))
      _ = unsafe fcntl(descriptor.rawValue, F_PUNCHHOLE, &hole)
    #else
      carpack_punch_hole(descriptor.rawValue, Int64(range.lowerBound), Int64(range.count))
    #endif
  }

  /// Removes a mapping: `munmap`.
  static func unmap(_ address: UnsafeRawPointer, length: Int) {
    // It fails only for an address that is not a mapping.
    _ = unsafe munmap(UnsafeMutableRawPointer(mutating: address), length)
  }

  private static func check(_ call: () -> CInt) throws {
    while call() != 0 {
      let code = Errno(rawValue: errno)
      if code != .interrupted { throw code }
    }
  }
}

extension FileDescriptor {
  /// Reads `count` bytes from an offset on; fewer where the file ends first.
  ///
  /// - Throws: `Errno` as the system gives it.
  package func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    try unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      let bytes = UnsafeMutableRawBufferPointer(buffer)
      while filled < count {
        let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[filled..<count])
        let step = try unsafe read(fromAbsoluteOffset: Int64(offset) + Int64(filled), into: rest)
        if step == 0 { break }
        filled += step
      }
    }
  }

  /// Opens a new file without a name; nil where there are none: `open` with `O_TMPFILE`.
  ///
  /// - Parameters:
  ///   - folder: Where it lies.
  ///   - permissions: Its mode, of which the process's umask takes away.
  package static func openNameless(
    in folder: FilePath, permissions: FilePermissions = .ownerReadWrite
  ) -> FileDescriptor? {
    #if os(Linux)
      // It gets a name by way of the folder of open files.
      guard unsafe access("/proc/self/fd", F_OK) == 0 else { return nil }
      let options = OpenOptions(rawValue: 0o20_000_000 | O_DIRECTORY | O_CLOEXEC)
      return try? open(folder, .readWrite, options: options, permissions: permissions)
    #else
      return nil
    #endif
  }
}
