import Age
import Archive
import IPLD
import Synchronization
import TestSupport

@testable import Sealing

/// One who has a key, and archives that it opens.
struct Owner: Sendable {
  let identity: AgeIdentity

  init() throws { identity = try AgeIdentity.generate() }

  var recipient: SealedRecipient { .key(identity.recipient) }
  var ring: KeyRing { KeyRing { [identity] in [identity] } }
  var layer: SealedLayer { SealedLayer(ring, recipients: [recipient]) }

  /// A sealed archive in an empty file.
  func create(in file: any ArchiveStorage) throws -> any ArchiveStorage {
    try layer.create(in: file, for: [recipient])
  }

  /// An existing sealed archive, for writing.
  func open(_ file: any ArchiveStorage) throws -> any ArchiveStorage {
    try layer.storage(in: file)
  }

  /// An existing sealed archive, for reading.
  func map(_ bytes: [UInt8]) throws -> MappedFile { try layer.map(MappedFile(copying: bytes)) }

  /// What a sealed archive holds.
  func plain(_ bytes: [UInt8]) throws -> [UInt8] {
    let map = try map(bytes)
    let plain = map.withBytes { $0.array(0..<map.count) }
    try map.checkFetched()
    return plain
  }

  /// The identity of an archive.
  func archiveIdentity(_ bytes: [UInt8]) throws -> AgeIdentity {
    try ring.identity(of: KeySlots(MappedFile(copying: bytes)))
  }

  /// Some bytes as a sealed file, with a piece of each so many.
  func sealed(
    _ plain: [UInt8], piece: Int = 1 << 20, committing often: Int = .max
  ) throws -> [UInt8] {
    let file = SimpleStorage()
    let storage = try create(in: file)
    for (number, start) in stride(from: 0, to: plain.count, by: piece).enumerated() {
      let part = Array(plain[start..<min(start + piece, plain.count)])
      try storage.write(part.span, at: UInt64(start))
      try storage.synchronize()
      if number % often == often - 1 { try storage.commit() }
    }
    try storage.commit()
    return file.bytes
  }

  /// The result of verifying a sealed archive; nil if it does not open.
  func verification(_ bytes: [UInt8]) throws -> ArchiveVerification? {
    do {
      return try ArchiveReader(map(bytes)).verify(workers: 1)
    } catch is ArchiveError {
      return nil
    } catch is SealedError {
      return nil
    }
  }
}

extension ArchiveStorage {
  /// Everything that the archive holds.
  func everything() throws -> [UInt8] { try read(Int(size), at: 0) }
}

/// A file in memory that knows what was written to it.
final class SimpleStorage: ArchiveStorage {
  private let state = Mutex(State())

  private struct State {
    var bytes: [UInt8] = []
    var writes: [[UInt8]] = []
    var writtenCount = 0
    var keepsWrites = false
  }

  init(_ bytes: [UInt8] = [], keepsWrites: Bool = false) {
    state.withLock { ($0.bytes, $0.keepsWrites) = (bytes, keepsWrites) }
  }

  var bytes: [UInt8] { state.withLock { $0.bytes } }
  /// What was written by one call each.
  var writes: [[UInt8]] { state.withLock { $0.writes } }
  /// How many bytes were written.
  var writtenCount: Int { state.withLock { $0.writtenCount } }

  var size: UInt64 { get throws { UInt64(bytes.count) } }

  func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    try state.withLock { state in
      guard Int(offset) + count <= state.bytes.count else { throw ArchiveError(.truncated) }
      return Array(state.bytes[Int(offset)..<Int(offset) + count])
    }
  }

  func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    let copy = bytes.array(0..<bytes.count)
    state.withLock { state in
      let end = min(Int(offset) + copy.count, state.bytes.count)
      state.bytes.replaceSubrange(Int(offset)..<end, with: copy)
      state.writtenCount += copy.count
      if state.keepsWrites { state.writes.append(copy) }
    }
  }

  func synchronize() throws {}
  func lock() throws {}
  func truncate(to size: UInt64) throws {
    state.withLock { $0.bytes.removeLast($0.bytes.count - Int(size)) }
  }
}
