internal import IPLD
internal import Synchronization
package import SystemPackage

/// A damaged file as its parity makes it, for reading.
///
/// 1. The file stays as it is.
/// 2. In memory are only the pages that were healed. Where bytes were inserted or lost, a copy is
///    written to a scratch file.
/// 3. What parity cannot heal is what it is in the file.
package enum HealedCopy {
  /// Maps a file, healed as far as can be.
  ///
  /// - Parameters:
  ///   - path: the file: an archive, or one that holds an archive in another form.
  ///   - limits: how much it may hold.
  ///   - scratch: makes an empty file that has no other use.
  /// - Returns: the bytes of the file, and how many were healed or put back into their places.
  /// - Throws: ``ArchiveError`` if the file cannot be mapped, or the library for parity is not
  ///   installed; what `scratch` throws.
  package static func map(
    _ path: FilePath, limits: ArchiveLimits = ArchiveLimits(),
    scratch: () throws -> any ArchiveStorage
  ) throws -> (file: MappedFile, bytesHealed: UInt64) {
    let file = try MappedFile(path)
    guard !file.isBeingWritten, let found = try LayerParity.assess(file), found.damagedCount > 0
    else { return (file, 0) }
    if let moved = try aligned(file, limits, scratch) { return moved }
    let copy = try PatchedFile(path, count: file.count)
    let count = try heal(copy, limits)
    return count > 0 ? (copy.map(), count) : (file, 0)
  }

  /// The file with its bytes in their places; nil if they are there, or parity cannot heal all of
  /// it.
  private static func aligned(
    _ file: MappedFile, _ limits: ArchiveLimits, _ scratch: () throws -> any ArchiveStorage
  ) throws -> (file: MappedFile, bytesHealed: UInt64)? {
    guard let alignment = try ParityAlignment(file), alignment.report.isHealable else { return nil }
    let new = try scratch()
    try alignment.write(to: new)
    let layer = file.layer
    try layer?.restoreUnprotected(of: file, in: new)
    let count = try heal(new, limits, layer)
    let copy = try new.map()
    let isWhole =
      try layer?.keepsAll(of: file, in: copy)
      ?? alignment.losesNothing(to: ArchiveReader(copy, limits: limits))
    return isWhole ? (copy, alignment.bytesMoved + count) : nil
  }

  private static func heal(
    _ storage: any ArchiveStorage, _ limits: ArchiveLimits, _ known: (any StorageLayer)? = nil
  ) throws -> UInt64 {
    if let layer = try known ?? storage.map().layer { return try layer.heal(storage) }
    do {
      return try ParityHealing.heal(storage, limits: limits)
    } catch let error as ArchiveError where error.reason == .furtherArchive {
      // Each of them counts from its own beginning.
      return 0
    }
  }
}

/// A file that is changed in memory only: bytes are replaced or appended there, and the file itself
/// stays as it is.
package final class PatchedFile: ArchiveStorage {
  /// How much longer the file can become: no parity that was cut off is longer.
  package static let room = 64 << 20

  /// The file, and zeros behind it.
  private let whole: MappedFile
  private let count: Atomic<Int>

  /// Opens a file.
  ///
  /// - Parameters:
  ///   - path: the file.
  ///   - count: how many bytes of it there are.
  ///   - room: how many bytes may be appended.
  /// - Throws: ``ArchiveError`` if it cannot be opened or mapped.
  package init(_ path: FilePath, count: Int, room: Int = PatchedFile.room) throws {
    whole = try MappedFile(patching: path, count: count, capacity: count + room)
    self.count = Atomic(count)
  }

  package var size: UInt64 { UInt64(count.load(ordering: .relaxed)) }

  package func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    guard offset.addingSaturated(UInt64(count)) <= size else {
      throw ArchiveError(.truncated, offset: offset)
    }
    return whole.withBytes { $0.array(Int(offset)..<Int(offset) + count) }
  }

  package func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    let end = offset.addingSaturated(UInt64(bytes.count))
    guard end <= UInt64(whole.count) else { throw ArchiveError(.truncated, offset: offset) }
    whole.patch(bytes, at: Int(offset))
    count.store(max(count.load(ordering: .relaxed), Int(end)), ordering: .relaxed)
  }

  package func truncate(to size: UInt64) {
    count.store(min(count.load(ordering: .relaxed), Int(clamping: size)), ordering: .relaxed)
  }

  package func synchronize() {}
  package func lock() {}
  package func map() -> MappedFile { MappedFile(whole, part: 0..<count.load(ordering: .relaxed)) }
}
