import Archive
import Foundation
import IPLD
import SystemPackage
import TestSupport
import Testing

/// An archive of two snapshots that was cut off where the first one ended: what is left is whole.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `An archive that was cut off after an older snapshot` {
  private let folder: TemporaryFolder
  private let command: Command
  /// How long it was with one snapshot, and with two.
  private let lengths: [Int]

  private var loss: String {
    "a.car.zst has lost \(lengths[1] - lengths[0]) bytes at its end that carpack had written"
  }

  init() throws {
    folder = try TemporaryFolder()
    command = try Command(in: folder)
    var repository = try TestRepository(posts: 3)
    var lengths: [Int] = []
    for number in 0..<2 {
      repository.rev = "3lscuqc52o\(["a", "b"][number])2x"
      try repository.add("app.bsky.feed.like/\(number)", ["n": .integer(Int128(number))])
      try folder.write("repo.car", try repository.car())
      #expect(try command.run("carpack pack -q repo.car -o a.car.zst").status == 0)
      lengths.append(try folder.read("a.car.zst").count)
    }
    self.lengths = lengths
  }

  private func cutOff() throws {
    let file = try FileHandle(forUpdating: URL(filePath: folder.file("a.car.zst")))
    try file.truncate(atOffset: UInt64(lengths[0]))
    try file.close()
  }

  /// Whether files in the folder of the tests may have extended attributes.
  private var hasAttributes: Bool {
    FileAttribute(name: "user.carpack.test").write("x", to: FilePath(folder.file("repo.car")))
  }

  @Test func `is damaged to what reads it, until it is repaired`() throws {
    guard hasAttributes else { return }
    for verb in ["status", "verify", "log", "ls"] {
      #expect(try command.run("carpack \(verb) a.car.zst").status == 0)
    }
    try cutOff()
    for verb in ["status", "verify", "log", "ls"] {
      let result = try command.run("carpack \(verb) a.car.zst")
      #expect(result.status == 11, "\(verb)")
      #expect(result.errors.contains("damaged: \(loss)"), "\(verb): \(result.errors)")
    }
    let status = try command.run("carpack status --json a.car.zst").text
    #expect(status.contains(#""bytesLost":\#(lengths[1] - lengths[0])"#), "\(status)")
    for verb in ["prune --keep-last 1", "compact", "protect --parity 5"] {
      let result = try command.run("carpack \(verb) a.car.zst")
      #expect(result.status == 11 && result.errors.contains("error: \(loss)"), "\(result.errors)")
    }
    let repaired = try command.run("carpack repair a.car.zst")
    #expect(
      repaired.status == 10 && repaired.errors.contains("warning: \(loss)"), "\(repaired.errors)")
    for verb in ["status", "verify", "repair"] {
      #expect(try command.run("carpack \(verb) a.car.zst").status == 0)
    }
  }

  @Test func `is not extended in silence, nor forgotten by what extends it`() throws {
    guard hasAttributes else { return }
    try cutOff()
    for _ in 0..<2 {
      let packed = try command.run("carpack pack -q repo.car -o a.car.zst")
      #expect(packed.status == 11 && packed.errors.contains("damaged: \(loss)"), "\(packed.errors)")
    }
    #expect(try command.run("carpack verify a.car.zst").status == 11)
  }

  @Test func `is not one from which an unfinished write was cut off`() throws {
    try folder.write("a.car.zst", try folder.read("a.car.zst") + [UInt8](repeating: 0, count: 999))
    for (verb, status) in [("verify", 10), ("repair", 0), ("verify", 0)] as [(String, Int32)] {
      let result = try command.run("carpack \(verb) a.car.zst")
      #expect(result.status == status && !result.errors.contains("has lost"), "\(result.errors)")
    }
  }

  @Test func `is damaged, and no more, whatever size was noted`() throws {
    guard hasAttributes else { return }
    for size in ["\(UInt64.max) \(UInt64.max)", "\(UInt64.max) 0", "0 \(UInt64.max)"] {
      let path = FilePath(folder.file("a.car.zst"))
      #expect(FileAttribute(name: "user.carpack.size").write(size, to: path))
      for (verb, status) in [("verify", 11), ("status", 11), ("repair", 10), ("verify", 0)]
        as [(String, Int32)]
      {
        let result = try command.run("carpack \(verb) a.car.zst")
        #expect(result.status == status, "\(size), \(verb): \(result.errors)")
      }
    }
  }

  @Test func `is an archive like others where it was copied`() throws {
    try cutOff()
    try folder.write("copy.car.zst", try folder.read("a.car.zst"))
    #expect(try command.run("carpack verify copy.car.zst").status == 0)
  }
}
