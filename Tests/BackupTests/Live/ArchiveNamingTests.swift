import ATProtocol
import Archive
import Foundation
internal import HTTP
import IPLD
import LibC
import StandIn
import Synchronization
import SystemPackage
import TestSupport
import Testing
internal import Verification
import XRPC

@testable import Files
@testable import Live
@testable import Snapshots

@Suite(.timeLimit(.minutes(15))) struct `Names of archives` {
  private let alice: StandInAccount
  private let scene: AccountScene

  init() throws {
    alice = try StandInAccount("alice", posts: 3)
    scene = try AccountScene([alice])
  }

  private var names: [String] { scene.folder.names().sorted() }

  @Test(arguments: [true, false])
  func `are after the handle, however the account was named`(byHandle: Bool) async throws {
    let report = try await scene.backUp(alice, byHandle: byHandle)
    #expect(names == ["alice.example.com.car.zst"])
    #expect(report.path.lastComponent?.string == names[0])
    let again = try await scene.backUp(alice, byHandle: !byHandle)
    #expect(again.outcome == .upToDate)
    #expect(names.count == 1)
  }

  @Test(arguments: [true, false])
  func `stay when the archive is damaged so that it has lost its snapshots`(byHandle: Bool)
    async throws
  {
    let path = try await scene.backUp(alice).path
    let whole = try scene.folder.read("alice.example.com.car.zst")
    let noFooter = whole.dropLast(200) + Array(repeating: 0, count: 200)
    for damaged in [Array(noFooter), Array(whole.prefix(whole.count * 2 / 3))] {
      try scene.folder.write("alice.example.com.car.zst", damaged)
      let filled = await #expect(throws: (any Error).self) {
        try await scene.backup().fill(path) { _, _ in }
      }
      #expect(filled is ArchiveError || filled is SnapshotError, "\(String(describing: filled))")
      let report = try await scene.backUp(alice, byHandle: byHandle)
      #expect(report.path == path)
      #expect(report.warnings.contains { $0.contains("has lost its snapshots") })
      #expect(report.damage.isCutOff)
      #expect(names == ["alice.example.com.car.zst"])
      #expect(try scene.verdict(path) == .intact)
      #expect(try await scene.backUp(alice, byHandle: byHandle).outcome == .upToDate)
    }
    // What is not an archive is not passed over, either.
    try scene.folder.write("alice.example.com.car.zst", Array("nothing".utf8))
    await #expect(throws: ArchiveError.self) { try await scene.backUp(alice, byHandle: byHandle) }
    #expect(names == ["alice.example.com.car.zst"])
  }

  @Test(arguments: [true, false])
  func `are not passed over when the archive cannot be opened`(byHandle: Bool) async throws {
    let name = "alice.example.com.car.zst"
    try FileManager.default.createSymbolicLink(
      atPath: scene.folder.file(name), withDestinationPath: "nowhere")
    #expect(
      try ArchiveFolder.archives(in: scene.folder.path) == [scene.folder.file(name)])
    await #expect(throws: (any Error).self) { try await scene.backUp(alice, byHandle: byHandle) }
    #expect(names == [name])
  }

  @Test func `stay when the handle changes`() async throws {
    try await scene.backUp(alice)
    alice.handle = "alice.elsewhere.example"
    try alice.commit([alice.post("3zzzzzzzzzzzz", "moved")])
    for byHandle in [true, false] {
      let report = try await scene.backUp(alice, byHandle: byHandle)
      #expect(report.path.lastComponent?.string == "alice.example.com.car.zst")
      #expect(report.snapshot.handle?.text == "alice.elsewhere.example")
    }
    #expect(names == ["alice.example.com.car.zst"])
  }

  @Test func `are after the DID where somebody else had the handle before`() async throws {
    try await scene.backUp(alice)
    alice.handle = "old.example.com"
    let other = try StandInAccount("other", handle: "alice.example.com")
    scene.server.add(other)
    // The archive that bears the handle continues with its own account.
    let known = try await scene.backUp(other, byHandle: true)
    #expect(known.snapshot.did.text == alice.did)
    #expect(
      known.warnings.contains { $0.contains("no longer claims the handle alice.example.com") })
    let report = try await scene.backUp(other)
    #expect(report.snapshot.did.text == other.did)
    #expect(names == ["alice.example.com.car.zst", "\(other.did).car.zst"].sorted())
    #expect(
      try scene.snapshot(scene.path("alice.example.com.car.zst")).snapshot.did.text == alice.did)
    // Each has its own from then on; the handle still means the archive that bears it.
    #expect(try await scene.backUp(alice).path.lastComponent?.string == "alice.example.com.car.zst")
    #expect(try await scene.backUp(other).path == report.path)
    #expect(try await scene.backUp(other, byHandle: true).snapshot.did.text == alice.did)
  }

  @Test func `are after the DID where there is no handle`() throws {
    let folder = scene.archives
    let did = try DID(alice.did)
    #expect(
      try folder.newArchive(of: did, handle: nil).lastComponent?.string == "\(alice.did).car.zst")
    let long = try DID(
      "did:web:" + String(repeating: "a", count: 60) + "." + String(repeating: "b", count: 60)
        + "." + String(repeating: "c", count: 60) + "." + String(repeating: "d", count: 60)
        + ".test")
    let name = try #require(folder.newArchive(of: long, handle: nil).lastComponent?.string)
    #expect(name.utf8.count <= 255 && name.hasSuffix(".car.zst"))
  }

  @Test func `are given once, whoever says that a handle is his`() throws {
    let folder = scene.archives
    let (one, other) = (try DID("did:web:one.test"), try DID("did:web:other.test"))
    let handle = try Handle("both.example.com")
    #expect(try folder.archive(of: one) == nil)
    let first = try folder.newArchive(of: one, handle: handle)
    let second = try folder.newArchive(of: other, handle: handle)
    #expect(first.lastComponent?.string == "both.example.com.car.zst")
    #expect(second.lastComponent?.string == "did:web:other.test.car.zst")
    #expect(try folder.archive(of: other) == second)
    #expect(try folder.newArchive(of: one, handle: handle) == first)
  }

  @Test func `lead to the newest snapshot of an account, not the newest with its handle`()
    async throws
  {
    for handle in ["alice.example.com", "alice.elsewhere.example"] {
      alice.handle = handle
      try alice.commit([alice.post(TID(integer: UInt64(handle.utf8.count) << 40).text, handle)])
      try await scene.backUp(alice, into: "a.car.zst")
    }
    let known = ArchiveLookup(.file(scene.path("a.car.zst")), RunLocks(), isReadOnly: false)
    defer { known.release() }
    try await known.find(ATIdentifier("alice.example.com"))
    #expect(known.base?.snapshot.commit == alice.head)
  }

  @Test func `are found whatever they are called, but not of what is unfinished or something else`()
    async throws
  {
    let report = try await scene.backUp(alice, into: "kept.car.zst")
    try scene.folder.write("other.car.zst", Array("nothing".utf8))
    try scene.folder.write(".bob.example.com.car.zst.partial", Array("nothing".utf8))
    let isMade = unsafe mkfifo(scene.folder.file("pipe.car.zst"), 0o600) == 0
    #expect(isMade, "a pipe that nothing writes to, which is not waited for")
    let folder = scene.archives
    #expect(try folder.archive(of: DID(alice.did)) == report.path)
    #expect(try folder.archive(of: DID("did:web:nobody.test")) == nil)
    #expect(try ArchiveFolder(scene.path("not there")).archive(of: DID(alice.did)) == nil)
    #expect(try await scene.backUp(alice, byHandle: true).path == report.path)
  }

  @Test func `lie in a folder that is made, but only in one that is there`() async throws {
    let made = Mutex<[FilePath]>([])
    let folder = ArchiveFolder(scene.path("new")) { event in
      if case .made(let path) = event { made.withLock { $0.append(path) } }
    }
    let name = try ATIdentifier(alice.did)
    for _ in 0..<2 {
      let report = try await scene.backup().run(name, into: .folder(folder))
      #expect(report.path == scene.path("new/alice.example.com.car.zst"))
    }
    #expect(made.withLock { $0 } == [scene.path("new")])
    // A disk that is not mounted: its archives are not begun again beside it.
    let lost: [AccountBackup.Destination] = [
      .folder(ArchiveFolder(scene.path("disk/backups"))), .file(scene.path("disk/a.car.zst")),
    ]
    for destination in lost {
      await #expect(throws: BackupError.noFolder(scene.path("disk").string)) {
        try await scene.backup().run(name, into: destination)
      }
    }
    await #expect(throws: BackupError.noFolder(scene.path("disk").string)) {
      _ = try await scene.backup().plan(name, into: lost[0], locks: RunLocks())
    }
    #expect(!AtomicFile.isTaken(scene.path("disk")))
  }

  @Test func `are said if the file is something else`() async throws {
    try scene.folder.write("text.car.zst", Array("nothing".utf8))
    let error = await #expect(throws: ArchiveError(.notAnArchive)) {
      try await scene.backUp(alice, into: "text.car.zst")
    }
    let name = scene.path("text.car.zst").string
    #expect(error?.description == "\(name): the file is not a carpack archive")
  }

  @Test func `are not shared with another account unless that is asked for`() async throws {
    let bob = try StandInAccount("bob", posts: 5, blobs: 2)
    scene.server.add(bob)
    let path = try await scene.backUp(alice, into: "alice.car.zst").path
    let before = try scene.folder.read("alice.car.zst")
    await #expect(throws: BackupError.archiveOfOther(path.string, account: alice.handle)) {
      try await scene.backup().run(ATIdentifier(bob.did), into: .file(path))
    }
    #expect(try scene.folder.read("alice.car.zst") == before)
  }

  @Test func `may be one for several accounts`() async throws {
    let bob = try StandInAccount("bob", posts: 5, blobs: 2)
    scene.server.add(bob)
    for account in [alice, bob] { try await scene.backUp(account, into: "all.car.zst") }
    try alice.commit([alice.post("3zzzzzzzzzzzz", "more")])
    let report = try await scene.backUp(alice, byHandle: true, into: "all.car.zst")
    #expect(report.outcome == .complete)
    #expect(report.snapshot.fetched?.since != nil, "it goes on from its own snapshot")
    #expect(try await scene.backUp(bob, into: "all.car.zst").outcome == .upToDate)
    let path = scene.path("all.car.zst")
    #expect(try scene.verdict(path) == .intact)
    let reader = try ArchiveReader(path: path)
    var dids: [String] = []
    var next = reader.generation.head?.cid
    while let cid = next {
      let snapshot = try ArchivedSnapshot(cid, in: reader).snapshot
      dids.append(snapshot.did.text)
      next = snapshot.previous
    }
    #expect(dids == [alice.did, bob.did, alice.did])
  }

  // MARK: The file

  @Test func `are given only to what has a snapshot`() async throws {
    let path = scene.path("new.car.zst")
    let target = try await DestinationArchive.open(path.string)
    #expect(target.isNew && target.reader == nil)
    #expect(names.isEmpty, "nothing is made before there is something to write")
    _ = try target.storage()
    #expect(names == [".new.car.zst.partial"])
  }

  @Test func `are locked as soon as they are opened, and no longer than needed`() async throws {
    try await scene.backUp(alice, into: "a.car.zst")
    var target: DestinationArchive? = try await DestinationArchive.open(
      scene.path("a.car.zst").string)
    #expect(target?.isNew == false)
    let before = scene.server.server.log.count
    let error = await #expect(throws: ArchiveError(.locked)) {
      try await scene.backUp(alice, into: "a.car.zst")
    }
    let name = scene.path("a.car.zst").string
    #expect(error?.description == "\(name): another process is writing to the archive")
    #expect(scene.server.server.log.count == before, "nobody is asked for anything")
    target = nil
    #expect(try await scene.backUp(alice, into: "a.car.zst").outcome == .upToDate)
  }

  @Test(arguments: [true, false])
  func `are locked while they are made, before the repository is asked for`(inFolder: Bool)
    async throws
  {
    scene.server.behaviour.latency = 0.2
    let destination =
      inFolder
      ? AccountBackup.Destination.folder(scene.archives)
      : .file(scene.path("alice.example.com.car.zst"))
    let (backup, name) = (try scene.backup(), try ATIdentifier(alice.did))
    // As another process does: nothing of what runs here knows of it.
    let first = Task { try await backup.run(name, into: destination) }
    while scene.requestCount("getLatestCommit") == 0 {
      try await Task.sleep(for: .milliseconds(1))
    }
    #expect(names == [".alice.example.com.car.zst.partial"])
    scene.server.play(FaultRule(.late(seconds: 4), on: "getRepo", times: 1))
    while scene.requestCount("getRepo") == 0 { try await Task.sleep(for: .milliseconds(1)) }
    await #expect(throws: ArchiveError(.locked)) {
      try await scene.backup().run(name, into: destination)
    }
    #expect(scene.requestCount("getRepo") == 1)
    #expect(scene.requestCount("getLatestCommit") == 1)
    #expect(try await first.value.outcome == .complete)
    #expect(names == ["alice.example.com.car.zst"])
  }

  @Test func `come to nothing of an account whose server has nothing`() async throws {
    scene.server.play(FaultRule(.status(404), on: "getRepo"))
    await #expect(throws: XRPCError.self) { try await scene.backUp(alice) }
    #expect(names.isEmpty)
  }

  @Test func `come to what an interrupted backup has left`() async throws {
    let account = try StandInAccount("blobs", posts: 10, blobs: 30)
    scene.server.add(account)
    // Cancelled when some of the blobs have arrived.
    scene.server.behaviour.latency = 0.01
    let backup = try scene.backup { $0.connectionsPerHost = 2 }
    let (path, did) = (scene.path("b.car.zst"), try ATIdentifier(account.did))
    let task = Task { try await backup.run(did, into: .file(path)) }
    while scene.requestCount("getBlob") < 12 { try await Task.sleep(for: .milliseconds(1)) }
    task.cancel()
    _ = await task.result
    let delivered = scene.server.blobDeliveries
    if !names.contains("b.car.zst") {
      #expect(names == [".b.car.zst.partial"])
      let target = try await DestinationArchive.open(path.string)
      #expect(target.reader != nil, "the repository counts already")
    }
    #expect(try await scene.backUp(account, into: "b.car.zst").outcome == .complete)
    #expect(names == ["b.car.zst"])
    #expect(try scene.verdict(path) == .intact)
    // But for those that were on their way.
    let twice = delivered.keys.count { scene.server.blobDeliveries[$0, default: 0] > 1 }
    #expect(twice <= 2, "\(twice) of \(delivered.count)")
  }

  @Test(arguments: [true, false])
  func `never take the place of what was begun of another account`(isCommitted: Bool) async throws {
    let other = try StandInAccount("other", posts: 10, blobs: 30)
    scene.server.add(other)
    scene.server.behaviour.latency = 0.1
    let backup = try scene.backup { $0.connectionsPerHost = 2 }
    let destination = AccountBackup.Destination.file(scene.path("mine.car.zst"))
    let (his, mine) = (try ATIdentifier(other.did), try ATIdentifier(alice.did))
    let task = Task { try await backup.run(his, into: destination) }
    while scene.requestCount("getBlob") < 4 { try await Task.sleep(for: .milliseconds(1)) }
    task.cancel()
    _ = await task.result
    let leftover = ".mine.car.zst.partial"
    #expect(names == [leftover])
    scene.server.behaviour.latency = 0
    if !isCommitted {
      // As if it had been killed in the middle of the repository.
      let segments = try ArchiveReader(path: scene.path(leftover)).generation.segments
      let end = try #require(segments.first?.offset)
      try scene.folder.write(leftover, Array(scene.folder.read(leftover).prefix(Int(end))))
    }
    let left = try scene.folder.read(leftover)
    let refusal = BackupError.leftover(scene.path(leftover).string, other.did)
    await #expect(throws: refusal) {
      try await scene.backup().run(mine, into: destination)
    }
    await #expect(throws: refusal, "a plan asks what the run asks") {
      _ = try await scene.backup().plan(mine, into: destination, locks: RunLocks())
    }
    #expect(try scene.folder.read(leftover) == left)
    #expect(try await scene.backup().run(his, into: destination).outcome == .complete)
    #expect(names == ["mine.car.zst"])
    #expect(try scene.verdict(scene.path("mine.car.zst")) == .intact)
  }

  @Test func `belong to archives with a torn end, too`() async throws {
    let report = try await scene.backUp(alice, into: "a.car.zst")
    let whole = try scene.folder.read("a.car.zst")
    try scene.folder.write("a.car.zst", whole + [UInt8](repeating: 0x28, count: 1000))
    #expect(try await scene.backUp(alice, into: "a.car.zst").outcome == .upToDate)
    #expect(try scene.folder.read("a.car.zst").count == whole.count + 1000, "nothing is written")
    try alice.commit([alice.post("3zzzzzzzzzzzz", "more")])
    let next = try await scene.backUp(alice, into: "a.car.zst")
    #expect(next.outcome == .complete)
    #expect(next.snapshot.previous == report.generation.head?.cid)
    #expect(try Array(scene.folder.read("a.car.zst").prefix(whole.count)) == whole)
    #expect(try scene.verdict(report.path) == .intact)
  }
}
