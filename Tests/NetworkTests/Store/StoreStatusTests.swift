import ArchiveTestSupport
import Foundation
import StandIn
import TestSupport
import Testing

/// The exit status of the verbs that carry an archive to a store and back, by the archive's state.
///
/// What is pushed is what is committed, as it is here; what comes back is checked.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An archive on its way to a store and back` {
  @Test(arguments: [
    (ArchiveState.whole, 0, 0), (.incomplete, 0, 0), (.partial, 0, 0), (.damaged, 0, 11),
    (.unvouched, 0, 11), (.private, 0, 0), (.hostile, 0, 0),
  ])
  func `ends as its state says, and is for its owner alone if anything in it is`(
    state: ArchiveState, push: Int32, pull: Int32
  ) throws {
    let folder = try TemporaryFolder()
    let store = try StandInStore()
    try state.write(to: folder)
    var variables = store.environment
    variables["XDG_CACHE_HOME"] = folder.file("cache")
    let command = try Command(in: folder)
    func run(_ line: String) throws -> Command.Result {
      try command.start(line, environment: variables).wait()
    }
    let pushed = try run("carpack push a.car.zst \(StoreScene.address)")
    #expect(pushed.status == push, "\(pushed.text)\(pushed.errors)")
    store[StoreScene.key] = try folder.read("a.car.zst")
    let pulled = try run("carpack pull \(StoreScene.address) pulled.car.zst")
    #expect(pulled.status == pull, "\(pulled.text)\(pulled.errors)")
    guard pulled.status == 0 else { return }
    #expect(try folder.read("pulled.car.zst") == folder.read("a.car.zst"))
    let attributes = try FileManager.default.attributesOfItem(atPath: folder.file("pulled.car.zst"))
    let mode = try #require(attributes[.posixPermissions] as? Int)
    #expect(mode & 0o077 == (state == .private ? 0 : 0o044))
  }
}
