import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

/// The operator of a server that is gone puts its accounts onto another.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Restoring a whole server` {
  /// A server with accounts that were backed up into a folder, and a new one.
  private struct Scene {
    let directory: StandInDirectory
    let old: StandInPDS
    let new: StandInPDS
    let accounts: [StandInAccount]
    let folder: TemporaryFolder
    let command: Command
    /// The server's key, in each of the DIDs.
    let key: String

    init(count: Int, _ change: (inout Behaviour) -> Void = { _ in }) throws {
      directory = try StandInDirectory()
      accounts = try (0..<count).map { try StandInAccount("member\($0)", posts: 5, blobs: 3) }
      old = try StandInPDS(accounts: accounts)
      var behaviour = Behaviour()
      behaviour.userDomain = ".new.example"
      (behaviour.adminPassword, behaviour.invites) = ("admin-secret", [])
      change(&behaviour)
      new = try StandInPDS(behaviour: behaviour)
      (old.directory, new.directory) = (directory, directory)
      folder = try TemporaryFolder()
      command = try Command(in: folder)
      try folder.write("admin", Array("admin-secret\n".utf8))
      let made = try command.run("carpack recovery-key new -o server.key --quiet")
      key = made.text.split(separator: "\n").first.map(String.init) ?? ""
      var list = "# members\n"
      for account in accounts {
        try directory.register(account, on: old.url)
        try directory.addRotationKey(key, of: account.did, signedBy: account.rotation)
        let result = try command.run(
          "carpack backup \(account.did) --plc \(directory.url) --resolver \(old.url) -o backups/ --quiet"
        )
        #expect(result.status == 0, "\(result.text)\(result.errors)")
        list += "\(account.did) \(account.handle.prefix { $0 != "." })@example.org\n"
      }
      try folder.write("members", Array(list.utf8))
    }

    func line(_ more: String = "") -> String {
      "carpack restore --all backups/ --to \(new.url) --rotation-key server.key --admin-password-file admin --plc \(directory.url) --resolver \(old.url) --attempts 1 \(more)"
    }

    static let agreed = "--accounts members --yes identity --yes activate"

    func expectSecretsKept(_ result: Command.Result) throws {
      let journal = String(decoding: try folder.read("carpack-restore-all.jsonl"), as: UTF8.self)
      for text in [journal, result.text, result.errors] {
        #expect(!text.contains("admin-secret") && !text.contains("PRIVATE KEY"))
        #expect(!text.contains("invite-"))
      }
    }

    func expectAllMoved(location: SourceLocation = #_sourceLocation) {
      #expect(new.createdCount == accounts.count, sourceLocation: location)
      for account in accounts {
        let moved = new.accounts.first { $0.did == account.did }
        #expect(moved?.paths == account.paths, sourceLocation: location)
        #expect(moved?.status == .active, sourceLocation: location)
        #expect(
          Set(moved?.blobs.keys.map { $0 } ?? []) == account.referencedBlobs,
          sourceLocation: location)
      }
    }
  }

  @Test func `makes all accounts there, and nothing twice`() throws {
    let scene = try Scene(count: 5)
    scene.old.stop()
    let plan = try scene.command.run(scene.line("--accounts members --plan"))
    #expect(plan.status == 0, "\(plan.text)\(plan.errors)")
    #expect(plan.text.contains("5 done") && plan.text.contains("15 blobs to send"))
    #expect(scene.new.createdCount == 0 && scene.directory.postCount == 0)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix("restore-all.pem") })
    let asked = try scene.command.run(scene.line("--accounts members"))
    #expect(asked.status == 10, "\(asked.text)\(asked.errors)")
    #expect(asked.errors.contains("--yes identity --yes activate"))
    #expect(scene.new.createdCount == 0 && scene.directory.postCount == 0)
    let result = try scene.command.run(scene.line(Scene.agreed))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    scene.expectAllMoved()
    try scene.expectSecretsKept(result)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix("restore-all.pem") })
    let operations = scene.directory.postCount
    let again = try scene.command.run(scene.line(Scene.agreed))
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(scene.directory.postCount == operations)
    scene.expectAllMoved()
  }

  @Test func `takes the archives of a bucket's prefix`() throws {
    let scene = try Scene(count: 3)
    let store = try StandInStore()
    for name in scene.folder.names(under: "backups") where name.hasSuffix(".car.zst") {
      store["pds/\(name)"] = try scene.folder.read("backups/\(name)")
    }
    scene.old.stop()
    let line = scene.line(Scene.agreed)
      .replacing("backups/", with: "s3://\(StandInStore.bucket)/pds/")
    let result = try scene.command.start(line, environment: store.environment).wait()
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    scene.expectAllMoved()
  }

  @Test func `waits where the server makes no more accounts for now`() throws {
    let scene = try Scene(count: 4) {
      $0.accountLimit = Behaviour.RateLimit(requests: 2, seconds: 2)
    }
    scene.old.stop()
    let result = try scene.command.run(scene.line(Scene.agreed))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    scene.expectAllMoved()
  }

  @Test func `leaves alone what is not in its hands, and says why`() throws {
    let scene = try Scene(count: 4)
    let (moved, foreign, unknown) = (scene.accounts[0], scene.accounts[1], scene.accounts[2])
    // One has moved on, of one the server's key was taken out, of one there is no address.
    let elsewhere = try StandInPDS()
    try scene.directory.register(moved, on: elsewhere.url)
    var operation = try #require(scene.directory.current(foreign.did)?.map)
    operation["rotationKeys"] = .array([.string("did:key:" + foreign.rotation.multikey)])
    try scene.directory.append(operation, for: foreign.did, signedBy: foreign.rotation)
    let list = String(decoding: try scene.folder.read("members"), as: UTF8.self)
      .split(separator: "\n").filter { !$0.hasPrefix(unknown.did) }.joined(separator: "\n")
    try scene.folder.write("members", Array(list.utf8))
    scene.old.stop()
    let result = try scene.command.run(scene.line(Scene.agreed))
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.text.contains("\(moved.did): elsewhere"), "\(result.text)")
    #expect(result.text.contains("\(foreign.did): waiting"), "\(result.text)")
    #expect(result.text.contains("\(unknown.did): waiting"), "\(result.text)")
    #expect(result.text.contains("1 done, 1 elsewhere, 2 waiting"), "\(result.text)")
    #expect(scene.new.createdCount == 1)
  }

  @Test func `refuses accounts whose server still answers, without a word for it`() throws {
    let scene = try Scene(count: 2)
    let result = try scene.command.run(scene.line(Scene.agreed))
    #expect(result.status == 77, "\(result.text)\(result.errors)")
    #expect(scene.new.createdCount == 0 && scene.directory.postCount == 0)
    let agreed = try scene.command.run(scene.line("\(Scene.agreed) --abandon-old"))
    #expect(agreed.status == 0, "\(agreed.text)\(agreed.errors)")
    scene.expectAllMoved()
  }

  @Test(arguments: [3, 4]) func `goes on where it was killed`(_ seed: UInt64) throws {
    var generator = SeededGenerator(printing: seed)
    let scene = try Scene(count: 6) { $0.latency = 0.003 }
    scene.old.stop()
    var kills = 0
    while true {
      let running = try scene.command.start(scene.line(Scene.agreed))
      func requests() -> Int { scene.new.server.log.count + scene.directory.server.log.count }
      let bound = requests() + Int.random(in: 20...160, using: &generator)
      while running.isRunning, requests() < bound { pause(0.001) }
      if kills < 10 { running.signal(9) }
      let result = try running.wait()
      if result.status == 0 { break }
      try #require(result.status == 137, "\(result.text)\(result.errors)")
      kills += 1
    }
    scene.expectAllMoved()
    // The first, the server's, the key's, and the two.
    for account in scene.accounts {
      #expect(scene.directory.operations(of: account.did).count == 5)
    }
  }
}
