import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `What is proven of a snapshot` {
  private struct Level: Decodable, Equatable {
    let level: String
    let holds: Bool?
  }

  private struct Snapshot: Decodable {
    let number: Int
    let levels: [Level]
  }

  private struct Verified: Decodable {
    let snapshots: [Snapshot]
  }

  /// The levels of each snapshot, the newest first: `+` for those that hold, `-` for those that do
  /// not, `?` without evidence.
  private func levels(_ command: Command, _ archive: String, status: Int32) throws -> [String] {
    let result = try command.run("carpack verify --json \(archive)")
    #expect(result.status == status, "\(result.errors)")
    #expect(OutputSchema.faults(in: result.text + result.errors).isEmpty)
    let verified = try JSONDecoder().decode(Verified.self, from: Data(result.text.utf8))
    return verified.snapshots.map { snapshot in
      snapshot.levels.map { $0.holds.map { $0 ? "+" : "-" } ?? "?" }.joined()
    }
  }

  @Test
  func `is what inspect says of a CAR whose signer is known, and not of one that was changed`()
    throws
  {
    let scene = try NetworkScene(posts: 8, blobs: 3)
    let car = scene.account.car()
    try scene.folder.write("log.json", Array(scene.account.auditLog.utf8))
    let stranger = SigningKey(seed: "carpack stand-in: a stranger")
    func inspect(_ bytes: [UInt8], _ option: String) throws -> Command.Result {
      try scene.folder.write("repo.car", bytes)
      let result = try scene.command.run("carpack inspect repo.car \(option)")
      let json = try scene.command.run("carpack inspect --json repo.car \(option)")
      #expect(json.status == result.status)
      #expect(OutputSchema.faults(in: json.text + json.errors).isEmpty)
      return result
    }
    for option in ["--key did:key:\(scene.account.key.multikey)", "--identity log.json"] {
      let good = try inspect(car, option)
      #expect(good.status == 0 && good.text.contains("signed     signed with"), "\(good.text)")
      for place in stride(from: 70, to: car.count, by: car.count / 20) {
        var flipped = car
        flipped[place] ^= 4
        let bad = try inspect(flipped, option)
        #expect([10, 11, 12].contains(bad.status), "byte \(place): \(bad.status)")
      }
    }
    let other = try inspect(car, "--key did:key:\(stranger.multikey)")
    #expect(other.status == 12 && other.errors.contains("not signed with the key given"))
    #expect(try inspect(car, "--key did:key:zQ3sh").status == 64)
  }

  @Test func `is everything, by the archive alone`() throws {
    let scene = try NetworkScene(posts: 8, blobs: 3)
    #expect(try scene.backUp().status == 0)
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    #expect(try scene.backUp().status == 0)
    scene.server.stop()
    #expect(try levels(scene.command, NetworkScene.archive, status: 0) == ["++++++", "++++++"])
    let result = try scene.command.run(
      "carpack verify -q \(NetworkScene.archive) --require identity-proven")
    #expect(result.status == 0, "\(result.errors)")
  }

  @Test func `is not who signed, where the archive does not say whose key it was`() throws {
    let scene = try NetworkScene(posts: 2, blobs: 0)
    try scene.folder.write("repo.car", scene.account.car())
    #expect(try scene.command.run("carpack pack -q repo.car -o a.car.zst").status == 0)
    #expect(try levels(scene.command, "a.car.zst", status: 0) == ["++??++"])
  }

  @Test func `is not genuine, where nobody who may have signed it did`() throws {
    let scene = try NetworkScene(posts: 2, blobs: 0)
    #expect(try scene.backUp().status == 0)
    // Another account's repository under the account's name.
    var repository = try TestRepository(posts: 3)
    repository.did = scene.account.did
    repository.rev = "3zzzzzzzzzz2z"
    try scene.folder.write("forged.car", try repository.car())
    let packed = try scene.command.run("carpack pack -q forged.car -o \(NetworkScene.archive)")
    #expect(packed.status == 0, "\(packed.errors)")
    #expect(try levels(scene.command, NetworkScene.archive, status: 12) == ["++--++", "++++++"])
    let said = try scene.command.run("carpack verify -q \(NetworkScene.archive)")
    #expect(said.errors.contains("snapshot 2: not signed with the account's key"), "\(said.errors)")
  }

  @Test func `is an identity only if its log holds`() throws {
    let fixture = "\(Command.packageRoot)/Fixtures/alice"
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    let log = try String(contentsOfFile: "\(fixture)/plc-audit-log.json", encoding: .utf8)
    let changed = log.replacingOccurrences(of: "pds.example", with: "pds.example.evil")
    let line =
      "carpack pack -q \(fixture)/alice.car --blobs \(fixture)/blobs --did-document \(fixture)/did-document.json"
    #expect(
      try command.run("\(line) --plc-log \(fixture)/plc-audit-log.json -o a.car.zst").status == 0)
    try ReplacedLog.write(Array(changed.utf8), to: folder.file("a.car.zst"))
    #expect(try levels(command, "a.car.zst", status: 12) == ["+++-++", "+++-++"])
    #expect(
      try command.run("\(line) --plc-log \(fixture)/plc-audit-log.json -o b.car.zst").status == 0)
    #expect(try levels(command, "b.car.zst", status: 0) == ["++++++"])
    #expect(try command.run("\(line) -o c.car.zst").status == 0)
    #expect(try levels(command, "c.car.zst", status: 0) == ["+++?++"])
  }
}
