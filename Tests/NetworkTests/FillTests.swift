import Archive
import Files
import Foundation
import IPLD
import Snapshots
import StandIn
import SystemPackage
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, "\(Command.absence)"))
struct `Asking once more for what is missing` {
  /// A backup from a server that had lost some blobs, which come back to it now.
  private static func scene() throws -> (NetworkScene, lost: [CID: BlobContent]) {
    let scene = try NetworkScene(blobs: 8)
    let lost = Dictionary(uniqueKeysWithValues: scene.account.blobs.prefix(3).map { ($0, $1) })
    for cid in lost.keys { scene.account.lose(cid) }
    let result = try scene.backUp()
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    try scene.expectWhole(without: Set(lost.keys))
    for blob in lost.values { scene.account.upload(blob) }
    return (scene, lost)
  }

  private static func fill(_ scene: NetworkScene) throws -> Command.Result {
    try scene.command.run("carpack fill \(NetworkScene.archive) \(scene.flags)")
  }

  @Test func `gets what has come back, and nothing else`() throws {
    let (scene, lost) = try Self.scene()
    let before = scene.server.blobRequests
    let result = try Self.fill(scene)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
    #expect(try scene.ledger().isEmpty)
    let after = scene.server.blobRequests
    let asked = Set(after.filter { before[$0.key] != $0.value }.keys)
    #expect(asked == Set(lost.keys.map { "\($0)" }))
    #expect(scene.requestCount(of: "getRepo") == 1)
    // There is nothing to ask for any more.
    let count = scene.requestCount
    #expect(try Self.fill(scene).status == 0)
    #expect(scene.requestCount == count)
  }

  @Test func `notes when it asked in vain`() throws {
    let (scene, lost) = try Self.scene()
    for cid in lost.keys { scene.account.lose(cid) }
    let result = try Self.fill(scene)
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(try scene.ledger().count == lost.count)
    try scene.expectWhole(without: Set(lost.keys))
  }

  @Test func `in vain is what missing names as the last attempt`() throws {
    let (scene, lost) = try Self.scene()
    for cid in lost.keys { scene.account.lose(cid) }
    // Where a file has no attributes, nothing is remembered.
    let path = FilePath(scene.folder.file(NetworkScene.archive))
    guard FileAttribute(name: "user.carpack.test").write("x", to: path) else { return }
    let later = Int(Date.now.timeIntervalSince1970) + 3600
    let fill = "SOURCE_DATE_EPOCH=\(later) carpack fill \(NetworkScene.archive) \(scene.flags)"
    let result = try scene.command.run(fill)
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    let missing = try scene.command.run("carpack missing \(NetworkScene.archive)").text
    #expect(missing.split(separator: "; first tried ").count == lost.count + 1, "\(missing)")
  }

  @Test(arguments: ["backup", "pack"])
  func `leaves the archive as it was if none comes, whatever the reason`(verb: String) throws {
    let (scene, lost) = try Self.scene()
    for cid in lost.keys { scene.account.lose(cid) }
    if verb == "pack" {
      // Its manifest gives no reasons, and says little of the account.
      for cid in scene.account.blobs.keys { scene.account.lose(cid) }
      let fetched = try scene.command.run(
        "carpack fetch repo \(scene.account.did) \(scene.flags) -o repo.car")
      #expect(fetched.status == 0, "\(fetched.errors)")
      let packed = try scene.command.run(
        "rm \(NetworkScene.archive); carpack pack -q repo.car -o \(NetworkScene.archive)")
      #expect(packed.status == 10, "\(packed.errors)")
    }
    let before = try scene.folder.read(NetworkScene.archive)
    for status in [404, 400, 403] {
      scene.server.play(FaultRule(.status(status), on: "getBlob"))
      let result = try scene.command.run(
        "carpack fill \(NetworkScene.archive) \(scene.flags) --attempts 1")
      #expect(result.status == 10, "\(result.text)\(result.errors)")
      #expect(try scene.folder.read(NetworkScene.archive) == before)
      scene.server.clearFaults()
    }
    guard let (cid, blob) = lost.first else { return }
    scene.account.upload(blob)
    #expect(try Self.fill(scene).status == 10)
    #expect(
      try scene.command.run("carpack log --json \(NetworkScene.archive) | wc -l").text == "2\n")
    #expect(try scene.command.run("carpack cat \(NetworkScene.archive) \(cid) >blob").status == 0)
  }

  @Test func `goes by what the archive knows of an account that is known no more`() throws {
    let (scene, _) = try Self.scene()
    scene.server.play(FaultRule(.status(404), on: scene.account.did))
    let result = try Self.fill(scene)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
  }
}

