import ATProtocol
import Archive
import ArchiveTestSupport
import Copying
import Files
import Foundation
import IPLD
import Packing
import Snapshots
import SystemPackage
import TestSupport
import Verification

/// An archive to which things are done at random, and what it has to give back after each of them.
///
/// After something was interrupted, nobody may know whether it has happened; so there may be more
/// than one model, of which one has to be right. An interrupted write may also be completed by the
/// next write to the archive.
struct ModelledArchive {
  private let folder: TemporaryFolder
  private let image: ArchiveImage
  private var accounts: [ModelledAccount]
  private var bodies: [CID: [UInt8]] = [:]
  private var hours = 0
  private var bytes: [UInt8] = []
  private var hasLostPower = false
  private var models = [ArchiveModel()]
  /// How often each operation was done.
  private(set) var counts: [String: Int] = [:]
  /// What was done last, for messages.
  private(set) var last = "nothing"

  init(_ image: ArchiveImage) throws {
    self.image = image
    folder = try TemporaryFolder()
    accounts = try (0..<3).map(ModelledAccount.init)
  }

  /// Does something.
  mutating func step(using random: inout SeededGenerator) throws {
    let operations:
      [(name: String, weight: Int, perform: (inout Self, inout SeededGenerator) throws -> Void)] = [
        ("pack", 30, { try $0.pack(using: &$1) }),
        ("pack the same again", 4, { try $0.packAgain(using: &$1) }),
        ("pack, interrupted", 20, { try $0.interrupt(using: &$1) { try $0.pack(using: &$1) } }),
        ("prune", 5, { try $0.prune(using: &$1) }),
        ("prune, interrupted", 5, { try $0.interrupt(using: &$1) { try $0.prune(using: &$1) } }),
        ("reopen", 6, { model, _ in try model.reopen() }),
        ("repair", 6, { try $0.repair(using: &$1) }),
        ("compact", 3, { model, _ in try model.compact() }),
        ("merge", 3, { try $0.merge(using: &$1) }),
      ]
    var choice = Int.random(in: 0..<operations.reduce(0) { $0 + $1.weight }, using: &random)
    for operation in operations {
      choice -= operation.weight
      guard choice < 0 else { continue }
      last = operation.name
      counts[operation.name, default: 0] += 1
      try operation.perform(&self, &random)
      try check(isFull: random.next() % 16 == 0, using: &random)
      return
    }
  }

  // MARK: Storage

  /// What the next operation on a storage is going to meet.
  private var faults: [StorageFault] = []

  /// What there is to read, if anything is committed.
  private var reader: ArchiveReader? {
    get throws {
      guard !bytes.isEmpty else { return nil }
      do {
        let reader = try image.open(bytes)
        return reader.generation.number > 0 ? reader : nil
      } catch let error as ArchiveError where error.reason == .notAnArchive {
        return nil
      }
    }
  }

  private func storage() throws -> MemoryStorage {
    let floor = try reader?.generation.committedLength ?? 0
    return MemoryStorage(bytes, .init(faults, floor: floor), hasLostPower: hasLostPower)
  }

  /// Lets an operation fail somewhere, and then perhaps the power, too.
  private mutating func interrupt(
    using random: inout SeededGenerator,
    _ operation: (inout Self, inout SeededGenerator) throws -> Void
  ) throws {
    faults = [
      StorageFault(
        Int.random(in: 1...25, using: &random), .forEver,
        part: Double.random(in: 0...1, using: &random))
    ]
    defer { faults = [] }
    try operation(&self, &random)
  }

  /// Does something on a storage, and takes over what is in it then.
  ///
  /// - Parameters:
  ///   - models: What there may be if it succeeds.
  ///   - body: What is done.
  private mutating func write(
    to models: [ArchiveModel], using random: inout SeededGenerator,
    _ body: (MemoryStorage) throws -> Void
  ) throws {
    let storage = try storage()
    do {
      try body(storage)
      guard storage.failureCount == 0 else { throw Unexpected("a failure was swallowed") }
      (bytes, self.models) = (storage.bytes, models)
    } catch is Unchanged {
      bytes = storage.bytes
    } catch let error as ArchiveError {
      guard storage.failureCount > 0 else { throw error }
      self.models += models
      let isLost = random.next() % 2 == 0
      bytes = isLost ? storage.bytes(after: PowerLoss(using: &random)) : storage.bytes
      hasLostPower = hasLostPower || isLost
    }
  }

  // MARK: Operations

