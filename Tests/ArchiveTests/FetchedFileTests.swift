import ArchiveTestSupport
import Foundation
import IPLD
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Archive

/// Bytes in memory that are fetched as if they lay elsewhere.
private final class MemorySource: ByteSource {
  private let bytes: [UInt8]
  private let isStopping: Bool
  private let state = Mutex<(fetched: [Range<UInt64>], rest: Int)>(([], .max))

  init(_ bytes: [UInt8], failingAfter count: Int = .max, stopping isStopping: Bool = false) {
    (self.bytes, self.isStopping) = (bytes, isStopping)
    state.withLock { $0.rest = count }
  }

  /// What has been fetched.
  var fetched: [Range<UInt64>] { state.withLock { $0.fetched } }

  func fetch(
    _ ranges: [Range<UInt64>], _ take: @escaping @Sendable (UInt64, [UInt8]) throws -> Void
  ) throws {
    if isStopping { throw CancellationError() }
    for range in ranges {
      let mayFetch = state.withLock { state in
        state.rest -= 1
        if state.rest >= 0 { state.fetched.append(range) }
        return state.rest >= 0
      }
      guard mayFetch else { throw FetchFailure(.unavailable, "the source is gone") }
      try take(range.lowerBound, Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
    }
  }
}

struct `A file that is fetched` {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func file(
    _ source: MemorySource, _ count: Int, capacity: Int = 1 << 30, inMemory isInMemory: Bool = false
  ) throws -> MappedFile {
    try MappedFile(
      FetchedFile(
        source, count: count,
        scratch: isInMemory ? MemoryScratch(length: count) : FileScratch(scratchFile()),
        capacity: capacity))
  }

  private func scratchFile() throws -> FileDescriptor {
    try FileDescriptor.open(
      FilePath(folder.file("scratch-\(UUID().uuidString)")), .readWrite, options: [.create],
      permissions: .ownerReadWrite)
  }

  private func noise(_ count: Int) -> [UInt8] {
    var generator = SeededGenerator(printing: 7)
    return generator.bytes(count)
  }

  @Test(arguments: [0, 1, 16_383, 16_384, 16_385, 3_000_001])
  func `has the bytes of its source for whoever says nothing of what it reads`(_ count: Int) throws
  {
    let bytes = noise(count)
    let file = try file(MemorySource(bytes), count)
    #expect(file.count == count)
    let read = file.withBytes { $0.array(0..<count) }
    #expect(read == bytes)
    try file.checkFetched()
  }

  @Test func `is fetched where it is read, and nowhere else`() throws {
    let bytes = noise(1 << 20)
    let source = MemorySource(bytes)
    let file = try file(source, bytes.count)
    let byte = file.withBytes(reading: [500_000..<500_001]) { $0[500_000] }
    #expect(byte == bytes[500_000])
    #expect(source.fetched.count == 1)
    #expect(source.fetched.allSatisfy { $0.contains(500_000) && $0.count <= 64 << 10 })
    let again = file.withBytes(reading: []) { all in
      file.willRead([500_001..<500_002])
      return all[500_001]
    }
    #expect(again == bytes[500_001])
    #expect(source.fetched.count == 1)
  }

  @Test func `is asked for once what was announced, joined where it lies close`() throws {
    let bytes = noise(4 << 20)
    let source = MemorySource(bytes)
    let file = try file(source, bytes.count)
    file.willRead([0..<100_000, 110_000..<200_000, 3_000_000..<3_000_001])
    #expect(source.fetched.count == 2)
    let read = file.withBytes(reading: [0..<200_000]) { $0.array(0..<200_000) }
    #expect(read == Array(bytes[..<200_000]))
    #expect(source.fetched.count == 2)
    #expect(!file.lacks(0..<200_000))
    #expect(file.lacks(0..<1_000_000))
  }

