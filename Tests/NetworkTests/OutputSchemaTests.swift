import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `JSON of live accounts` {
  /// Runs a line, and expects every line of its output to be as `Docs/JSON.md` has it.
  private func run(_ scene: NetworkScene, _ line: String, _ status: Int32) throws {
    let result = try scene.command.run(line)
    #expect(result.status == status, "\(line): \(result.text)\(result.errors)")
    let faults = OutputSchema.faults(in: result.text) + OutputSchema.faults(in: result.errors)
    #expect(faults.isEmpty, "\(line)")
    #expect(!(result.text + result.errors).isEmpty, "\(line)")
  }

  @Test func `is what the schemas say, whatever happens`() throws {
    let scene = try NetworkScene(posts: 6, blobs: 4)
    let lost = try #require(scene.account.referencedBlobs.sorted { "\($0)" < "\($1)" }.first)
    scene.server.play(FaultRule(.status(400), on: "getBlob", cid: "\(lost)"))
    try run(scene, scene.line("--dry-run --json"), 0)
    try run(scene, scene.line("--json --attempts 1"), 10)
    try run(scene, scene.line("--json --max-age 1h"), 10)
    try run(scene, "carpack fill \(NetworkScene.archive) \(scene.flags) --attempts 1 --json", 10)
    scene.server.clearFaults()
    try run(scene, "carpack fill \(NetworkScene.archive) \(scene.flags) --json", 0)
    try run(scene, scene.line("--json"), 0)
    try run(
      scene, "carpack backup --all --pds \(scene.server.url) \(scene.flags) -o all/ --json", 0)
    let account = "\(scene.account.did) \(scene.flags)"
    try run(scene, "carpack fetch latest \(account) --json", 0)
    try run(scene, "carpack fetch blobs \(account) --json", 0)
    try run(scene, "carpack resolve \(account) --json", 0)
    scene.server.play(FaultRule(.status(500), on: "getLatestCommit"))
    try run(scene, scene.line("--json --attempts 1"), 75)
  }
}
