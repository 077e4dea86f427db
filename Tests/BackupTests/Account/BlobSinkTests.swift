import IPLD
import Synchronization
import SystemPackage
import TestSupport
import Testing
import XRPC

@testable import Backup

@Suite(.timeLimit(.minutes(15))) struct `A sink for a blob` {
  /// The kinds of places that a blob may be in.
  private enum Place: String { case memory, file, streaming }

  private let folder: TemporaryFolder
  private let memory = MemoryBudget(16 << 20)
  private let arrived = Counter()

  private final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    func add(_ number: Int) { count.withLock { $0 += number } }
  }

  private final class Taken: Sendable {
    let bytes = Mutex<[UInt8]>([])
  }

  init() throws { folder = try TemporaryFolder() }

  private func sink(
    _ blob: [UInt8], declared: Int? = nil, memory: MemoryBudget? = nil,
    tail: @escaping @Sendable (CID, PieceQueue) -> Task<Void, any Error>? = { _, _ in nil }
  ) -> BlobSink {
    BlobSink(
      .blob(blob), declaredSize: declared,
      BlobSink.Surroundings(
        memory: memory ?? self.memory, folder: FilePath(folder.path), claimTail: tail,
        arrived: { [arrived] in arrived.add($0) }))
  }

  private func head(
    _ length: Int?, _ fields: [(name: String, value: String)] = [], status: Int = 200
  )
    -> HTTPResponse
  {
    HTTPResponse(
      status: status,
      fields: (length.map { [(name: "content-length", value: "\($0)")] } ?? []) + fields,
      url: "https://pds.test/blob")
  }

  private func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return generator.bytes(count)
  }

  private func give(_ bytes: ArraySlice<UInt8>, to sink: BlobSink) throws {
    var rest = bytes
    while !rest.isEmpty {
      let piece = Array(rest.prefix(16 << 10))
      try #require(try sink.take(piece.span) == .proceed)
      rest = rest.dropFirst(piece.count)
    }
  }

  private func content(_ sink: BlobSink) throws -> (Place, [UInt8]) {
    switch try sink.content() {
    case .memory(let bytes): return (.memory, bytes)
    case .file(let file):
      var bytes: [UInt8] = []
      try file.read(pieces: 1 << 20) { bytes += $0.array }
      return (.file, bytes)
    case .streaming: return (.streaming, [])
    }
  }

  private static let limit = BlobSink.maximumInMemory

  @Test(
    arguments: [
      (0, 0, nil, "memory"), (1, 1, nil, "memory"), (limit, limit, nil, "memory"),
      (limit + 1, limit + 1, nil, "file"), (limit, nil, limit, "memory"),
      (limit + 1, nil, limit + 1, "file"), (limit, nil, nil, "memory"),
      (limit + 1, nil, nil, "file"),
      // A record that says less than comes.
      (100_000, nil, 100, "file"), (65_000, nil, 100, "memory"), (100_000, 100_000, 1, "memory"),
      // One that says more.
      (100, nil, limit + 1, "file"), (100, 100, limit + 1, "memory"),
    ] as [(Int, Int?, Int?, String)])
  func `keeps a small one in memory, and a large one in a file`(
    count: Int, announced: Int?, declared: Int?, place: String
  ) throws {
    let blob = noise(count)
    let sink = sink(blob, declared: declared)
    try sink.begin(head(announced), offset: 0, transfer: CountingTransfer())
    try give(blob[...], to: sink)
    let (found, bytes) = try content(sink)
    #expect(found.rawValue == place)
    #expect(bytes == blob)
    #expect(arrived.value == count)
    sink.close()
    #expect(memory.isGranted(memory.claim(16 << 20, for: CountingTransfer())), "it is given back")
    #expect(folder.names().isEmpty, "the file has no name")
  }

  @Test func `streams a large one to the end of the archive if that is free`() async throws {
    let blob = noise(6 << 20)
    let taken = Taken()
    let sink = sink(blob, declared: blob.count) { cid, pieces in
      Task {
        #expect(cid == .blob(blob))
        let round = try pieces.nextRound(after: 0)
        while case .piece(let piece) = try pieces.next(of: round.round) {
          taken.bytes.withLock { $0 += piece }
        }
      }
    }
    let transfer = CountingTransfer()
    try sink.begin(head(blob.count), offset: 0, transfer: transfer)
    var rest = blob[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(100_000))
      let resumed = transfer.resumeCount
      if try sink.take(piece.span) == .proceed {
        rest = rest.dropFirst(piece.count)
      } else {
        while transfer.resumeCount == resumed { try await Task.sleep(for: .milliseconds(1)) }
      }
    }
    guard case .streaming(let appending) = try sink.content() else {
      Issue.record("it streams")
      return
    }
    try await appending.value
    sink.close()
    #expect(taken.bytes.withLock { $0 } == blob)
    #expect(sink.receivedCount == UInt64(blob.count))
  }

  @Test func `does not stream what nobody says the length of`() throws {
    let sink = sink([1], declared: 10 << 20) { _, _ in
      Issue.record("the end of the archive is not wanted")
      return nil
    }
    try sink.begin(head(nil), offset: 0, transfer: CountingTransfer())
    sink.close()
  }

  @Test(
    arguments: [
      (10, 16 << 20), (9 << 20, 18 << 20), (nil, 1 << 30), (-5, 16 << 20),
    ] as [(Int?, Int)])
  func `refuses what is far longer than it can be, before it has come`(declared: Int?, limit: Int)
    throws
  {
    let sink = sink([1], declared: declared)
    defer { sink.close() }
    let refusal = BlobSink.Refusal.tooLong(limit: UInt64(limit))
    #expect(throws: refusal) {
      try sink.begin(head(limit + 1), offset: 0, transfer: CountingTransfer())
    }
    try sink.begin(head(limit), offset: 0, transfer: CountingTransfer())
  }

  @Test func `refuses what goes on and on`() throws {
    let sink = sink([1], declared: 10)
    defer { sink.close() }
    try sink.begin(head(nil), offset: 0, transfer: CountingTransfer())
    let piece = noise(1 << 20)
    for _ in 0..<16 { #expect(try sink.take(piece.span) == .proceed) }
    #expect(throws: BlobSink.Refusal.tooLong(limit: 16 << 20)) { try sink.take([1].span) }
  }

  @Test func `waits for memory, and goes on when there is some`() throws {
    let memory = MemoryBudget(4 << 20)
    let (first, second) = (noise(3 << 20), noise(2 << 20, seed: 2))
    let sinks = (sink(first, memory: memory), sink(second, memory: memory))
    let transfers = (CountingTransfer(), CountingTransfer())
    try sinks.0.begin(head(first.count), offset: 0, transfer: transfers.0)
    try give(first[...], to: sinks.0)
    try sinks.1.begin(head(second.count), offset: 0, transfer: transfers.1)
    #expect(try sinks.1.take(second.span) == .pause)
    #expect(try sinks.1.take(second.span) == .pause)
    #expect(try content(sinks.0) == (.memory, first))
    sinks.0.close()
    #expect(transfers.1.resumeCount == 1)
    try give(second[...], to: sinks.1)
    #expect(try content(sinks.1) == (.memory, second))
    sinks.1.close()
  }

  @Test(arguments: [false, true])
  func `has the next attempt woken, not the one that failed while it waited`(isSuspended: Bool)
    throws
  {
    let memory = MemoryBudget(4 << 20)
    let holder = memory.claim(4 << 20, for: CountingTransfer())
    let blob = noise(100_000)
    let sink = sink(blob, memory: memory)
    let (failed, next) = (CountingTransfer(), CountingTransfer())
    try sink.begin(head(blob.count), offset: 0, transfer: failed)
    #expect(try sink.take(blob.span) == .pause)
    if isSuspended { sink.suspend() }
    try sink.begin(head(blob.count), offset: 0, transfer: next)
    #expect(try sink.take(blob.span) == .pause)
    memory.release(holder)
    #expect(next.resumeCount == 1)
    #expect(failed.resumeCount == 0)
    try give(blob[...], to: sink)
    sink.close()
    #expect(memory.isGranted(memory.claim(4 << 20, for: next)))
  }

  @Test func `holds no memory while it waits to be tried again`() throws {
    let memory = MemoryBudget(4 << 20)
    let blob = noise(100_000)
    for fields in [[], [(name: "accept-ranges", value: "bytes")]] {
      let sink = sink(blob, memory: memory)
      try sink.begin(head(blob.count, fields), offset: 0, transfer: CountingTransfer())
      try give(blob[..<50_000], to: sink)
      let waiting = CountingTransfer()
      let claim = memory.claim(4 << 20, for: waiting)
      #expect(!memory.isGranted(claim))
      sink.suspend()
      #expect(memory.isGranted(claim))
      #expect(waiting.resumeCount == 1)
      memory.release(claim)
      sink.close()
    }
  }

  @Test(arguments: [100_000, 6 << 20])
  func `goes on in the middle where the server can, and begins again where it cannot`(
    count: Int
  ) throws {
    let blob = noise(count)
    let sink = sink(blob)
    let half = count / 2
    try sink.begin(head(count), offset: 0, transfer: CountingTransfer())
    try give(blob[..<half], to: sink)
    sink.suspend()
    #expect(sink.resumableOffset == 0, "the server says nothing of ranges")
    try sink.begin(
      head(count, [(name: "accept-ranges", value: "bytes")]), offset: 0,
      transfer: CountingTransfer())
    try give(blob[..<half], to: sink)
    sink.suspend()
    #expect(sink.resumableOffset == UInt64(half))
    try sink.begin(
      head(count - half, status: 206), offset: UInt64(half), transfer: CountingTransfer())
    try give(blob[half..<(half + 1000)], to: sink)
    #expect(sink.resumableOffset == UInt64(half + 1000), "a server that has done it can do it")
    sink.suspend()
    try sink.begin(
      head(count - half - 1000, status: 206), offset: UInt64(half + 1000),
      transfer: CountingTransfer())
    try give(blob[(half + 1000)...], to: sink)
    #expect(try content(sink).1 == blob)
    // And one that was asked for the rest and sends everything.
    try sink.begin(head(count), offset: 0, transfer: CountingTransfer())
    try give(blob[...], to: sink)
    #expect(try content(sink).1 == blob)
    #expect(arrived.value == count)
    sink.close()
    #expect(memory.isGranted(memory.claim(16 << 20, for: CountingTransfer())))
  }

  @Test func `follows a blob whose length changes from attempt to attempt`() throws {
    let lengths = [100, 5 << 20, 3 << 20, 70_000, 10, 4 << 20]
    let sink = sink([1])
    for (number, length) in lengths.enumerated() {
      let blob = noise(length, seed: UInt64(number))
      try sink.begin(head(length), offset: 0, transfer: CountingTransfer())
      try give(blob[...], to: sink)
      let (place, bytes) = try content(sink)
      #expect(bytes == blob, "\(length)")
      #expect(place == (length > Self.limit ? .file : .memory), "\(length)")
    }
    #expect(arrived.value == lengths.last)
    sink.close()
  }

  @Test(arguments: [false, true])
  func `gives the end of the archive up when it has to begin again`(canResume: Bool) async throws {
    let length = 8 << 20
    let sink = sink([1], declared: length) { _, pieces in
      Task {
        let round = try pieces.nextRound(after: 0)
        while true {
          if case .end = try pieces.next(of: round.round) { return }
        }
      }
    }
    let fields = canResume ? [(name: "accept-ranges", value: "bytes")] : []
    try sink.begin(head(length, fields), offset: 0, transfer: CountingTransfer())
    #expect(try sink.take(noise(1000).span) == .proceed)
    sink.suspend()
    #expect(sink.resumableOffset == (canResume ? 1000 : 0))
    if canResume {
      try sink.begin(head(length - 1000, status: 206), offset: 1000, transfer: CountingTransfer())
      #expect(try sink.take(noise(10).span) == .proceed)
      guard case .streaming(let appending) = try sink.content() else {
        Issue.record("it still streams")
        return
      }
      try await appending.value
    } else {
      #expect(arrived.value == 0)
    }
    sink.close()
  }

  @Test func `says so when there is no room for a file`() throws {
    let surroundings = BlobSink.Surroundings(
      memory: memory, folder: FilePath(folder.file("not there")), claimTail: { _, _ in nil },
      arrived: { _ in })
    let sink = BlobSink(.blob([1]), declaredSize: nil, surroundings)
    #expect(throws: BackupError.self) {
      try sink.begin(head(5 << 20), offset: 0, transfer: CountingTransfer())
    }
    // And what turns out longer than anybody said.
    try sink.begin(head(nil), offset: 0, transfer: CountingTransfer())
    #expect(throws: BackupError.self) { try give(noise(5 << 20)[...], to: sink) }
    sink.close()
    #expect(memory.isGranted(memory.claim(16 << 20, for: CountingTransfer())))
  }
}
