internal import Synchronization
package import SystemPackage

/// A file's bytes, mapped for reading, as many as there were when it was opened.
///
/// Archives only grow, so existing bytes do not change. Should another program truncate the file in
/// the meantime, the system stops a reader that touches the missing part, unless ``CutOffGuard`` is
/// installed.
@safe
package final class MappedFile: @unchecked Sendable {
  // Immutable after init, and the mapping is private to this object.
  @usableFromInline let address: UnsafeRawPointer?
  private let isMapping: Bool
  /// Whether bytes can be replaced in memory, so that pages do not come back as they are here.
  private var isPatched = false
  /// The file that the bytes are a part of; nil if they are all of it.
  private let whole: MappedFile?
  /// Fetches the bytes of a remote file; nil for a local one.
  @usableFromInline let fetched: FetchedFile?
  /// Detects that the file was truncated; nil if it is not guarded.
  private let guarding: CutOffGuard.Pointer?
  /// How many bytes there are.
  package let count: Int
  /// Whether a writer had the file when it was opened.
  ///
  /// Then only what is committed is mapped, because the rest may be cut off.
  package let isBeingWritten: Bool
  /// How many bytes the file had, those that are not mapped included.
  let fileSize: UInt64
  /// The file with what nothing proves; once it was asked for.
  private let unproven = Mutex<MappedFile?>(nil)

  /// Files up to this length are read ahead if they will be read to their end.
  private static let maximumReadAtOnce = 512 << 20

  /// Maps the file at a path, whatever it holds.
  ///
  /// - Throws: ``ArchiveError`` if it cannot be opened or mapped.
  package convenience init(_ path: FilePath) throws {
    do {
      // A pipe that no program writes to would be waited for; it cannot be mapped.
      let descriptor = try FileDescriptor.open(
        path, .readOnly, options: [.closeOnExec, .nonBlocking])
      try self.init(descriptor, closing: true, watchesWriter: true)
    } catch let error as Errno {
      throw ArchiveError(.system(operation: "open \(path)", code: error.rawValue))
    }
  }

  /// Maps an open file; the mapping outlives the descriptor.
  ///
  /// - Throws: `Errno` as the system gives it.
  package init(
    _ descriptor: FileDescriptor, closing: Bool, isReadAtOnce: Bool = false,
    watchesWriter: Bool = false
  ) throws {
    do {
      let size = Int(try descriptor.seek(offset: 0, from: .end))
      let committed = watchesWriter ? try descriptor.committedLength(size: size) : nil
      isBeingWritten = committed != nil
      fileSize = UInt64(size)
      let length = committed ?? size
      // A mapping of nothing is an error to the system, and a file like any other here.
      unsafe address = length > 0 ? try SystemCalls.map(descriptor, length: length) : nil
      count = length
      unsafe guarding = watchesWriter ? CutOffGuard.add(address, length: length) : nil
      isMapping = true
      whole = nil
      fetched = nil
      if isReadAtOnce, length <= Self.maximumReadAtOnce, let address = unsafe address {
        unsafe SystemCalls.populate(address, length: length)
      }
    } catch {
      if closing { try descriptor.close() }
      throw error
    }
    if closing { try descriptor.close() }
  }

  /// Maps a file of which bytes are replaced in memory, which leaves it as it is.
  ///
  /// - Parameters:
  ///   - path: the file.
  ///   - count: how many bytes of it there are.
  ///   - capacity: how many bytes there are in all; behind those of the file, zeros.
  /// - Throws: ``ArchiveError`` if it cannot be opened or mapped.
  init(patching path: FilePath, count: Int, capacity: Int) throws {
    do {
      let descriptor = try FileDescriptor.open(path, .readOnly, options: [.closeOnExec])
      unsafe address = try descriptor.closeAfter {
        unsafe try SystemCalls.mapPatched(descriptor, length: count, capacity: capacity)
      }
    } catch let error as Errno {
      throw ArchiveError(.system(operation: "open \(path)", code: error.rawValue))
    }
    (self.count, fileSize) = (capacity, UInt64(count))
    (isMapping, whole, fetched, isBeingWritten) = (true, nil, nil, false)
    unsafe guarding = CutOffGuard.add(address, length: count)
    isPatched = true
  }

  /// Replaces bytes in memory.
  ///
  /// - Precondition: they lie within a file that was opened for that, and nothing else reads it.
  func patch(_ bytes: Span<UInt8>, at offset: Int) {
    precondition(isPatched && offset >= 0 && offset + bytes.count <= count)
    guard let address = unsafe address else { return }
    unsafe bytes.withUnsafeBytes { bytes in
      let place = unsafe UnsafeMutableRawPointer(mutating: address + offset)
      unsafe UnsafeMutableRawBufferPointer(start: place, count: bytes.count)
        .copyMemory(from: bytes)
    }
  }

  /// Maps a remote file.
  ///
  /// - Throws: ``FetchFailure`` if there is no room for it.
  package init(_ file: FetchedFile, isBeingWritten: Bool = false) throws {
    let (address, length) = try unsafe file.map()
    unsafe self.address = address
    unsafe guarding = nil
    fetched = file
    whole = nil
    count = length
    isMapping = file.reloadsPages
    self.isBeingWritten = isBeingWritten
    fileSize = UInt64(length)
  }

  /// Announces what will be read, which a remote file fetches: within
  /// ``withBytes(reading:_:)``, and before it, so that it comes in few requests.
  package func willRead(_ ranges: [Range<Int>]) { fetched?.need(ranges) }

  /// Announces what will be read repeatedly, which a remote file keeps once it is fetched.
  func willReadOften(_ ranges: [Range<Int>]) { fetched?.need(ranges, isKept: true) }

  /// Whether some of these bytes have not been fetched.
  package func lacks(_ range: Range<Int>) -> Bool { fetched?.lacks(range) ?? false }

  /// Announces that everything will be read.
  @usableFromInline package func willReadAll() { fetched?.needAll() }

  /// The source of bytes that are not those of the local file itself.
  package var source: (any ByteSource)? { fetched?.source }

  /// Which of these bytes were committed, and are not what was written; none of a plain file, of
  /// which only a footer tells what was committed.
  ///
  /// - Throws: ``FetchFailure``.
  package func damaged(in range: Range<UInt64>) throws -> [Range<UInt64>] {
    try source?.damaged(in: range) ?? []
  }

  /// Calls `body` also with bytes that nothing proves to be what was written
  /// (``ByteSource/unproven``): it takes of them only what a hash proves.
  ///
  /// - Parameters:
  ///   - ranges: Those that it reads.
  ///   - proven: The bytes as they are otherwise, all of which were read.
  ///   - body: Is told as well whether they are the same.
  func withUnproven<Value, Failure: Error>(
    reading ranges: [Range<Int>], _ proven: Span<UInt8>,
    _ body: (Span<UInt8>, _ isProven: Bool) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard let file = unprovenFile() else { return try body(proven, true) }
    return try file.withBytes(reading: ranges) { (bytes) throws(Failure) in
      try body(bytes, ranges.allSatisfy { bytes.extracting($0).equals(proven.extracting($0)) })
    }
  }

  private func unprovenFile() -> MappedFile? {
    guard let source = source?.unproven else { return nil }
    return unproven.withLock { known in
      if known == nil {
        // Without memory for it, less is found.
        known = try? MappedFile(
          FetchedFile(source, count: count, scratch: MemoryScratch(length: count)))
      }
      return known
    }
  }

  /// Whether the bytes are those of a remote file.
  package var isFetched: Bool { fetched != nil }

  /// Checks that what was read is what the file holds.
  ///
  /// - Throws: ``FetchFailure`` or `CancellationError` if some of it could not be fetched, or was
  ///   cut off, so that nothing can be concluded from what was read.
  package func checkFetched() throws {
    if let failure = fetched?.failure { throw failure }
    if isCutOff {
      throw FetchFailure(.replaced, "the file was truncated while it was being read")
    }
  }

  /// What is wrong with how the bytes are stored, apart from their content.
  ///
  /// - Throws: ``FetchFailure``.
  func flaws() throws -> [ArchiveError] { try fetched?.flaws() ?? [] }

  /// Whether bytes of the file have disappeared, by ``CutOffGuard``.
  package var isCutOff: Bool { unsafe guarding.map(CutOffGuard.isCutOff) ?? false }

  /// Says up to where bytes have to stay; what follows may be cut off as long as it is not read.
  func keep(upTo end: Int) {
    guard let guarding = unsafe guarding, let address = unsafe address, (8...count) ~= end else {
      return
    }
    unsafe CutOffGuard.keep(guarding, address + end - 8)
  }

  /// Releases the pages that have been read; they are read again when needed.
  ///
  /// The system maps neighbouring pages with each page that is touched. Looking at a few bytes all
  /// over a large file would soon map all of it.
  package func releasePages() {
    guard isMapping, !isPatched, let address = unsafe address else { return }
    unsafe SystemCalls.release(address, length: count)
  }

  /// Announces that bytes will be searched, window by window, from the end on.
  func willSearch(_ window: Range<Int>) {
    if window.lowerBound % Self.searchedAtOnce < window.count { releasePages() }
    guard lacks(window) else { return }
    willRead([max(0, window.lowerBound - Self.searchedAtOnce)..<window.upperBound])
  }

  /// How many bytes are fetched at a time for a search.
  private static let searchedAtOnce = 4 << 20

  /// Releases the pages of a file that is too large to stay in memory as it is read.
  func releasePagesIfLarge() {
    if count > Self.maximumResident { releasePages() }
  }

  /// Files up to this length stay in memory as they are read.
  private static let maximumResident = 64 << 20

  /// A copy of bytes that lie in no file.
  package init(copying bytes: [UInt8]) {
    count = bytes.count
    isMapping = false
    whole = nil
    fetched = nil
    unsafe guarding = nil
    isBeingWritten = false
    fileSize = UInt64(bytes.count)
    guard !bytes.isEmpty else {
      unsafe address = nil
      return
    }
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
    unsafe copy.copyBytes(from: bytes)
    unsafe address = UnsafeRawPointer(copy.baseAddress)
  }

  /// A part of a file, as if it were one; of a remote file, it is fetched.
  init(_ file: MappedFile, part: Range<Int>) {
    file.withBytes { _ in }
    let range = part.clamped(to: 0..<file.count)
    unsafe address = file.address.map { unsafe $0 + range.lowerBound }
    (whole, count, fileSize) = (file, range.count, UInt64(range.count))
    (isMapping, fetched, isBeingWritten) = (false, nil, false)
    unsafe guarding = nil
  }

  /// The bytes before a place; all of them if it is nil.
  package func first(_ count: Int?) -> MappedFile {
    count.map { MappedFile(self, part: 0..<$0) } ?? self
  }

  deinit {
    guard let address = unsafe address, whole == nil else { return }
    unsafe guarding?.pointee.start.store(0, ordering: .releasing)
    if let fetched {
      unsafe fetched.unmap(address, length: count)
    } else if isMapping {
      unsafe SystemCalls.unmap(address, length: count)
    } else {
      unsafe UnsafeMutableRawPointer(mutating: address).deallocate()
    }
  }

  /// Calls `body` with the bytes; of a remote file, all of them are fetched before.
  @inlinable
  package func withBytes<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    if fetched != nil { willReadAll() }
    return try withMapped(body)
  }

  /// Calls `body` with the bytes, of which it reads these, and what it names itself before.
  ///
  /// By ``willRead(_:)``. In a remote file, others are zeros.
  package func withBytes<Value: ~Copyable, Failure: Error>(
    reading ranges: @autoclosure () -> [Range<Int>],
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    guard let fetched else { return try withMapped(body) }
    let start = fetched.beginReading()
    defer { fetched.endReading(start) }
    fetched.need(ranges())
    return try withMapped(body)
  }

  @inlinable
  func withMapped<Value: ~Copyable, Failure: Error>(
    _ body: (Span<UInt8>) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let buffer = unsafe UnsafeRawBufferPointer(start: address, count: count)
    let bytes = unsafe Span<UInt8>(_unsafeBytes: buffer)
    return try body(bytes)
  }
}

/// How much of a file is committed while a writer has it.
///
/// What follows the last footer may be cut off at any moment, and a page of a mapping that is cut
/// off stops the process. So it is read, not mapped.
extension FileDescriptor {
  /// How many bytes up to and including the last footer; nil if no writer has the file, or there is
  /// no footer.
  ///
  /// - Throws: `Errno` as the system gives it.
  func committedLength(size: Int) throws -> Int? {
    guard SystemCalls.isBeingWritten(self) else { return nil }
    // A layer knows what is committed.
    let beginning = try read(min(size, StorageLayers.tellingLength), at: 0)
    if StorageLayers.layer(knowingBeginning: beginning.span) != nil { return size }
    // The writer may cut it off in the meantime: then fewer bytes come.
    return try ArchiveMagic.last(before: size, of: size) { range in
      try read(range.count, at: UInt64(range.lowerBound))
    } _: { magic in
      let place = magic - 8
      guard place >= 0 else { return nil }
      let candidate = try read(min(size - place, Footer.maximumLength), at: UInt64(place))
      return Footer.frame(candidate.span, at: 0, writtenAt: place).map { place + $0.length }
    }
  }
}
