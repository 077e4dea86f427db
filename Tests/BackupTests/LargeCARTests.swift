import Archive
import ArchiveTestSupport
import Files
import Foundation
import IPLD
import Snapshots
import TestSupport
import Testing

@Suite struct `A CAR that is much larger than its archive` {
  private let folder: TemporaryFolder
  private let repository: TestRepository

  init() throws {
    folder = try TemporaryFolder()
    repository = try TestRepository(posts: 3)
  }

  /// An archive whose manifest says that its CAR has this many bytes, and that its last block
  /// occurs again and again in it.
  private func snapshot(byteCount: UInt64, repetitions: UInt64, allowsLarge: Bool = false) throws
    -> ArchivedSnapshot
  {
    let blocks = try repository.blocks()
    let path = try handMadeArchive(in: folder, repository) { snapshot in
      var order = BlockOrder()
      for ordinal in 0..<UInt64(blocks.count) { order.append(ordinal) }
      for _ in 0..<repetitions { order.append(UInt64(blocks.count - 1)) }
      snapshot.car.runs = order.encoded
      snapshot.car.sectionCount = order.count
      snapshot.car.byteCount = byteCount
    }
    let limits = ArchiveLimits(allowsLarge: allowsLarge)
    return try ArchivedSnapshot.newest(in: ArchiveReader(path: path, limits: limits))
  }

  @Test func `is not put together unless that is allowed`() throws {
    let snapshot = try snapshot(byteCount: 1 << 40, repetitions: 1000)
    let limit = RestoredRepository.maximumLength(in: snapshot.reader)
    #expect(limit == 16 * snapshot.reader.generation.streamLength + 64 << 20)
    #expect(throws: BackupError.tooLarge(1 << 40, limit: limit)) {
      _ = try RestoredRepository(snapshot)
    }
    try removeArchive()
    let allowed = try self.snapshot(byteCount: 1 << 40, repetitions: 1000, allowsLarge: true)
    let restored = try RestoredRepository(allowed)
    #expect(restored.flaw?.contains("by the manifest \(1 << 40)") == true)
  }

  @Test func `is put together up to the limit, and never longer than its manifest says`() throws {
    let limit = RestoredRepository.maximumLength(
      in: try snapshot(byteCount: 1, repetitions: 0).reader)
    try removeArchive()
    #expect(try RestoredRepository(snapshot(byteCount: limit, repetitions: 1000)).flaw != nil)
    try removeArchive()
    // One block too many ends it.
    let short = try RestoredRepository(snapshot(byteCount: 2000, repetitions: 10_000))
    #expect(short.flaw != nil)
    #expect(short.withBytes { $0.count } < 1 << 20)
  }

  private func removeArchive() throws {
    try FileManager.default.removeItem(atPath: folder.file("made.car.zst"))
  }
}
