import Foundation
import StandIn
import TestSupport
import Testing

/// What a run leaves in a bucket when it is stopped, and that the next one removes it.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `What a run leaves in a bucket` {
  private static let push = "carpack push \(StoreScene.file) \(StoreScene.address)"

  /// Waits until the store has met the request that it does not answer.
  ///
  /// - Returns: false if the command has asked less than that.
  private func waitForFreeze(_ scene: StoreScene, _ running: RunningCommand) -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while !scene.store.isFrozen, running.isRunning, .now < end { usleep(5000) }
    return scene.store.isFrozen
  }

  /// Runs a command into a store that freezes after each number of requests in turn, until the
  /// command asks less than that; stops it there, and runs it again.
  private func stopEverywhere(
    _ scene: StoreScene, _ line: String, with signal: Int32, isDone: Bool, leaving key: String,
    prepare: () -> Void
  ) throws -> Int {
    for count in 0..<60 {
      prepare()
      try? FileManager.default.removeItem(atPath: scene.folder.file("cache"))
      scene.store.freeze(.init(after: count, isDone: isDone))
      let running = try scene.start(line)
      guard waitForFreeze(scene, running) else {
        scene.store.freeze(nil)
        #expect(try running.wait().status == 0)
        return count
      }
      let begin = ContinuousClock.now
      running.signal(signal)
      let result = try running.wait()
      if signal == SIGTERM {
        #expect(ContinuousClock.now - begin < .seconds(10), "at request \(count)")
        #expect(result.status == 143, "at request \(count): \(result.errors)")
      }
      scene.store.freeze(nil)
      try scene.expect(line)
      #expect(scene.store.keys == [key], "after request \(count)")
      #expect(scene.store.openUploads == 0, "after request \(count)")
    }
    return 60
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func `is gone after the next push, at whichever request the first was stopped`(signal: Int32)
    throws
  {
    let scene = try StoreScene(posts: 10, blobs: 2, large: [7 << 20], times: 2)
    let count = try stopEverywhere(
      scene, Self.push, with: signal, isDone: false, leaving: StoreScene.key
    ) {
      scene.store[StoreScene.key] = scene.generations[0]
    }
    // The probe, and the upload.
    #expect(count > 10)
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func `is gone after the next backup, at whichever request the first was stopped`(signal: Int32)
    throws
  {
    let scene = try StoreScene(posts: 5, blobs: 1, times: 1)
    let line = scene.scene.line("-o s3://archives/b/").replacing(
      " -o \(NetworkScene.archive)", with: "")
    let key = "b/\(scene.scene.account.did).car.zst"
    let count = try stopEverywhere(scene, line, with: signal, isDone: false, leaving: key) {
      scene.store[key] = nil
    }
    #expect(count > 10)
  }

  @Test func `is gone after the next push, if the answer of a probe was lost with the process`()
    throws
  {
    let scene = try StoreScene(posts: 5, blobs: 1, times: 1)
    let count = try stopEverywhere(
      scene, Self.push, with: SIGKILL, isDone: true, leaving: StoreScene.key
    ) {
      scene.store[StoreScene.key] = nil
    }
    #expect(count > 10)
  }

  @Test func `is removed by a stopped run itself, if the store answers`() throws {
    let scene = try StoreScene(posts: 5, blobs: 1, times: 1)
    for count in 1..<11 {
      scene.store[StoreScene.key] = nil
      try? FileManager.default.removeItem(atPath: scene.folder.file("cache"))
      scene.store.freeze(.init(after: count, isDone: true, isOnce: true))
      let running = try scene.start(Self.push)
      #expect(waitForFreeze(scene, running))
      running.signal(SIGTERM)
      #expect(try running.wait().status == 143)
      #expect(scene.store.keys.isEmpty && scene.store.openUploads == 0, "at request \(count)")
    }
  }

  @Test(arguments: [1, 3, 6])
  func `is gone after the next run, if the credentials expired in between`(count: Int) throws {
    let scene = try StoreScene(posts: 5, blobs: 1, times: 1)
    scene.store.behaviour.requestsUntilExpiry = count
    try scene.expect(Self.push, 77, "expired", "get new credentials")
    #expect(!scene.store.keys.contains(StoreScene.key))
    scene.store.behaviour.requestsUntilExpiry = nil
    try scene.expect(Self.push)
    #expect(scene.store.keys == [StoreScene.key] && scene.store.openUploads == 0)
  }

  @Test func `is not what another machine is sending, unless that is more than a week old`() throws
  {
    let scene = try StoreScene(posts: 10, blobs: 2, large: [7 << 20], times: 2)
    scene.store[StoreScene.key] = scene.generations[0]
    scene.store.freeze(.init(after: 2))
    let running = try scene.start(Self.push)
    #expect(waitForFreeze(scene, running))
    running.signal(SIGKILL)
    _ = try running.wait()
    scene.store.freeze(nil)
    scene.store.beginUpload(of: StoreScene.key)
    scene.store.beginUpload(of: StoreScene.key, daysAgo: 6.9)
    scene.store.beginUpload(of: StoreScene.key, daysAgo: 7.1)
    scene.store.beginUpload(of: "\(StoreScene.key).other", daysAgo: 7.1)
    try scene.expect(Self.push)
    #expect(scene.store.openUploads == 3)
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test(arguments: [(1, Int32(0)), (2, 0), (3, 13)])
  func `is begun again if another program has given it up, and not for ever`(
    times: Int, status: Int32
  ) throws {
    let scene = try StoreScene(posts: 10, blobs: 2, large: [7 << 20], times: 2)
    scene.store[StoreScene.key] = scene.generations[0]
    // The store is known to obey conditions: the parts that come are the archive's.
    try scene.expect(Self.push)
    scene.store[StoreScene.key] = scene.generations[0]
    scene.store.abortUploads(times)
    try scene.expect(Self.push, status)
    #expect((scene.store[StoreScene.key] == scene.newest) == (status == 0))
    #expect(scene.store.openUploads == 0)
  }
}

/// How much a run asks of a store.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `What a run asks of a store` {
  private static let push = "carpack push \(StoreScene.file) \(StoreScene.address)"

  private func probes(_ scene: StoreScene) -> Int {
    scene.requests().count { $0.path.contains(".carpack-probe-") }
  }

  @Test func `is a probe once a day for each bucket`() throws {
    let scene = try StoreScene(posts: 5, blobs: 1, times: 2)
    scene.store[StoreScene.key] = scene.generations[0]
    _ = scene.requests()
    try scene.expect(Self.push)
    #expect(probes(scene) > 0)
    for _ in 0..<2 {
      scene.store[StoreScene.key] = scene.generations[0]
      try scene.expect(Self.push)
      #expect(probes(scene) == 0)
    }
  }

  @Test(arguments: [
    "", "nothing\n", "AGE", "LATER", "OTHER",
  ])
  func `is a probe again if what was noted is old, broken or another's`(_ change: String) throws {
    let scene = try StoreScene(posts: 5, blobs: 1, times: 1)
    try scene.expect(Self.push)
    let name = try #require(
      scene.folder.names(under: "cache").first { $0.hasSuffix(".obeys") })
    let note = "cache/\(name)"
    var lines = String(decoding: try scene.folder.read(note), as: UTF8.self)
      .split(separator: "\n").map(String.init)
    try #require(lines.count == 3)
    let time = try #require(Int(lines[2]))
    switch change {
    case "AGE": lines[2] = "\(time - 86_401)"
    case "LATER": lines[2] = "\(time + 3600)"
    case "OTHER": lines[1] = "https://other.example.com/ archives"
    default: lines = [change]
    }
    try scene.folder.write(note, Array((lines.joined(separator: "\n") + "\n").utf8))
    scene.store[StoreScene.key] = nil
    _ = scene.requests()
    try scene.expect(Self.push)
    #expect(probes(scene) > 0)
  }

  @Test func `is a probe each time of a store that does not obey`() throws {
    let scene = try StoreScene(posts: 5, blobs: 1, times: 1)
    scene.store.behaviour.obeysConditions = false
    for _ in 0..<2 {
      try scene.expect(Self.push, 13)
      #expect(probes(scene) > 0)
    }
    scene.store.behaviour.obeysConditions = true
    try scene.expect(Self.push)
  }

  @Test func `is at most four requests and no probe if nothing is new`() throws {
    let scene = try StoreScene(posts: 30, blobs: 10, large: [7 << 20], times: 1)
    let line = scene.scene.line("-o s3://archives/b/").replacing(
      " -o \(NetworkScene.archive)", with: "")
    try scene.expect(line)
    try FileManager.default.removeItem(atPath: scene.folder.file("cache"))
    _ = scene.requests()
    try scene.expect(line, 0, "up to date")
    let requests = scene.requests()
    #expect(requests.count <= 4, "\(requests.map { "\($0.method) \($0.path)" })")
    #expect(requests.allSatisfy { $0.method == "GET" })
  }
}
