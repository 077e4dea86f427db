import ATProtocol
import Archive
import ArchiveTestSupport
import HTTP
import IPLD
import Synchronization
import SystemPackage
import TestSupport
import Testing
import XRPC

@testable import Files
@testable import Live
@testable import Snapshots

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

  private func file(_ bytes: [UInt8]) throws -> DownloadedFile {
    let file = try TemporaryFile(in: FilePath(folder.path))
    try file.write(bytes.span)
    return .file(file)
  }

  @Test func `come from memory and from files`() async throws {
    let appender = try appender()
    let blobs = [
      noise(1000), noise(300_000, seed: 2), noise(5 << 20, seed: 3), noise(9 << 20, seed: 4), [],
    ]
    try await appender.append(.blob(blobs[0]), .memory([blobs[0]]))
    try await appender.append(
      .blob(blobs[1]),
      .memory([Array(blobs[1].prefix(100_000)), Array(blobs[1].dropFirst(100_000))]))
    try await appender.append(.blob(blobs[2]), file(blobs[2]))
    try await appender.append(.blob(blobs[3]), file(blobs[3]))
    try await appender.append(.blob(blobs[4]), .memory([]))
    // What is there is not written once more.
    try await appender.append(.blob(blobs[3]), file(blobs[3]))
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held(blobs) == [true, true, true, true, true])
  }

  @Test func `are cut off again if they are others than they should be`() async throws {
    let appender = try appender()
    let (good, bad) = (noise(6 << 20), noise(6 << 20, seed: 2))
    try await appender.append(.blob([7]), .memory([[7]]))
    _ = try await appender.perform { try $0.flush() }
    let size = try storage.size
    await #expect(throws: ArchiveError(.contentMismatch(.blob(good)))) {
      try await appender.append(.blob(good), file(bad))
    }
    #expect(try storage.size == size)
    // The archive continues as if nothing had happened.
    try await appender.append(.blob(good), file(good))
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held([good, bad, [7]]) == [true, false, true])
  }

  @Test func `that find no room on the disk are cut off again, and smaller ones still come`()
    async throws
  {
    let appender = try appender()
    let (large, small) = (noise(12 << 20), noise(100_000, seed: 2))
    _ = try await appender.perform { try $0.flush() }
    storage.conditions = MemoryStorage.Conditions(capacity: 3 << 20)
    let error = await #expect(throws: ArchiveError.self) {
      try await appender.append(.blob(large), file(large))
    }
    #expect(try BlobFailure(#require(error))?.reason == .noRoom)
    try await appender.append(.blob(small), .memory([small]))
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held([large, small]) == [false, true])
  }

  @Test func `are in the file as soon as nobody else waits, and count after a failure`()
    async throws
  {
    let appender = try appender()
    let blobs = (1...50).map { noise(1000, seed: $0) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for blob in blobs {
        group.addTask { try await appender.append(.blob(blob), .memory([blob])) }
      }
      try await group.waitForAll()
    }
    // A process that is killed here has lost nothing that the last of them did not wait for.
    let next = try ArchiveAppender(
      MemoryStorage(storage.bytes), carHeader: Self.header, options: ArchiveOptions())
    let adopted = await next.perform { $0.adoptedSectionCount }
    #expect(adopted >= 1)
    await appender.keepWhatArrived()
    #expect(try held(blobs).allSatisfy { $0 })
  }

  // MARK: Fetching

  private func fetch(
    _ wanted: [BlobReconciliation.Wanted], from server: ScriptedServer,
    into appender: ArchiveAppender,
    memory: MemoryBudget = MemoryBudget(16 << 20), connections: Int = 4, places: Int = 16
  ) async throws -> [CID: Result<UInt64, BlobFailure>] {
    let outcomes = Outcomes()
    var options = AccountBackup.Options(
      tool: "", hostSystem: "", now: { "" }, milliseconds: { 0 })
    (options.memory, options.connections) = (memory, connections)
    let nothing = try BlobReconciliation(
      BlobTable(), inCAR: { _ in nil }, listing: nil, archive: nil, base: nil)
    let downloads = BlobDownloads(
      nothing, of: try DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz"), into: appender,
      folder: FilePath(folder.path), pieces: nil, options: options, observer: { _ in })
    let network = server.network { $0.connectionsPerHost = places }
    try await downloads.fetch(
      wanted, from: XRPCClient(service: "https://pds.test", network: network)
    ) { outcomes.add($0.cid, $1) }
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

  @Test func `come whole, however little memory and however few places there are`() async throws {
    let blobs = (0..<8).map { noise(200_000, seed: $0 + 1) }
    let appender = try appender()
    let outcomes = try await fetch(
      blobs.map { .init(cid: .blob($0), declaredSize: nil, isReferenced: true) },
      from: server(blobs, saysLength: false, breaking: [0, 3, 5], at: 100_000), into: appender,
      memory: MemoryBudget(150_000), connections: 6, places: 2)
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
    #expect(failure(outcomes[.blob(absent)])?.reason == .notFound)
    #expect(failure(outcomes[.blob(absent)])?.status == 400)
    #expect(failure(outcomes[.blob(other)])?.reason == .mismatch)
    #expect(asked.withLock { $0 } == 3, "it may have been spoilt on the way")
    #expect(failure(outcomes[odd])?.reason == .unverifiable)
    #expect(server.questions.count == 5, "nothing is asked for that nobody could check")
  }

  private func failure(_ result: Result<UInt64, BlobFailure>?) -> BlobFailure? {
    if case .failure(let failure) = result { failure } else { nil }
  }

  @Test func `that find no room are noted, and the others come`() async throws {
    let (small, large) = ((0..<6).map { noise(100_000, seed: $0 + 1) }, noise(9 << 20, seed: 9))
    let appender = try appender()
    _ = try await appender.perform { try $0.flush() }
    storage.conditions = MemoryStorage.Conditions(capacity: 3 << 20)
    let outcomes = try await fetch(
      ([large] + small).map { .init(cid: .blob($0), declaredSize: $0.count, isReferenced: true) },
      from: server([large] + small, saysLength: true), into: appender, connections: 2)
    #expect(failure(outcomes[.blob(large)])?.reason == .noRoom)
    _ = try await appender.perform { try $0.checkpoint() }
    #expect(try held(small).allSatisfy { $0 })
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
    #expect(BlobFailure(BackupError.blobTooLarge(limit: 1))?.reason == .tooLarge)
    #expect(
      BlobFailure(ArchiveError(.system(operation: "write", code: 28)))?.reason == .noRoom)
    #expect(BlobFailure(BackupError.system("write", 28))?.reason == .noRoom)
    #expect(BlobFailure(ArchiveError(.contentMismatch(.blob([1]))))?.reason == .mismatch)
    let lengths = ArchiveError.Reason.lengthMismatch(.blob([1]), announced: 1, received: 2)
    #expect(BlobFailure(ArchiveError(lengths))?.reason == .mismatch)
  }

  @Test func `is nothing about the blob if the archive or everything else is at fault`() {
    #expect(BlobFailure(ArchiveError(.system(operation: "write", code: 5))) == nil)
    #expect(BlobFailure(ArchiveError(.writerFailed(nil))) == nil)
    #expect(BlobFailure(CancellationError()) == nil)
    #expect(BlobFailure(BackupError.system("write", 5)) == nil)
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
    let query = XRPCCall.getBlob(.blob([1]), of: try DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz"))
    let error = await #expect(throws: (any Error).self) {
      try await client.bytes(query, limit: 100)
    }
    let failure = try BlobFailure(#require(error))
    #expect(failure?.reason == reason)
    #expect(failure?.status == status)
  }
}
