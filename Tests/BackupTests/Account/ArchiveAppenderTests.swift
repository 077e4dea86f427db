import ATProtocol
import Archive
import ArchiveTestSupport
import IPLD
import Synchronization
import SystemPackage
import TestSupport
import Testing
import XRPC

@testable import Backup

@Suite(.timeLimit(.minutes(15))) struct `Blobs on their way into an archive` {
  private let storage = MemoryStorage()
  private let folder: TemporaryFolder
  private static let header: [UInt8] = CARHeader(roots: [.blob([1])]).bytes

  init() throws { folder = try TemporaryFolder() }

  private func appender() throws -> ArchiveAppender {
    try ArchiveAppender(storage, carHeader: Self.header, options: ArchiveOptions())
  }

  private func noise(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var generator = SeededGenerator(seed: seed)
    return generator.bytes(count)
  }

  /// What an archive holds of blobs.
  private func held(_ blobs: [[UInt8]]) throws -> [Bool] {
    let reader = try ArchiveReader(storage.map())
    return try blobs.map { try reader.body(of: .blob($0)) == $0 }
  }

  private func put(_ blob: [UInt8], into queue: PieceQueue) async throws {
    let transfer = CountingTransfer()
    var rest = blob[...]
    while !rest.isEmpty {
      let piece = Array(rest.prefix(100_000))
      let resumed = transfer.resumeCount
      if try queue.put(piece.span, of: transfer) == .proceed {
        rest = rest.dropFirst(piece.count)
      } else {
        while transfer.resumeCount == resumed { try await Task.sleep(for: .milliseconds(1)) }
      }
    }
  }

  @Test func `come from memory, from files and piece by piece`() async throws {
    let appender = try appender()
    let blobs = [noise(1000), noise(5 << 20, seed: 2), noise(9 << 20, seed: 3)]
    try await appender.append(verified: .blob(blobs[0]), blobs[0])
    let file = try TemporaryFile(in: FilePath(folder.path))
    let large = blobs[1]
    try file.write(large.span)
    try await appender.append(.blob(blobs[1]), from: file)
    let queue = PieceQueue()
    async let appended: Void = appender.append(.blob(blobs[2]), from: queue)
    queue.begin(length: UInt64(blobs[2].count))
    try await put(blobs[2], into: queue)
    queue.end()
    try await appended
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held(blobs) == [true, true, true])
  }

  @Test func `are cut off again if they are others than they should be`() async throws {
    let appender = try appender()
    let (good, bad) = (noise(6 << 20), noise(6 << 20, seed: 2))
    try await appender.append(verified: .blob([7]), [7])
    _ = try await appender.perform { try $0.flush() }
    let size = try storage.size
    let file = try TemporaryFile(in: FilePath(folder.path))
    try file.write(bad.span)
    await #expect(throws: ArchiveError(.contentMismatch(.blob(good)))) {
      try await appender.append(.blob(good), from: file)
    }
    #expect(try storage.size == size)
    let queue = PieceQueue()
    let appended = Task { try await appender.append(.blob(good), from: queue) }
    queue.begin(length: UInt64(bad.count))
    try await put(bad, into: queue)
    queue.end()
    await #expect(throws: ArchiveError(.contentMismatch(.blob(good)))) { try await appended.value }
    #expect(try storage.size == size)
    // The archive goes on as if nothing had been.
    try await appender.append(verified: .blob(good), good)
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held([good, bad, [7]]) == [true, false, true])
  }

  @Test func `begin again in the archive when they begin again on the network`() async throws {
    let appender = try appender()
    let blob = noise(7 << 20)
    let queue = PieceQueue()
    let appended = Task { try await appender.append(.blob(blob), from: queue) }
    for length in [5 << 20, 6 << 20] {
      queue.begin(length: UInt64(length))
      try await put(noise(length - 1000, seed: 9), into: queue)
    }
    queue.begin(length: UInt64(blob.count))
    try await put(blob, into: queue)
    queue.end()
    try await appended.value
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held([blob]) == [true])
  }

  @Test func `leave nothing behind when they are given up`() async throws {
    let appender = try appender()
    let blob = noise(7 << 20)
    let queue = PieceQueue()
    let appended = Task { try await appender.append(.blob(blob), from: queue) }
    queue.begin(length: UInt64(blob.count))
    try await put(Array(blob.prefix(6 << 20)), into: queue)
    queue.abandon()
    await #expect(throws: PieceQueue.Abandoned.self) { try await appended.value }
    try await appender.append(verified: .blob([7]), [7])
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held([blob, [7]]) == [false, true])
  }

  @Test func `are not waited for if they are there already`() async throws {
    let appender = try appender()
    let blob = noise(12 << 20)
    try await appender.append(verified: .blob(blob), blob)
    let queue = PieceQueue()
    async let appended: Void = appender.append(.blob(blob), from: queue)
    queue.begin(length: UInt64(blob.count))
    // More than waits in a queue.
    try await put(blob, into: queue)
    queue.end()
    try await appended
  }

  @Test func `tell their transfers when the disk is full`() async throws {
    let appender = try appender()
    let blob = noise(12 << 20)
    _ = try await appender.perform { try $0.flush() }
    storage.conditions = MemoryStorage.Conditions(capacity: 3 << 20)
    let queue = PieceQueue()
    let appended = Task { try await appender.append(.blob(blob), from: queue) }
    queue.begin(length: UInt64(blob.count))
    await #expect(throws: ArchiveError.self) { try await put(blob, into: queue) }
    await #expect(throws: ArchiveError.self) { try await appended.value }
    // That it is the archive's fault, and not the blob's, everybody hears.
    do {
      try await appended.value
    } catch {
      #expect(BlobFailure(error) == nil)
    }
  }

  @Test func `are in the file as soon as nobody else waits, and count after a failure`()
    async throws
  {
    let appender = try appender()
    let blobs = (1...50).map { noise(1000, seed: $0) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for blob in blobs {
        group.addTask { try await appender.append(verified: .blob(blob), blob) }
      }
      try await group.waitForAll()
    }
    // A process that is killed here has lost nothing that the last of them did not wait for.
    let next = try ArchiveAppender(
      MemoryStorage(storage.bytes), carHeader: Self.header, options: ArchiveOptions())
    let adopted = try await next.perform { $0.adoptedSectionCount }
    #expect(adopted >= 1)
    await appender.keepWhatArrived()
    #expect(try held(blobs).allSatisfy { $0 })
  }

  // MARK: The end of the archive

  private func wanted(_ size: Int?, _ number: UInt8 = 1) -> BlobReconciliation.Wanted {
    BlobReconciliation.Wanted(cid: .blob([number]), declaredSize: size, isReferenced: true)
  }

  @Test func `have the end of it to themselves, but not before the small ones are done`()
    async throws
  {
    let appender = try appender()
    let small = [wanted(100, 1), wanted(nil, 2), wanted(BlobSink.maximumInMemory, 3)]
    let tail = TailSlot(appender, for: small + [wanted(BlobSink.maximumInMemory + 1, 4)])
    for blob in small {
      #expect(tail.claim(.blob([4]), PieceQueue()) == nil)
      tail.settled(blob)
    }
    let first = PieceQueue()
    let task = try #require(tail.claim(.blob([4]), first))
    let second = PieceQueue()
    #expect(tail.claim(.blob([5]), second) == nil, "it is taken")
    first.abandon()
    await #expect(throws: PieceQueue.Abandoned.self) { try await task.value }
    let next = try #require(tail.claim(.blob([5]), second))
    second.abandon()
    await #expect(throws: PieceQueue.Abandoned.self) { try await next.value }
  }

  // MARK: Fetching

  private func fetch(
    _ wanted: [BlobReconciliation.Wanted], from server: ScriptedServer,
    into appender: ArchiveAppender,
    memory: MemoryBudget = MemoryBudget(16 << 20), connections: Int = 4, places: Int = 16
  ) async throws -> [CID: Result<UInt64, BlobFailure>] {
    let outcomes = Outcomes()
    let tail = TailSlot(appender, for: wanted)
    let fetcher = BlobFetcher(
      client: XRPCClient(
        service: "https://pds.test", network: server.network { $0.connectionsPerHost = places }),
      did: try DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz"), appender: appender,
      surroundings: BlobSink.Surroundings(
        memory: memory, folder: FilePath(folder.path), claimTail: { tail.claim($0, $1) },
        arrived: { _ in }),
      connections: connections,
      settled: {
        tail.settled($0)
        outcomes.add($0.cid, $1)
      })
    try await fetcher.fetch(wanted)
    return outcomes.all
  }

  private final class Outcomes: Sendable {
    private let found = Mutex<[CID: Result<UInt64, BlobFailure>]>([:])
    var all: [CID: Result<UInt64, BlobFailure>] { found.withLock { $0 } }
    func add(_ cid: CID, _ result: Result<UInt64, BlobFailure>) {
      found.withLock { found in
        #expect(found[cid] == nil, "each is settled once")
        found[cid] = result
      }
    }
  }

  private func server(_ blobs: [[UInt8]], saysLength: Bool, breaking: Set<Int> = [], at: Int = 0)
    -> ScriptedServer
  {
    let byCID = Dictionary(
      blobs.enumerated().map { ("\(CID.blob($0.element))", $0) }, uniquingKeysWith: { $1 })
    let broken = Mutex(breaking)
    return ScriptedServer { question in
      guard let (number, blob) = byCID[question["cid"] ?? ""] else {
        return .error(400, "BlobNotFound")
      }
      var answer = ScriptedServer.Answer.bytes(blob, saysLength: saysLength)
      if broken.withLock({ $0.remove(number) }) != nil { answer.breaksAfter = at }
      return answer
    }
  }

  @Test func `do not wait for each other's places while they hold each other's memory`()
    async throws
  {
    // Each of them may need all the memory, for nobody says how long they are; and the first breaks off while all the others wait.
    let blobs = (0..<8).map { noise(200_000, seed: $0 + 1) }
    let appender = try appender()
    let outcomes = try await fetch(
      blobs.map { .init(cid: .blob($0), declaredSize: nil, isReferenced: true) },
      from: server(blobs, saysLength: false, breaking: [0, 3, 5], at: 100_000), into: appender,
      memory: MemoryBudget(BlobSink.maximumInMemory), connections: 6, places: 2)
    #expect(outcomes.count == blobs.count)
    #expect(outcomes.values.allSatisfy { (try? $0.get()) == 200_000 })
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held(blobs).allSatisfy { $0 })
  }

  @Test func `come in all sizes at once`() async throws {
    let sizes = [0, 1, 70_000, 1 << 20, 4 << 20, (4 << 20) + 1, 9 << 20, 6 << 20, 5 << 20]
    let blobs = sizes.enumerated().map { noise($1, seed: UInt64($0) + 1) }
    let appender = try appender()
    let outcomes = try await fetch(
      blobs.map { .init(cid: .blob($0), declaredSize: $0.count, isReferenced: true) },
      from: server(blobs, saysLength: true, breaking: [3, 6, 7, 8], at: 800_000), into: appender)
    #expect(outcomes.values.allSatisfy { (try? $0.get()) != nil })
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held(blobs).allSatisfy { $0 })
  }

  @Test func `are each their own: what does not come is said, and keeps nothing else from coming`()
    async throws
  {
    let (good, absent, other) = (noise(1000), noise(1000, seed: 2), noise(1000, seed: 3))
    let odd = CID(
      codec: .raw,
      multihash: Multihash(function: HashFunction(rawValue: 0x1e), digest: [1, 2, 3, 4]))
    let asked = Mutex(0)
    let server = ScriptedServer { question in
      switch question["cid"] {
      case "\(CID.blob(good))": return .bytes(good)
      case "\(CID.blob(other))":
        asked.withLock { $0 += 1 }
        return .bytes(good)
      case "\(odd)": throw TransportError(.refusedRedirect("http://10.0.0.1"), url: "?")
      default: return .error(400, "InvalidRequest")
      }
    }
    let appender = try appender()
    let outcomes = try await fetch(
      [.blob(good), .blob(absent), .blob(other), odd].map {
        .init(cid: $0, declaredSize: 1000, isReferenced: true)
      }, from: server, into: appender)
    #expect(outcomes[.blob(good)] == .success(1000))
    #expect(outcomes[.blob(absent)] == .failure(BlobFailure(reason: .notFound, status: 400)))
    #expect(outcomes[.blob(other)] == .failure(BlobFailure(reason: .mismatch, status: nil)))
    #expect(asked.withLock { $0 } == 3, "it may have been spoilt on the way")
    #expect(outcomes[odd] == .failure(BlobFailure(reason: .unverifiable, status: nil)))
    #expect(server.questions.count == 5, "nothing is asked for that nobody could check")
  }

  @Test func `end all at once when the disk is full, and what has come stays`() async throws {
    let blobs = (0..<6).map { noise(1 << 20, seed: $0 + 1) }
    let appender = try appender()
    _ = try await appender.perform { try $0.flush() }
    storage.conditions = MemoryStorage.Conditions(capacity: 3 << 20)
    await #expect(throws: ArchiveError.self) {
      try await fetch(
        blobs.map { .init(cid: .blob($0), declaredSize: $0.count, isReferenced: true) },
        from: server(blobs, saysLength: true), into: appender, connections: 2)
    }
  }
}

