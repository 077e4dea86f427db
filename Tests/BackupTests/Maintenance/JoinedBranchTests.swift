import ArchiveTestSupport
import Foundation
import IPLD
internal import Packing
internal import Repository
import SystemPackage
import TestSupport
import Testing

@testable import Archive
@testable import Copying
@testable import Files
@testable import Snapshots
@testable import Verification

/// Two copies of one archive to which different snapshots were appended, and the end of one of them
/// behind the other.
@Suite struct `Branches of an archive that were joined` {
  /// A kind of end that is joined.
  enum Tail: String, CaseIterable {
    case withoutItsIndex, whole
  }

  private let cars: [[UInt8]]
  private let base: [UInt8]
  private let older: [UInt8]
  private let newer: [UInt8]

  init() throws {
    var random = SeededGenerator(printing: 0x10b4_0001)
    var alice = try TestRepository(posts: 25)
    var cars: [[UInt8]] = []
    for number in 0..<3 {
      try alice.advance()
      for index in 0..<4 {
        try alice.add(
          "app.bsky.feed.post/n\(number)-\(index)", ["n": .integer(Int128(random.next() % 99))])
      }
      // Servers need not send the commit first.
      let (car, blocks) = (try alice.car(), try alice.blocks())
      cars.append(number == 0 ? car : try Self.car(of: blocks.reversed(), like: car))
    }
    self.cars = cars
    base = try Self.packing(cars[0], onto: [])
    older = try Self.packing(cars[1], onto: base)
    newer = try Self.packing(cars[2], onto: base)
  }

  private static func car(of blocks: some Sequence<Block>, like car: [UInt8]) throws -> [UInt8] {
    let header = try RepositoryInspection(car: car).header
    var bytes = Array(car[..<header.length])
    for block in blocks {
      CARWriter.appendPrefix(block.cid, bodyLength: UInt64(block.bytes.count), to: &bytes)
      bytes += block.bytes
    }
    return bytes
  }

  private static func packing(_ car: [UInt8], onto bytes: [UInt8]) throws -> [UInt8] {
    let storage = MemoryStorage(bytes)
    _ = try pack(car, into: storage)
    return storage.bytes
  }

  @discardableResult
  private static func pack(_ car: [UInt8], into storage: MemoryStorage) throws
    -> RepositoryPacker.Report
  {
    var options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-01-02T03:04:05Z", hostSystem: "Linux", milliseconds: { 0 })
    options.startsOver = storage.bytes.isEmpty
    return try RepositoryPacker(options).pack(
      InputFile(MappedFile(copying: car), named: "repo.car"), folders: [], into: storage)
  }

  /// The end of one behind the other.
  private func joined(_ tail: Tail, isOlderFirst: Bool) throws -> MemoryStorage {
    let (first, second) = isOlderFirst ? (older, newer) : (newer, older)
    var end = second[base.count...]
    if tail == .withoutItsIndex {
      let survey = try Survey(MappedFile(copying: second))
      let place = survey.landmarks.map(\.landmark.range.lowerBound).first { $0 > base.count }
      end = second[base.count..<(try #require(place))]
    }
    return MemoryStorage(first + end)
  }

  /// All snapshots are listed and given back bit for bit, and nothing is damaged.
  private func requireAll(_ storage: MemoryStorage, _ comment: Comment, besides others: Int = 0)
    throws
  {
    let reader = try ArchiveReader(storage.map())
    let history = try SnapshotHistory(of: reader)
    let given = try history.entries.map { entry in
      let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: history.reader))
      #expect(restored.isExact, comment)
      return restored.withBytes { $0.array }
    }
    #expect(Set(given).isSuperset(of: cars), comment)
    #expect(history.entries.count == cars.count + others, comment)
    let report = try SnapshotVerifier().verify(reader, .full)
    #expect(report.verdict == .intact, "\(comment): \(report.firstDamage ?? "")")
  }

  @Test(arguments: Tail.allCases, [true, false])
  func `keep both snapshots when they are repaired`(tail: Tail, isOlderFirst: Bool) throws {
    let storage = try joined(tail, isOlderFirst: isOlderFirst)
    let listed = try SnapshotHistory(of: ArchiveReader(storage.map())).entries
    #expect(listed.count == 3)
    let outcome = try ArchiveRepair.repair(storage)
    #expect(outcome.lost.isEmpty && outcome.damage == nil)
    try requireAll(storage, "repaired")
    // The newest is still the one that was committed, and the other one says how it came.
    let history = try SnapshotHistory(of: ArchiveReader(storage.map()))
    #expect(history.newest?.member == listed.last(where: \.isVouched)?.member)
    #expect(history.entries.count { !$0.isVouched } == 1)
    let repaired = storage.bytes
    _ = try ArchiveRepair.repair(storage)
    #expect(storage.bytes == repaired)
  }

  @Test(arguments: [true, false])
  func `keep both snapshots when a third is appended, or others are forgotten`(
    isOlderFirst: Bool
  ) throws {
    let storage = try joined(.withoutItsIndex, isOlderFirst: isOlderFirst)
    var later = try TestRepository(posts: 3)
    later.rev = "3zzzzzzzzzz2x"
    #expect(try Self.pack(later.car(), into: storage).lost.isEmpty)
    try requireAll(storage, "appended to", besides: 1)

    let pruned = try joined(.withoutItsIndex, isOlderFirst: isOlderFirst)
    let report = try RetentionPolicy(last: 50).prune(pruned, name: "a")
    #expect(report.plan.forgottenCount == 0 && report.lost.isEmpty)
    try requireAll(pruned, "pruned")
  }

