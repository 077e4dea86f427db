import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `JSON of restores` {
  @Test func `is what the schemas say, whatever happens`() throws {
    let scene = try RestoreScene(large: [2 << 20])
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    func run(_ line: String, _ status: Int32) throws {
      let result = try scene.command.run("\(line) --json")
      #expect(result.status == status, "\(line): \(result.text)\(result.errors)")
      let faults = OutputSchema.faults(in: result.text) + OutputSchema.faults(in: result.errors)
      #expect(faults.isEmpty, "\(line)")
      #expect(!result.text.isEmpty || status == 64, "\(line)")
    }
    let did = scene.account.did
    try run(
      "carpack restore \(RestoreScene.archive) --plan --to \(scene.new.url) \(scene.flags)", 0)
    try run("carpack recovery-key list \(did) \(scene.flags)", 0)
    try run("carpack recovery-key check recovery.key \(did) \(scene.flags)", 0)
    try run("carpack recovery-key new -o other.key --curve p256", 0)
    try run("carpack recovery-key check other.key \(did) \(scene.flags)", 10)
    try run(
      "carpack recovery-key add other.key \(did) --with recovery.key --yes identity \(scene.flags)",
      0)
    scene.new.behaviour.blobLimit = 1 << 20
    try run(scene.line("--recovery-key recovery.key"), 10)
    scene.new.behaviour.blobLimit = 1 << 30
    try run(scene.line("--recovery-key recovery.key"), 10)
    try run(scene.line("--recovery-key recovery.key \(RestoreScene.agreed)"), 0)
    try run(
      "carpack restore \(RestoreScene.archive) --login --password-file new --record app.bsky.feed.post \(scene.flags)",
      0)
    try run(
      "carpack restore \(RestoreScene.archive) --blobs-only --login --password-file new \(scene.flags)",
      0)
  }
}
