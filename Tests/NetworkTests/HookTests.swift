import Foundation
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A hook` {
  /// A scene whose configuration has hooks.
  private func scene(_ hooks: (NetworkScene) -> String) throws -> NetworkScene {
    let scene = try NetworkScene(posts: 3, blobs: 2)
    try scene.command.configure("[backup]\n" + hooks(scene))
    return scene
  }

  private func text(_ scene: NetworkScene, _ name: String) -> String {
    (try? scene.folder.read(name)).map { String(decoding: $0, as: UTF8.self) } ?? ""
  }

  @Test func `reads what --json prints, and the status, after success`() throws {
    let scene = try scene { scene in
      """
      after-success = ['sh', '-c', 'cat > report; echo "$CARPACK_STATUS" > status; pwd > folder']
      on-failure = ['sh', '-c', 'echo x > failed']
      """
    }
    let result = try scene.backUp("--json")
    #expect(result.status == 0, "\(result.errors)")
    let report = text(scene, "report")
    let printed = result.text.split(separator: "\n").filter { !$0.contains(#""event":"progress""#) }
    #expect(report.split(separator: "\n") == printed)
    #expect(report.contains(#""event":"finished""#))
    #expect(OutputSchema.faults(in: report).isEmpty)
    #expect(text(scene, "status") == "0\n")
    #expect(text(scene, "failed") == "")
    // Without --json it reads the same.
    #expect(try scene.backUp("-q").text == "")
    #expect(text(scene, "report").contains(#""outcome":"up-to-date""#))
  }

  @Test func `runs after any other status, with the error in the report`() throws {
    let scene = try scene { _ in
      "on-failure = ['sh', '-c', 'cat > report; echo \"$CARPACK_STATUS\" > status']\n"
    }
    let lost = try #require(scene.account.referencedBlobs.first)
    scene.server.play(FaultRule(.status(400), on: "getBlob", cid: "\(lost)"))
    #expect(try scene.backUp("--attempts 1").status == 10)
    #expect(text(scene, "status") == "10\n")
    #expect(text(scene, "report").contains(#""event":"missing""#))
    try scene.folder.write("garbage.car.zst", Array("no archive".utf8))
    let failed = try scene.command.run(
      "carpack backup \(scene.account.did) \(scene.flags) --accounts nowhere")
    #expect(failed.status == 66, "\(failed.errors)")
    #expect(text(scene, "status") == "66\n")
    #expect(OutputSchema.faults(in: text(scene, "report")).isEmpty)
    #expect(text(scene, "report").contains(#""schema":"carpack.error""#))
  }

  @Test func `has no variable of carpack's and no open file, and prints to standard error`() throws
  {
    let scene = try scene { _ in
      "after-success = ['sh', '-c', 'env > variables; ls /proc/self/fd > files; echo said']\n"
    }
    let secrets = ["CARPACK_APP_PASSWORD": "horse", "CARPACK_TOKEN": "battery", "OTHER": "kept"]
    let result = try scene.command.start(scene.line(), environment: secrets).wait()
    #expect(result.status == 0, "\(result.errors)")
    let variables = text(scene, "variables")
    #expect(variables.contains("OTHER=kept"))
    #expect(!variables.contains("horse") && !variables.contains("battery"))
    #expect(
      variables.split(separator: "\n").filter { $0.hasPrefix("CARPACK_") } == ["CARPACK_STATUS=0"])
    #expect(result.errors.contains("said") && !result.text.contains("said"))
    // Its own three, and the folder that is listed.
    #expect(text(scene, "files").split(separator: "\n").count <= 4)
  }

  @Test func `is started without a shell`() throws {
    let scene = try scene { scene in "after-success = ['touch', '$(touch a); b', '; touch c']\n" }
    #expect(try scene.backUp().status == 0)
    let names = scene.folder.names(under: ".")
    #expect(names.contains("$(touch a); b") && names.contains("; touch c"))
    #expect(!names.contains("a") && !names.contains("c"))
  }

  @Test(arguments: [
    ("['false']", "ended with status 1"), ("['sh', '-c', 'kill -9 $$']", "was ended by signal 9"),
    ("['/nowhere/program']", "could not be started: /nowhere/program"),
  ]) func `that fails is said, and does not change the status`(hook: String, words: String) throws {
    let scene = try scene { _ in "after-success = \(hook)\non-failure = \(hook)\n" }
    let result = try scene.backUp()
    #expect(result.status == 0)
    #expect(
      result.errors.contains("carpack: warning: the hook after-success \(words)"),
      "\(result.errors)")
    let failed = try scene.command.run("carpack backup alice.invalid -q")
    #expect(failed.status == 69)
    #expect(failed.errors.contains("the hook on-failure \(words)"), "\(failed.errors)")
    let json = try scene.backUp("--json")
    #expect(json.errors.contains("carpack.message"))
    #expect(OutputSchema.faults(in: json.errors).isEmpty)
  }

  @Test func `that takes too long is ended with all that it started`() throws {
    let scene = try scene { _ in
      "hook-timeout = '1s'\nafter-success = ['sh', '-c', 'trap : TERM; sleep 60 & echo $! > child; while :; do sleep 1; done']\n"
    }
    let begin = ContinuousClock.now
    let result = try scene.backUp()
    #expect(result.status == 0)
    #expect(ContinuousClock.now - begin < .seconds(30))
    #expect(result.errors.contains("was stopped: it took longer than 1 s"), "\(result.errors)")
    let child = try #require(Int32(text(scene, "child").dropLast()))
    // Whoever has become its parent may not have buried it yet.
    let state = (try? String(contentsOfFile: "/proc/\(child)/stat", encoding: .utf8)) ?? "(sleep) Z"
    #expect(kill(child, 0) != 0 || state.contains(") Z"))
  }

  @Test func `is not run by a plan, nor by other verbs, nor with --no-config`() throws {
    let scene = try scene { _ in "after-success = ['touch', 'ran']\non-failure = ['touch', 'ran']\n"
    }
    #expect(try scene.backUp("--dry-run").status == 0)
    #expect(try scene.backUp("--no-config").status == 0)
    #expect(try scene.command.run("carpack verify \(NetworkScene.archive)").status == 0)
    #expect(try scene.command.run("carpack backup --jobs 0").status == 64)
    #expect(!scene.folder.names(under: ".").contains("ran"))
  }

  @Test func `ends with Ctrl-C, and the backup keeps its status`() throws {
    let scene = try scene { _ in "after-success = ['sh', '-c', 'echo > started; sleep 60']\n" }
    let running = try scene.command.start(scene.line())
    let limit = ContinuousClock.now + .seconds(30)
    while !scene.folder.names(under: ".").contains("started"), .now < limit {
      Thread.sleep(forTimeInterval: 0.02)
    }
    let begin = ContinuousClock.now
    running.signal(SIGINT)
    let result = try running.wait()
    #expect(ContinuousClock.now - begin < .seconds(20))
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.errors.contains("the hook after-success was interrupted"), "\(result.errors)")
    try scene.expectWhole()
  }
}
