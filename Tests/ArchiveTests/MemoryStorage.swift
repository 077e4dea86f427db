import Archive
import IPLD
import Synchronization
import Testing

/// A storage in memory that fails when it is told to.
final class MemoryStorage: ArchiveStorage {
  struct State {
    var bytes: [UInt8] = []
    var syncs = 0
    /// The write after which the file has more bytes than this fails.
    var capacity = UInt64.max
    /// The number of the sync that fails.
    var failingSync: Int?
    var isTruncationFailing = false
  }

  let state = Mutex(State())

  var syncs: Int { state.withLock { $0.syncs } }

  var bytes: [UInt8] { state.withLock { $0.bytes } }

  var size: UInt64 { state.withLock { UInt64($0.bytes.count) } }

  func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    try state.withLock { state in
      guard Int(offset) + count <= state.bytes.count else { throw ArchiveError(.truncated) }
      return Array(state.bytes[Int(offset)..<Int(offset) + count])
    }
  }

  func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    let copy = bytes.array
    try state.withLock { state in
      guard offset + UInt64(copy.count) <= state.capacity else {
        throw ArchiveError(.system(operation: "write", code: 28))
      }
      #expect(offset <= state.bytes.count, "an archive has no holes")
      let overlap = min(copy.count, state.bytes.count - Int(offset))
      state.bytes.replaceSubrange(Int(offset)..<Int(offset) + overlap, with: copy)
    }
  }

  func synchronize() throws {
    try state.withLock { state in
      state.syncs += 1
      if state.syncs == state.failingSync {
        throw ArchiveError(.system(operation: "sync", code: 5))
      }
    }
  }

  func truncate(to size: UInt64) throws {
    try state.withLock { state in
      if state.isTruncationFailing { throw ArchiveError(.system(operation: "cut", code: 5)) }
      state.bytes.removeLast(state.bytes.count - Int(size))
    }
  }

  func lock() throws {}
}
