import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A backup that is interrupted` {
  private static let kill: Int32 = 9
  private static let interrupt: Int32 = 2

  /// How many blobs may be on their way, or have arrived and not been written yet, when a process
  /// is killed: they are fetched again.
  private static let connections = 4

  /// Backs up until the server has given out this many blobs, and then sends a signal.
  private func backUp(
    _ scene: NetworkScene, untilDelivered count: Int, _ signal: Int32
  ) throws -> Command.Result {
    let running = try scene.command.start(scene.line("--connections \(Self.connections)"))
    while running.isRunning, scene.requestCount(of: "getBlob") < count { pause(0.002) }
    running.signal(signal)
    return try running.wait()
  }

  @Test(arguments: [3, 17, 18, 19])
  func `goes on from where it was killed, at any point`(_ seed: UInt64) throws {
    var behaviour = Behaviour()
    behaviour.latency = 0.01
    let scene = try NetworkScene(
      posts: 40, blobs: 120, blobSize: 20_000, large: [6_000_000], behaviour)
    var generator = SeededGenerator(printing: seed)
    var kills = 0
    var delivered = 0
    while true {
      delivered += Int.random(in: 0...40, using: &generator)
      let result = try backUp(scene, untilDelivered: delivered, Self.kill)
      if result.status == 0 { break }
      #expect(result.status == 137, "\(result.text)\(result.errors)")
      kills += 1
      delivered = scene.requestCount(of: "getBlob")
      try #require(kills < 60, "it does not get on")
    }
    try scene.expectWhole()
    let (car, _) = try scene.contents(scene.account.did)
    #expect(car == scene.account.car())
    // No more than what was on its way each time.
    let extra = scene.server.blobRequests.values.reduce(0) { $0 + $1 - 1 }
    #expect(extra <= kills * (Self.connections + 12), "\(extra) of \(kills) kills")
    let twice = scene.server.blobDeliveries.values.filter { $0 > 1 }.count
    print("killed \(kills) times: \(extra) blobs asked for again, \(twice) delivered twice")
  }

  @Test func `keeps the repository that had arrived, a first one and changes of it`() throws {
    var behaviour = Behaviour()
    behaviour.latency = 0.02
    let scene = try NetworkScene(posts: 40, blobs: 60, behaviour)
    #expect(try backUp(scene, untilDelivered: 20, Self.kill).status == 137)
    #expect(try scene.backUp().status == 0)
    #expect(scene.requestCount(of: "getRepo") == 1)
    try scene.expectWhole()
    #expect(try scene.contents(scene.account.did).car == scene.account.car())
    let posts = (0..<50).map { number in
      scene.account.post(
        TID(integer: UInt64(1_760_000_000_000_000 + number) << 10).text, "\(number)",
        showing: [BlobContent(noise: UInt64(number) + 1000, size: 30_000)])
    }
    try scene.account.commit(posts)
    let count = scene.requestCount(of: "getBlob")
    #expect(try backUp(scene, untilDelivered: count + 20, Self.kill).status == 137)
    let result = try scene.backUp()
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(scene.requestCount(of: "getRepo") == 2)
    try scene.expectWhole()
  }

  @Test func `ends at Ctrl-C with what has come, and goes on from there`() throws {
    var behaviour = Behaviour()
    behaviour.latency = 0.02
    let scene = try NetworkScene(posts: 40, blobs: 100, behaviour)
    let result = try backUp(scene, untilDelivered: 40, Self.interrupt)
    #expect(result.status == 130, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("interrupted"))
    // An archive without a snapshot does not have its name yet.
    #expect(!scene.folder.names().contains(NetworkScene.archive))
    let before = scene.server.blobDeliveries
    let next = try scene.backUp()
    #expect(next.status == 0, "\(next.text)\(next.errors)")
    try scene.expectWhole()
    let after = scene.server.blobDeliveries
    let again = before.keys.filter { after[$0, default: 0] > 1 }
    #expect(again.isEmpty, "\(again.count) of \(before.count)")
  }

  @Test(arguments: [interrupt, kill])
  func `is gone on with by pack, and another account's pack leaves it alone`(_ signal: Int32)
    throws
  {
    var behaviour = Behaviour()
    behaviour.latency = 0.02
    let accounts = [
      try StandInAccount("somebody", posts: 40, blobs: 100), try StandInAccount("other", posts: 3),
    ]
    let scene = try NetworkScene(accounts, behaviour)
    let result = try backUp(scene, untilDelivered: 40, signal)
    #expect(result.status != 0)
    let partial = ".\(NetworkScene.archive).partial"
    #expect(scene.folder.names() == [partial])
    let left = try scene.folder.read(partial)
    try scene.folder.write("other.car", accounts[1].car())
    for force in ["", "--force"] {
      let refused = try scene.command.run(
        "carpack pack other.car -o \(NetworkScene.archive) \(force)")
      #expect(refused.status == 73, "\(refused.errors)")
      #expect(refused.errors.contains(partial) && refused.errors.contains("hint: "))
      #expect(try scene.folder.read(partial) == left)
    }
    try scene.folder.write("repo.car", accounts[0].car())
    let packed = try scene.command.run("carpack pack repo.car -o \(NetworkScene.archive)")
    #expect(packed.status == 10, "\(packed.text)\(packed.errors)")
    // No blob that had come is lost: the backup fetches the others.
    let missing = try scene.ledger().count
    #expect(missing < 100)
    scene.server.server.forgetLog()
    #expect(try scene.backUp().status == 0)
    #expect(scene.requestCount(of: "getBlob") == missing)
    try scene.expectWhole()
  }

  @Test func `has the account as it is when it goes on, if it has changed meanwhile`() throws {
    var behaviour = Behaviour()
    behaviour.latency = 0.01
    let scene = try NetworkScene(posts: 40, blobs: 60, behaviour)
    let killed = try backUp(scene, untilDelivered: 30, Self.kill)
    #expect(killed.status == 137)
    let before = scene.server.blobRequests
    try scene.account.advance()
    let next = try scene.backUp()
    #expect(next.status == 0, "\(next.text)\(next.errors)")
    try scene.expectWhole()
    let again = before.keys.filter { scene.server.blobRequests[$0, default: 0] > 1 }
    #expect(again.count <= Self.connections + 4, "\(again.count) of \(before.count)")
  }
}