@Suite struct `Why a blob did not come` {
  private func transport(_ reason: TransportError.Reason) -> BlobLedger.Reason? {
    BlobFailure(TransportError(reason, url: "https://pds.test"))?.reason
  }

  @Test func `is said in the ledger's words`() {
    #expect(transport(.unknownHost) == .noAnswer)
    #expect(transport(.stalled(seconds: 60)) == .noAnswer)
    #expect(transport(.cutOff("")) == .noAnswer)
    #expect(transport(.silent) == .noAnswer)
    #expect(transport(.overloaded) == .rateLimited)
    #expect(transport(.refusedRedirect("")) == .hostileRedirect)
    #expect(transport(.refusedAddress("")) == .hostileRedirect)
    #expect(transport(.tooManyRedirects) == .hostileRedirect)
    #expect(transport(.tooLong(limit: 1)) == .tooLarge)
    #expect(BlobFailure(BlobSink.Refusal.tooLong(limit: 1))?.reason == .tooLarge)
    #expect(BlobFailure(ArchiveError(.contentMismatch(.blob([1]))))?.reason == .mismatch)
    let lengths = ArchiveError.Reason.lengthMismatch(.blob([1]), announced: 1, received: 2)
    #expect(BlobFailure(ArchiveError(lengths))?.reason == .mismatch)
  }

