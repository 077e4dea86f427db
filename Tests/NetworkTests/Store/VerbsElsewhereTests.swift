import Foundation
import StandIn
import TestSupport
import Testing

/// Verbs that read remote archives by other ways than looking into one.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Verbs with archives that lie elsewhere` {
  private static let prefix = "s3://\(StandInStore.bucket)/backups/"

  /// An archive in a file, and the same in the store.
  private static func scene(times: Int = 2) throws -> StoreScene {
    let scene = try StoreScene(times: times)
    scene.store[StoreScene.key] = scene.newest
    return scene
  }

  @Test(arguments: [
    "identity FILE", "identity FILE --json", "log FILE app.bsky.feed.post/3lkxag2qhdc21",
    "export FILE --csv tables --force",
  ])
  func `say what they say of the file`(_ verb: String) throws {
    let scene = try Self.scene()
    let here = try scene.expect("carpack \(verb.replacing("FILE", with: StoreScene.file))")
    let there = try scene.expect("carpack \(verb.replacing("FILE", with: StoreScene.address))")
    #expect(
      there.text.replacing(StoreScene.address, with: "FILE")
        == here.text.replacing(StoreScene.file, with: "FILE"))
  }

  @Test func `that make a new archive make the same`() throws {
    let scene = try Self.scene()
    try scene.folder.write("first.car.zst", scene.generations[0])
    for verb in ["merge first.car.zst FILE", "compact FILE", "repair FILE"] {
      for (name, place) in [("here", StoreScene.file), ("there", StoreScene.address)] {
        let line = verb.replacing("FILE", with: place)
        try scene.expect("carpack \(line) -o \(name).car.zst --force")
      }
      let (here, there) = (
        try scene.folder.read("here.car.zst"), try scene.folder.read("there.car.zst")
      )
      #expect(here == there, "\(verb)")
    }
    // -o names a folder: the file is called after the object.
    try scene.expect("carpack compact \(StoreScene.address) -o small/")
    #expect(scene.folder.names(under: "small") == ["archive.car.zst"])
  }

  @Test func `mend a file from there`() throws {
    let scene = try Self.scene()
    var damaged = scene.newest
    damaged[damaged.count / 2] ^= 1
    try scene.folder.write(StoreScene.file, damaged)
    try scene.expect("carpack verify \(StoreScene.file)", 11)
    try scene.expect("carpack repair \(StoreScene.file) --from \(StoreScene.address)")
    try scene.expect("carpack verify \(StoreScene.file)")
  }

  @Test func `make nothing of what could not be fetched`() throws {
    let scene = try Self.scene()
    scene.store.behaviour.bytesBeforeCut = 2000
    for verb in ["merge", "compact", "repair"] {
      let result = try scene.run("carpack \(verb) \(StoreScene.address) -o new.car.zst")
      // The command is repeated until the archive is complete; a part is never taken for the whole.
      #expect([0, 69, 75].contains(result.status), "\(result.text)\(result.errors)")
      guard result.status == 0 else { continue }
      try scene.expect("carpack verify new.car.zst")
      try FileManager.default.removeItem(atPath: scene.folder.file("new.car.zst"))
    }
  }

  @Test func `say how it stands, but not what only a file tells`() throws {
    let scene = try Self.scene()
    try scene.expect("carpack verify \(StoreScene.file)")
    let status = try scene.expect("carpack status \(StoreScene.address)")
    #expect(status.text.contains("complete"))
    #expect(!status.text.contains("never"))
    let there = try scene.expect("carpack status --json \(StoreScene.address)")
    #expect(there.text.contains(#""snapshots":2"#))
    #expect(there.text.contains(#""verified":null"#))
    #expect(there.text.contains(#""bytesSinceVerified":null"#))
  }

  @Test func `look at all archives under a prefix, of which one costs no other`() throws {
    let scene = try Self.scene()
    scene.store["backups/deeper/other.car.zst"] = scene.generations[0]
    scene.store["backups/notes.txt"] = Array("no archive\n".utf8)
    scene.store["elsewhere.car.zst"] = scene.newest
    for verb in ["info", "log", "stats", "missing", "verify --quick", "status", "find post"] {
      let line = verb.hasPrefix("find") ? "find post \(Self.prefix)" : "\(verb) \(Self.prefix)"
      let result = try scene.expect("carpack \(line)")
      let said = result.text + result.errors
      #expect(said.contains(StoreScene.address), "\(verb): \(said)")
      #expect(said.contains("\(Self.prefix)deeper/other.car.zst"), "\(verb): \(said)")
      #expect(!said.contains("notes.txt") && !said.contains("elsewhere.car.zst"), "\(verb)")
    }
    scene.store["backups/bad.car.zst"] = Array("no archive\n".utf8)
    let result = try scene.expect("carpack status \(Self.prefix)", 11, "bad.car.zst is a text")
    #expect(result.text.contains(StoreScene.address))
    // A bucket that is not there costs only itself.
    scene.store["backups/bad.car.zst"] = nil
    let two = try scene.expect("carpack info s3://nonesuch/ \(Self.prefix)", 66)
    #expect(two.text.contains(StoreScene.address))
    try scene.expect("carpack info s3://\(StandInStore.bucket)/nothing/", 66, "holds no archive")
  }

  @Test(arguments: ["ls", "cat", "restore --plan --to https://pds.example", "compact -o new"])
  func `that read one name those under a prefix`(_ verb: String) throws {
    let scene = try Self.scene(times: 1)
    var words = verb.split(separator: " ").map(String.init)
    words.insert(Self.prefix, at: 1)
    let more = verb == "cat" ? " app.bsky.actor.profile/self" : ""
    try scene.expect(
      "carpack \(words.joined(separator: " "))\(more)", 64, "is a folder", StoreScene.address)
  }

  @Test(arguments: [
    "export FILE --sqlite a.db", "prune FILE --keep-last 1",
    "compact FILE", "repair FILE", "missing FILE --accept all", "fill FILE",
    "pack old.car -o FILE", "pack old.car --into FILE", "inspect FILE", "pack FILE -o a.car.zst",
  ])
  func `that need a file say so`(_ verb: String) throws {
    let scene = try Self.scene(times: 1)
    let result = try scene.expect(
      "carpack \(verb.replacing("FILE", with: StoreScene.address))", 64,
      "\(StoreScene.address) is not a local file, and ", "hint: ")
    #expect(result.errors.split(separator: "\n").count == 2, "\(result.errors)")
    #expect(scene.requests().isEmpty)
    #expect(scene.store[StoreScene.key] == scene.newest)
  }

  @Test(arguments: ["serve", "view"])
  func `that serve look at what lies elsewhere first`(_ verb: String) throws {
    let scene = try Self.scene(times: 1)
    try scene.expect("carpack \(verb) s3://\(StandInStore.bucket)/none.car.zst", 66)
    try scene.expect("carpack \(verb) s3://nonesuch/\(Self.prefix.isEmpty ? "" : "a/")", 66)
  }

  @Test func `give a hint that works`() throws {
    let scene = try Self.scene(times: 1)
    let result = try scene.expect("carpack export \(StoreScene.address) --sqlite a.db", 64)
    let hint = try #require(result.errors.split(separator: "\n").last)
    let line = try #require(hint.split(separator: "pull it first: ").last)
    try FileManager.default.removeItem(atPath: scene.folder.file(StoreScene.file))
    try scene.expect(String(line))
    try scene.expect("carpack verify \(StoreScene.file)")
  }

  @Test(arguments: ["identity", "status", "merge -o new", "compact -o new", "repair -o new"])
  func `tell what is not there from what may not be read`(_ verb: String) throws {
    let scene = try Self.scene(times: 1)
    try scene.expect("carpack \(verb) s3://\(StandInStore.bucket)/none.car.zst", 66)
    let result = try scene.run(
      "carpack \(verb) \(StoreScene.address)", environment: ["AWS_SECRET_ACCESS_KEY": "wrong"])
    #expect(result.status == 77, "\(result.errors)")
  }

  @Test func `put an account back from there`() throws {
    let store = try StandInStore()
    let scene = try RestoreScene()
    try scene.backUp()
    store["account.car.zst"] = try scene.folder.read(RestoreScene.archive)
    try FileManager.default.removeItem(atPath: scene.folder.file(RestoreScene.archive))
    let line = scene.line(RestoreScene.agreed)
      .replacing(RestoreScene.archive, with: "s3://\(StandInStore.bucket)/account.car.zst")
    let result = try scene.command.start(line, environment: store.environment).wait()
    // It stops before the step that needs the code from the mail.
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("--mail-code"))
    try scene.expectMoved(isActive: false)
    #expect(scene.folder.names(under: ".").contains("account.restore.json"))
  }
}
