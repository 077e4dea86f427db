import Foundation
import StandIn
import TestSupport
import Testing

/// How the place for temporary files is short of room.
private enum Shortage: CaseIterable {
  /// A file cannot be made as long as the archive.
  case fileLimit
  /// It can, and what is written to it has no room: as on a disk that is full.
  case fullDisk

  /// A line of shell that runs a command so.
  func line(_ command: String, in folder: TemporaryFolder) -> String {
    switch self {
    case .fileLimit: "ulimit -f 400; exec timeout 100 \(command)"
    case .fullDisk:
      "unshare -rm sh -c 'mount -t tmpfs -o size=200k none \(folder.file("scratch")) && TMPDIR=\(folder.file("scratch")) exec timeout 100 \(command)'"
    }
  }

  static let possible = allCases.filter { $0 != .fullDisk || Command.canMount }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An archive elsewhere for which there is no room here` {
  private static let archive = Result {
    let scene = try NetworkScene(posts: 1000, blobs: 30, blobSize: 40_000)
    _ = try scene.backUp()
    return try scene.folder.read(NetworkScene.archive)
  }

  @Test(
    arguments: Shortage.possible,
    [
      "verify ADDRESS", "verify --quick ADDRESS", "ls ADDRESS", "extract --all -d out ADDRESS",
      "pull ADDRESS pulled.car.zst",
    ])
  fileprivate func `ends a verb with one error, at once`(shortage: Shortage, verb: String) throws {
    let bytes = try Self.archive.get()
    try #require(bytes.count > 1 << 20)
    // Without ranges all of it is fetched; with them, what the verb reads.
    for knowsRanges in [true, false] {
      let server = try LoopbackServer { request, response in
        guard knowsRanges else { return try response.send(bytes) }
        try StandInStore.give(bytes, to: request, response)
      }
      let command = try Command(in: TemporaryFolder())
      try FileManager.default.createDirectory(
        atPath: command.folder.file("scratch"), withIntermediateDirectories: false)
      let address = "\(server.url)/a.car.zst"
      let line = "carpack \(verb.replacing("ADDRESS", with: address))"
      let result = try command.run(shortage.line(line, in: command.folder))
      #expect(result.status == 74, "\(result.text)\(result.errors)")
      let errors = result.errors.split(separator: "\n").filter { $0.contains("error: ") }
      #expect(errors.count == 1, "\(result.text)\(result.errors)")
      #expect(errors.first?.contains("temporary file") == true, "\(result.errors)")
      #expect(!result.text.contains("in order"), "\(result.text)")
      #expect(!command.folder.names().contains("pulled.car.zst"))
      // With room, all is well.
      #expect(try command.run(line.replacing("-d out", with: "-d again")).status == 0)
    }
  }
}
