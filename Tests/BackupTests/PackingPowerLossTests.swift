import Archive
import ArchiveTestSupport
import IPLD
import SystemPackage
import TestSupport
import Testing

@testable import Copying
@testable import Files
@testable import Packing
@testable import Snapshots
@testable import Verification

/// Something that the file must not contain or do.
private struct Unexpected: Error, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}

/// Packs an account as it grows, on a storage that fails and loses its power, and knows what was
/// promised.
private struct PromisedPacking {
  private let folder: TemporaryFolder
  private var repository: TestRepository
  private var number = 0
  /// The CARs that were packed, each said to be in the archive.
  private(set) var promised: [[UInt8]] = []
  private(set) var lossCount = 0
  private(set) var failureCount = 0

  init() throws {
    folder = try TemporaryFolder()
    repository = try TestRepository(posts: 10)
  }

  private mutating func change() throws {
    number += 1
    let digits = Array("234567abcdefghijklmnopqrstuvwxyz")
    repository.rev = "3lscuqc52o\(digits[number / 32])\(digits[number % 32])x"
    try repository.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
  }

  /// Packs a CAR on a storage.
  ///
  /// - Returns: Whether that says that the CAR is in the archive.
  private mutating func pack(_ car: [UInt8], _ storage: MemoryStorage) throws -> Bool {
    let path = try folder.write("repo.car", car)
    var options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 })
    // A new archive has another name until something is promised.
    options.startsOver = promised.isEmpty
    let failures = storage.failureCount
    do {
      _ = try RepositoryPacker(options).pack(InputFile(path), folders: [], into: storage)
    } catch {
      guard storage.failureCount > failures else { throw error }
      failureCount += 1
      return false
    }
    if !promised.contains(car) { promised.append(car) }
    return true
  }

  /// What was promised is there whatever the power leaves, and after repair and the next pack; and
  /// what the power has left is not called damaged.
  private mutating func check(_ storage: MemoryStorage, _ random: inout SeededGenerator) throws {
    guard !promised.isEmpty else { return }
    let losses = (0..<4).map { _ in PowerLoss(using: &random) }
    for loss in [.ofNothing, .ofEverything] + losses {
      lossCount += 1
      var state = "then"
      do {
        let left = storage.surviving(loss)
        try check(left, [.intact, .incomplete])
        let other = storage.surviving(loss)
        state = "repaired after"
        // It keeps what is left of torn frames, and calls the rest of them lost.
        _ = try ArchiveRepair.repair(other)
        try check(other, [.intact, .incomplete, .damaged])
        state = "packed after"
        _ = try pack(try #require(promised.last), left)
        try check(left, [.intact])
      } catch {
        try Torture.keep(storage.surviving(loss).bytes, "left.car.zst")
        try Torture.keep(storage.bytes, "before.car.zst")
        throw Unexpected("\(state) \(loss): \(error)")
      }
    }
  }

  private func check(_ storage: MemoryStorage, _ verdicts: [SnapshotVerifier.Verdict]) throws {
    let reader = try ArchiveReader(storage.map())
    let report = try SnapshotVerifier().verify(reader, .full)
    guard verdicts.contains(report.verdict) else {
      throw Unexpected("it is called \(report.verdict): \(report)")
    }
    let entries = try SnapshotHistory(of: reader).entries
    for car in promised {
      let digest = SHA256.digest(of: car.span)
      guard let entry = entries.first(where: { $0.carSHA256 == digest }) else {
        throw Unexpected("of \(promised.count) snapshots one is gone")
      }
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: reader))
      guard restored.withBytes({ $0.array }) == car else { throw Unexpected("another CAR") }
    }
  }

  /// Packs as often as that, most of it disturbed.
  mutating func run(_ steps: Int, _ random: inout SeededGenerator) throws {
    var storage = MemoryStorage()
    for _ in 0..<steps {
      // As often as not what was packed before, which may be nothing new.
      if random.next() % 2 == 0 { try change() }
      let car = try repository.car()
      let kinds: [(Set<StorageOperation>, count: Int)] = [
        (.every, 12), ([.synchronize], 3), ([.write], 12), ([.write, .synchronize], 12),
      ]
      let (operations, count) = kinds[Int(random.next() % 4)]
      let fault = StorageFault(
        Int.random(in: 1...count, using: &random), of: operations,
        random.next() % 2 == 0 ? .once : .forEver,
        part: random.next() % 2 == 0 ? 0 : Double.random(in: 0..<1, using: &random))
      storage.conditions = .init(random.next() % 4 == 0 ? [] : [fault])
      _ = try pack(car, storage)
      storage.conditions = .init()
      try check(storage, &random)
      storage =
        random.next() % 3 == 0
        ? storage.surviving(PowerLoss(using: &random)) : storage.reopened(.init())
    }
    guard try pack(repository.car(), storage) else { throw Unexpected("it is not packed at last") }
    try check(storage, &random)
  }
}

@Suite struct `Packing on a disk that fails and loses its power` {
  @Test func `keeps each snapshot that it has told of`() throws {
    var (losses, failures, snapshots) = (0, 0, 0)
    for var round in Torture.rounds(24, from: 0x9a4e_1001) {
      var packing = try PromisedPacking()
      do {
        try packing.run(12, &round.random)
      } catch {
        Issue.record("\(round): \(error)")
      }
      losses += packing.lossCount
      failures += packing.failureCount
      snapshots += packing.promised.count
    }
    Torture.report(
      counts: "\(snapshots) snapshots, \(failures) attempts failed, the power lost \(losses) times")
    #expect(snapshots > 0 && failures > 0)
  }
}