@Suite(.enabled(if: Command.path != nil, "\(Command.absence)"))
struct `A damaged archive of an account that is online` {
  /// A backup with a byte changed in the middle of each blob's frame, or of the large one's only.
  private static func scene(onlyLarge: Bool = false) throws -> NetworkScene {
    let scene = try NetworkScene(blobs: 4, large: [9_000_000])
    #expect(try scene.backUp().status == 0)
    var bytes = try scene.folder.read(NetworkScene.archive)
    for blob in scene.account.blobs.values where !onlyLarge || blob.bytes.count == 9_000_000 {
      let pattern = blob.bytes[blob.bytes.count / 2..<blob.bytes.count / 2 + 16]
      let place = try #require(bytes.firstRange(of: pattern)?.lowerBound)
      bytes[place] ^= 1
    }
    try scene.folder.write(NetworkScene.archive, bytes)
    return scene
  }

  @Test(arguments: ["backup", "fill"]) func `has those blobs counted that came to mend it`(
    verb: String
  ) throws {
    let scene = try Self.scene(onlyLarge: true)
    let result =
      verb == "backup"
      ? try scene.backUp()
      : try scene.command.run("carpack fill \(NetworkScene.archive) \(scene.flags)")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains(" and 1 new blob ("), "\(result.text)")
  }

  @Test(arguments: ["backup", "fill"]) func `is mended from the server`(verb: String) throws {
    let scene = try Self.scene()
    #expect(try scene.command.run("carpack verify \(NetworkScene.archive)").status == 11)
    let missing = try scene.command.run("carpack missing \(NetworkScene.archive)")
    #expect(missing.status == 11)
    #expect(missing.text.split(separator: "\n").count == scene.account.blobs.count)
    let result =
      verb == "backup"
      ? try scene.backUp()
      : try scene.command.run("carpack fill \(NetworkScene.archive) \(scene.flags)")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("damaged sections were written again"))
    try scene.expectWhole()
    let count = scene.requestCount(of: "getBlob")
    let again = try scene.backUp()
    #expect(again.status == 0 && again.text.contains("up to date"))
    #expect(scene.requestCount(of: "getBlob") == count)
  }

  @Test(arguments: ["backup", "fill"])
  func `whose newest snapshot is lost is gone on with, and said to be damaged`(verb: String) throws
  {
    let scene = try NetworkScene(blobs: 4)
    #expect(try scene.backUp().status == 0)
    try scene.account.advance()
    #expect(try scene.backUp().status == 0)
    let path = FilePath(scene.folder.file(NetworkScene.archive))
    let head = try #require(try ArchiveReader(path: path).generation.head)
    var bytes = try scene.folder.read(NetworkScene.archive)
    bytes[Int(head.frameOffset) + 40] ^= 1
    try scene.folder.write(NetworkScene.archive, bytes)
    try scene.account.advance()
    let result =
      verb == "backup"
      ? try scene.backUp()
      : try scene.command.run("carpack fill \(NetworkScene.archive) \(scene.flags)")
    #expect(result.status == 11, "\(result.text)\(result.errors)")
    let newest = try #require(try SnapshotHistory(of: ArchiveReader(path: path)).newest)
    #expect(newest.number == (verb == "backup" ? 2 : 1))
    #expect(scene.requestCount(of: "getRepo") == (verb == "backup" ? 3 : 2))
  }

  @Test func `that the server cannot mend is not said to be up to date`() throws {
    let scene = try Self.scene()
    for cid in scene.account.blobs.keys { scene.account.lose(cid) }
    let result = try scene.backUp()
    #expect(result.status == 11, "\(result.text)\(result.errors)")
  }
}

@Suite(.enabled(if: Command.path != nil, "\(Command.absence)"))
struct `A directory of names that is away` {
  @Test func `does not keep a known account from being backed up, by the key it had`() throws {
    let scene = try NetworkScene(blobs: 3)
    #expect(try scene.backUp().status == 0)
    try scene.account.advance()
    for page in ["", "/log/audit"] {
      scene.server.play(FaultRule(.status(503), on: scene.account.did + page))
    }
    let result = try scene.backUp("--attempts 1")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("server and key are those of the last backup"))
    try scene.expectWhole()
    try scene.account.advance()
    scene.server.play(FaultRule(.badSignature, on: "getRepo"))
    #expect(try scene.backUp("--attempts 1").status == 12)
  }
}
