import Foundation
import StandIn
import TestSupport
import Testing

/// A command that is about to be run, and the servers that it asks.
struct FrozenStage {
  let command: Command
  let line: String
  var environment: [String: String] = [:]
  let servers: [LoopbackServer]
  /// What must live as long as the servers are asked.
  let owners: [any Sendable]

  /// Nothing has been asked so far.
  init(
    _ line: String, in command: Command, asking servers: [LoopbackServer],
    keeping owners: [any Sendable], environment: [String: String] = [:]
  ) {
    (self.line, self.command, self.servers) = (line, command, servers)
    (self.owners, self.environment) = (owners, environment)
    for server in servers { server.forgetLog() }
  }

  func start() throws -> RunningCommand { try command.start(line, environment: environment) }

  /// What was asked with the request that is frozen; nil if it has not come.
  var frozenRequest: String? { servers.lazy.compactMap(\.frozenRequest).first }
}

/// A verb that talks to servers, and how it is brought to do so.
struct FrozenVerb: CustomTestStringConvertible, Sendable {
  let testDescription: String
  /// A new scene, each time it is called.
  let stage: @Sendable () throws -> FrozenStage

  init(_ name: String, _ stage: @escaping @Sendable () throws -> FrozenStage) {
    (testDescription, self.stage) = (name, stage)
  }

  private static func network(
    _ scene: NetworkScene, _ line: String, and others: [LoopbackServer] = []
  ) -> FrozenStage {
    FrozenStage(
      line, in: scene.command, asking: [scene.server.server] + others, keeping: [scene.server])
  }

  private static func account() throws -> NetworkScene {
    let scene = try NetworkScene(posts: 4, blobs: 3, blobSize: 2000)
    scene.account.password = "a-password"
    try scene.folder.write("password", Array("a-password\n".utf8))
    return scene
  }

  private static let login = "--login --password-file password"

  private static func restoring(
    addsKey: Bool = false, _ line: (RestoreScene) -> String
  ) throws -> FrozenStage {
    let scene = try RestoreScene(posts: 4, blobs: 2)
    if addsKey { _ = try scene.addRecoveryKey() }
    try scene.backUp()
    return FrozenStage(
      line(scene), in: scene.command,
      asking: [scene.directory.server, scene.old.server, scene.new.server],
      keeping: [scene.directory, scene.old, scene.new])
  }

  private static func storing(pushed: Bool, _ line: (StoreScene) -> String) throws -> FrozenStage {
    let scene = try StoreScene(posts: 4, blobs: 2, blobSize: 20_000, times: 1)
    if pushed { scene.store[StoreScene.key] = scene.newest }
    var environment = scene.store.environment
    environment["XDG_CACHE_HOME"] = scene.folder.file("cache")
    return FrozenStage(
      line(scene), in: scene.scene.command,
      asking: [scene.store.server, scene.scene.server.server],
      keeping: [scene.store, scene.scene.server], environment: environment)
  }

  /// All verbs that talk to servers.
  static let all: [FrozenVerb] = [
    FrozenVerb("resolve") {
      let scene = try account()
      return network(scene, "carpack resolve \(scene.account.did) \(scene.flags)")
    },
    FrozenVerb("fetch repo") {
      let scene = try account()
      return network(scene, "carpack fetch repo \(scene.account.did) \(scene.flags) -o repo.car")
    },
    FrozenVerb("fetch blob") {
      let scene = try account()
      let cid = scene.account.referencedBlobs.first.map { "\($0)" } ?? ""
      return network(
        scene, "carpack fetch blob \(scene.account.did) \(cid) \(scene.flags) -o blob")
    },
    FrozenVerb("backup") {
      let scene = try account()
      return network(scene, scene.line())
    },
    FrozenVerb("backup --login") {
      let scene = try account()
      return network(scene, scene.line(login))
    },
    FrozenVerb("backup --private") {
      let scene = try account()
      scene.account.privatePages = ["app.bsky.graph.getMutes": [#"{"mutes":[]}"#]]
      return network(scene, scene.line("\(login) --private"))
    },
    FrozenVerb("backup --accounts") {
      let scene = try NetworkScene([
        StandInAccount("one", posts: 3, blobs: 1, blobSize: 500),
        StandInAccount("two", posts: 3, blobs: 1, blobSize: 500),
      ])
      try scene.folder.write(
        "list.txt", Array(scene.accounts.map { $0.did + "\n" }.joined().utf8))
      return network(scene, "carpack backup --accounts list.txt -o out/ \(scene.flags)")
    },
    FrozenVerb("backup --healthcheck") {
      let scene = try account()
      let service = try LoopbackServer { _, response in try response.send("OK") }
      return network(scene, scene.line("--healthcheck \(service.url)/check"), and: [service])
    },
    FrozenVerb("fill") {
      let scene = try account()
      let lost = Array(scene.account.blobs.prefix(1))
      for (cid, _) in lost { scene.account.lose(cid) }
      _ = try scene.backUp()
      for (_, blob) in lost { scene.account.upload(blob) }
      return network(scene, "carpack fill \(NetworkScene.archive) \(scene.flags)")
    },
    FrozenVerb("restore --plan") {
      try restoring {
        "carpack restore \(RestoreScene.archive) --plan --to \($0.new.url) \($0.flags)"
      }
    },
    FrozenVerb("restore") {
      try restoring(addsKey: true) {
        $0.line("--recovery-key recovery.key \(RestoreScene.agreed)")
      }
    },
    FrozenVerb("recovery-key list") {
      try restoring { "carpack recovery-key list \($0.account.did) \($0.flags)" }
    },
    FrozenVerb("extract of a bucket") {
      try storing(pushed: true) { _ in "carpack extract --all -d out \(StoreScene.address)" }
    },
    FrozenVerb("verify of a bucket") {
      try storing(pushed: true) { _ in "carpack verify \(StoreScene.address)" }
    },
    FrozenVerb("pull") {
      try storing(pushed: true) { _ in "carpack pull \(StoreScene.address) pulled.car.zst" }
    },
    FrozenVerb("push") {
      try storing(pushed: false) { _ in "carpack push \(StoreScene.file) \(StoreScene.address)" }
    },
    FrozenVerb("backup into a bucket") {
      try storing(pushed: false) {
        "carpack backup \($0.scene.account.did) \($0.scene.flags) -o \(StoreScene.address)"
      }
    },
  ]
}
