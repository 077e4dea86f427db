import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

/// What a hostile or broken server may say.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A new server that is not what it should be` {
  private func scene() throws -> RestoreScene {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    return scene
  }

  private func run(_ scene: RestoreScene, _ more: String = "") throws -> Command.Result {
    let result = try scene.restore(
      "--recovery-key recovery.key --attempts 1 \(RestoreScene.agreed) \(more)")
    try scene.expectNoSecret(in: result)
    return result
  }

  @Test(arguments: [
    "describeServer", "createAccount", "importRepo", "listMissingBlobs", "uploadBlob",
    "checkAccountStatus", "getRepo", "getBlob", "getRecommendedDidCredentials",
    "submitPlcOperation", "activateAccount", "createSession",
  ])
  func `is told from one that is, and the restore goes on later`(_ method: String) throws {
    let scene = try scene()
    for fault in [Fault.status(500), .captivePortal, .dropped] {
      scene.new.play(FaultRule(fault, on: method))
      let result = try run(scene)
      #expect(result.status != 0, "\(method), \(fault): \(result.text)\(result.errors)")
      #expect(result.status < 128, "\(method), \(fault): \(result.errors)")
      scene.new.clearFaults()
    }
    let end = try run(scene)
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    try scene.expectMoved()
    #expect(scene.directory.operations(of: scene.account.did).count == 4)
  }

  @Test(arguments: [(.emptyPages, 0), (.loop, 10)] as [(Behaviour.Paging, Int32)])
  func `lists what it misses in its own way`(_ paging: Behaviour.Paging, status: Int32) throws {
    let scene = try scene()
    scene.new.behaviour.paging = paging
    let result = try run(scene)
    #expect(result.status == status, "\(result.text)\(result.errors)")
    let words = "com.atproto.repo.listMissingBlobs at \(scene.new.url): the list broke off after"
    #expect(result.errors.contains(words) == (status == 10), "\(result.errors)")
    // All blobs are read back, whatever the list says.
    try scene.expectMoved()
  }

  @Test func `gives back another repository, or another blob`() throws {
    for fault in [Fault.previousRevision, .lacksBlocks] {
      let scene = try scene()
      scene.new.play(FaultRule(fault, on: "getRepo"))
      let result = try run(scene)
      #expect(result.status == 11, "\(fault): \(result.text)\(result.errors)")
      #expect(scene.directory.operations(of: scene.account.did).count == 3)
    }
    let scene = try scene()
    scene.new.play(FaultRule(.otherContent, on: "getBlob"))
    let result = try run(scene)
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("the server returns other bytes"))
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
    // Corrupted once, on the way, it is the same blob.
    scene.new.clearFaults()
    scene.new.play(FaultRule(.otherContent, on: "getBlob", times: 1))
    let second = try run(scene)
    #expect(second.status == 0, "\(second.text)\(second.errors)")
    try scene.expectMoved()
  }

  @Test func `wants the DID to name another server`() throws {
    let scene = try scene()
    let other = scene.new.url.replacingOccurrences(of: "127.0.0.1", with: "localhost")
    let result = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --to \(other) \(scene.flags) --login --password-file old --recovery-key recovery.key \(RestoreScene.agreed)"
    )
    #expect(result.status == 13, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("use that name with --to"))
    #expect(scene.directory.operations(of: scene.account.did).count == 3)
  }

  @Test func `goes on while the account writes on the old one`() throws {
    let scene = try scene()
    #expect(
      try scene.restore("--recovery-key recovery.key").status == 10)
    // After everything was sent, and before the identity moves.
    try scene.account.advance()
    let late = try run(scene)
    #expect(late.status == 13, "\(late.text)\(late.errors)")
    try scene.backUp()
    let end = try run(scene)
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    // The server keeps what records referred to that an import took away.
    let moved = try #require(scene.moved)
    #expect(moved.head == scene.account.head)
    #expect(moved.status == .active)
    #expect(Set(moved.blobs.keys).isSuperset(of: scene.account.referencedBlobs))
  }
}
