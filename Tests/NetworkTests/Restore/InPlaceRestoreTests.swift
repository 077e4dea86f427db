import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

/// An older snapshot back onto the account's own server.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Restoring in place` {
  /// An account that was backed up, and has since lost a record, changed one and written one.
  private func scene(posts: Int = 20) throws -> RestoreScene {
    let scene = try RestoreScene(posts: posts)
    try scene.backUp()
    let paths = scene.account.paths
    try scene.account.commit([
      .delete(path: paths[0]),
      .put(
        path: paths[1],
        record: [
          "$type": .string("app.bsky.feed.post"), "text": .string("another text"),
        ]),
      scene.account.post("3lkxag2qhdc2b", "later"),
    ])
    return scene
  }

  private func restore(_ scene: RestoreScene, _ more: String = "") throws -> Command.Result {
    let result = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --in-place --at 1 --login --password-file old \(scene.flags) \(more)"
    )
    try scene.expectNoSecret(in: result)
    return result
  }

  @Test func `writes what is gone or different, and keeps what came later`() throws {
    let scene = try scene()
    let before = scene.account.paths
    let lossy = try restore(scene, "--yes write")
    #expect(lossy.status == 13, "\(lossy.text)\(lossy.errors)")
    #expect(lossy.errors.contains("carpack backup"))
    #expect(scene.account.paths == before)
    try scene.backUp()
    let head = scene.account.head
    let plan = try restore(scene, "--plan")
    #expect(plan.status == 0, "\(plan.text)\(plan.errors)")
    for words in ["1 record to write", "1 record to put back", "1 record came later and stay"] {
      #expect(plan.text.contains(words), "\(words) in \(plan.text)")
    }
    #expect(scene.account.head == head)
    let asked = try restore(scene)
    #expect(asked.status == 10, "\(asked.text)\(asked.errors)")
    #expect(scene.account.head == head)
    let result = try scene.follow(asked)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("the account has all records of the snapshot"), "\(result.text)")
    #expect(scene.account.paths.count == 21)
    #expect(scene.account.head != head)
    let again = try restore(scene, "--yes write")
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(scene.calls(of: "applyWrites", on: scene.old) == 1)
  }

  @Test func `makes the account exactly what it was, in batches`() throws {
    let scene = try RestoreScene(posts: 450, blobs: 8)
    let tree = scene.account.paths
    try scene.backUp()
    try scene.account.commit(
      tree.dropFirst(10).map { .delete(path: $0) } + [scene.account.post("3lkxag2qhdc2b", "later")])
    for cid in scene.account.blobs.keys where !scene.account.referencedBlobs.contains(cid) {
      scene.account.lose(cid)
    }
    try scene.backUp()
    let result = try restore(scene, "--exact --yes write")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(scene.account.paths == tree)
    #expect(scene.calls(of: "applyWrites", on: scene.old) == 3)
    // The blobs came first.
    #expect(Set(scene.account.blobs.keys).isSuperset(of: scene.account.referencedBlobs))
    let backup = try scene.command.run(
      "carpack backup \(scene.account.did) \(scene.flags) -o \(RestoreScene.archive)")
    #expect(backup.status == 0, "\(backup.text)\(backup.errors)")
  }

  @Test func `writes one by one where a server refuses a batch`() throws {
    let scene = try scene()
    try scene.backUp()
    scene.old.play(FaultRule(.status(400), on: "applyWrites", times: 1))
    let result = try restore(scene, "--yes write")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(scene.account.paths.count == 21)
  }
}
