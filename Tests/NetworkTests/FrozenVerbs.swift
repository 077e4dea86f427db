import Foundation
import StandIn
import TestSupport

/// The verbs that wait for servers, programs, pipes and terminals, each in a scene of its own.
enum FrozenVerbs {
  static let all =
    servers + (FrozenNames.arePossible ? names : []) + archivesElsewhere + pipes + programs

  // MARK: Servers

  private static let login = "--login --password-file password"

  private static func account() throws -> NetworkScene {
    let scene = try NetworkScene(posts: 4, blobs: 3, blobSize: 2000)
    scene.account.password = "a-password"
    try scene.folder.write("password", Array("a-password\n".utf8))
    return scene
  }

  private static func stage(
    _ scene: NetworkScene, and others: [(name: String, partner: any FrozenPartner)] = [],
    _ line: @escaping @Sendable (NetworkScene) -> String
  ) -> FrozenStage {
    FrozenStage(
      [("server", scene.server.server)] + others, state: { scene.folder.names() },
      start: { try scene.command.start(line(scene)) })
  }

  /// A verb that asks the server of an account.
  private static func verb(
    _ name: String, _ line: @escaping @Sendable (NetworkScene) -> String,
    in scene: @escaping @Sendable () throws -> NetworkScene = account
  ) -> FrozenVerb {
    FrozenVerb(name) { stage(try scene(), line) }
  }

  /// A verb that moves an account or its keys, in the scene as it is after a backup and then.
  private static func moving(
    _ name: String, prepare: @escaping @Sendable (RestoreScene) throws -> Void = { _ in },
    _ line: @escaping @Sendable (RestoreScene) -> String
  ) -> FrozenVerb {
    FrozenVerb(name) {
      let scene = try RestoreScene(posts: 4, blobs: 2)
      _ = try scene.addRecoveryKey()
      try scene.backUp()
      try prepare(scene)
      return FrozenStage(
        [
          ("directory", scene.directory.server), ("old server", scene.old.server),
          ("new server", scene.new.server),
        ], state: { scene.folder.names() }, start: { try scene.command.start(line(scene)) })
    }
  }

