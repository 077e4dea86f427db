import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Backing up an account whose key has changed` {
  private let scene: NetworkScene
  private let newKey = SigningKey(seed: "carpack stand-in: another server")

  init() throws { scene = try NetworkScene(posts: 4, blobs: 2) }

  @Test func `believes the key that was valid when the commit was made`() throws {
    // It moved after its last commit, and has not written since.
    try scene.server.nameKey(newKey, for: scene.account, at: "2025-07-01T00:00:00Z")
    let result = try scene.backUp()
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
    let verified = try scene.command.run("carpack verify \(NetworkScene.archive)")
    #expect(verified.status == 0, "\(verified.errors)")
    #expect(verified.text.contains("signed with the key that was valid from"), "\(verified.text)")
    let fetched = try scene.command.run(
      "carpack fetch repo \(scene.account.did) \(scene.flags) -o repo.car")
    #expect(fetched.status == 0, "\(fetched.errors)")
  }

  @Test func `does not believe a key that has been replaced`() throws {
    // The commit claims to have been made three hours after the move, by someone with the old key.
    try scene.server.nameKey(newKey, for: scene.account, at: "2025-06-15T13:00:00Z")
    let result = try scene.backUp()
    #expect(result.status == 12, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("former key"), "\(result.errors)")
    #expect(scene.requestCount(of: "getRepo") <= 2)
    #expect(!scene.folder.names(under: ".").contains(NetworkScene.archive))
    let fetched = try scene.command.run(
      "carpack fetch repo \(scene.account.did) \(scene.flags) -o repo.car")
    #expect(fetched.status == 12, "\(fetched.errors)")
  }

  @Test func `does not believe a document that its log contradicts`() throws {
    // Whoever keeps the document names a key of their own, which no operation names.
    let document = scene.server.documentText(of: scene.account).replacingOccurrences(
      of: scene.account.key.multikey, with: newKey.multikey)
    scene.server.setDocument(document, for: scene.account.did)
    // The commit is the account's own still.
    #expect(try scene.backUp().status == 0)
  }

  @Test func `refuses a log that does not hold`() throws {
    let log = scene.account.auditLog
    scene.server.setAuditLog(
      log.replacingOccurrences(of: "pds.example.com", with: "pds.evil.example"),
      for: scene.account.did)
    let result = try scene.backUp()
    #expect(result.status == 12, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("the PLC log of \(scene.account.did) is not valid"))
    #expect(scene.requestCount(of: "getRepo") == 0)
  }

  @Test func `goes by the log that the archive has, where the directory does not answer`() throws {
    #expect(try scene.backUp().status == 0)
    try scene.account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    scene.server.play(FaultRule(.status(500), on: "/log/audit"))
    let result = try scene.backUp("--attempts 1")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
  }
}
