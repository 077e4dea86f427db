import Archive
import ArchiveTestSupport
import Foundation
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Files
@testable import Live
@testable import Packing

/// A storage in memory that counts how often its name is synced.
private final class NamedStorage: ArchiveStorage {
  let memory: MemoryStorage
  private let count = Mutex(0)

  init(_ memory: MemoryStorage) { self.memory = memory }

  var syncsOfName: Int { count.withLock { $0 } }
  var size: UInt64 { get throws { try memory.size } }
  func read(_ count: Int, at offset: UInt64) throws -> [UInt8] {
    try memory.read(count, at: offset)
  }
  func write(_ bytes: Span<UInt8>, at offset: UInt64) throws {
    try memory.write(bytes, at: offset)
  }
  func synchronize() throws { try memory.synchronize() }
  func synchronizeName() throws { count.withLock { $0 += 1 } }
  func truncate(to size: UInt64) throws { try memory.truncate(to: size) }
  func lock() throws { try memory.lock() }
}

/// What a run that was killed between the footer's write and the last sync has left.
@Suite struct `An archive that is complete and not synced` {
  private let folder: TemporaryFolder
  private let car: String
  private let left: MemoryStorage

  init() throws {
    folder = try TemporaryFolder()
    car = try folder.write("repo.car", try TestRepository(posts: 20).car())
    let whole = MemoryStorage()
    _ = try Self.pack(car, whole)
    let syncs = whole.count(of: [.synchronize])
    let storage = MemoryStorage([], .init([StorageFault(syncs, of: [.synchronize])]))
    let path = car
    #expect(throws: ArchiveError.self) { _ = try Self.pack(path, storage) }
    left = storage.reopened(.init())
  }

  private static func pack(_ car: String, _ storage: any ArchiveStorage) throws
    -> RepositoryPacker.Report
  {
    var options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 })
    options.startsOver = try storage.size == 0
    return try RepositoryPacker(options).pack(InputFile(car), folders: [], into: storage)
  }

  /// Whether a snapshot counts if the power goes now.
  private var isDurable: Bool {
    get throws {
      try ArchiveReader(left.surviving(.ofEverything).map()).generation.head != nil
    }
  }

  @Test func `could lose its snapshot with the power`() throws {
    #expect(try ArchiveReader(left.map()).generation.head != nil)
    #expect(try !isDurable)
  }

  @Test func `is synced before packing says that there is nothing new`() throws {
    let storage = NamedStorage(left)
    #expect(try Self.pack(car, storage).isUnchanged)
    #expect(try isDurable)
    #expect(storage.syncsOfName == 1)
  }

  @Test func `is synced before a backup says that it is up to date`() async throws {
    let storage = NamedStorage(left)
    try await DestinationArchive(FilePath(folder.file("a.car.zst")), in: storage).publish()
    #expect(try isDurable)
    #expect(storage.syncsOfName == 1)
  }
}