  @Test(arguments: Tail.allCases, [true, false])
  func `are both in a new archive, in their order`(tail: Tail, isOlderFirst: Bool) throws {
    let storage = try joined(tail, isOlderFirst: isOlderFirst)
    let new = MemoryStorage()
    let options = RepositoryPacker.Options(
      tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux", milliseconds: { 0 })
    let report = try ArchiveCopier().salvage(
      ArchiveReader(storage.map()), into: new, by: options.provenance)
    #expect(report.isWhole && report.lostSnapshots.isEmpty)
    try requireAll(new, "salvaged")
  }

  @Test func `are committed with one footer, which is all that an interruption can take`() throws {
    let storage = try joined(.withoutItsIndex, isOlderFirst: false)
    let before = storage.bytes
    // What is committed comes with one footer.
    _ = try ArchiveRepair.repair(storage)
    let footers = try Survey(MappedFile(copying: storage.bytes)).footers
    #expect(footers.count { $0.frame.offset >= newer.count } == 1)
    #expect(storage.bytes.starts(with: before[..<newer.count]))
    try requireAll(storage, "repaired")
  }

  @Test func `name the snapshot that cannot be kept`() throws {
    var torn = try joined(.withoutItsIndex, isOlderFirst: false).bytes
    // The first frame behind the last footer has the blocks that are only there.
    for place in newer.count + 40..<newer.count + 400 { torn[place] ^= 0x55 }
    let storage = MemoryStorage(torn)
    let listed = try SnapshotHistory(of: ArchiveReader(storage.map())).entries
    let found = try #require(listed.first { !$0.isVouched })
    var later = try TestRepository(posts: 3)
    later.rev = "3zzzzzzzzzz2x"
    let report = try Self.pack(later.car(), into: storage)
    #expect(report.lost.map(\.member) == [found.member])
    // It is written again by a run that has it, and then nothing is lost.
    let again = MemoryStorage(torn)
    #expect(try Self.pack(cars[1], into: again).lost.isEmpty)
    #expect(try ArchiveRepair.repair(MemoryStorage(torn)).lost.map(\.member) == [found.member])
  }

  @Test func `a manifest with the CAR of another commit becomes nothing`() throws {
    let reader = try ArchiveReader(MappedFile(copying: older))
    let head = try #require(reader.generation.head?.cid)
    var forged = try ArchivedSnapshot(head, in: reader).snapshot
    forged.previous = head
    forged.commit = CID(codec: .dagCBOR, hashing: Array("no commit".utf8).span)
    let block = try forged.block()
    var content: [UInt8] = []
    CARWriter.appendPrefix(block.cid, bodyLength: UInt64(block.bytes.count), to: &content)
    var frame: [UInt8] = []
    FrameEncoder().encode((content + block.bytes).span, level: 3, into: &frame)

    let pruned = MemoryStorage(older + frame)
    let report = try RetentionPolicy(last: 50).prune(pruned, name: "a")
    #expect(report.lost.map(\.manifest) == [block.cid])
    let repaired = MemoryStorage(older + frame)
    #expect(try ArchiveRepair.repair(repaired).lost.map(\.manifest) == [block.cid])
    for storage in [pruned, repaired] {
      let reader = try ArchiveReader(storage.map())
      #expect(try SnapshotHistory(of: reader).newest?.cid == head)
      #expect(try SnapshotVerifier().verify(reader, .full).verdict == .intact)
    }
  }
}

@Suite struct `A footer of which little is left` {
  @Test func `makes its snapshot the newest of a new archive`() throws {
    var series = try Series()
    var alice = try TestRepository(posts: 9)
    for number in 0..<4 {
      try alice.advance()
      try alice.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
      try series.pack(alice.car())
    }
    let whole = try SnapshotHistory(of: series.reader)
    for place in [4, 30, 60, 100, 140] {
      var damaged = try series.bytes
      damaged[damaged.count - place] ^= 1
      let storage = MemoryStorage(damaged)
      let history = try SnapshotHistory(of: ArchiveReader(storage.map()))
      #expect(history.entries.map(\.cid) == whole.entries.map(\.cid))
      #expect(history.newest?.cid == whole.newest?.cid)
      let new = MemoryStorage()
      let options = RepositoryPacker.Options(
        tool: "tests", createdAt: "2026-05-05T05:05:05Z", hostSystem: "Linux",
        milliseconds: { 0 })
      _ = try ArchiveCopier().salvage(
        ArchiveReader(storage.map()), into: new, by: options.provenance)
      let salvaged = try SnapshotHistory(of: ArchiveReader(new.map()))
      #expect(salvaged.entries.map(\.member) == whole.entries.map(\.member))
      #expect(salvaged.newest?.member == whole.newest?.member)
      #expect(salvaged.newestOfAccounts.map(\.member) == whole.newestOfAccounts.map(\.member))
    }
  }
}
