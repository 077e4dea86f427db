import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Proofs of single records` {
  private let scene: NetworkScene

  init() throws {
    scene = try NetworkScene(posts: 12, blobs: 0)
    try scene.account.commit([.put(path: "a.b.c/gone", record: ["text": .string("once")])])
    _ = try scene.backUp()
    try scene.account.commit([.delete(path: "a.b.c/gone")])
    _ = try scene.backUp()
    try scene.folder.write("log.json", Array(scene.account.auditLog.utf8))
    try scene.folder.write(
      "document.json", Array(scene.server.documentText(of: scene.account).utf8))
  }

  private func run(_ line: String, _ status: Int32 = 0) throws -> Command.Result {
    let result = try scene.command.run("carpack \(line)")
    #expect(result.status == status, "\(line): \(result.text)\(result.errors)")
    return result
  }

  @Test func `say that a record was there, and that it is there no more`() throws {
    let archive = NetworkScene.archive
    _ = try run("prove \(archive) a.b.c/gone --at 1 -o then.car")
    _ = try run("prove \(archive) a.b.c/gone -o now.car")
    let then = try run("verify-proof then.car --identity log.json")
    #expect(then.text.contains("a.b.c/gone was there: bafyrei"), "\(then.text)")
    #expect(then.text.contains("\n  \"text\": \"once\""), "\(then.text)")
    #expect(then.text.contains("signed with the account's current key"), "\(then.text)")
    let now = try run("verify-proof now.car --record a.b.c/gone --identity document.json")
    #expect(now.text.contains("a.b.c/gone was not there"), "\(now.text)")
    let json = try run("verify-proof then.car --did \(scene.account.did) --json", 10)
    #expect(OutputSchema.faults(in: json.text + json.errors).isEmpty)
    #expect(json.text.contains(#""signed":null"#))
    #expect(json.errors.contains("--identity"), "\(json.errors)")
  }

  @Test func `do not hold for another account, by another key, or if a byte is another`() throws {
    let archive = NetworkScene.archive
    _ = try run("prove \(archive) a.b.c/gone --at 1 -o proof.car")
    _ = try run("verify-proof proof.car --did did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", 12)
    let other = SigningKey(seed: "somebody else")
    let forged = try run("verify-proof proof.car --key did:key:\(other.multikey)", 12)
    #expect(!forged.text.contains("was there") && !forged.text.contains("once"), "\(forged.text)")
    #expect(forged.text.hasPrefix("a.b.c/gone: the proof is not genuine"), "\(forged.text)")
    let json = try run("verify-proof proof.car --key did:key:\(other.multikey) --json", 12)
    #expect(json.text.contains(#""signed":false"#), "\(json.text)")
    let unchecked = try run("verify-proof proof.car", 10)
    #expect(
      unchecked.text.hasPrefix("a.b.c/gone was there, if the signature holds (not checked): "))
    _ = try run("verify-proof proof.car --key did:key:\(scene.account.key.multikey)")
    let proof = try scene.folder.read("proof.car")
    for place in stride(from: 0, to: proof.count, by: 7) {
      var bytes = proof
      bytes[place] ^= 4
      try scene.folder.write("changed.car", bytes)
      let result = try scene.command.run("carpack verify-proof changed.car --identity log.json")
      #expect([11, 12].contains(result.status), "byte \(place): \(result.text)\(result.errors)")
    }
    let bob = "\(Command.packageRoot)/Fixtures/bob"
    for file in ["plc-audit-log.json", "did-document.json"] {
      _ = try run("verify-proof proof.car --identity \(bob)/\(file)", 12)
    }
    _ = try run("verify-proof \(archive)", 11)
    try scene.folder.write("bad.json", Array("not JSON".utf8))
    try scene.folder.write("other.json", Array("{}".utf8))
    for file in ["bad.json", "other.json"] {
      let result = try run("verify-proof proof.car --identity \(file)", 11)
      #expect(result.errors.contains("\(file): the PLC log is"), "\(result.errors)")
    }
  }

  @Test func `judge what servers answer`() throws {
    let url = "\(scene.server.url)/xrpc/com.atproto.sync.getRecord"
    let line =
      "curl -s '\(url)?did=\(scene.account.did)&collection=a.b.c&rkey=gone' -o answer.car"
    #expect(try scene.command.run(line).status == 0)
    let result = try run("verify-proof answer.car --record a.b.c/gone --identity log.json")
    #expect(result.text.contains("was not there"), "\(result.text)")
  }

  @Test func `name one record`() throws {
    let only = try run("prove \(NetworkScene.archive) gone --at 1 -o only.car")
    #expect(only.errors.contains("a.b.c/gone is in"), "\(only.errors)")
    let several = try run("prove \(NetworkScene.archive) app.bsky.feed.post -o x.car", 64)
    #expect(several.errors.contains("matches "))
    _ = try run("prove \(NetworkScene.archive) a.b.c/gone --at 99 -o x.car", 66)
  }
}