  @Test func `is nothing about the blob if the archive or everything else is at fault`() {
    #expect(BlobFailure(ArchiveError(.system(operation: "write", code: 28))) == nil)
    #expect(BlobFailure(ArchiveError(.writerFailed)) == nil)
    #expect(BlobFailure(CancellationError()) == nil)
    #expect(BlobFailure(BackupError.system("write", 28)) == nil)
  }

  @Test(
    arguments: [
      (400, "BlobNotFound", .notFound), (400, "InvalidRequest", .notFound), (404, "", .notFound),
      (410, "", .notFound), (400, "RepoTakendown", .refused), (401, "", .refused),
      (403, "", .refused), (429, "", .rateLimited), (500, "", .serverError),
      (503, "", .serverError),
      (302, "", .refused),
    ] as [(Int, String, BlobLedger.Reason)])
  func `follows from the status`(status: Int, name: String, reason: BlobLedger.Reason) async throws
  {
    let server = ScriptedServer { _ in .error(status, name) }
    let client = XRPCClient(
      service: "https://pds.test", network: server.network { $0.attempts = 1 })
    let query = GetBlob(did: try DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz"), cid: .blob([1]))
    let error = await #expect(throws: (any Error).self) {
      try await client.bytes(query, limit: 100)
    }
    let failure = try BlobFailure(#require(error))
    #expect(failure == BlobFailure(reason: reason, status: status))
  }
}
