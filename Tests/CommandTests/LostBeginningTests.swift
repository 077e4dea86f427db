import Foundation
import IPLD
import TestSupport
import Testing

/// An archive of six snapshots whose first bytes are lost, so that it may begin like a CAR.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An archive that has lost its first bytes` {
  private static let archive = Result {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    var repository = try TestRepository(posts: 40)
    for number in 0..<6 {
      repository.rev = "3lscuqc52o\(["a", "b", "c", "d", "e", "f"][number])2x"
      try repository.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
      try folder.write("repo.car", try repository.car())
      let packed = try command.run("carpack pack -q repo.car -o a.car.zst")
      #expect(packed.status == 0, "\(packed.errors)")
    }
    return try folder.read("a.car.zst")
  }

  /// Frame 0 holds the header of the CAR, after nine bytes or fewer of its own.
  static let lengths = Array(1...16) + [59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 80, 120, 200]

  @Test(arguments: lengths)
  func `is an archive to every verb, and gives its snapshots back`(_ lost: Int) throws {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    try folder.write("a.car.zst", Array(try Self.archive.get().dropFirst(lost)))
    func run(_ line: String, _ statuses: Int32...) throws -> Command.Result {
      let result = try command.run(line)
      #expect(statuses.contains(result.status), "\(line): \(result.text)\(result.errors)")
      #expect(!result.errors.contains("is a CAR"), "\(line): \(result.errors)")
      return result
    }
    func snapshots(_ name: String) throws -> Int {
      let log = try command.run("carpack log --json \(name)")
      return log.text.split(separator: "\n").count
    }
    _ = try run("carpack verify a.car.zst", 11)
    _ = try run("carpack log a.car.zst", 0, 10, 11)
    _ = try run("carpack ls a.car.zst", 0, 10, 11)
    _ = try run("carpack cat a.car.zst app.bsky.feed.like/0", 0, 10, 11)
    _ = try run("carpack extract a.car.zst -d out", 0, 10, 11)
    #expect(folder.names(under: "out").contains { $0.hasSuffix("app.bsky.feed.like/5.json") })
    _ = try run("carpack fill a.car.zst", 11)
    try folder.write("repo.car", try TestRepository(posts: 3).car())
    _ = try run("carpack pack repo.car -o a.car.zst", 11)
    _ = try run("carpack repair a.car.zst -o new.car.zst", 0, 10)
    // Behind frame 0 it is data that is lost.
    if lost < 70 { #expect(try snapshots("new.car.zst") == 6) }
    _ = try run("carpack verify new.car.zst", 0, 10)
    _ = try run("carpack repair a.car.zst", 0, 11)
    #expect(try snapshots("a.car.zst") == 6)
  }

  @Test func `and a CAR is a CAR all the same`() throws {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    try folder.write("repo.car", try TestRepository(posts: 40).car())
    for verb in ["verify repo.car", "repair repo.car", "log repo.car", "ls repo.car"] {
      let result = try command.run("carpack \(verb)")
      #expect(result.status == 64 && result.errors.contains("repo.car is a CAR"), "\(verb)")
    }
  }
}