  private mutating func pack(using random: inout SeededGenerator) throws {
    let number = accounts.indices.randomElement(using: &random) ?? 0
    try accounts[number].change(using: &random)
    try pack(number, using: &random)
  }

  private mutating func packAgain(using random: inout SeededGenerator) throws {
    try pack(accounts.indices.randomElement(using: &random) ?? 0, using: &random)
  }

  private mutating func pack(_ number: Int, using random: inout SeededGenerator) throws {
    let (entry, input, blobs) = try prepare(number, using: &random)
    // Nobody has been told of a file in which nothing is committed.
    let options = options(entry, startsOver: try reader == nil)
    let candidates = models
    try write(to: models.map { $0.adding(entry) }, using: &random) { storage in
      let report = try RepositoryPacker(options).pack(
        input, folders: [blobs], into: storage)
      guard report.missing.isEmpty, report.refused.isEmpty else {
        throw Unexpected("blobs are missing: \(report.missing)")
      }
      guard report.isUnchanged else { return }
      guard
        candidates.contains(where: { $0.entries.last { $0.did == entry.did }?.car == entry.car })
      else { throw Unexpected("what has changed is said to be the same") }
      throw Unchanged()
    }
  }

  /// Nothing was written, as nothing has changed.
  private struct Unchanged: Error {}

  /// Writes down what is to be packed.
  private mutating func prepare(_ number: Int, using random: inout SeededGenerator) throws -> (
    ArchiveModel.Entry, InputFile, BlobFolder
  ) {
    // Some hours later, so that a day has several, or none.
    hours += Int.random(in: 1...30, using: &random)
    let account = accounts[number]
    let car = try account.repository.car()
    let blobs = account.blobs
    for blob in blobs {
      bodies[.blob(blob)] = blob
      try folder.write("blobs\(number)/\(CID.blob(blob))", blob)
    }
    try folder.write("blobs\(number)/none", [])
    let date = Date(timeIntervalSince1970: 1_767_225_600 + Double(hours) * 3600)
    let entry = ArchiveModel.Entry(
      did: account.repository.did, createdAt: date.ISO8601Format(), car: car,
      blobs: blobs.map { .blob($0) })
    return (
      entry, try InputFile(folder.write("\(number).car", car)),
      BlobFolder(folder.file("blobs\(number)"))
    )
  }

  private func options(_ entry: ArchiveModel.Entry, startsOver: Bool) -> RepositoryPacker.Options {
    var options = RepositoryPacker.Options(
      tool: "tests", createdAt: entry.createdAt, hostSystem: "Linux", milliseconds: { 0 })
    options.startsOver = startsOver
    return options
  }

  private mutating func prune(using random: inout SeededGenerator) throws {
    guard try reader?.generation.head != nil else { return }
    let (count, days) = (
      Int.random(in: 0...12, using: &random), Int.random(in: 0...6, using: &random)
    )
    try write(
      to: models.map { $0.pruning(last: count, daily: days) }, using: &random
    ) { storage in
      _ = try RetentionPolicy(last: count, daily: days).prune(storage, name: "it")
    }
  }

  /// Opens the archive for writing, and does nothing with it: what was interrupted is taken over or
  /// gone.
  private mutating func reopen() throws {
    guard let reader = try reader else { return }
    let storage = try storage()
    _ = try ArchiveWriter.open(storage, carHeader: try reader.carHeader)
    bytes = storage.bytes
    hasLostPower = false
  }

  /// Cuts off what follows the last footer, or gives it the one that it lacks.
  private mutating func tidy() throws {
    guard try reader != nil else { return }
    let (storage, before) = (try storage(), bytes)
    let report = try ArchiveRepair.repair(storage)
    bytes = storage.bytes
    let length = try reader?.generation.committedLength
    guard report.damage == nil, length == UInt64(bytes.count) else {
      try Torture.keep(before, "untidy.car.zst")
      throw Unexpected("what was interrupted is not cut off: \(report)")
    }
    hasLostPower = false
  }

