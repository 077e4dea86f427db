internal import Archive
internal import IPLD
internal import Synchronization

/// A file in memory that counts what is asked of it, fails when it is set to, and knows what a loss
/// of power would leave of it.
///
/// It allows what a writer of archives may do and nothing else: what is committed is neither
/// written to nor cut off, and the file is extended at its end only. Everything else is a
/// ``Misuse``, which is not an `ArchiveError`, so that no test takes it for a failure it injected.
///
/// A failed sync leaves what was written as it was: there, and not yet durable.
package final class MemoryStorage: ArchiveStorage {
  /// Something that no writer may ask for.
  package struct Misuse: Error, CustomStringConvertible {
    /// What it was.
    package let description: String
  }

  /// How this differs from a healthy disk.
  package struct Conditions: Sendable {
    /// What is going to fail.
    package var faults: [StorageFault]
    /// How many bytes the file may have; a write beyond that is done in part, and fails with
    /// `ENOSPC`.
    package var capacity: UInt64
    /// How much is committed: writing to that, or cutting some of it off, is a mistake.
    package var floor: UInt64

    /// Conditions; none by default.
    package init(_ faults: [StorageFault] = [], capacity: UInt64 = .max, floor: UInt64 = 0) {
      self.faults = faults
      self.capacity = capacity
      self.floor = floor
    }
  }

  fileprivate struct State {
    var bytes: [UInt8]
    var unsynced: UnsyncedChanges
    var conditions: Conditions
    var counts: [StorageOperation: Int] = [:]
    var failureCount = 0
  }

  private let state: Mutex<State>
  /// Whether the power went while the file was written, so that sectors may be missing.
  package let hasLostPower: Bool

  /// A file that holds these bytes, all of them durable.
  package init(
    _ bytes: [UInt8] = [], _ conditions: Conditions = Conditions(), hasLostPower: Bool = false
  ) {
    self.hasLostPower = hasLostPower
    state = Mutex(
      State(bytes: bytes, unsynced: UnsyncedChanges(durable: bytes), conditions: conditions))
  }

  /// The same file as another process has it, which counts from the beginning.
  package func reopened(_ conditions: Conditions) -> MemoryStorage {
    let state = state.withLock { state in
      State(bytes: state.bytes, unsynced: state.unsynced, conditions: conditions)
    }
    return MemoryStorage(state, hasLostPower: hasLostPower)
  }

  /// The file as it could be if the power went now.
  package func surviving(_ loss: PowerLoss, _ conditions: Conditions = Conditions())
    -> MemoryStorage
  {
    MemoryStorage(bytes(after: loss), conditions, hasLostPower: true)
  }

  private init(_ state: State, hasLostPower: Bool) {
    self.state = Mutex(state)
    self.hasLostPower = hasLostPower
  }

  /// How this differs from a healthy disk.
  package var conditions: Conditions {
    get { state.withLock { $0.conditions } }
    set { state.withLock { $0.conditions = newValue } }
  }

  /// The file as a reader would see it now; what is set is as if another program had put it there,
  /// for good.
  package var bytes: [UInt8] {
    get { state.withLock { $0.bytes } }
    set {
      state.withLock { state in
        state.bytes = newValue
        state.unsynced = UnsyncedChanges(durable: newValue)
      }
    }
  }

  /// How many operations were made to fail.
  package var failureCount: Int { state.withLock { $0.failureCount } }

  /// How many operations of these kinds there were.
  package func count(of operations: Set<StorageOperation> = .every) -> Int {
    state.withLock { state in operations.reduce(0) { $0 + (state.counts[$1] ?? 0) } }
  }

  /// What the file could be if the power went now.
  package func bytes(after loss: PowerLoss) -> [UInt8] {
    state.withLock { $0.unsynced.bytes(after: loss) }
  }

  // MARK: What a writer does with it

  /// How many bytes the file has.
  package var size: UInt64 {
    get throws {
      try state.withLock { state in
        try state.begin(.size)
        return UInt64(state.bytes.count)
      }
    }
  }

  /// Reads bytes.
  package func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    try state.withLock { state in
      try state.begin(.read)
      guard count >= 0, offset <= UInt64(state.bytes.count),
        UInt64(count) <= UInt64(state.bytes.count) - offset
      else { throw ArchiveError(.truncated, offset: offset) }
      return Array(state.bytes[Int(offset)..<Int(offset) + count])
    }
  }

  /// Writes bytes.
  package func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    let copy = bytes.array
    try state.withLock { state in
      guard offset >= state.conditions.floor, offset <= UInt64(state.bytes.count) else {
        throw Misuse(
          description:
            "a write at \(offset), of \(state.bytes.count) bytes with \(state.conditions.floor) committed"
        )
      }
      if let fault = state.fault(.write) {
        // Whoever asked for an error gets one, so a write that fails lacks a byte at least.
        let landed = min(Int(Double(copy.count) * fault.part), copy.count - 1)
        state.write(copy.prefix(max(0, landed)), at: Int(offset))
        throw fault.error(.write)
      }
      guard offset + UInt64(copy.count) <= state.conditions.capacity else {
        state.failureCount += 1
        let room = state.conditions.capacity - min(offset, state.conditions.capacity)
        state.write(copy.prefix(Int(room)), at: Int(offset))
        throw StorageFault(0, code: StorageFault.noSpace).error(.write)
      }
      state.write(copy[...], at: Int(offset))
    }
  }

  /// Makes everything durable.
  package func synchronize() throws {
    try state.withLock { state in
      try state.begin(.synchronize)
      state.unsynced = UnsyncedChanges(durable: state.bytes)
    }
  }

  /// Cuts the file off.
  package func truncate(to size: UInt64) throws {
    try state.withLock { state in
      guard size >= state.conditions.floor, size <= UInt64(state.bytes.count) else {
        throw Misuse(
          description:
            "a cut at \(size), of \(state.bytes.count) bytes with \(state.conditions.floor) committed"
        )
      }
      try state.begin(.truncate)
      state.bytes.removeLast(state.bytes.count - Int(size))
      state.unsynced.truncate(to: Int(size))
    }
  }

  /// Takes the lock, which must be free.
  package func lock() throws { try state.withLock { state in try state.begin(.lock) } }
}

extension MemoryStorage.State {
  /// Counts an operation, and makes it fail if it has to.
  fileprivate mutating func begin(_ operation: StorageOperation) throws(ArchiveError) {
    if let fault = fault(operation) { throw fault.error(operation) }
  }

  /// Counts an operation; the fault if it is to fail.
  fileprivate mutating func fault(_ operation: StorageOperation) -> StorageFault? {
    counts[operation, default: 0] += 1
    let struck = conditions.faults.first { fault in
      fault.operations.contains(operation)
        && fault.strikes(fault.operations.reduce(0) { $0 + (counts[$1] ?? 0) })
    }
    if struck != nil { failureCount += 1 }
    return struck
  }

  fileprivate mutating func write(_ more: ArraySlice<UInt8>, at offset: Int) {
    guard !more.isEmpty else { return }
    unsynced.write(more, at: offset)
    bytes.replaceSubrange(offset..<min(offset + more.count, bytes.count), with: more)
  }
}
