import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

/// The operator of a server that is gone puts its accounts onto another.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Restoring a whole server` {
  @Test func `makes all accounts there, and nothing twice`() throws {
    let scene = try ServerScene(count: 5)
    scene.old.stop()
    let plan = try scene.command.run(scene.line("--accounts members --plan"))
    #expect(plan.status == 0, "\(plan.text)\(plan.errors)")
    #expect(plan.text.contains("5 planned") && plan.text.contains("15 blobs to send"))
    #expect(scene.new.createdCount == 0 && scene.directory.postCount == 0)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix("restore-all.pem") })
    let asked = try scene.command.run(scene.line("--accounts members"))
    #expect(asked.status == 10, "\(asked.text)\(asked.errors)")
    #expect(asked.errors.contains("--yes identity --yes activate"))
    #expect(scene.new.createdCount == 0 && scene.directory.postCount == 0)
    let result = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    scene.expectAllMoved()
    try scene.expectSecretsKept(result)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix("restore-all.pem") })
    let operations = scene.directory.postCount
    let again = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(scene.directory.postCount == operations)
    scene.expectAllMoved()
  }

  @Test func `takes the archives of a bucket's prefix`() throws {
    let scene = try ServerScene(count: 3)
    let store = try StandInStore()
    for name in scene.folder.names(under: "backups") where name.hasSuffix(".car.zst") {
      store["pds/\(name)"] = try scene.folder.read("backups/\(name)")
    }
    scene.old.stop()
    let line = scene.line(ServerScene.agreed)
      .replacing("backups/", with: "s3://\(StandInStore.bucket)/pds/")
    let result = try scene.command.start(line, environment: store.environment).wait()
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    scene.expectAllMoved()
  }

  @Test func `waits where the server makes no more accounts for now`() throws {
    let scene = try ServerScene(count: 4) {
      $0.accountLimit = Behaviour.RateLimit(requests: 2, seconds: 2)
    }
    scene.old.stop()
    let result = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    scene.expectAllMoved()
  }

  @Test func `leaves alone what is not in its hands, and says why`() throws {
    let scene = try ServerScene(count: 4)
    let (moved, foreign, unknown) = (scene.accounts[0], scene.accounts[1], scene.accounts[2])
    // One has moved on, one no longer has the server's key, and one has no mail address.
    let elsewhere = try StandInPDS()
    try scene.directory.register(moved, on: elsewhere.url)
    var operation = try #require(scene.directory.current(foreign.did)?.map)
    operation["rotationKeys"] = .array([.string("did:key:" + foreign.rotation.multikey)])
    try scene.directory.append(operation, for: foreign.did, signedBy: foreign.rotation)
    let list = String(decoding: try scene.folder.read("members"), as: UTF8.self)
      .split(separator: "\n").filter { !$0.hasPrefix(unknown.did) }.joined(separator: "\n")
    try scene.folder.write("members", Array(list.utf8))
    scene.old.stop()
    let result = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.text.contains("\(moved.did): elsewhere"), "\(result.text)")
    #expect(result.text.contains("\(foreign.did): waiting"), "\(result.text)")
    #expect(result.text.contains("\(unknown.did): waiting"), "\(result.text)")
    #expect(result.text.contains("1 done, 1 elsewhere, 2 waiting"), "\(result.text)")
    #expect(scene.new.createdCount == 1)
  }

  @Test(arguments: ["", "--abandon-old"])
  func `takes nobody home who has left, whatever was backed up since and the new home says`(
    _ more: String
  ) throws {
    let scene = try ServerScene(count: 4)
    // A home that has gone on, one that does not know the account, one that is away, and one that
    // has it deactivated.
    let homes = try (0..<4).map { _ in try StandInPDS() }
    for (account, home) in zip(scene.accounts, homes) {
      home.directory = scene.directory
      var operation = try #require(scene.directory.current(account.did)?.map)
      let service: IPLDMap = [
        "type": .string("AtprotoPersonalDataServer"), "endpoint": .string(home.url),
      ]
      operation["services"] = .map(["atproto_pds": .map(service)])
      try scene.directory.append(operation, for: account.did, signedBy: account.rotation)
      let result = try scene.command.run(
        "carpack backup \(account.did) --pds \(scene.old.url) --plc \(scene.directory.url) --resolver \(scene.old.url) -o backups/"
      )
      #expect(result.status == 0, "\(result.text)\(result.errors)")
      #expect(result.errors.contains("the account's server is \(home.url)"), "\(result.errors)")
    }
    let parting = try StandInAccount("member0", posts: 7, did: scene.accounts[0].did)
    homes[0].add(parting)
    let sleeping = try StandInAccount("member3", posts: 5, did: scene.accounts[3].did)
    sleeping.status = .deactivated
    homes[3].add(sleeping)
    homes[2].stop()
    scene.old.stop()
    let operations = scene.directory.postCount
    let plan = try scene.command.run(scene.line("\(ServerScene.agreed) \(more) --plan"))
    #expect(plan.text.contains("4 elsewhere"), "\(plan.text)\(plan.errors)")
    let result = try scene.command.run(scene.line("\(ServerScene.agreed) \(more)"))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(result.text.contains("4 elsewhere"), "\(result.text)")
    #expect(scene.new.createdCount == 0 && scene.directory.postCount == operations)
  }

  @Test func `asks which server is gone where the archives were made under another address of it`()
    throws
  {
    let scene = try ServerScene(count: 1)
    let account = scene.accounts[0]
    let inside = scene.old.url.replacing("127.0.0.1", with: "localhost")
    try account.commit([.put(path: "a.b.c/1", record: ["x": .integer(1)])])
    let backedUp = try scene.command.run(
      "carpack backup \(account.did) --pds \(inside) --plc \(scene.directory.url) --resolver \(scene.old.url) -o backups/"
    )
    #expect(backedUp.status == 0, "\(backedUp.text)\(backedUp.errors)")
    scene.old.stop()
    let refused = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(refused.status == 10, "\(refused.text)\(refused.errors)")
    #expect(refused.text.contains("--old-server"), "\(refused.text)")
    #expect(scene.new.createdCount == 0)
    let result = try scene.command.run(
      scene.line("\(ServerScene.agreed) --old-server \(scene.old.url)"))
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    scene.expectAllMoved()
  }

  @Test func `refuses accounts whose server still answers, without a word for it`() throws {
    let scene = try ServerScene(count: 2)
    let result = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(result.status == 77, "\(result.text)\(result.errors)")
    #expect(scene.new.createdCount == 0 && scene.directory.postCount == 0)
    let agreed = try scene.command.run(scene.line("\(ServerScene.agreed) --abandon-old"))
    #expect(agreed.status == 0, "\(agreed.text)\(agreed.errors)")
    scene.expectAllMoved()
  }

  @Test(arguments: [3, 4]) func `goes on where it was killed`(_ seed: UInt64) throws {
    var generator = SeededGenerator(printing: seed)
    let scene = try ServerScene(count: 6) { $0.latency = 0.003 }
    scene.old.stop()
    var kills = 0
    while true {
      let running = try scene.command.start(scene.line(ServerScene.agreed))
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

  @Test func `waits where the archive does not say which server the account was on`() throws {
    let scene = try ServerScene(count: 1)
    let did = scene.accounts[0].did
    let flags = "--plc \(scene.directory.url) --resolver \(scene.old.url)"
    for line in [
      "carpack fetch repo \(did) \(flags) -o repo.car", "carpack pack repo.car -o mute/",
    ] {
      let result = try scene.command.run(line)
      #expect([0, 10].contains(result.status), "\(result.text)\(result.errors)")
    }
    scene.old.stop()
    let line = scene.line(ServerScene.agreed).replacing("backups/", with: "mute/")
    let result = try scene.command.run(line)
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.text.contains("does not say which server the account was on"))
    #expect(scene.new.createdCount == 0 && scene.directory.postCount == 0)
  }

  @Test func `has owners publish the documents of did-web accounts, and goes on`() throws {
    let scene = try ServerScene(count: 1)
    let (site, account) = try scene.addWebAccount()
    scene.old.stop()
    let plan = try scene.command.run(scene.line("--accounts members --plan"))
    #expect(plan.status == 10, "\(plan.text)\(plan.errors)")
    #expect(plan.text.contains("has to be published twice"), "\(plan.text)")
    let line = scene.line("\(ServerScene.agreed) --documents published")
    let name = "published/localhost%3A\(site.server.port).did.json"
    func publish() throws {
      let bytes = try scene.folder.read(name)
      let document = try DataModelJSON.decode(bytes)
      // What the document says beside that stays.
      #expect(document["@context"]?.array?.isEmpty == false)
      #expect(document["alsoKnownAs"]?.array?.isEmpty == false)
      let key = document["verificationMethod"]?.array?.first?["publicKeyMultibase"]?.string ?? ""
      let server = document["service"]?.array?.first?["serviceEndpoint"]?.string ?? ""
      site.setDocument(String(decoding: bytes, as: UTF8.self), for: account.did)
      scene.directory.setWeb(account.did, key: "did:key:" + key, server: server)
    }
    let key = try scene.command.run(line)
    #expect(key.status == 10, "\(key.text)\(key.errors)")
    #expect(key.text.contains("\(account.did): waiting"), "\(key.text)")
    #expect(key.errors.contains("did.json at"), "\(key.errors)")
    #expect(scene.new.createdCount == 1)
    try publish()
    let server = try scene.command.run(line)
    #expect(server.status == 10, "\(server.text)\(server.errors)")
    let moved = try #require(scene.new.accounts.first { $0.did == account.did })
    #expect(moved.status == .deactivated)
    #expect(Set(moved.blobs.keys) == account.referencedBlobs)
    try publish()
    let signed = try scene.command.run("\(line) --yes sign")
    #expect(signed.status == 0, "\(signed.text)\(signed.errors)")
    #expect(moved.status == .active && moved.paths == account.paths)
    #expect(scene.new.createdCount == 2)
    try scene.expectSecretsKept(signed)
    #expect(!scene.folder.names(under: ".").contains { $0.hasSuffix("restore-all.pem") })
  }

  @Test func `says that a did-web account is not signed by its key yet`() throws {
    let scene = try ServerScene(count: 0)
    let (site, account) = try scene.addWebAccount()
    scene.old.stop()
    let line = scene.line("\(ServerScene.agreed) --documents published")
    for _ in 0..<2 {
      #expect(try scene.command.run(line).status == 10)
      let bytes = try scene.folder.read("published/localhost%3A\(site.server.port).did.json")
      let document = try DataModelJSON.decode(bytes)
      let key = document["verificationMethod"]?.array?.first?["publicKeyMultibase"]?.string ?? ""
      let server = document["service"]?.array?.first?["serviceEndpoint"]?.string ?? ""
      site.setDocument(String(decoding: bytes, as: UTF8.self), for: account.did)
      scene.directory.setWeb(account.did, key: "did:key:" + key, server: server)
    }
    for _ in 0..<2 {
      let result = try scene.command.run(line)
      #expect(result.status == 10, "\(result.text)\(result.errors)")
      #expect(result.text.contains("a commit signed with its own key"), "\(result.text)")
    }
  }

  @Test(arguments: [
    "createInviteCode", "createAccount", "updateAccountPassword", "createSession", "importRepo",
    "listMissingBlobs", "uploadBlob", "getRepo", "getBlob", "getRecommendedDidCredentials",
    "submitPlcOperation", "activateAccount", "checkAccountStatus",
  ])
  func `goes on after a method of the new server has failed`(_ method: String) throws {
    let scene = try ServerScene(count: 2)
    scene.old.stop()
    if method == "updateAccountPassword" {
      // It is needed where an earlier run has made the accounts.
      scene.new.play(FaultRule(.status(500), on: "importRepo"))
      #expect(try scene.command.run(scene.line(ServerScene.agreed)).status != 0)
      scene.new.clearFaults()
    }
    for fault in [Fault.status(500), .captivePortal, .dropped] {
      var rule = FaultRule(fault, on: method)
      rule.sparesQuestions = method == "createAccount"
      scene.new.play(rule)
      let result = try scene.command.run(scene.line(ServerScene.agreed))
      #expect(result.status != 0, "\(method), \(fault): \(result.text)\(result.errors)")
      #expect(result.status < 128, "\(method), \(fault): \(result.errors)")
      #expect(!result.text.contains(": done"), "\(result.text)")
      try scene.expectSecretsKept(result)
      scene.new.clearFaults()
    }
    let end = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    scene.expectAllMoved()
    for account in scene.accounts {
      #expect(scene.directory.operations(of: account.did).count == 5)
    }
  }

  @Test func `ends at a signal, keeps a second run away, and goes on`() throws {
    let scene = try ServerScene(count: 4) { $0.latency = 0.02 }
    scene.old.stop()
    let running = try scene.command.start(scene.line(ServerScene.agreed))
    while running.isRunning, scene.new.createdCount == 0 { pause(0.005) }
    let second = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(second.status == 73, "\(second.text)\(second.errors)")
    running.signal(SIGTERM)
    let result = try running.wait()
    #expect([0, 143].contains(result.status), "\(result.text)\(result.errors)")
    // What a power failure leaves of a line does not spoil the next.
    var journal = try scene.folder.read("carpack-restore-all.jsonl")
    journal += Array(#"{"did":"did:pl"#.utf8)
    try scene.folder.write("carpack-restore-all.jsonl", journal)
    let end = try scene.command.run(scene.line(ServerScene.agreed))
    #expect(end.status == 0, "\(end.text)\(end.errors)")
    scene.expectAllMoved()
    let lines = String(decoding: try scene.folder.read("carpack-restore-all.jsonl"), as: UTF8.self)
      .split(separator: "\n").suffix(4)
    for line in lines {
      #expect((try? DataModelJSON.decode(Array(line.utf8)))?["outcome"] == .string("done"))
    }
  }
}
