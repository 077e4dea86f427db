import Archive
import HTTP
import IPLD
import Synchronization
import SystemPackage
import TestSupport
import Testing

@testable import Files
@testable import Live

@Suite struct `A blob that arrives` {
  private let folder: TemporaryFolder
  private let memory = MemoryBudget(16 << 20)
  private let arrived = Counter()

  private final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int { count.withLock { $0 } }
    func add(_ number: Int) { count.withLock { $0 += number } }
  }

  init() throws { folder = try TemporaryFolder() }

  private func received(
    _ blob: [UInt8], memory: MemoryBudget? = nil, folder: String? = nil, limit: Int = 300_000_000
  ) -> BlobDownload {
    BlobDownload(
      .blob(blob), memory: memory ?? self.memory, folder: FilePath(folder ?? self.folder.path),
      limit: limit, arrived: { [arrived] in arrived.add($0) })
  }

  private func answer(
    _ bytes: [UInt8], saying length: Int? = nil, ranges: Bool = false, from offset: Int = 0,
    breaks: Bool = false
  ) -> HTTPResponse {
    var fields: [(name: String, value: String)] = []
    if let length { fields.append(("content-length", "\(length)")) }
    if ranges { fields.append(("accept-ranges", "bytes")) }
    let pieces = stride(from: 0, to: bytes.count, by: 100_000).map { start in
      Array(bytes[start..<min(start + 100_000, bytes.count)])
    }
    var response = HTTPResponse(
      status: offset > 0 ? 206 : 200, fields: fields, url: "https://pds.test/blob",
      body: HTTPBody(pieces, endingWith: breaks ? broken : nil))
    response.offset = UInt64(offset)
    return response
  }

  private let broken = TransportError(.cutOff("odd"), url: "https://pds.test/blob")

  private func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return generator.bytes(count)
  }

  private func content(_ blob: BlobDownload) throws -> (isInFile: Bool, [UInt8]) {
    switch try blob.content() {
    case .memory(let pieces): return (false, Array(pieces.joined()))
    case .file(let file):
      var bytes: [UInt8] = []
      try file.read(pieces: 1 << 20) { bytes += $0.array }
      return (true, bytes)
    }
  }

  private func isFree(_ memory: MemoryBudget, _ count: Int) -> Bool {
    guard memory.take(count) else { return false }
    memory.giveBack(count)
    return true
  }

  private static let small = BlobDownload.maximumInMemory

  @Test(arguments: [0, 1, 100_000, small, small + 1, 9 << 20])
  func `is in memory while it is small, and else in a file`(count: Int) async throws {
    let blob = noise(count)
    do {
      let received = received(blob)
      try await received.receive(answer(blob, saying: count))
      let (isInFile, bytes) = try content(received)
      #expect(bytes == blob)
      #expect(isInFile == (count > Self.small))
      #expect(received.count == count)
    }
    #expect(arrived.value == count)
    #expect(isFree(memory, 16 << 20), "it is given back")
    #expect(folder.names().isEmpty, "the file has no name")
  }

  @Test func `goes to a file when others have the memory, and waits for nobody`() async throws {
    let memory = MemoryBudget(500_000)
    let blobs = (0..<3).map { noise(300_000, seed: $0 + 1) }
    let all = blobs.map { received($0, memory: memory) }
    for (received, blob) in zip(all, blobs) { try await received.receive(answer(blob)) }
    let contents = try all.map { try content($0) }
    #expect(contents.map(\.1) == blobs)
    #expect(contents.map(\.isInFile) == [false, true, true])
  }

  @Test func `is refused when it is longer than a blob may be, however it is announced`()
    async throws
  {
    let blob = noise(1_000_000)
    try await received(blob, limit: 1_000_000).receive(answer(blob, saying: 1_000_000))
    for length in [nil, 1_000_000] {
      let tooLong = received(blob, limit: 999_999)
      await #expect(throws: BackupError.blobTooLarge(limit: 999_999)) {
        try await tooLong.receive(answer(blob, saying: length))
      }
    }
    // Nothing of it was read.
    let announced = received(blob, limit: 10)
    let before = arrived.value
    await #expect(throws: BackupError.blobTooLarge(limit: 10)) {
      try await announced.receive(answer(blob, saying: 11))
    }
    #expect(arrived.value == before)
  }

  @Test func `is another than its CID says`() async throws {
    let received = received([1, 2, 3])
    try await received.receive(answer([1, 2, 4]))
    #expect(throws: ArchiveError(.contentMismatch(.blob([1, 2, 3])))) {
      _ = try received.content()
    }
    let other: [UInt8] = [1, 2, 4]
    #expect(received.otherDigest == SHA256.digest(of: other.span))
  }

  @Test(arguments: [250_000, 9 << 20])
  func `goes on in the middle where the server can, and begins again where it cannot`(count: Int)
    async throws
  {
    let blob = noise(count)
    let received = received(blob)
    let half = count / 200_000 * 100_000
    await #expect(throws: broken) {
      try await received.receive(answer(Array(blob.prefix(half)), breaks: true))
    }
    #expect(received.offset == 0, "nobody said that it can be gone on with")
    await #expect(throws: broken) {
      try await received.receive(answer(Array(blob.prefix(half)), ranges: true, breaks: true))
    }
    #expect(received.offset == UInt64(half))
    try await received.receive(answer(Array(blob.dropFirst(half)), from: half))
    #expect(try content(received).1 == blob)
    #expect(arrived.value == count)
    // And a server that sends all of it though the rest was requested.
    try await received.receive(answer(blob))
    #expect(try content(received).1 == blob)
    #expect(arrived.value == count)
  }

  @Test func `says so when there is no room for a file`() async throws {
    let blob = noise(5 << 20)
    let received = received(blob, folder: folder.file("not there"))
    await #expect(throws: BackupError.self) { try await received.receive(answer(blob)) }
    #expect(isFree(memory, 16 << 20))
  }
}

@Suite struct `A budget of memory` {
  @Test func `is given as far as it goes, and comes back`() {
    let budget = MemoryBudget(100)
    #expect(budget.take(60))
    #expect(!budget.take(41))
    #expect(budget.take(40))
    #expect(!budget.take(1))
    budget.giveBack(60)
    #expect(budget.take(60))
  }
}
