import ATProtocol
import Archive
import HTTP
import IPLD
internal import Snapshots
import StandIn
import SystemPackage
import TestSupport
import Testing
import XRPC

@testable import Files
@testable import Live

@Suite(.timeLimit(.minutes(15))) struct `A plan of a backup` {
  private let account: StandInAccount
  private let scene: AccountScene

  init() throws {
    account = try StandInAccount("alice", posts: 4, blobs: 5)
    scene = try AccountScene([account])
  }

  /// Plans, and expects that nothing came of it.
  private func plan(
    byHandle: Bool = false, into file: String? = nil, folder: String = "",
    _ change: (inout AccountBackup.Options) -> Void = { _ in }
  ) async throws -> BackupPlan {
    var options = scene.options
    change(&options)
    let names = scene.folder.names()
    let contents = try names.map { try scene.folder.read($0) }
    let fetched = scene.requestCount("getRepo") + scene.requestCount("getBlob")
    let backup = AccountBackup(network: try scene.network(), options: options) { _ in }
    let name = try ATIdentifier(byHandle ? account.handle : account.did)
    let plan = try await backup.plan(
      name,
      into: file.map { .file(scene.path($0)) }
        ?? .folder(folder.isEmpty ? scene.archives : ArchiveFolder(scene.path(folder))),
      locks: RunLocks())
    #expect(scene.requestCount("getRepo") + scene.requestCount("getBlob") == fetched)
    #expect(scene.folder.names() == names)
    #expect(try names.map { try scene.folder.read($0) } == contents)
    return plan
  }

  @Test(arguments: [true, false])
  func `of a first one has the server's list, and makes no folder`(byHandle: Bool) async throws {
    let plan = try await plan(byHandle: byHandle, folder: "not-there")
    #expect(plan.did.text == account.did)
    #expect(plan.handle?.text == account.handle)
    #expect(plan.server == scene.server.url)
    #expect(plan.name == scene.path("not-there/\(account.handle).car.zst").string)
    #expect(!plan.exists)
    #expect(plan.repository == .first)
    #expect(plan.heldRevision == nil)
    #expect(plan.newestRevision?.text != nil)
    #expect(plan.blobs.listed == 5 && plan.blobs.wanted == 5 && plan.blobs.unsized == 5)
    #expect(!AtomicFile.isTaken(scene.path("not-there")))
  }

  @Test(arguments: [nil, "a.car.zst"])
  func `of one with nothing new asks for nothing more`(file: String?) async throws {
    try await scene.backUp(account, into: file)
    let before = scene.requestCount("listBlobs")
    let plan = try await plan(into: file)
    #expect(plan.exists)
    #expect(plan.repository == .unchanged)
    #expect(plan.heldRevision == plan.newestRevision)
    #expect(plan.blobs == (nil, 0, 0, 0))
    #expect(scene.requestCount("listBlobs") == before)
  }

  @Test func `has what changed, and what is missing with its size`() async throws {
    let lost = try #require(account.blobs.values.first)
    account.lose(lost.cid)
    try await scene.backUp(account)
    let incomplete = try await plan()
    #expect(incomplete.repository == .unchanged)
    #expect(incomplete.blobs.wanted == 1 && incomplete.blobs.unsized == 0)
    #expect(incomplete.blobs.declaredBytes == UInt64(lost.bytes.count))
    let new = BlobContent(noise: 7, size: 1234, mimeType: "image/png")
    try account.commit([account.post("3zzzzzzzzzzzz", "more", showing: [new])])
    let changed = try await plan(byHandle: true)
    #expect(changed.repository == .changed)
    #expect(changed.heldRevision != changed.newestRevision)
    #expect(changed.blobs.listed == 6 && changed.blobs.wanted == 2 && changed.blobs.unsized == 1)
    #expect(changed.blobs.declaredBytes == UInt64(lost.bytes.count))
  }

  @Test func `counts what an interrupted backup has left`() async throws {
    scene.server.behaviour.latency = 0.05
    let backup = try scene.backup { $0.connectionsPerHost = 1 }
    let (path, did) = (scene.path("b.car.zst"), try ATIdentifier(account.did))
    let task = Task { try await backup.run(did, into: .file(path)) }
    while scene.requestCount("getBlob") < 3 { try await Task.sleep(for: .milliseconds(1)) }
    task.cancel()
    _ = await task.result
    let plan = try await plan(into: "b.car.zst")
    #expect(plan.repository == .first)
    #expect(plan.blobs.listed == 5)
    #expect(1..<5 ~= plan.blobs.wanted, "\(plan.blobs)")
  }

  @Test func `says what the server does not`() async throws {
    scene.server.play(FaultRule(.status(501), on: "listBlobs"))
    let plan = try await plan()
    #expect(plan.blobs.listed == nil && plan.blobs.wanted == 0)
    #expect(plan.warnings.count == 1)
    scene.server.clearFaults()
    account.status = .takendown
    await #expect(throws: BackupError.self) { _ = try await self.plan() }
  }

  @Test func `of one that was current a short while ago asks for nothing`() async throws {
    try await scene.backUp(account)
    let before = scene.server.server.log.count
    let plan = try await plan { $0.maximumAge = 86_400 }
    #expect(plan.repository == .recent)
    #expect(scene.server.server.log.count == before)
  }

  @Test func `is made while a backup is under way`() async throws {
    try await scene.backUp(account, into: "a.car.zst")
    let target = try await DestinationArchive.open(scene.path("a.car.zst").string)
    #expect(try await plan(into: "a.car.zst").repository == .unchanged)
    target.release()
  }
}