  @Test(arguments: [1 << 30, 1 << 20], [false, true])
  func `is read by several threads at a time, also where little is kept`(
    _ capacity: Int, _ isInMemory: Bool
  ) throws {
    let bytes = noise(8 << 20)
    let source = MemorySource(bytes)
    let file = try file(source, bytes.count, capacity: capacity, inMemory: isInMemory)
    let wrong = Mutex(0)
    Parallel.perform(64, workers: 8) { number in
      for step in 0..<64 {
        let place = (number * 131_071 + step * 524_287) % (bytes.count - 1)
        let other = (place + 3_000_000) % bytes.count
        // What was read first is there still when more has arrived.
        let read = file.withBytes(reading: [place..<place + 1]) { all in
          file.willRead([other..<other + 1])
          return (all[place], all[other])
        }
        if read != (bytes[place], bytes[other]) { wrong.withLock { $0 += 1 } }
      }
    }
    #expect(wrong.withLock { $0 } == 0)
  }

  @Test(arguments: [false, true])
  func `keeps no more than it may, and fetches again what it has let go of`(_ isInMemory: Bool)
    throws
  {
    let bytes = noise(32 << 20)
    let source = MemorySource(bytes)
    let file = try file(source, bytes.count, capacity: 4 << 20, inMemory: isInMemory)
    for _ in 0..<2 {
      for start in stride(from: 0, to: bytes.count, by: 1 << 20) {
        file.willRead([start..<start + 1 << 20])
        let read = file.withBytes(reading: [start..<start + 1000]) {
          $0.array(start..<start + 1000)
        }
        #expect(read == Array(bytes[start..<start + 1000]))
      }
    }
    #expect(source.fetched.count == 64)
    #expect(file.lacks(0..<bytes.count))
  }

  @Test func `has its source's bytes also where its memory held others before`() throws {
    var random = SeededGenerator(printing: 0xfa7)
    let bytes = noise(24 << 20 + 12_345)
    let file = try file(MemorySource(bytes), bytes.count, capacity: 6 << 20, inMemory: true)
    let longest = [100, 50_000, 1 << 20, 3 << 20, 7 << 20]
    for _ in 0..<400 {
      let count = 1 + Int(random.next() % UInt64(longest[Int(random.next() % 5)]))
      // Often the end, which is not a whole page.
      let start = Int(random.next() % UInt64(bytes.count + 4 << 20))
      let range = min(start, bytes.count - count)..<min(start, bytes.count - count) + count
      let isRight = file.withBytes(reading: [range]) {
        $0.extracting(range).equals(bytes.span.extracting(range))
      }
      #expect(isRight, "\(range)")
    }
    try file.checkFetched()
  }

  @Test func `says that it could not be fetched, whatever was read`() throws {
    let bytes = noise(1 << 20)
    let file = try file(MemorySource(bytes, failingAfter: 1), bytes.count)
    let first = file.withBytes(reading: [0..<1]) { $0[0] }
    #expect(first == bytes[0])
    try file.checkFetched()
    let lost = file.withBytes(reading: [900_000..<900_001]) { $0[900_000] }
    #expect(lost == 0)
    #expect(throws: FetchFailure.self) { try file.checkFetched() }
  }

  @Test func `is given up by who is told to stop, and not called damaged`() throws {
    let file = try file(MemorySource([], stopping: true), 1 << 20)
    #expect(throws: CancellationError.self) {
      _ = try ArchiveReader(file)
    }
  }

  @Test(arguments: [1 << 30, 2 << 20])
  func `is an archive like any other`(_ capacity: Int) throws {
    var random = SeededGenerator(printing: 0xfa2)
    let bodies =
      (0..<3000).map { _ in random.text(20 + Int(random.next() % 900)) }
      + [random.bytes(9_500_000), random.text(5 << 20), random.bytes(100_000)]
    let sample = try SampleArchive(in: folder, bodies: bodies, manifest: random.text(50))
    let bytes = try folder.read(FilePath(sample.path.string).lastComponent?.string ?? "")
    let source = MemorySource(bytes)
    let reader = try ArchiveReader(file(source, bytes.count, capacity: capacity))
    // The end, and what is read of the index.
    #expect(source.fetched.count <= 2)
    for (cid, body) in sample.sections {
      let read = try reader.body(of: cid)
      #expect(read == body)
    }
    let absent = try reader.ordinal(of: .blob([1, 2, 3, 4]))
    #expect(absent == nil)
    let there = try ArchiveContents(of: reader)
    let here = try ArchiveContents(of: ArchiveReader(path: sample.path))
    #expect(there.difference(from: here) == nil)
    try reader.checkFetched()
  }

