import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

/// What `fill` says of servers that it asks one after the other.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Filling from several servers` {
  /// An account that has moved to a server without some of its blobs, which the former one has.
  private struct Scene {
    let scene: NetworkScene
    let new: StandInPDS
    let lost: [CID]

    init() throws {
      scene = try NetworkScene(posts: 6, blobs: 4)
      let account = scene.account
      lost = Array(account.referencedBlobs.sorted { "\($0)" < "\($1)" }.prefix(2))
      new = try StandInPDS(accounts: [account])
      // At the time of the backup the former server fails for them.
      for cid in lost { scene.server.play(FaultRule(.status(400), on: "getBlob", cid: "\(cid)")) }
      #expect(try scene.backUp("--attempts 1").status == 10)
      scene.server.clearFaults()
      account.endpoint = new.url
      for cid in lost { new.play(FaultRule(.page(status: 404), on: "getBlob", cid: "\(cid)")) }
    }

    func fill(_ more: String = "") throws -> Command.Result {
      try scene.command.run(
        "carpack fill \(NetworkScene.archive) \(scene.flags) --attempts 1 \(more)")
    }
  }

  @Test func `says where each came from, and lists nothing as missing that came`() throws {
    let scene = try Scene()
    let result = try scene.fill()
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    for cid in scene.lost {
      let old = scene.scene.server.url
      #expect(
        result.errors.contains(
          "\(cid): came from \(old) (\(scene.new.url): the server does not have it (HTTP 404))"),
        "\(result.errors)")
    }
    #expect(!result.errors.contains("missing:"), "\(result.errors)")
    try scene.scene.expectWhole()
  }

  @Test func `says what each server answered, and how to ask as the owner`() throws {
    let scene = try Scene()
    let old = scene.scene.server
    old.play(FaultRule(.status(401), on: "getBlob", cid: "\(scene.lost[0])"))
    old.play(FaultRule(.page(status: 404), on: "getBlob", cid: "\(scene.lost[1])"))
    let result = try scene.fill()
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    let own = "\(scene.new.url): the server does not have it (HTTP 404)"
    for (cid, answer) in zip(
      scene.lost,
      [
        "\(old.url): gives it out only to the owner, logged in (HTTP 401)",
        "\(old.url): the server does not have it (HTTP 404)",
      ])
    {
      #expect(
        result.errors.contains("missing: \(cid): \(own); \(answer)"), "\(result.errors)")
    }
    #expect(
      result.errors.contains("carpack fill \(NetworkScene.archive) --login --pds \(old.url)"))
    let json = try scene.fill("--json")
    #expect(json.status == 10)
    let events = json.text.split(separator: "\n").filter { $0.contains(#""event":"missing""#) }
    #expect(events.count == 2)
    #expect(events.allSatisfy { $0.contains(scene.new.url) && $0.contains(old.url) })
    #expect(events.count { $0.contains(#""wantsLogin":true"#) } == 1)
  }

  @Test func `says that a server could not be asked where the run is logged in elsewhere`() throws {
    let scene = try Scene()
    let old = scene.scene.server
    for cid in scene.lost { old.play(FaultRule(.status(403), on: "getBlob", cid: "\(cid)")) }
    scene.scene.account.password = "horse-battery-staple"
    try scene.scene.folder.write("password", Array("horse-battery-staple\n".utf8))
    let result = try scene.fill("--login --password-file password")
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(
      result.errors.contains(
        "\(old.url): could not be asked as the owner (HTTP 403): logged in only at \(scene.new.url)"
      ),
      "\(result.errors)")
  }
}
