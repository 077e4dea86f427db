import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Backing up from servers as they were observed` {
  @Test(arguments: ["typescript", "millipds", "cocoon"])
  func `brings everything, and later what has changed`(_ name: String) throws {
    var behaviour = try #require(Behaviour.observed.first { $0.name == name }).behaviour
    // Small pages, so that there are several.
    behaviour.maximumPage = 5
    let scene = try NetworkScene(posts: 40, blobs: 13, behaviour)
    let first = try scene.backUp()
    #expect(first.status == 0, "\(first.text)\(first.errors)")
    #expect(try scene.contents(scene.account.did).car == scene.account.car(behaviour))
    try scene.expectWhole()
    #expect(scene.server.blobDeliveries.values.allSatisfy { $0 == 1 })

    // Nothing has changed: next to nothing is asked, and nothing is written.
    let bytes = try scene.folder.read(NetworkScene.archive)
    scene.server.server.forgetLog()
    let again = try scene.backUp()
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(scene.server.server.log.count <= 2)
    #expect(try scene.folder.read(NetworkScene.archive) == bytes)

    for _ in 0..<2 {
      try scene.account.advance()
      scene.server.server.forgetLog()
      let later = try scene.backUp()
      #expect(later.status == 0, "\(later.text)\(later.errors)")
      try scene.expectWhole()
      // The one blob that is new, and no other.
      #expect(scene.server.blobRequests.values.reduce(0, +) == 1)
      #expect(scene.requestCount(of: "getRepo") == 1)
    }
  }

  @Test func `copes with one that has all their ways at once`() throws {
    let scene = try NetworkScene(posts: 30, blobs: 7, .hostile)
    for round in 0..<3 {
      if round > 0 { try scene.account.advance() }
      let result = try scene.backUp()
      #expect(result.status == 0, "\(result.text)\(result.errors)")
      try scene.expectWhole()
    }
    #expect(scene.server.blobDeliveries.count >= 9)
  }

  @Test func `says of arroba without blobs which are missing, and why`() throws {
    let scene = try NetworkScene(posts: 10, blobs: 3, .arroba)
    let result = try scene.backUp("--attempts 2")
    // Its list of blobs fails with 500 as well, which may be temporary.
    #expect(result.status == 75, "\(result.text)\(result.errors)")
    #expect(try scene.contents(scene.account.did).car == scene.account.car(.arroba))
    let cids = scene.account.referencedBlobs
    try scene.expectWhole(without: cids)
    let ledger = try scene.ledger()
    #expect(Set(ledger.keys) == Set(cids.map { "\($0)" }))
    #expect(ledger.values.allSatisfy { $0 == "server-error" })
    // The next day they are there.
    scene.server.behaviour.hasNoBlobs = false
    let next = try scene.backUp()
    #expect(next.status == 0, "\(next.text)\(next.errors)")
    try scene.expectWhole()
    #expect(try scene.ledger().isEmpty)
  }

  @Test func `follows arroba to where the blobs are, and takes only what they are called`() throws {
    let account = try StandInAccount(
      "somebody", posts: 10, blobs: 6, style: Behaviour.arroba.account)
    let contents = account.blobs
    let wrong = try #require(contents.keys.min { "\($0)" < "\($1)" })
    let elsewhere = try LoopbackServer { request, response in
      let name = String(request.path.dropFirst())
      guard let cid = try? CID(name), let content = contents[cid] else {
        response.status = 404
        return try response.send("no such thing")
      }
      try response.send(cid == wrong ? Array("something else".utf8) : content.bytes)
    }
    let scene = try NetworkScene(
      [account], .arroba(redirectingBlobsTo: "\(elsewhere.url)/{cid}"))
    let result = try scene.backUp("--attempts 2")
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    try scene.expectWhole(without: [wrong])
    #expect(try scene.ledger() == ["\(wrong)": "mismatch"])
    #expect(elsewhere.log.count <= 5 + 3)
  }

  @Test(arguments: Behaviour.observed.map(\.name) + ["plain"])
  func `has an exact ledger of blobs that are not there`(_ name: String) throws {
    var behaviour = Behaviour.observed.first { $0.name == name }?.behaviour ?? Behaviour()
    behaviour.hasNoBlobs = false
    let scene = try NetworkScene(posts: 10, blobs: 8, behaviour)
    let lost = Set(scene.account.referencedBlobs.sorted { "\($0)" < "\($1)" }.prefix(3))
    for cid in lost { scene.account.lose(cid) }
    let result = try scene.backUp("--attempts 2")
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    try scene.expectWhole(without: lost)
    let reason = behaviour.unknownBlob == .internalError ? "server-error" : "not-found"
    var expected: [String: String] = [:]
    for cid in lost { expected["\(cid)"] = reason }
    #expect(try scene.ledger() == expected)
    // What is refused for good is requested once.
    let asked = scene.server.blobRequests
    for cid in lost {
      #expect(asked["\(cid)"] == (behaviour.unknownBlob == .internalError ? 2 : 1))
    }
  }
}
