import ATProtocol
import Archive
import ArchiveTestSupport
import Foundation
import IPLD
import Snapshots
import StandIn
import SystemPackage
import TestSupport
import Testing

/// Losses that the archive's owner accepts.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Accepting losses` {
  /// A backup of an account whose server has lost three blobs.
  private static func scene() throws -> (NetworkScene, lost: [CID]) {
    let scene = try NetworkScene(posts: 10, blobs: 6)
    let lost = Array(scene.account.referencedBlobs.sorted { "\($0)" < "\($1)" }.prefix(3))
    for cid in lost { scene.account.lose(cid) }
    #expect(try scene.backUp().status == 10)
    return (scene, lost)
  }

  private static func run(_ scene: NetworkScene, _ line: String) throws -> Command.Result {
    try scene.command.run("carpack \(line)")
  }

  /// What the manifest of the newest snapshot says of accepted losses.
  private static func accepted(
    _ scene: NetworkScene, in archive: String = NetworkScene.archive
  ) throws -> [CID: BlobLedger.Acceptance] {
    let reader = try ArchiveReader(path: FilePath(scene.folder.file(archive)))
    let snapshot = try ArchivedSnapshot.newest(in: reader)
    let missing = try snapshot.missingBlobs()
    let accepted = missing.filter { $0.accepted != nil }
    #expect(snapshot.snapshot.blobs.accepted == accepted.count)
    return Dictionary(uniqueKeysWithValues: accepted.map { ($0.cid, $0.accepted!) })
  }

  /// Expects every verb to be content, and to say so.
  private static func expectSettled(
    _ scene: NetworkScene, _ count: Int, in archive: String = NetworkScene.archive
  ) throws {
    for verb in ["verify", "verify --quick", "missing"] {
      let result = try run(scene, "\(verb) \(archive)")
      #expect(result.status == 0, "\(verb): \(result.text)\(result.errors)")
      #expect((result.text + result.errors).contains("\(count) losses were accepted"), "\(verb)")
    }
    let info = try run(scene, "info \(archive)").text
    #expect(info.contains("\(count) losses were accepted") && !info.contains(" missing"))
    let log = try run(scene, "log \(archive)").text
    #expect(log.contains("\(count) losses were accepted"))
    let json = try run(scene, "log --json \(archive)").text.split(separator: "\n")[0]
    #expect(json.contains(#""complete":false"#) && json.contains(#""accepted":\#(count)"#))
  }

  @Test func `ends asking for them, and no report hides them`() throws {
    let (scene, lost) = try Self.scene()
    let one = try Self.run(
      scene, "missing \(NetworkScene.archive) --accept \(lost[0]) --reason 'gone with the server'")
    #expect(one.status == 0, "\(one.text)\(one.errors)")
    #expect(try Self.accepted(scene).keys.sorted { "\($0)" < "\($1)" } == [lost[0]])
    #expect(try Self.accepted(scene)[lost[0]]?.reason == "gone with the server")
    // The rest is missing as before.
    #expect(try Self.run(scene, "verify \(NetworkScene.archive)").status == 10)
    #expect(try scene.backUp().status == 10)
    let all = try Self.run(scene, "missing \(NetworkScene.archive) --accept all --json")
    #expect(all.status == 0 && all.text.contains(#""accepted":2"#), "\(all.text)")
    #expect(try Self.accepted(scene)[lost[0]]?.reason == "gone with the server")
    try Self.expectSettled(scene, 3)
    // It is one snapshot still.
    let history = try SnapshotHistory(
      of: ArchiveReader(path: FilePath(scene.folder.file(NetworkScene.archive))))
    #expect(history.entries.count == 1 && history.breaks.isEmpty)

    let requests = scene.requestCount(of: "getBlob")
    let bytes = try scene.folder.read(NetworkScene.archive)
    let backup = try scene.backUp()
    #expect(backup.status == 0 && backup.text.contains("up to date, 3 losses were accepted"))
    let fill = try Self.run(scene, "fill \(NetworkScene.archive) \(scene.flags)")
    #expect(fill.status == 0, "\(fill.text)\(fill.errors)")
    #expect(try scene.folder.read(NetworkScene.archive) == bytes)
    try scene.account.advance()
    let next = try scene.backUp("--json")
    #expect(next.status == 0, "\(next.text)\(next.errors)")
    #expect(next.text.contains(#""accepted":3"#) && next.text.contains(#""complete":false"#))
    let asked = scene.server.blobRequests
    #expect(lost.allSatisfy { asked["\($0)"] == 1 }, "accepted blobs are not asked for")
    #expect(scene.requestCount(of: "getBlob") >= requests)
    try Self.expectSettled(scene, 3)
  }

  @Test func `leaves blobs whose reason may pass, unless they are named`() throws {
    let scene = try NetworkScene(posts: 10, blobs: 6)
    let archive = NetworkScene.archive
    let absent = scene.account.referencedBlobs.sorted { "\($0)" < "\($1)" }.prefix(2)
    scene.account.lose(absent[0])
    scene.server.play(FaultRule(.status(500), on: "getBlob", cid: "\(absent[1])"))
    let backup = try scene.backUp("--attempts 1")
    #expect(backup.status == 10 && backup.text.contains("--accept all"), "\(backup.text)")
    let all = try Self.run(scene, "missing \(archive) --accept all")
    #expect(all.status == 0, "\(all.errors)")
    let sentence =
      "1 blob not accepted, because the cause may be temporary: the server failed at every attempt"
    #expect(all.errors.contains(sentence), "\(all.errors)")
    #expect(try Array(Self.accepted(scene).keys) == [absent[0]])
    // The remaining problems have no hint to accept them.
    let listed = try Self.run(scene, "missing \(archive)")
    #expect(listed.status == 10 && !listed.errors.contains("--accept"), "\(listed.errors)")
    let again = try scene.backUp("--attempts 1")
    #expect(again.status == 10 && !again.text.contains("--accept"), "\(again.text)")
    #expect(try Self.run(scene, "missing \(archive) --accept \(absent[1])").status == 0)
    #expect(try Set(Self.accepted(scene).keys) == Set(absent))
  }

  @Test func `is not advised for a blob for which the disk had no room`() throws {
    let scene = try NetworkScene(blobs: 3, large: [3_000_000])
    // A file may have 2000 × 512 bytes, or twice that; without the signal the system answers with
    // an error, as it does when a disk is full.
    let full = try scene.command.run("ulimit -f 2000; exec \(scene.line())")
    #expect(full.status == 74, "\(full.text)\(full.errors)")
    #expect(full.text.contains("make room on the disk") && !full.text.contains("--accept"))
    let all = try Self.run(scene, "missing \(NetworkScene.archive) --accept all")
    #expect(all.errors.contains("1 blob not accepted"), "\(all.errors)")
    #expect(try Self.accepted(scene).isEmpty)
    #expect(try scene.backUp().status == 0)
    try scene.expectWhole()
  }

  @Test func `survives what is done to the archive`() throws {
    let (scene, lost) = try Self.scene()
    let archive = NetworkScene.archive
    #expect(try Self.run(scene, "missing \(archive) --accept all --reason old").status == 0)
    try scene.account.advance()
    #expect(try scene.backUp().status == 0)
    for line in [
      "prune \(archive) --keep-last 1", "compact \(archive)", "merge -o merged.car.zst \(archive)",
      "repair \(archive) -o repaired.car.zst",
    ] {
      let result = try Self.run(scene, line)
      #expect(result.status == 0, "\(line): \(result.text)\(result.errors)")
    }
    for file in [archive, "merged.car.zst", "repaired.car.zst"] {
      #expect(try Set(Self.accepted(scene, in: file).keys) == Set(lost), "\(file)")
      try Self.expectSettled(scene, 3, in: file)
    }
  }

  @Test func `can be taken back`() throws {
    let (scene, lost) = try Self.scene()
    let archive = NetworkScene.archive
    #expect(try Self.run(scene, "missing \(archive) --accept all").status == 0)
    let back = try Self.run(scene, "missing \(archive) --reconsider \(lost[1])")
    #expect(back.status == 0, "\(back.errors)")
    #expect(try Set(Self.accepted(scene).keys) == [lost[0], lost[2]])
    #expect(try Self.run(scene, "verify \(archive)").status == 10)
    let fill = try Self.run(scene, "fill \(archive) \(scene.flags)")
    #expect(fill.status == 10)
    #expect(scene.server.blobRequests["\(lost[1])"] == 2)
    #expect(scene.server.blobRequests["\(lost[0])"] == 1)
    #expect(try Self.run(scene, "missing \(archive) --reconsider all").status == 0)
    #expect(try Self.accepted(scene).isEmpty)
  }

  @Test func `is over when a blob arrives in another way`() throws {
    let (scene, lost) = try Self.scene()
    let archive = NetworkScene.archive
    #expect(try Self.run(scene, "missing \(archive) --accept all").status == 0)
    let made = try NetworkScene(posts: 10, blobs: 6)
    let content = try #require(made.account.blobs[lost[0]])
    try scene.folder.write("account.car", scene.account.car())
    try FileManager.default.createDirectory(
      atPath: scene.folder.file("blobs"), withIntermediateDirectories: true)
    try scene.folder.write("blobs/\(lost[0])", content.bytes)
    let packed = try Self.run(scene, "pack account.car --blobs blobs -o \(archive)")
    #expect(packed.status == 0, "\(packed.text)\(packed.errors)")
    #expect(try Set(Self.accepted(scene).keys) == Set(lost.dropFirst()))
    try Self.expectSettled(scene, 2)
  }

  @Test(arguments: [
    ("--accept bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", 66),
    ("--reconsider bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy", 66),
    ("--accept nonsense", 64), ("--accept all --reconsider all", 64), ("--reason alone", 64),
    ("--accept all --at 1", 64), ("--accept all --reason ''", 64),
    ("--accept all --account nobody.example", 66),
  ])
  func `of what is not missing, or in words nobody knows, changes nothing`(
    _ options: String, _ status: Int32
  ) throws {
    let (scene, lost) = try Self.scene()
    let bytes = try scene.folder.read(NetworkScene.archive)
    for more in ["", " --json"] {
      let result = try Self.run(scene, "missing \(NetworkScene.archive) \(options)\(more)")
      #expect(result.status == status, "\(result.text)\(result.errors)")
    }
    // Not even of those that are, in the same run.
    if options.hasPrefix("--accept bafk") {
      let line = "missing \(NetworkScene.archive) \(options) --accept \(lost[0])"
      #expect(try Self.run(scene, line).status == status)
    }
    #expect(try scene.folder.read(NetworkScene.archive) == bytes)
  }

  @Test func `takes those that were never given, and one account of several`() throws {
    let accounts = try ["alice", "bob"].map { try StandInAccount($0, posts: 4, blobs: 2) }
    let scene = try NetworkScene(accounts)
    for (account, name) in zip(accounts, ["a", "b"]) {
      try scene.folder.write("\(name).car", account.car())
      #expect(try Self.run(scene, "pack \(name).car --into both.car.zst").status == 10)
    }
    let one = try Self.run(
      scene, "missing both.car.zst --accept all --account \(accounts[0].did)")
    #expect(one.status == 0, "\(one.errors)")
    #expect(
      try Self.run(scene, "missing both.car.zst --account \(accounts[0].did)").status == 0)
    #expect(
      try Self.run(scene, "missing both.car.zst --account \(accounts[1].did)").status == 10)
    #expect(try Self.run(scene, "missing both.car.zst --accept all").status == 0)
    #expect(try Self.run(scene, "verify both.car.zst").status == 0)
    let log = try Self.run(scene, "log --json both.car.zst").text
    #expect(log.split(separator: "\n").count == 2)
  }
}
