internal import LibC
internal import Synchronization
package import SystemPackage

/// The storage of the fetched parts of a file, at the offsets that they have in the file.
package protocol FetchScratch: Sendable {
  /// Makes it as long as the file.
  ///
  /// - Throws: `Errno` if there is no room.
  func lengthen(to count: Int) throws

  /// Writes bytes.
  ///
  /// - Throws: `Errno`.
  func write(_ bytes: Span<UInt8>, at offset: Int) throws

  /// Frees the space of bytes that are not needed any more.
  func drop(_ range: Range<Int>)

  /// The memory that it lies in, for a source that can write to it; nil if it lies in a file.
  ///
  /// - Parameter ranges: What is going to be written, all of it: it may hold anything before.
  func memory(for ranges: [Range<UInt64>]) -> UnsafeMutableRawBufferPointer?

  /// Maps the first bytes for reading.
  ///
  /// - Throws: `Errno` if there is no room in the address space.
  func map(length: Int) throws -> UnsafeRawPointer

  /// Whether pages of a mapping that are released come back with the same bytes.
  var reloadsPages: Bool { get }

  /// Removes a mapping.
  func unmap(_ address: UnsafeRawPointer, length: Int)

  /// Returns when everything written so far would survive a loss of power.
  ///
  /// - Throws: `Errno`.
  func synchronize() throws
}

/// A file without a name, which is closed with this value.
package final class FileScratch: FetchScratch {
  private let file: FileDescriptor

  /// An empty file.
  package init(_ file: FileDescriptor) { self.file = file }

  deinit {
    // It has no name, and is not wanted any more.
    do { try file.close() } catch {}
  }

  package func lengthen(to count: Int) throws {
    if try file.seek(offset: 0, from: .end) < Int64(count) { try file.resize(to: Int64(count)) }
  }

  package func write(_ bytes: Span<UInt8>, at offset: Int) throws {
    try SystemCalls.write(bytes, at: Int64(offset), to: file)
  }

  package func drop(_ range: Range<Int>) {
    SystemCalls.punchHole(file, UInt64(range.lowerBound)..<UInt64(range.upperBound))
  }

  package func memory(for ranges: [Range<UInt64>]) -> UnsafeMutableRawBufferPointer? { nil }

  package func map(length: Int) throws -> UnsafeRawPointer {
    try unsafe SystemCalls.map(file, length: length, isShared: true)
  }

  package var reloadsPages: Bool { true }

  package func unmap(_ address: UnsafeRawPointer, length: Int) {
    unsafe SystemCalls.unmap(address, length: length)
  }

  package func synchronize() throws {
    guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
  }
}

/// Memory, for what must not lie on a disk.
///
/// Core files leave it out.
@safe
package final class MemoryScratch: FetchScratch, @unchecked Sendable {
  // The pointer never changes. FetchedFile orders what is done with the bytes: ranges that are
  // fetched at once do not overlap, and a range is read when all of it is there.
  private let address: UnsafeMutableRawPointer?
  private let length: Int
  /// Parts that are no longer needed, but not yet freed.
  private let spare = Mutex<[Int]>([])

  /// Memory for a file of this many bytes, which takes room as it is written to.
  ///
  /// - Throws: `Errno` if there is no room in the address space.
  package init(length: Int) throws {
    unsafe address = length > 0 ? try SystemCalls.reserveMemory(length: length) : nil
    self.length = length
  }

  deinit {
    if let address = unsafe address { unsafe SystemCalls.unmap(address, length: length) }
  }

  package func lengthen(to count: Int) throws {
    guard count <= length else { throw Errno.noMemory }
  }

  package func write(_ bytes: Span<UInt8>, at offset: Int) throws {
    try lengthen(to: offset + bytes.count)
    guard let address = unsafe address else { return }
    // What is written stays where it is.
    spare.withLock { spare in
      spare.removeAll { Self.bytes(of: $0).overlaps(offset..<offset + bytes.count) }
    }
    let target = unsafe UnsafeMutableRawBufferPointer(
      start: address + offset, count: bytes.count)
    unsafe bytes.withUnsafeBytes { unsafe target.copyMemory(from: $0) }
  }

  package func drop(_ range: Range<Int>) {
    let parts = Self.parts(in: range)
    release(max(range.lowerBound, parts.upperBound * Self.partLength)..<range.upperBound)
    spare.withLock { spare in
      for part in parts {
        if spare.count == Self.mostSpare { release(Self.bytes(of: spare.removeFirst())) }
        spare.append(part)
      }
    }
  }

  package func memory(for ranges: [Range<UInt64>]) -> UnsafeMutableRawBufferPointer? {
    guard let address = unsafe address else { return nil }
    let ranges = ranges.map { Int($0.lowerBound)..<Int($0.upperBound) }
    spare.withLock { spare in
      // What is wanted again stays where it is.
      let here = spare.filter { part in ranges.contains { $0.overlaps(Self.bytes(of: part)) } }
      spare.removeAll { here.contains($0) }
      for part in ranges.flatMap(Self.parts) where !here.contains(part) {
        guard let other = spare.popLast() else { break }
        move(other, to: part)
      }
    }
    return unsafe UnsafeMutableRawBufferPointer(start: address, count: length)
  }

  /// Moves a part that is not wanted any more to where others are going to be: the system clears
  /// each page that it hands out, which takes as long as to decrypt it.
  private func move(_ part: Int, to place: Int) {
    guard let address = unsafe address else { return }
    let (from, to) = unsafe (
      address + part * Self.partLength, address + place * Self.partLength
    )
    if unsafe !SystemCalls.movePages(from: from, to: to, length: Self.partLength) {
      release(Self.bytes(of: part))
    }
  }

  private func release(_ range: Range<Int>) {
    guard let address = unsafe address, !range.isEmpty else { return }
    unsafe SystemCalls.release(address + range.lowerBound, length: range.count)
  }

  /// Memory is moved in parts of this many bytes, to where other such parts begin, so that the
  /// system finds each of them in one mapping.
  private static let partLength = 1 << 20
  /// How many parts are kept for that.
  private static let mostSpare = 32

  private static func bytes(of part: Int) -> Range<Int> {
    part * partLength..<(part + 1) * partLength
  }

  /// The parts that lie in a range with all of their bytes.
  private static func parts(in range: Range<Int>) -> Range<Int> {
    let first = (range.lowerBound + partLength - 1) / partLength
    return first..<max(first, range.upperBound / partLength)
  }

  package func map(length: Int) throws -> UnsafeRawPointer {
    try lengthen(to: length)
    guard let address = unsafe address else { throw Errno.noMemory }
    return UnsafeRawPointer(address)
  }

  package var reloadsPages: Bool { false }

  package func unmap(_ address: UnsafeRawPointer, length: Int) {}

  package func synchronize() throws {}
}
