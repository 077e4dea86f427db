import Archive
import Foundation
import StandIn
import SystemPackage
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Backing up into a bucket` {
  private static let folder = "s3://\(StandInStore.bucket)/backups/"

  private func backUp(_ scene: StoreScene) -> String {
    scene.scene.line("-o \(Self.folder)").replacing(" -o \(NetworkScene.archive)", with: "")
  }

  private func key(_ scene: StoreScene) -> String {
    "backups/\(scene.scene.account.did).car.zst"
  }

  /// Lets the account have one post more.
  private func post(_ scene: StoreScene, _ number: Int, size: Int = 30_000) throws {
    let blob = BlobContent(noise: UInt64(number) + 900, size: size)
    scene.scene.account.upload(blob)
    try scene.scene.account.commit([
      scene.scene.account.post("3lkxag2qhdd2\(number)", "once more", showing: [blob])
    ])
  }

  /// Expects the object to be the account as it is now.
  private func expectWhole(_ scene: StoreScene, location: SourceLocation = #_sourceLocation) throws
  {
    let bytes = try #require(scene.store[key(scene)], sourceLocation: location)
    try scene.folder.write("copy.car.zst", bytes)
    try scene.scene.expectWhole(in: "copy.car.zst", location: location)
  }

  @Test func `makes an object called after the DID, and goes on with it`() throws {
    let scene = try StoreScene(times: 1)
    try scene.expect(backUp(scene), 0, key(scene))
    #expect(scene.store.keys == [key(scene)])
    try expectWhole(scene)
    let before = try #require(scene.store[key(scene)])
    try post(scene, 1)
    try scene.expect(backUp(scene))
    let after = try #require(scene.store[key(scene)])
    #expect(after.starts(with: before) && after.count > before.count)
    try expectWhole(scene)
    #expect(scene.store.openUploads == 0)
  }

  /// An object with two snapshots, and what is in it.
  private func sceneOfTwo() throws -> (scene: StoreScene, object: [UInt8]) {
    let scene = try StoreScene(times: 1)
    try scene.expect(backUp(scene))
    try post(scene, 1)
    try scene.expect(backUp(scene))
    try post(scene, 2)
    return (scene, try #require(scene.store[key(scene)]))
  }

  @Test func `asks again where the end of the object is not that of an archive`() throws {
    let (scene, before) = try sceneOfTwo()
    scene.store.behaviour.wrongEnds = 1
    try scene.expect(backUp(scene), 0, "added")
    let after = try #require(scene.store[key(scene)])
    #expect(after.starts(with: before) && after.count > before.count)
    try expectWhole(scene)
    let copy = try scene.run("carpack log copy.car.zst --json")
    #expect(copy.text.split(separator: "\n").count == 3)
  }

  @Test(arguments: [150, 3000])
  func `goes behind an end that is damaged or was cut off, and drops nothing of the object`(
    _ count: Int
  ) throws {
    let (scene, whole) = try sceneOfTwo()
    let isCut = count > 150
    let before =
      whole.dropLast(count) + (isCut ? [] : [UInt8](repeating: 0, count: count))
    scene.store[key(scene)] = Array(before)
    try scene.expect(backUp(scene), 11, "damaged")
    let after = try #require(scene.store[key(scene)])
    #expect(after.starts(with: before) && after.count > before.count)
    try scene.folder.write("copy.car.zst", after)
    let log = try scene.run("carpack log copy.car.zst --json")
    // Of the second one the footer alone was lost, or more.
    #expect(log.text.split(separator: "\n").count == (isCut ? 2 : 3), "\(log.text)")
  }

  @Test func `says that an older object was put back, until a backup stands behind it`() throws {
    let (scene, newest) = try sceneOfTwo()
    // What another machine, which knows nothing of it, has made of the object before.
    try scene.folder.write("first.car.zst", newest)
    try scene.expect("carpack prune first.car.zst --keep-last 1")
    try scene.expect("carpack compact first.car.zst")
    let before = try scene.folder.read("first.car.zst")
    #expect(before.count < newest.count)
    scene.store[key(scene)] = before
    let words = "is older than it was: when carpack last wrote to it, it held 2 snapshots"
    try scene.expect(backUp(scene), 10, words)
    let again = try scene.expect(backUp(scene), 0, "up to date")
    #expect(!again.errors.contains("older"), "\(again.errors)")
    try expectWhole(scene)
  }

  @Test func `keeps all of an object that has lost its only snapshot`() throws {
    let scene = try StoreScene(times: 1)
    try scene.expect(backUp(scene))
    let whole = try #require(scene.store[key(scene)])
    let before = whole.dropLast(400) + [UInt8](repeating: 0, count: 400)
    scene.store[key(scene)] = Array(before)
    try scene.expect(backUp(scene), 11, "has lost its snapshots")
    #expect(try #require(scene.store[key(scene)]).starts(with: before))
  }

  @Test func `writes nothing if nothing has changed, and fetches no blob`() throws {
    let scene = try StoreScene(blobs: 40, times: 1)
    try scene.expect(backUp(scene))
    _ = scene.requests()
    try scene.expect(backUp(scene), 0, "up to date")
    let requests = scene.requests()
    #expect(requests.allSatisfy { $0.method == "GET" })
    #expect(requests.count <= 2, "\(requests.map { $0["range"] })")
  }

  @Test func `asks for little if nothing has changed, however large the archive is`() throws {
    let scene = try StoreScene(posts: 3000, blobs: 900, blobSize: 8000, times: 1)
    for number in 0..<2 {
      try post(scene, number, size: 300_000)
      try scene.expect(backUp(scene))
    }
    _ = scene.requests()
    try scene.expect(backUp(scene), 0, "up to date")
    let requests = scene.requests()
    #expect(requests.count <= 4, "\(requests.map { $0["range"] })")
    #expect(requests.reduce(0) { $0 + $1.bytesSent } < 300_000)
  }

  @Test(arguments: [true, false])
  func `looks into no packs of blobs that it has`(_ knowsChanges: Bool) throws {
    var behaviour = Behaviour()
    behaviour.since = knowsChanges ? .exact : .ignored
    // Long enough for the store to keep it as a part of the new object.
    let scene = try StoreScene(posts: 1000, blobs: 900, blobSize: 8000, times: 1, behaviour)
    try scene.expect(backUp(scene))
    try post(scene, 1)
    _ = scene.requests()
    try scene.expect(backUp(scene))
    let requests = scene.requests()
    let received = requests.filter { $0.method == "GET" }
    #expect(received.count <= 12, "\(received.map { $0["range"] })")
    #expect(received.reduce(0) { $0 + $1.bytesSent } < 1 << 20)
    try expectWhole(scene)
  }

  @Test func `sends what is new, and has the store keep the rest`() throws {
    let scene = try StoreScene(posts: 10, blobs: 2, large: [7 << 20], times: 1)
    try scene.expect(backUp(scene))
    _ = scene.requests()
    try post(scene, 1)
    try scene.expect(backUp(scene))
    #expect(scene.requests().reduce(0) { $0 + $1.bodyLength } < 60_000)
    try expectWhole(scene)
  }

  @Test func `sends all of it to a store that copies no parts`() throws {
    let scene = try StoreScene(posts: 10, blobs: 2, large: [30 << 20], times: 1)
    try scene.expect(backUp(scene))
    scene.store.behaviour.copiesParts = false
    for number in 0..<2 {
      try post(scene, number)
      try scene.expect(backUp(scene))
      try expectWhole(scene)
    }
    #expect(scene.store.openUploads == 0)
  }

  @Test func `goes on from what another writer has left`() throws {
    let scene = try StoreScene(times: 1)
    try scene.expect(backUp(scene))
    let first = try #require(scene.store[key(scene)])
    try post(scene, 1)
    try scene.expect(backUp(scene))
    let second = try #require(scene.store[key(scene)])
    scene.store[key(scene)] = first
    try post(scene, 2)
    // The object is replaced between the question what it is and the write.
    scene.store.replace(.init(after: 2, key(scene), by: second))
    try scene.expect(backUp(scene))
    let last = try #require(scene.store[key(scene)])
    #expect(last.starts(with: second))
    try expectWhole(scene)
  }

  @Test func `needs leave to write to a store that takes no notice of conditions`() throws {
    let scene = try StoreScene(times: 1)
    scene.store.behaviour.obeysConditions = false
    scene.scene.server.server.forgetLog()
    try scene.expect(backUp(scene), 13, "--exclusive")
    // It is found out before anything is fetched.
    #expect(scene.scene.requestCount(of: "sync.getBlob") == 0)
    #expect(scene.store.keys.isEmpty)
    try scene.expect("\(backUp(scene)) --exclusive")
    try expectWhole(scene)
  }

  @Test func `has what was fetched by a backup that was killed`() throws {
    let scene = try StoreScene(posts: 10, blobs: 30, times: 1)
    scene.store.behaviour.writeLatency = 600
    let server = scene.scene.server.server
    try killWithBlobs(scene, "\(backUp(scene)) --exclusive")
    #expect(!scene.store.keys.contains(key(scene)))
    scene.store.behaviour.writeLatency = 0
    server.forgetLog()
    try scene.expect(backUp(scene))
    #expect(server.log.count { $0.path.hasSuffix("sync.getBlob") } < 15)
    try expectWhole(scene)
    #expect(scene.store.openUploads == 0 && scene.store.keys == [key(scene)])
  }

  /// Kills a backup when its thirty blobs are here, and the object is not.
  private func killWithBlobs(_ scene: StoreScene, _ line: String) throws {
    let server = scene.scene.server.server
    server.forgetLog()
    let running = try scene.start(line)
    let end = ContinuousClock.now + .seconds(240)
    while server.log.count(where: { $0.path.hasSuffix("sync.getBlob") }) < 30, .now < end {
      usleep(5000)
    }
    usleep(500_000)
    running.signal(SIGKILL)
    _ = try running.wait()
  }

  @Test(arguments: [true, false])
  func `never takes the place of what was begun of another account`(isCommitted: Bool) throws {
    let scene = try StoreScene(posts: 10, blobs: 30, times: 1)
    let (first, second) = (scene.scene.account, try StandInAccount("second", posts: 3, blobs: 1))
    scene.scene.server.add(second)
    func line(_ account: StandInAccount) -> String {
      let address = "s3://\(StandInStore.bucket)/one.car.zst"
      return "carpack backup \(account.did) \(scene.scene.flags) -o \(address)"
    }
    scene.store.behaviour.writeLatency = 600
    try killWithBlobs(scene, "\(line(first)) --exclusive")
    scene.store.behaviour.writeLatency = 0
    let names = scene.folder.names(under: "cache").filter { $0.hasSuffix(".tail") }
    let scratch = "cache/\(try #require(names.first))"
    if !isCommitted {
      // As if it had been killed in the middle of the repository.
      let path = FilePath(scene.folder.file(scratch))
      while let end = try ArchiveReader(path: path).generation.segments.first?.offset {
        try scene.folder.write(scratch, Array(scene.folder.read(scratch).prefix(Int(end))))
      }
      #expect(try ArchiveReader(path: path).generation.number == 0)
    }
    let left = try scene.folder.read(scratch)
    for plan in ["--dry-run", ""] { try scene.expect("\(line(second)) \(plan)", 73, first.did) }
    #expect(try scene.folder.read(scratch) == left)
    #expect(scene.store.keys.isEmpty)
    try scene.expect(line(first))
    try scene.folder.write("copy.car.zst", try #require(scene.store["one.car.zst"]))
    try scene.scene.expectWhole(in: "copy.car.zst")
  }

  @Test func `leaves the object as it is if a store fails`() throws {
    let scene = try StoreScene(posts: 10, blobs: 2, large: [7 << 20], times: 1)
    try scene.expect(backUp(scene))
    scene.store.behaviour.faultRate = 0.05
    for number in 0..<5 {
      try post(scene, number)
      try scene.expect(backUp(scene))
    }
    scene.store.behaviour.faultRate = 0
    try expectWhole(scene)
  }

  @Test func `plans without writing`() throws {
    let scene = try StoreScene(times: 1)
    try scene.expect("\(backUp(scene)) --dry-run", 0, "would be new")
    try scene.expect(backUp(scene))
    try scene.expect("\(backUp(scene)) --dry-run", 0, "unchanged")
    #expect(scene.store.keys == [key(scene)])
  }
}
