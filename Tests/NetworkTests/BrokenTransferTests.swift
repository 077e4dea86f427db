import Foundation
import StandIn
import TestSupport
import Testing

/// Large blobs on a line that breaks again and again.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A large blob that breaks off` {
  private static let size = 6_000_000
  /// How much each connection brings.
  private static let piece = 1_300_000
  private static let pieces = ".\(NetworkScene.archive).pieces"

  private static func scene(resumes: Bool = true) throws -> NetworkScene {
    var behaviour = Behaviour()
    behaviour.honoursRange = resumes
    return try NetworkScene(posts: 3, blobs: 0, large: [size], behaviour)
  }

  /// How many bytes of blobs the server has sent.
  private func sentCount(_ scene: NetworkScene) -> Int {
    scene.server.server.log.filter { $0.path.hasSuffix("getBlob") }.reduce(0) { $0 + $1.bytesSent }
  }

  private func cutAll(_ scene: NetworkScene, times: Int? = nil) {
    scene.server.play(
      FaultRule(.distorted(.cutAfter(bytes: Self.piece)), on: "getBlob", times: times))
  }

  @Test
  func `arrives in one run, and nothing of it twice, as long as each attempt brings something`()
    throws
  {
    let scene = try Self.scene()
    cutAll(scene)
    let result = try scene.backUp("--attempts 2")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    #expect(sentCount(scene) <= Self.size * 102 / 100, "\(sentCount(scene))")
    #expect(scene.folder.names() == [NetworkScene.archive])
    try scene.expectWhole()
  }

  @Test func `is continued by the next run, which removes what was left for it`() throws {
    let scene = try Self.scene()
    cutAll(scene, times: 2)
    scene.server.play(FaultRule(.dropped, on: "getBlob"))
    let first = try scene.backUp("--attempts 2")
    #expect(first.status == 10, "\(first.text)\(first.errors)")
    #expect(scene.folder.names(under: Self.pieces).count == 1)
    scene.server.clearFaults()
    let second = try scene.backUp("--attempts 2")
    #expect(second.status == 0, "\(second.text)\(second.errors)")
    #expect(sentCount(scene) <= Self.size * 102 / 100, "\(sentCount(scene))")
    #expect(scene.folder.names() == [NetworkScene.archive])
    try scene.expectWhole()
  }

  @Test(arguments: [2 as Int32, 9])
  func `is continued after Ctrl-C and after a kill`(_ signal: Int32) throws {
    let scene = try Self.scene()
    scene.server.play(
      FaultRule(.distorted(.stalled(at: 0.9)), on: "getBlob", times: 1))
    let running = try scene.command.start(scene.line())
    while running.isRunning, leftCount(scene) < 5_000_000 { pause(0.002) }
    running.signal(signal)
    #expect(try running.wait().status != 0)
    scene.server.clearFaults()
    scene.server.server.forgetLog()
    #expect(try scene.backUp().status == 0)
    // What the system had not been handed yet when the process was killed comes again.
    #expect(sentCount(scene) <= Self.size / 4, "\(sentCount(scene))")
    try scene.expectWhole()
  }

  /// How much of the blob lies there for the next run.
  private func leftCount(_ scene: NetworkScene) -> Int {
    guard let name = scene.folder.names(under: Self.pieces).first else { return 0 }
    let path = scene.folder.file("\(Self.pieces)/\(name)")
    let facts = try? FileManager.default.attributesOfItem(atPath: path)
    return facts?[.size] as? Int ?? 0
  }

  @Test func `begins anew where other bytes lie in its place`() throws {
    let scene = try Self.scene()
    cutAll(scene, times: 1)
    scene.server.play(FaultRule(.dropped, on: "getBlob"))
    #expect(try scene.backUp("--attempts 1").status == 10)
    let name = try #require(scene.folder.names(under: Self.pieces).first)
    let path = "\(Self.pieces)/\(name)"
    try scene.folder.write(path, [UInt8](repeating: 7, count: Self.piece))
    scene.server.clearFaults()
    #expect(try scene.backUp().status == 0)
    #expect(scene.folder.names(under: Self.pieces).isEmpty)
    try scene.expectWhole()
  }

  @Test func `begins anew each time where the server cannot continue it, which is said`() throws {
    let scene = try Self.scene(resumes: false)
    cutAll(scene)
    let result = try scene.backUp("--attempts 2")
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("each attempt begins anew"), "\(result.errors)")
    #expect(scene.folder.names(under: Self.pieces).isEmpty)
  }

  @Test func `leaves nothing in the clear beside a sealed archive`() throws {
    let scene = try Self.scene()
    let key = try scene.command.run("carpack key new -o key.age")
    let recipient = key.text.split(separator: "\n").first ?? ""
    cutAll(scene, times: 2)
    scene.server.play(FaultRule(.dropped, on: "getBlob"))
    let result = try scene.backUp("--attempts 2 --recipient \(recipient) --age-identity key.age")
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(scene.folder.names(under: Self.pieces).isEmpty)
  }
}
