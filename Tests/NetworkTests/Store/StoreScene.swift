import Foundation
import StandIn
import TestSupport
import Testing

/// An archive with some generations, a store to have it in, and a folder in which the command runs.
struct StoreScene {
  let store: StandInStore
  let scene: NetworkScene
  /// Variables that commands get beside those of the store.
  var environment: [String: String] = [:]
  /// The committed bytes of the archive after each generation.
  let generations: [[UInt8]]

  var folder: TemporaryFolder { scene.folder }

  /// The archive's name.
  static let file = NetworkScene.archive
  /// Where it lies in the store.
  static let key = "backups/archive.car.zst"
  static let address = "s3://\(StandInStore.bucket)/\(key)"

  /// An archive of one account that has been backed up so often, with more in it each time.
  init(
    posts: Int = 30, blobs: Int = 4, blobSize: Int = 90_000, large: [Int] = [], times: Int = 2,
    _ behaviour: Behaviour = Behaviour()
  ) throws {
    store = try StandInStore()
    scene = try NetworkScene(
      posts: posts, blobs: blobs, blobSize: blobSize, large: large, behaviour)
    var generations: [[UInt8]] = []
    for number in 0..<times {
      if number > 0 {
        let blob = BlobContent(noise: UInt64(number) + 500, size: 30_000)
        scene.account.upload(blob)
        try scene.account.commit([
          scene.account.post("3lkxag2qhdc2\(number)", "more", showing: [blob])
        ])
      }
      let result = try scene.backUp()
      #expect(result.status == 0, "\(result.errors)")
      generations.append(try scene.folder.read(Self.file))
    }
    self.generations = generations
  }

  /// The newest state of the archive.
  var newest: [UInt8] { generations[generations.count - 1] }

  /// Runs a command that can reach the store.
  func run(_ line: String, environment: [String: String] = [:]) throws -> Command.Result {
    try start(line, environment: environment).wait()
  }

  /// Starts one.
  func start(_ line: String, environment: [String: String] = [:]) throws -> RunningCommand {
    var variables = store.environment.merging(self.environment) { $1 }
      .merging(environment) { $1 }
    variables["XDG_CACHE_HOME"] = folder.file("cache")
    return try scene.command.start(line, environment: variables)
  }

  /// Runs a command and expects how it ends.
  @discardableResult
  func expect(
    _ line: String, _ status: Int32 = 0, _ words: String...,
    location: SourceLocation = #_sourceLocation
  ) throws -> Command.Result {
    let result = try run(line)
    #expect(
      result.status == status, "\(line): \(result.text)\(result.errors)", sourceLocation: location)
    for word in words {
      #expect(
        (result.text + result.errors).contains(word), "\(word) in \(result.text)\(result.errors)",
        sourceLocation: location)
    }
    return result
  }

  /// What has been asked of the store since the last time.
  func requests() -> [LoopbackExchange] {
    defer { store.server.forgetLog() }
    return store.server.log
  }
}
