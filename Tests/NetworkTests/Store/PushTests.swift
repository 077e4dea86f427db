import Foundation
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Pushing an archive` {
  static let push = "carpack push \(StoreScene.file) \(StoreScene.address)"

  /// More than 5 MiB in the first generation, so that parts of the object can be kept.
  private func largeScene(times: Int = 2) throws -> StoreScene {
    try StoreScene(posts: 10, blobs: 2, large: [7 << 20], times: times)
  }

  private func sent(_ requests: [LoopbackExchange]) -> Int {
    requests.reduce(0) { $0 + $1.bodyLength }
  }

  @Test func `sends all of it where there is nothing`() throws {
    let scene = try StoreScene()
    let report = try scene.expect("\(Self.push) --json", 0, "\"outcome\":\"created\"")
    #expect(OutputSchema.faults(in: report.text).isEmpty)
    #expect(scene.store[StoreScene.key] == scene.newest)
    // What the store was tried with is gone.
    #expect(scene.store.keys == [StoreScene.key])
    #expect(scene.store.openUploads == 0)
  }

  @Test func `keeps the file's name in a folder of the bucket`() throws {
    let scene = try StoreScene(times: 1)
    try scene.expect("carpack push \(StoreScene.file) s3://archives/a/b/")
    #expect(scene.store.keys == ["a/b/\(StoreScene.file)"])
  }

  @Test func `asks one question if nothing has changed`() throws {
    let scene = try StoreScene(times: 1)
    scene.store[StoreScene.key] = scene.newest
    try scene.expect(Self.push, 0, "up to date")
    #expect(scene.requests().count == 1)
  }

  @Test func `sends what is new, and has the store keep the rest`() throws {
    let scene = try largeScene()
    scene.store[StoreScene.key] = scene.generations[0]
    try scene.expect(Self.push, 0, "appended")
    #expect(scene.store[StoreScene.key] == scene.newest)
    let new = scene.newest.count - scene.generations[0].count
    #expect(sent(scene.requests()) < new + 10_000)
  }

  @Test func `sends a small object again`() throws {
    let scene = try StoreScene()
    scene.store[StoreScene.key] = scene.generations[0]
    try scene.expect(Self.push)
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test func `sends all of it to a store that copies no parts`() throws {
    let scene = try largeScene()
    scene.store[StoreScene.key] = scene.generations[0]
    scene.store.behaviour.copiesParts = false
    try scene.expect(Self.push)
    #expect(scene.store[StoreScene.key] == scene.newest)
    #expect(scene.store.openUploads == 0)
  }

  @Test func `does not write to a store that takes no notice of conditions, unless that is fine`()
    throws
  {
    let scene = try StoreScene(times: 1)
    scene.store.behaviour.obeysConditions = false
    try scene.expect(Self.push, 13, "--exclusive")
    #expect(scene.store.keys.isEmpty)
    #expect(scene.store.openUploads == 0)
    try scene.expect("\(Self.push) --exclusive")
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test func `leaves a later state alone`() throws {
    let scene = try StoreScene()
    scene.store[StoreScene.key] = scene.newest
    try scene.folder.write(StoreScene.file, scene.generations[0])
    try scene.expect(Self.push, 0, "and more")
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test func `replaces another object only if it is told to, by what was read back`() throws {
    let scene = try largeScene(times: 1)
    let other = Array("something else".utf8)
    scene.store[StoreScene.key] = other
    try scene.expect(Self.push, 13, "--replace")
    #expect(scene.store[StoreScene.key] == other)
    try scene.expect("\(Self.push) --replace --verify", 0, "read back and compared")
    #expect(scene.store[StoreScene.key] == scene.newest)
    #expect(scene.store.keys == [StoreScene.key])
    #expect(scene.store.openUploads == 0)
  }

  @Test func `heals what is damaged in the store, if it looks`() throws {
    let scene = try StoreScene(times: 1)
    var damaged = scene.newest
    damaged[damaged.count / 2] ^= 1
    scene.store[StoreScene.key] = damaged
    try scene.expect("carpack verify \(StoreScene.address)", 11)
    try scene.expect("\(Self.push) --verify", 0, "was damaged")
    #expect(scene.store[StoreScene.key] == scene.newest)
    try scene.expect("\(Self.push) --verify", 0, "compared")
  }

  @Test func `reads the object back itself, and not what was to become it`() throws {
    let scene = try largeScene(times: 1)
    var damaged = scene.newest
    damaged[damaged.count / 2] ^= 1
    scene.store[StoreScene.key] = damaged
    scene.store.behaviour.completion = .droppedAsMade
    try scene.expect("\(Self.push) --verify", 74, "says that it replaced the object")
    #expect(scene.store[StoreScene.key] == damaged)
    #expect(scene.store.keys == [StoreScene.key])
    scene.store.behaviour.completion = .made
    try scene.expect("\(Self.push) --verify", 0, "was damaged", "read back and compared")
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test func `does not take an empty answer for an object`() throws {
    let scene = try largeScene()
    scene.store[StoreScene.key] = scene.generations[0]
    scene.store.behaviour.completion = .droppedInSilence
    try scene.expect(Self.push, 69, "the store does not say what became of the upload")
    #expect(scene.store[StoreScene.key] == scene.generations[0])
    #expect(scene.store.openUploads == 0)
    // One that is there counts, whatever the answer says.
    scene.store.behaviour.completion = .madeInSilence
    try scene.expect(Self.push)
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test(arguments: 0..<6)
  func `that loses a race goes on from what the other has written`(_ count: Int) throws {
    let scene = try largeScene(times: 3)
    scene.store[StoreScene.key] = scene.generations[0]
    scene.store.replace(.init(after: count, StoreScene.key, by: scene.generations[1]))
    try scene.expect(Self.push)
    #expect(scene.store[StoreScene.key] == scene.newest)
    #expect(scene.store.openUploads == 0)
  }

  @Test(arguments: 1..<14)
  func `never overwrites another's archive`(_ count: Int) throws {
    let scene = try largeScene()
    let other = try StoreScene(times: 1)
    scene.store[StoreScene.key] = scene.generations[0]
    scene.store.replace(.init(after: count, StoreScene.key, by: other.newest))
    let result = try scene.run(Self.push)
    // The other came before the end and is there, or after it.
    let isOther = scene.store[StoreScene.key] == other.newest
    #expect(result.status == (isOther ? 13 : 0), "\(result.errors)")
    #expect(isOther || scene.store[StoreScene.key] == scene.newest)
    #expect(scene.store.openUploads == 0)
  }

  @Test func `comes to its end though many answers fail`() throws {
    let scene = try largeScene()
    scene.store[StoreScene.key] = scene.generations[0]
    scene.store.behaviour.faultRate = 0.2
    var status: Int32 = 1
    for _ in 0..<10 where status != 0 { status = try scene.run(Self.push).status }
    #expect(status == 0)
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test func `that is killed leaves the old object or the new, and no parts after the next`() throws
  {
    let scene = try largeScene()
    scene.store.behaviour.latency = 0.01
    for number in 0..<12 {
      scene.store[StoreScene.key] = scene.generations[0]
      let running = try scene.start(Self.push)
      Thread.sleep(forTimeInterval: 0.02 * Double(number))
      running.signal(SIGKILL)
      _ = try running.wait()
      let bytes = scene.store[StoreScene.key]
      #expect(bytes == scene.generations[0] || bytes == scene.newest)
      // An upload of which it had not noted yet what the store calls it is left for seven days.
      let marks = try scene.folder.names(under: "cache").filter { $0.hasSuffix(".upload") }
        .map { String(decoding: try scene.folder.read("cache/\($0)"), as: UTF8.self) }
      try scene.expect(Self.push)
      #expect(scene.store[StoreScene.key] == scene.newest)
      for (name, key) in scene.store.uploadKeys {
        #expect(key == StoreScene.key && !marks.contains { $0.contains("\t\(name)\t") })
      }
      #expect(scene.store.keys == [StoreScene.key])
    }
  }

  @Test func `refuses what is no archive`() throws {
    let scene = try StoreScene(times: 1)
    try scene.folder.write("text.car.zst", Array("text".utf8))
    try scene.expect("carpack push text.car.zst \(StoreScene.address)", 11)
    try scene.expect("carpack push none.car.zst \(StoreScene.address)", 66)
    #expect(scene.store.keys.isEmpty)
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Pulling an archive` {
  static let pull = "carpack pull \(StoreScene.address) pulled.car.zst"

  @Test func `fetches what the file lacks, and one question if nothing`() throws {
    let scene = try StoreScene(times: 3)
    for (number, bytes) in scene.generations.enumerated() {
      scene.store[StoreScene.key] = bytes
      _ = scene.requests()
      let report = try scene.expect(
        "\(Self.pull) --json", 0, "\"outcome\":\"\(number == 0 ? "created" : "appended")\"")
      #expect(OutputSchema.faults(in: report.text).isEmpty)
      #expect(try scene.folder.read("pulled.car.zst") == bytes)
      if number > 0 {
        let new = bytes.count - scene.generations[number - 1].count
        #expect(scene.requests().reduce(0) { $0 + $1.bytesSent } < new + 60_000)
      }
      _ = scene.requests()
      try scene.expect(Self.pull, 0, "up to date")
      #expect(scene.requests().count == 1)
    }
    scene.store[StoreScene.key] = scene.generations[0]
    try scene.expect(Self.pull, 0, "and more")
    #expect(try scene.folder.read("pulled.car.zst") == scene.newest)
  }

  @Test func `takes nothing that is damaged`() throws {
    let scene = try StoreScene()
    var damaged = scene.newest
    damaged[(scene.generations[0].count + damaged.count) / 2] ^= 1
    scene.store[StoreScene.key] = damaged
    try scene.expect(Self.pull, 11)
    #expect(!scene.folder.names().contains("pulled.car.zst"))
    try scene.folder.write("pulled.car.zst", scene.generations[0])
    try scene.expect(Self.pull, 11)
    #expect(try scene.folder.read("pulled.car.zst") == scene.generations[0])
  }

  @Test(arguments: [1, 2])
  func `takes nothing that is damaged, whichever of several generations it is`(number: Int) throws {
    let scene = try StoreScene(times: 3)
    var damaged = scene.newest
    damaged[(scene.generations[number - 1].count + scene.generations[number].count) / 2] ^= 1
    scene.store[StoreScene.key] = damaged
    try scene.folder.write("pulled.car.zst", scene.generations[0])
    try scene.expect(Self.pull, 11)
    #expect(try scene.folder.read("pulled.car.zst") == scene.generations[0])
  }

  @Test func `says what is no archive, as the verbs do that read archives`() throws {
    let scene = try StoreScene(times: 1)
    let car = try TestRepository(posts: 3).car()
    try scene.folder.write("repo.car", car)
    try scene.expect("gzip -nk repo.car")
    let found: [([UInt8], Int32, String)] = [
      (Array("<html>404</html>\n".utf8), 11, "is a text, not a carpack archive"),
      ([], 11, "is empty"), (car, 64, "is a CAR, not a carpack archive"),
      ([0xff, 0, 1, 2, 3], 11, "is not a carpack archive"),
      (try scene.folder.read("repo.car.gz"), 11, "is compressed, and not a carpack archive"),
      (Array(scene.newest.dropLast(40)), 11, "the end of the archive is damaged"),
    ]
    for (bytes, status, words) in found {
      scene.store[StoreScene.key] = bytes
      try scene.expect(Self.pull, status, words)
      try scene.expect("carpack info \(StoreScene.address)", status, words)
      #expect(!scene.folder.names().contains("pulled.car.zst"))
    }
  }

  @Test func `replaces another archive only if it is told to`() throws {
    let scene = try StoreScene(times: 1)
    let other = try StoreScene(posts: 40, times: 1)
    scene.store[StoreScene.key] = other.newest
    try scene.folder.write("pulled.car.zst", scene.newest)
    try scene.expect(Self.pull, 13, "--replace")
    #expect(try scene.folder.read("pulled.car.zst") == scene.newest)
    try scene.expect("\(Self.pull) --replace")
    #expect(try scene.folder.read("pulled.car.zst") == other.newest)
  }

  /// What may be left of a copy of the newest state, of which the first is committed.
  enum Torn: CaseIterable {
    case empty, cutInHeader, cutInFirst, cutBehindFirst, cutInLast, cutInFooter, tornPage, noise
  }

  private func leave(_ torn: Torn, of scene: StoreScene) -> [UInt8] {
    let (first, all) = (scene.generations[0].count, scene.newest)
    switch torn {
    case .empty: return []
    case .cutInHeader: return Array(all.prefix(20))
    case .cutInFirst: return Array(all.prefix(first * 2 / 3))
    case .cutBehindFirst: return Array(all.prefix(first + 1))
    case .cutInLast: return Array(all.prefix((first + all.count) / 2))
    case .cutInFooter: return Array(all.dropLast(3))
    case .tornPage:
      let page = (first / 512 + 3) * 512
      return all.prefix(page) + [UInt8](repeating: 0, count: all.count - page)
    case .noise: return scene.generations[0] + [1, 2, 3]
    }
  }

  @Test(arguments: Torn.allCases)
  func `completes a copy that was cut off or torn`(_ torn: Torn) throws {
    let scene = try StoreScene()
    scene.store[StoreScene.key] = scene.newest
    for option in ["", " --replace"] {
      try scene.folder.write("pulled.car.zst", leave(torn, of: scene))
      try scene.expect(Self.pull + option)
      #expect(try scene.folder.read("pulled.car.zst") == scene.newest)
    }
  }

  @Test func `leaves a write alone that has more than what lies there, unless it is told`() throws {
    let scene = try StoreScene(times: 3)
    scene.store[StoreScene.key] = scene.generations[1]
    // The third generation lacks its footer, and its blob is nowhere else.
    let unfinished = Array(scene.newest.dropLast(30))
    try scene.folder.write("pulled.car.zst", unfinished)
    try scene.expect(Self.pull, 0, "up to date")
    #expect(try scene.folder.read("pulled.car.zst") == unfinished)
    // Another blob was backed up after the first.
    let other = try StoreScene(posts: 40, times: 2)
    scene.store[StoreScene.key] = other.newest
    let torn = other.generations[0] + scene.newest[scene.generations[0].count...].dropLast(30)
    try scene.folder.write("pulled.car.zst", Array(torn))
    try scene.expect(Self.pull, 10, "pulled.car.zst ends in an unfinished write", "pull --replace")
    #expect(try scene.folder.read("pulled.car.zst") == Array(torn))
    try scene.expect("\(Self.pull) --replace")
    #expect(try scene.folder.read("pulled.car.zst") == other.newest)
  }

  @Test func `is refused where a folder has the name`() throws {
    let scene = try StoreScene(times: 1)
    scene.store[StoreScene.key] = scene.newest
    try scene.folder.write("pulled.car.zst/file", [1])
    for option in ["", " --replace"] {
      try scene.expect(Self.pull + option, 73, "pulled.car.zst is a folder")
    }
  }

  /// What is not a beginning of what lies there.
  enum Foreign: CaseIterable {
    case text, zeros, flipped, flippedFooter, beginningLost, later, other
  }

  @Test(arguments: Foreign.allCases)
  func `names the file that is wrong, and the command that replaces it, which works`(
    _ foreign: Foreign
  ) throws {
    let scene = try StoreScene()
    let other = try StoreScene(posts: 40, times: 1)
    scene.store[StoreScene.key] = foreign == .later ? scene.generations[0] : scene.newest
    var (left, status): ([UInt8], Int32) = (scene.newest, 11)
    switch foreign {
    case .text: (left, status) = (Array("a text".utf8), 13)
    case .zeros: (left, status) = ([UInt8](repeating: 0, count: 9000), 13)
    case .flipped:
      left = other.newest
      left[left.count / 2] ^= 1
    case .flippedFooter: left[scene.generations[0].count - 3] ^= 1
    case .beginningLost: left.removeFirst(9)
    case .later: break
    case .other: (left, status) = (other.newest, 13)
    }
    try scene.folder.write("pulled.car.zst", left)
    if foreign != .later && foreign != .flippedFooter {
      let result = try scene.expect(Self.pull, status, "error: pulled.car.zst", "--replace")
      #expect(!result.errors.contains("error: \(StoreScene.address)"), "\(result.errors)")
      #expect(try scene.folder.read("pulled.car.zst") == left)
    }
    try scene.expect("\(Self.pull) --replace")
    #expect(try scene.folder.read("pulled.car.zst") == scene.store[StoreScene.key])
  }

  @Test func `that is killed leaves the old file or the new`() throws {
    let scene = try StoreScene(blobs: 10, blobSize: 200_000, times: 2)
    scene.store[StoreScene.key] = scene.newest
    scene.store.behaviour.latency = 0.02
    for number in 0..<8 {
      try scene.folder.write("pulled.car.zst", scene.generations[0])
      let running = try scene.start(Self.pull)
      Thread.sleep(forTimeInterval: 0.015 * Double(number))
      running.signal(SIGKILL)
      _ = try running.wait()
      let bytes = try scene.folder.read("pulled.car.zst")
      #expect(bytes.starts(with: scene.generations[0]))
      let verified = try scene.run("carpack verify --quick pulled.car.zst")
      #expect(verified.status == 0 || verified.status == 10, "\(verified.errors)")
    }
  }
}
