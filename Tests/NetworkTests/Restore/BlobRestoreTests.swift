import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Blobs that a server lost` {
  private func restore(_ scene: RestoreScene, _ more: String = "") throws -> Command.Result {
    let result = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --blobs-only --login --password-file app \(scene.flags) \(more)"
    )
    try scene.expectNoSecret(in: result)
    return result
  }

  private func scene() throws -> RestoreScene {
    let scene = try RestoreScene(posts: 40, blobs: 100)
    try scene.backUp()
    try scene.folder.write("app", Array("app-password\n".utf8))
    return scene
  }

  @Test func `are sent, those and no others, and nothing else is changed`() throws {
    let scene = try scene()
    let all = scene.account.blobs.keys.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    for cid in all.prefix(30) { scene.account.lose(cid) }
    let head = scene.account.head
    scene.old.server.forgetLog()
    let result = try restore(scene)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("30 sent"))
    #expect(Set(scene.account.blobs.keys) == Set(all))
    #expect(scene.account.head == head)
    #expect(scene.old.server.log.count { $0.path.hasSuffix("uploadBlob") } == 30)
    let posts = Set(scene.old.server.log.filter { $0.method == "POST" }.map(\.path))
    #expect(
      posts == ["/xrpc/com.atproto.server.createSession", "/xrpc/com.atproto.repo.uploadBlob"])
    #expect(try restore(scene).text.contains("0 sent"))
  }

  @Test func `without the server's knowing are told apart from those it misses`() throws {
    let scene = try scene()
    let all = scene.account.blobs.keys.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    scene.account.lose(all[0])
    scene.account.loseFile(all[1])
    scene.account.damage(all[2])
    scene.account.takeDown(all[3])
    let result = try restore(scene, "--json")
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    let line = try #require(result.text.split(separator: "\n").last)
    let report = try DataModelJSON.decode(Array(line.utf8))
    #expect(report["sentBlobs"]?.integer == 1)
    #expect(report["equalBlobs"]?.integer == 97)
    var reasons: [String: String] = [:]
    for blob in report["unrestored"]?.array ?? [] {
      reasons[blob["cid"]?.string ?? ""] = blob["reason"]?.string
    }
    #expect(
      reasons == [
        "\(all[1])": "not-served", "\(all[2])": "other-bytes", "\(all[3])": "not-served",
      ])
    let text = try restore(scene)
    #expect(text.errors.contains("--rewrite-records"), "\(text.errors)")
    #expect(!scene.old.server.log.contains { $0.path.hasSuffix("deleteRecord") })

    // What was taken down no upload brings back; the others come with their records.
    let head = scene.account.paths
    let tree = scene.account.record(head[0])
    let rewritten = try restore(scene, "--rewrite-records --yes rewrite --json")
    #expect(rewritten.status == 10, "\(rewritten.text)\(rewritten.errors)")
    #expect(scene.account.paths == head)
    #expect(scene.account.record(head[0]) == tree)
    #expect(scene.account.blobs[all[1]]?.cid == all[1])
    #expect(scene.account.blobs[all[2]]?.cid == all[2])
  }

  @Test func `have their records back where a run was killed in between, from its own snapshot`()
    throws
  {
    let scene = try scene()
    let path = try #require(scene.account.paths.first)
    let record = scene.account.record(path)
    let log = try scene.command.run("carpack log --json \(RestoreScene.archive)")
    let snapshots = try log.text.split(separator: "\n").map {
      try DataModelJSON.decode(Array($0.utf8))
    }
    let manifest = try #require(snapshots.first?["manifest"]?.string)
    try scene.account.commit([.delete(path: path)])
    try scene.backUp()
    func pending(_ did: String) throws {
      try scene.folder.write(
        "archive.rewrite.json",
        Array(#"{"did":"\#(did)","manifest":"\#(manifest)","records":["\#(path)"]}"#.utf8))
    }
    try pending("did:plc:aaaaaaaaaaaaaaaaaaaaaaaa")
    let strange = try restore(scene)
    #expect(strange.status == 11, "\(strange.text)\(strange.errors)")
    #expect(!scene.account.paths.contains(path))
    try pending(scene.account.did)
    let result = try restore(scene)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(scene.account.record(path) == record)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix(".rewrite.json") })
  }

  @Test func `of which the archive has some only are named`() throws {
    let scene = try scene()
    let new = BlobContent(noise: 77, size: 4000)
    try scene.account.commit([scene.account.post("3lkxag2qhdc2b", "new", showing: [new])])
    scene.account.lose(new.cid)
    let result = try restore(scene)
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("\(new.cid)"))
    #expect(result.errors.contains("the archive does not hold it"))
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Single records` {
  @Test func `that were deleted come back with their blobs`() throws {
    let scene = try RestoreScene(posts: 10, blobs: 8)
    let picture = BlobContent(noise: 5, size: 4000)
    let path = "app.bsky.feed.post/3lkxag2qhdc2b"
    try scene.account.commit([scene.account.post("3lkxag2qhdc2b", "ünïcödé", showing: [picture])])
    let before = try #require(scene.account.recordCID(of: path))
    try scene.backUp()
    try scene.account.commit([.delete(path: path)])
    #expect(scene.account.blobs[picture.cid] == nil)
    let line =
      "carpack restore \(RestoreScene.archive) --login --password-file old \(scene.flags) --record at://\(scene.account.did)/\(path)"
    let result = try scene.command.run(line)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(scene.account.recordCID(of: path) == before)
    #expect(scene.account.blobs[picture.cid] != nil)
    let again = try scene.command.run(line)
    #expect(again.text.contains("there already"), "\(again.text)")

    // What is in its place stays, unless it is said otherwise.
    try scene.account.commit([scene.account.post("3lkxag2qhdc2b", "another")])
    let other = scene.account.recordCID(of: path)
    let kept = try scene.command.run(line)
    #expect(kept.status == 10, "\(kept.text)\(kept.errors)")
    #expect(scene.account.recordCID(of: path) == other)
    let replaced = try scene.command.run("\(line) --overwrite --json")
    #expect(replaced.status == 0, "\(replaced.text)\(replaced.errors)")
    #expect(scene.account.recordCID(of: path) == before)
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Rehearsing and planning` {
  @Test func `a rehearsal leaves the identity alone, and a restore goes on from it`() throws {
    let scene = try RestoreScene()
    try scene.backUp()
    let asked = try scene.command.run(
      "carpack rehearse \(RestoreScene.archive) --to \(scene.new.url) \(scene.flags) --login --password-file old --new-password-file new"
    )
    #expect(asked.status == 10, "\(asked.text)\(asked.errors)")
    #expect(asked.errors.contains("hint: where there is no terminal"), "\(asked.errors)")
    #expect(asked.errors.contains("a rehearsal creates the account on "), "\(asked.errors)")
    #expect(scene.new.createdCount == 0)
    let result = try scene.command.run(
      "carpack rehearse \(RestoreScene.archive) --to \(scene.new.url) \(scene.flags) --login --password-file old --new-password-file new --yes"
    )
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("10 read back and equal"))
    try scene.expectMoved(isActive: false)
    #expect(scene.directory.operations(of: scene.account.did).count == 2)
    #expect(scene.account.mailCount == 0)
    #expect(scene.account.status == .active)
    let uploads = scene.calls(of: "uploadBlob")
    let plan = try scene.restore("--plan")
    #expect(plan.status == 0, "\(plan.text)\(plan.errors)")
    #expect(plan.text.contains("nothing left to send; 0 would be missing"), "\(plan.text)")
    #expect(plan.text.contains("  comparison, then, when you agree: identity, activation\n"))
    #expect(try scene.restore().status == 10)
    let code = try #require(scene.account.mailCode)
    let end = try scene.restore("--mail-code \(code) \(RestoreScene.agreed)")
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    try scene.expectMoved()
    #expect(scene.calls(of: "uploadBlob") == uploads)
    #expect(scene.calls(of: "importRepo") == 1)
  }

  @Test func `a plan says that nothing is left to do where the account has moved`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    let line = "--recovery-key recovery.key \(RestoreScene.agreed)"
    let moved = try scene.restore(line)
    #expect(moved.status == 0, "\(moved.text)\(moved.errors)")
    let plan = try scene.restore("\(line) --plan")
    #expect(plan.text.contains("nothing left to do"), "\(plan.text)\(plan.errors)")
    #expect(!plan.text.contains(" to send") && !plan.text.contains("by mail"), "\(plan.text)")
  }

  @Test func `a plan wants no code by mail where a key signs`() throws {
    let scene = try RestoreScene()
    _ = try scene.addRecoveryKey()
    try scene.backUp()
    #expect(try scene.restore("--plan").text.contains("sends by mail"))
    let plan = try scene.restore("--recovery-key recovery.key --plan")
    #expect(plan.status == 0 && !plan.text.contains("by mail"), "\(plan.text)\(plan.errors)")
  }

  @Test func `a plan warns of a repository only from a length that servers refuse`() throws {
    let scene = try RestoreScene(posts: 3, blobs: 0)
    try scene.backUp()
    #expect(try !scene.restore("--plan").errors.contains("may refuse"))
    let text = IPLDValue.string(String(repeating: "a", count: 900_000))
    try scene.account.commit(
      (0..<6).map { number in
        .put(
          path: "com.example.note/\(number)",
          record: ["$type": .string("com.example.note"), "number": .integer(number), "text": text])
      })
    try scene.backUp()
    let plan = try scene.restore("--plan")
    #expect(plan.errors.contains("may refuse a repository of 5.4 MB"), "\(plan.errors)")
  }

  @Test func `a plan says what is missing and what is needed, and changes nothing`() throws {
    var behaviour = Behaviour()
    behaviour.invites = ["code"]
    behaviour.blobLimit = 1 << 20
    let scene = try RestoreScene(large: [2 << 20], behaviour)
    try scene.backUp()
    let names = scene.folder.names(under: ".")
    let result = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --plan --to \(scene.new.url) \(scene.flags)")
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    for word in [
      "--invite", "--login", "by mail", "10 to send", "1 would be missing",
      "somebody.new.example",
    ] {
      #expect(result.text.contains(word), "\(word) in \(result.text)")
    }
    #expect(result.errors.contains("the server accepts 1048576"))
    #expect(scene.folder.names(under: ".") == names)
    #expect(!scene.new.server.log.contains { $0.method == "POST" })
    scene.old.stop()
    let dead = try scene.command.run(
      "carpack restore \(RestoreScene.archive) --plan --to \(scene.new.url) \(scene.flags) --json --attempts 1"
    )
    let plan = try DataModelJSON.decode(dead.output)
    #expect(
      plan["needs"]?.array?.contains { $0.string?.contains("--recovery-key") == true } == true)
    #expect(plan["rotationKeys"]?.array?.count == 1)
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A new account of an archive` {
  @Test(arguments: [false, true])
  func `has its records and blobs under a DID of its own`(_ rewrites: Bool) throws {
    let scene = try RestoreScene()
    let did = scene.account.did
    let root = "3lkxag2qhdc2a"
    try scene.account.commit([scene.account.post(root, "root")])
    let rootCID = try #require(scene.account.recordCID(of: "app.bsky.feed.post/\(root)"))
    let reference: IPLDMap = [
      "uri": .string("at://\(did)/app.bsky.feed.post/\(root)"), "cid": .string("\(rootCID)"),
    ]
    let middle: IPLDMap = [
      "$type": .string("app.bsky.feed.post"), "text": .string("first answer"),
      "reply": .map(["root": .map(reference), "parent": .map(reference)]),
    ]
    try scene.account.commit([.put(path: "app.bsky.feed.post/3lkxag2qhdc2c", record: middle)])
    let middleCID = try #require(scene.account.recordCID(of: "app.bsky.feed.post/3lkxag2qhdc2c"))
    let parent: IPLDMap = [
      "uri": .string("at://\(did)/app.bsky.feed.post/3lkxag2qhdc2c"),
      "cid": .string("\(middleCID)"),
    ]
    let last: IPLDMap = [
      "$type": .string("app.bsky.feed.post"), "text": .string("second answer, \(did)"),
      "reply": .map(["root": .map(reference), "parent": .map(parent)]),
    ]
    // Its key sorts before that of the one it answers.
    try scene.account.commit([.put(path: "app.bsky.feed.post/3lkxag2qhdc2b", record: last)])
    try scene.backUp()
    scene.old.stop()
    let line =
      "carpack restore \(RestoreScene.archive) --to \(scene.new.url) \(scene.flags) --new-password-file new --as-new --email n@example.com --handle reborn.new.example \(rewrites ? "--rewrite-references" : "")"
    // The import keeps the old account's signature until the server writes.
    let unsigned = try scene.command.run(line)
    #expect(unsigned.status == 10, "\(unsigned.text)\(unsigned.errors)")
    #expect(unsigned.errors.contains("--yes sign"))
    let result = try scene.command.run("\(line) --yes sign")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    let made = try #require(scene.new.accounts.first { $0.handle == "reborn.new.example" })
    #expect(made.did != did)
    #expect(made.paths == scene.account.paths)
    #expect(Set(made.blobs.keys) == scene.account.referencedBlobs)
    let newMiddle = try #require(made.recordCID(of: "app.bsky.feed.post/3lkxag2qhdc2c"))
    let record = try #require(made.record("app.bsky.feed.post/3lkxag2qhdc2b"))
    let owner = rewrites ? made.did : did
    #expect(
      record["reply"]?["parent"]?["uri"]
        == .string("at://\(owner)/app.bsky.feed.post/3lkxag2qhdc2c"))
    #expect(record["reply"]?["parent"]?["cid"] == .string("\(newMiddle)"))
    #expect(record["text"] == .string("second answer, \(did)"))
    let backup = try scene.command.run(
      "carpack backup \(made.did) --plc \(scene.directory.url) --resolver \(scene.new.url) -o new.car.zst"
    )
    #expect(backup.status == 0, "\(backup.text)\(backup.errors)")
    #expect((newMiddle == middleCID) == !rewrites)
    // Once more, it is found to be done.
    let again = try scene.command.run(line)
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(scene.new.createdCount == 1)
    #expect(scene.calls(of: "importRepo") == 1)
  }

  @Test func `has a plan and a journal of its own`() throws {
    let scene = try RestoreScene(posts: 3, blobs: 1)
    try scene.backUp()
    let rest =
      "\(RestoreScene.archive) --to \(scene.new.url) \(scene.flags) --new-password-file new"
    let line = "carpack restore \(rest) --as-new --email n@example.com --handle reborn.new.example"
    let plan = try scene.command.run("\(line) --plan")
    #expect(plan.status == 0, "\(plan.text)\(plan.errors)")
    #expect(plan.text.contains("a new one, with its own DID"), "\(plan.text)")
    #expect(plan.text.contains("when you agree: a record, so that the server signs\n"))
    func planned() throws -> IPLDValue {
      try DataModelJSON.decode(scene.command.run("\(line) --plan --json").output)
    }
    let before = try planned()
    #expect(before["did"] == .null)
    #expect(before["archiveDID"] == .string(scene.account.did))
    let made = try scene.command.run("\(line) --yes sign")
    #expect(made.status == 0, "\(made.text)\(made.errors)")
    let new = try #require(scene.new.accounts.first { $0.handle == "reborn.new.example" })
    #expect(try planned()["did"] == .string(new.did))
    #expect(try planned()["archiveDID"] == .string(scene.account.did))
    let done = try scene.command.run("\(line) --plan")
    #expect(done.status == 0, "\(done.text)\(done.errors)")
    #expect(done.text.contains("nothing left to do: the new account is complete"), "\(done.text)")
    let rehearsed = try scene.command.run(
      "carpack rehearse \(rest) --login --password-file old --yes")
    #expect(rehearsed.status == 0, "\(rehearsed.text)\(rehearsed.errors)")
    #expect(scene.moved?.handle == "somebody.new.example")
    #expect(scene.new.accounts.contains { $0.handle == "reborn.new.example" })
  }
}
