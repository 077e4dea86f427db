import Archive
import Synchronization

/// A storage over another that does one thing wrong: the operation with a certain number fails, or
/// writes another byte.
final class FaultyStorage: ArchiveStorage {
  enum Fault {
    /// An operation fails.
    case failure
    /// A write writes one wrong byte.
    case flip
  }

  private let storage: any ArchiveStorage
  private let fault: Fault
  private let place: Int
  private let count = Mutex(0)

  init(_ storage: any ArchiveStorage, _ fault: Fault, at place: Int) {
    self.storage = storage
    self.fault = fault
    self.place = place
  }

  /// Whether the fault was met.
  var isReached: Bool { count.withLock { $0 > place } }

  private func step(_ kind: Fault) throws -> Bool {
    guard kind == fault else { return false }
    let isNow = count.withLock { count in
      count += 1
      return count - 1 == place
    }
    if isNow, fault == .failure {
      throw ArchiveError(.system(operation: "do what was asked", code: 28))
    }
    return isNow
  }

  var size: UInt64 {
    get throws {
      _ = try step(.failure)
      return try storage.size
    }
  }

  func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    _ = try step(.failure)
    return try storage.read(count, at: offset)
  }

  func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    _ = try step(.failure)
    guard try step(.flip) else {
      try storage.write(bytes, at: offset)
      return
    }
    var flipped: [UInt8] = []
    for index in 0..<bytes.count { flipped.append(bytes[index]) }
    flipped[bytes.count / 2] ^= 1
    try storage.write(flipped.span, at: offset)
  }

  func synchronize() throws {
    _ = try step(.failure)
    try storage.synchronize()
  }

  func truncate(to size: UInt64) throws {
    _ = try step(.failure)
    try storage.truncate(to: size)
  }

  func lock() throws { try storage.lock() }

  var isInPlace: Bool {
    get throws {
      _ = try step(.failure)
      return try storage.isInPlace
    }
  }

  func map() throws -> MappedFile {
    _ = try step(.failure)
    return try storage.map()
  }
}