  private static let servers: [FrozenVerb] = [
    verb("resolve") { "carpack resolve \($0.account.did) \($0.flags)" },
    FrozenVerb("resolve, from its first byte") {
      let scene = try account()
      let door = try FrozenDoor(to: scene.server.url)
      return FrozenStage([("directory", door)]) {
        try scene.command.start(
          "carpack resolve \(scene.account.did) --resolver \(scene.server.url) --plc \(door.url)")
      }
    },
    verb("fetch repo") { "carpack fetch repo \($0.account.did) \($0.flags) -o repo.car --force" },
    verb("fetch blob") {
      let cid = $0.account.referencedBlobs.first.map { "\($0)" } ?? ""
      return "carpack fetch blob \($0.account.did) \(cid) \($0.flags) -o blob --force"
    },
    verb("backup") { $0.line() },
    verb("backup --login") { $0.line(login) },
    verb("backup --private") {
      $0.line("\(login) --private")
    } in: {
      let scene = try account()
      scene.account.privatePages = ["app.bsky.graph.getMutes": [#"{"mutes":[]}"#]]
      return scene
    },
    verb("backup --accounts") {
      "carpack backup --accounts list.txt -o out/ \($0.flags)"
    } in: {
      let scene = try NetworkScene([
        StandInAccount("one", posts: 3, blobs: 1, blobSize: 500),
        StandInAccount("two", posts: 3, blobs: 1, blobSize: 500),
      ])
      try scene.folder.write(
        "list.txt", Array(scene.accounts.map { $0.did + "\n" }.joined().utf8))
      return scene
    },
    verb("fill") {
      "carpack fill \(NetworkScene.archive) \($0.flags)"
    } in: {
      let scene = try account()
      let lost = Array(scene.account.blobs.prefix(1))
      for (cid, _) in lost { scene.account.lose(cid) }
      _ = try scene.backUp()
      for (_, blob) in lost { scene.account.upload(blob) }
      return scene
    },
    moving("identity") { "carpack identity \($0.account.did) \($0.flags)" },
    moving("restore --plan") {
      "carpack restore \(RestoreScene.archive) --plan --to \($0.new.url) \($0.flags)"
    },
    moving("restore") { $0.line("--recovery-key recovery.key \(RestoreScene.agreed)") },
    moving("restore --as-new") {
      "carpack restore \(RestoreScene.archive) --to \($0.new.url) \($0.flags) --new-password-file new --as-new --email n@example.com --handle reborn.new.example --yes sign"
    },
    moving(
      "restore --in-place",
      prepare: { scene in
        try scene.account.commit([.delete(path: scene.account.paths[0])])
      },
      {
        "carpack restore \(RestoreScene.archive) --in-place --login --password-file old \($0.flags) --yes write"
      }),
    moving(
      "restore --blobs-only",
      prepare: { scene in
        for cid in scene.account.blobs.keys { scene.account.lose(cid) }
        try scene.folder.write("app", Array("app-password\n".utf8))
      },
      {
        "carpack restore \(RestoreScene.archive) --blobs-only --login --password-file app \($0.flags)"
      }),
    moving("rehearse") {
      "carpack rehearse \(RestoreScene.archive) --to \($0.new.url) \($0.flags) --login --password-file old --new-password-file new --yes"
    },
    moving("recovery-key list") { "carpack recovery-key list \($0.account.did) \($0.flags)" },
    moving("recovery-key check") {
      "carpack recovery-key check recovery.key \($0.account.did) \($0.flags)"
    },
    moving(
      "recovery-key add",
      prepare: { _ = try $0.command.run("carpack recovery-key new -o second.key --quiet") },
      {
        "carpack recovery-key add second.key \($0.account.did) --with recovery.key --yes identity \($0.flags)"
      }),
    FrozenVerb("recovery-key add, asking") {
      let scene = try RestoreScene(posts: 1, blobs: 0)
      _ = try scene.addRecoveryKey()
      _ = try scene.command.run("carpack recovery-key new -o second.key --quiet")
      let terminal = try FrozenPath(.terminal)
      return FrozenStage([("terminal", terminal)], state: { scene.folder.names() }) {
        let line =
          "carpack recovery-key add second.key \(scene.account.did) --with recovery.key \(scene.flags)"
        return try scene.command.start(
          terminal.isFrozen
            ? "\(line) < \(terminal.path) 2> \(terminal.path)" : "\(line) --yes identity")
      }
    },
    FrozenVerb("restore, asking") {
      let scene = try RestoreScene(posts: 1, blobs: 0)
      _ = try scene.addRecoveryKey()
      try scene.backUp()
      let terminal = try FrozenPath(.terminal)
      return FrozenStage([("terminal", terminal)], state: { scene.folder.names() }) {
        let line = scene.line("--recovery-key recovery.key")
        return try scene.command.start(
          terminal.isFrozen
            ? "\(line) < \(terminal.path) 2> \(terminal.path)" : "\(line) \(RestoreScene.agreed)")
      }
    },
  ]

  /// Verbs that ask for names, where the tests may answer for these.
  private static let names: [FrozenVerb] = [
    FrozenVerb("resolve of a handle") {
      let scene = try account()
      let names = try FrozenNames("did=\(scene.account.did)")
      let line = "carpack resolve \(scene.account.handle) --plc \(scene.server.url)"
      var stage = FrozenStage([("DNS", names)]) { try scene.command.start(names.line(line)) }
      stage.finish = { names.stop() }
      return stage
    },
    FrozenVerb("resolve of a directory's name") {
      let scene = try account()
      let names = try FrozenNames("")
      var stage = FrozenStage([("DNS", names)]) {
        let directory = names.isFrozen ? "https://plc.example.com" : scene.server.url
        let line = "carpack resolve \(scene.account.did) --resolver \(scene.server.url)"
        return try scene.command.start(names.line("\(line) --plc \(directory)"))
      }
      stage.finish = { names.stop() }
      return stage
    },
  ]

  // MARK: Archives elsewhere

  /// An archive so large that it is sent and fetched in parts.
  private static let large = Result {
    try StoreScene(posts: 4, blobs: 1, large: [17_000_000], times: 2).generations
  }

  /// A verb that asks a store.
  ///
  /// - Parameter prepare: what of the archive is in the store.
  private static func storing(
    _ name: String, posts: Int = 4, prepare: @escaping @Sendable (StoreScene) throws -> Void,
    _ line: @escaping @Sendable (StoreScene) -> String
  ) -> FrozenVerb {
    FrozenVerb(name) {
      let scene = try StoreScene(posts: posts, blobs: 2, blobSize: 20_000, times: 1)
      try prepare(scene)
      return FrozenStage(
        [("store", scene.store.server), ("server", scene.scene.server.server)],
        state: { state(of: scene) }, start: { try scene.start(line(scene)) })
    }
  }

  /// The names of files, except for those of the cache, and what is in the store.
  ///
  /// An upload whose name the store has not told is left to the bucket's own rule.
  private static func state(of scene: StoreScene) -> [String] {
    scene.folder.names().filter { !$0.hasPrefix("cache/") } + scene.store.keys
      + ["\(scene.store.toldUploads) uploads"]
  }

  private static func push(_ scene: StoreScene) { scene.store[StoreScene.key] = scene.newest }

  private static let archivesElsewhere: [FrozenVerb] = [
    storing("extract of a bucket", prepare: push) { _ in
      "carpack extract --all -d out \(StoreScene.address)"
    },
    storing("verify of a bucket", prepare: push) { _ in "carpack verify \(StoreScene.address)" },
    FrozenVerb("verify of a web server") {
      let scene = try NetworkScene(posts: 4, blobs: 2)
      _ = try scene.backUp()
      let bytes = try scene.folder.read(NetworkScene.archive)
      let server = try LoopbackServer { try StandInStore.give(bytes, to: $0, $1) }
      return FrozenStage([("web server", server)], state: { scene.folder.names() }) {
        try scene.command.start("carpack verify \(server.url)/a.car.zst")
      }
    },
    storing("pull", prepare: push) { _ in
      "carpack pull \(StoreScene.address) pulled.car.zst"
    },
    storing("push", prepare: { _ in }) { _ in
      "carpack push \(StoreScene.file) \(StoreScene.address)"
    },
    storing(
      "push in parts",
      prepare: { try $0.folder.write(StoreScene.file, large.get()[0]) },
      { _ in "carpack push \(StoreScene.file) \(StoreScene.address)" }),
    storing(
      "push of what is new in parts",
      prepare: {
        $0.store[StoreScene.key] = try large.get()[0]
        try $0.folder.write(StoreScene.file, large.get()[1])
      },
      { _ in "carpack push \(StoreScene.file) \(StoreScene.address)" }),
    storing("pull in parts", prepare: { $0.store[StoreScene.key] = try large.get()[0] }) { _ in
      "carpack pull \(StoreScene.address) pulled.car.zst"
    },
    storing("backup into a bucket", prepare: { _ in }) {
      "carpack backup \($0.scene.account.did) \($0.scene.flags) -o \(StoreScene.address)"
    },
    storing(
      "backup of what is new into a bucket",
      prepare: { scene in
        push(scene)
        try scene.scene.account.commit([scene.scene.account.post("3lkxag2qhdc2z", "more")])
      },
      { "carpack backup \($0.scene.account.did) \($0.scene.flags) -o \(StoreScene.address)" }),
  ]

  // MARK: Pipes

  /// A verb one of whose streams leads to a pipe.
  private static func piped(
    _ name: String, _ stream: String, _ line: @escaping @Sendable (NetworkScene) -> String
  ) -> FrozenVerb {
    FrozenVerb(name) {
      let scene = try NetworkScene(posts: 4, blobs: 0)
      _ = try scene.backUp()
      try scene.folder.write("repo.car", scene.account.car())
      try scene.folder.write("list.txt", Array("\(scene.account.did)\n".utf8))
      let isInput = stream == "<"
      let pipe = try FrozenPath(
        isInput ? .unwritten : .unread,
        else: isInput
          ? scene.folder.file(name.contains("accounts") ? "list.txt" : "repo.car") : "/dev/null")
      return FrozenStage(
        [("\(stream) pipe", pipe)], state: { scene.folder.names() },
        start: { try scene.command.start("\(line(scene)) \(stream) \(pipe.path)") })
    }
  }

  private static let pipes: [FrozenVerb] = [
    piped("fetch repo to a pipe", ">") { "carpack fetch repo \($0.account.did) \($0.flags)" },
    piped("backup --json to a pipe", ">") { $0.line("--json") },
    piped("backup --json --verbose to a pipe", "2>") { $0.line("--json --verbose") },
    piped("ls to a pipe", ">") { _ in "carpack ls --json \(NetworkScene.archive)" },
    piped("extract to a pipe", ">") { _ in "carpack extract --car -o - \(NetworkScene.archive)" },
    piped("verify to a pipe", ">") { _ in "carpack verify \(NetworkScene.archive)" },
    piped("inspect of a pipe", "<") { _ in "carpack inspect -" },
    piped("pack of a pipe", "<") { _ in "carpack pack - -o packed.car.zst --force" },
    piped("backup --accounts of a pipe", "<") { "carpack backup --accounts - -o out/ \($0.flags)" },
  ]

  // MARK: Programs

  /// A backup that runs a hook.
  private static func hooked(
    _ name: String, heedsTermination: Bool,
    _ change: @escaping @Sendable (inout FrozenStage) -> Void
  ) -> FrozenVerb {
    FrozenVerb(name) {
      let scene = try account()
      let program = try FrozenProgram(heedsTermination: heedsTermination)
      try scene.command.configure(
        "[backup]\nafter-success = ['sh', '-c', '\(program.script)']\n")
      var stage = stage(scene) { $0.line() }
      stage.partners = [("hook", program)]
      change(&stage)
      return stage
    }
  }

  private static let programs: [FrozenVerb] = [
    // What had to be done was done, and the hook is given its time to end.
    hooked("backup, a hook that ends", heedsTermination: true) { $0.status = 0 },
    hooked("backup, a hook that does not end", heedsTermination: false) {
      ($0.status, $0.grace) = (0, 5)
    },
    hooked("backup, a hook and a second signal", heedsTermination: false) { $0.signals = 2 },
    FrozenVerb("backup --healthcheck") {
      let service = try LoopbackServer { _, response in try response.send("OK") }
      return stage(try account(), and: [("health check", service)]) {
        $0.line("--healthcheck \(service.url)/check")
      }
    },
  ]
}
