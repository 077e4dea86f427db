import Archive
import ArchiveTestSupport
import Synchronization

/// A file of which nothing is written any more from some operation on.
final class InterruptedStorage: ArchiveStorage {
  private let storage: any ArchiveStorage
  private let first: Int
  private let kind: SequenceInterruption.Kind
  private let count = Mutex(0)

  init(_ storage: any ArchiveStorage, from first: Int, of kind: SequenceInterruption.Kind) {
    (self.storage, self.first, self.kind) = (storage, first, kind)
  }

  /// Whether it came to that.
  var isReached: Bool { count.withLock { $0 >= first } }

  private func step(isWrite: Bool) throws {
    guard isWrite || kind != .fullDisk else { return }
    let count = count.withLock { count in
      count += 1
      return count
    }
    guard count < first else {
      let code = kind == .fullDisk ? StorageFault.noSpace : StorageFault.inputOutput
      throw ArchiveError(.system(operation: "write", code: code))
    }
  }

  var size: UInt64 {
    get throws {
      try step(isWrite: false)
      return try storage.size
    }
  }

  func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    try step(isWrite: false)
    return try storage.read(count, at: offset)
  }

  func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    try step(isWrite: true)
    try storage.write(bytes, at: offset)
  }

  func synchronize() throws {
    try step(isWrite: false)
    try storage.synchronize()
  }

  func truncate(to size: UInt64) throws {
    try step(isWrite: false)
    try storage.truncate(to: size)
  }

  func lock() throws { try storage.lock() }

  func map() throws -> MappedFile {
    try step(isWrite: false)
    return try storage.map()
  }
}