  @Test func `never is a damaged archive because it could not be fetched`() throws {
    var random = SeededGenerator(printing: 0xfa3)
    let bodies = (0..<40).map { _ in random.bytes(100_000) }
    let sample = try SampleArchive(in: folder, bodies: bodies, manifest: random.text(50))
    let bytes = try folder.read(FilePath(sample.path.string).lastComponent?.string ?? "")
    for count in 0..<8 {
      let source = MemorySource(bytes, failingAfter: count)
      #expect(throws: FetchFailure.self) {
        let reader = try ArchiveReader(file(source, bytes.count))
        for (cid, _) in sample.sections { _ = try reader.body(of: cid) }
      }
    }
  }

  @Test func `lies in memory that can be moved, and stays there where it cannot`() throws {
    let (part, count) = (1 << 20, 4 << 20)
    let memory = try unsafe SystemCalls.reserveMemory(length: count)
    defer { unsafe SystemCalls.unmap(memory, length: count) }
    func bytes(of number: Int) -> [UInt8] {
      unsafe Array(
        UnsafeRawBufferPointer(start: memory + number * part, count: part))
    }
    func fill(_ number: Int) {
      unsafe (memory + number * part).initializeMemory(
        as: UInt8.self, repeating: UInt8(number + 1), count: part)
    }
    fill(0)
    let isMoved = unsafe SystemCalls.movePages(from: memory, to: memory + 2 * part, length: part)
    #if os(Linux)
      #expect(isMoved)
      #expect(bytes(of: 2).allSatisfy { $0 == 1 })
    #endif
    if isMoved { #expect(bytes(of: 0).allSatisfy { $0 == 0 }) }
    fill(0)
    fill(2)
    // No system moves memory onto itself.
    let isMovedAgain = unsafe SystemCalls.movePages(
      from: memory + 2 * part, to: memory + 2 * part, length: part)
    #expect(!isMovedAgain)
    #expect(bytes(of: 2).allSatisfy { $0 == 0 })
    #expect(bytes(of: 0).allSatisfy { $0 == 1 })
    fill(2)
    #expect(bytes(of: 2).allSatisfy { $0 == 3 })
  }
}

struct `A far archive of many generations` {
  @Test(arguments: [(200, 5000), (60, 40_000)])
  func `is walked back in few requests`(_ count: Int, _ size: Int) throws {
    let archive = AppendedArchive()
    var random = SeededGenerator(seed: 57)
    for _ in 0..<count { try archive.append([random.bytes(size)]) }
    let bytes = try archive.storage.map().withBytes { $0.array(0..<$0.count) }
    let source = MemorySource(bytes)
    let file = try MappedFile(
      FetchedFile(source, count: bytes.count, scratch: MemoryScratch(length: bytes.count)))
    let reader = try ArchiveReader(file)
    let opened = source.fetched.count
    var heads: [Generation.Head] = []
    try reader.forEachGeneration {
      if let head = $0.head { heads.append(head) }
      return true
    }
    #expect(heads == archive.generations.reversed().compactMap(\.head))
    for head in heads { #expect(try reader.headBody(head.cid) != nil) }
    #expect(source.fetched.count - opened <= 8, "\(source.fetched.count - opened) requests")
    // Nothing is fetched twice.
    #expect(source.fetched.reduce(0) { $0 + $1.count } <= bytes.count)
  }

  @Test func `is not read on between generations that lie far apart`() throws {
    let archive = AppendedArchive()
    var random = SeededGenerator(seed: 57)
    for _ in 0..<6 { try archive.append([random.bytes(300_000)]) }
    let bytes = try archive.storage.map().withBytes { $0.array(0..<$0.count) }
    let source = MemorySource(bytes)
    let file = try MappedFile(
      FetchedFile(source, count: bytes.count, scratch: MemoryScratch(length: bytes.count)))
    var found = 0
    try ArchiveReader(file).forEachGeneration { _ in
      found += 1
      return true
    }
    #expect(found == 6)
    #expect(source.fetched.reduce(0) { $0 + $1.count } < 8 * (64 << 10))
  }
}
