import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Many accounts in one run` {
  private static func accounts(_ count: Int, blobs: Int = 2) throws -> [StandInAccount] {
    try (0..<count).map {
      try StandInAccount("member-\($0)", posts: 3, blobs: blobs, blobSize: 500)
    }
  }

  /// Backs up accounts of a list into a folder.
  private func backUp(_ scene: NetworkScene, _ more: String) throws -> Command.Result {
    let list = scene.accounts.map { $0.did + "\n" }.joined()
    try scene.folder.write("list.txt", Array(list.utf8))
    return try scene.command.run(
      "carpack backup --accounts list.txt -o out/ \(scene.flags) \(more)")
  }

  @Test func `keep to the limit of their server together`() throws {
    var behaviour = Behaviour()
    var limit = Behaviour.RateLimit(requests: 150, seconds: 2)
    limit.isAnnounced = true
    behaviour.rateLimit = limit
    let scene = try NetworkScene(Self.accounts(100), behaviour)
    let result = try backUp(scene, "--jobs 8 --quiet")
    #expect(result.status == 0, "\(result.errors)")
    #expect(scene.folder.names(under: "out").filter { $0.hasSuffix(".zst") }.count == 100)
    for account in scene.accounts.prefix(3) {
      try scene.expectWhole(account, in: "out/\(account.handle).car.zst")
    }
    let log = scene.server.server.log.filter { $0.path.hasPrefix("/xrpc/") }
    // Those that were on their way when the limit was met.
    #expect(
      log.count { $0.status == 429 } <= 40, "\(log.count { $0.status == 429 }) of \(log.count)")
  }

  @Test(arguments: [Behaviour.ResetTime.absolute, .relative])
  func `wait as long as a server says, and no longer`(_ reset: Behaviour.ResetTime) throws {
    var behaviour = Behaviour()
    var limit = Behaviour.RateLimit(requests: 30, seconds: 2)
    limit.reset = reset
    limit.hasRetryAfter = reset == .absolute
    behaviour.rateLimit = limit
    let scene = try NetworkScene(Self.accounts(10), behaviour)
    let result = try backUp(scene, "--jobs 4 --quiet")
    #expect(result.status == 0, "\(result.errors)")
    let refused = scene.server.server.log.count { $0.status == 429 }
    #expect(refused <= 40, "\(refused)")
  }

  @Test func `do not suffer from one that fails`() throws {
    let scene = try NetworkScene(Self.accounts(12))
    let (broken, gone) = (scene.accounts[3], scene.accounts[7])
    scene.server.play(FaultRule(.distorted(.corrupted(at: 0.5)), on: "getRepo", did: broken.did))
    gone.status = .deactivated
    let result = try backUp(scene, "--jobs 3 --attempts 2")
    #expect(result.status != 0)
    #expect(result.errors.contains(broken.handle) || result.errors.contains(broken.did))
    #expect(result.errors.contains(gone.handle) || result.errors.contains(gone.did))
    for account in scene.accounts where account.did != broken.did && account.did != gone.did {
      try scene.expectWhole(account, in: "out/\(account.handle).car.zst")
    }
  }

  @Test(arguments: [Behaviour.Paging.proper, .emptyPages])
  func `come from a server's own list, and go into one archive`(_ paging: Behaviour.Paging) throws {
    var behaviour = Behaviour()
    behaviour.maximumPage = 7
    behaviour.paging = paging
    let scene = try NetworkScene(Self.accounts(20), behaviour)
    let result = try scene.command.run(
      "carpack backup --all --pds \(scene.server.url) --plc \(scene.server.url) --into all.car.zst")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    for account in [scene.accounts[0], scene.accounts[19]] {
      let names = [account.handle, account.did]
      #expect(
        names.contains { result.text.contains("\($0): all.car.zst: complete") }, "\(result.text)")
      try scene.expectWhole(account, in: "all.car.zst")
    }
    // Nothing is asked about an account that the list says has not changed.
    scene.server.server.forgetLog()
    let again = try scene.command.run(
      "carpack backup --all --pds \(scene.server.url) --plc \(scene.server.url) --into all.car.zst")
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(scene.requestCount(of: "getRepo") == 0)
  }

  @Test func `are backed up as far as the server's list goes, and it says where that broke off`()
    throws
  {
    var behaviour = Behaviour()
    behaviour.maximumPage = 3
    behaviour.paging = .loop
    let scene = try NetworkScene(Self.accounts(5), behaviour)
    for more in ["", "--json"] {
      let result = try scene.command.run(
        "carpack backup --all --pds \(scene.server.url) --plc \(scene.server.url) -o out/ \(more)")
      #expect(result.status == 10, "\(result.text)\(result.errors)")
      let words =
        "com.atproto.sync.listRepos at \(scene.server.url): the list broke off after 6 entries"
      #expect((result.text + result.errors).contains(words), "\(result.text)\(result.errors)")
    }
    #expect(scene.folder.names(under: "out").count == 3)
  }
}