  /// Damages the index and the footer, and has them made again.
  private mutating func repair(using random: inout SeededGenerator) throws {
    try tidy()
    guard let generation = try reader?.generation, let segment = generation.segments.last else {
      return
    }
    let whole = bytes
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let range = [
        Int(segment.offset)..<Int(generation.footerOffset),
        Int(generation.footerOffset)..<Int(generation.committedLength),
      ]
      let place = range[Int(random.next() % 2)].randomElement(using: &random) ?? 0
      bytes[place] ^= UInt8.random(in: 1...255, using: &random)
    }
    let storage = MemoryStorage(bytes)
    let report = try ArchiveRepair.run(storage)
    // Only its footer shows that a generation was the first to be repaired.
    guard storage.bytes == whole || generation.features.isRepaired && report.firstLost == nil else {
      throw Unexpected("repairing gives another file: \(report)")
    }
    bytes = storage.bytes
  }

  private mutating func compact() throws {
    try tidy()
    guard try reader?.generation.head != nil else { return }
    let path = FilePath(try folder.write("compacted.car.zst", bytes))
    _ = try ArchiveCopier().compact(path)
    bytes = try folder.read("compacted.car.zst")
  }

  /// Merges the archive with one that others have made in the meantime.
  private mutating func merge(using random: inout SeededGenerator) throws {
    try tidy()
    guard try reader?.generation.head != nil else { return }
    // Which of the models is right has to be known, because the order of the snapshots depends on
    // it.
    try check(isFull: false, using: &random)
    guard let model = models.first else { return }
    var other = ArchiveModel()
    let storage = MemoryStorage()
    for _ in 0..<Int.random(in: 1...3, using: &random) {
      let number = accounts.indices.randomElement(using: &random) ?? 0
      try accounts[number].change(using: &random)
      let (entry, input, blobs) = try prepare(number, using: &random)
      let options = options(entry, startsOver: try storage.size == 0)
      let report = try RepositoryPacker(options).pack(input, folders: [blobs], into: storage)
      if !report.isUnchanged { other = other.adding(entry) }
    }
    let archives = try [("1", bytes), ("2", storage.bytes)].map { name, bytes in
      try SourceArchive(image.open(bytes), name: name)
    }
    let path = FilePath(folder.file("merged.car.zst"))
    _ = try ArchiveCopier().merge(archives, to: AtomicFile(path, replacing: true))
    bytes = try folder.read("merged.car.zst")
    models = [model.merging(other)]
  }

  // MARK: Checks

  /// Compares the archive with the models.
  ///
  /// - Parameters:
  ///   - isFull: Whether all of it is verified, also by others.
  ///   - random: What is read besides.
  private mutating func check(isFull: Bool, using random: inout SeededGenerator) throws {
    guard let reader = try reader else {
      guard models.contains(where: \.entries.isEmpty) else { throw Unexpected("all is gone") }
      return
    }
    let history = reader.generation.head == nil ? nil : try SnapshotHistory(of: reader)
    guard history?.breaks.isEmpty != false else { throw Unexpected("\(history?.breaks ?? [])") }
    // What is offered of an unfinished write was never promised.
    let entries = history?.entries.filter { $0.isVouched } ?? []
    let times = entries.map(\.createdAt)
    guard let model = models.first(where: { $0.entries.map(\.createdAt) == times }) else {
      throw Unexpected("there are \(times), and not \(models.map { $0.entries.map(\.createdAt) })")
    }
    // As long as bytes follow, the write may still be completed.
    if reader.recovery == nil { models = [model] }
    let places =
      isFull ? Array(times.indices) : times.indices.randomElement(using: &random).map { [$0] } ?? []
    for place in places {
      try check(entries[place], model.entries[place], reader)
    }
    guard isFull else { return }
    _ = try image.contents(of: bytes, reader.generation, mayTearFooter: hasLostPower)
    if history != nil {
      let verdict = try SnapshotVerifier().verify(try image.open(bytes), .full).verdict
      let isTailed = reader.recovery != nil
      guard verdict == .intact || (isTailed && verdict == .incomplete) || hasLostPower else {
        throw Unexpected("the verdict is \(verdict)")
      }
    }
    try image.checkIndependently(Array(bytes.prefix(Int(reader.generation.committedLength))))
    counts["looked at by zstd and by the second reader", default: 0] += 1
  }

  private func check(
    _ entry: SnapshotHistory.Entry, _ expected: ArchiveModel.Entry, _ reader: ArchiveReader
  ) throws {
    let restored = try RestoredRepository(ArchivedSnapshot(entry.cid, in: reader))
    guard restored.isExact, restored.withBytes({ $0.array }) == expected.car else {
      throw Unexpected("the CAR of \(entry.createdAt) comes back otherwise")
    }
    for cid in expected.blobs {
      guard try reader.body(of: cid) == bodies[cid] else {
        throw Unexpected("blob \(cid) of \(entry.createdAt) comes back otherwise")
      }
    }
  }
}
