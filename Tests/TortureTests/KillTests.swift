import ArchiveTestSupport
import Foundation
import IPLD
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The command, killed at any moment` {
  /// A folder with an account as it was at several times: the CAR and all of its blobs.
  private struct Account {
    let folder: TemporaryFolder
    let command: Command
    /// The CARs in order of time.
    private(set) var cars: [[UInt8]] = []

    init(using random: inout SeededGenerator, times: Int) throws {
      folder = try TemporaryFolder()
      command = try Command(in: folder)
      var repository = try TestRepository(posts: 1500)
      for time in 0..<times {
        for number in 0..<60 {
          let path = "app.bsky.feed.post/4k\(time)\(1000 + number)"
          // A text that does not compress, so that there is something to write.
          let text = random.bytes(300).map { String($0, radix: 36) }.joined()
          try repository.add(path, ["$type": .string("app.bsky.feed.post"), "text": .string(text)])
        }
        for length in [2000, 90_000, 5_000_000] {
          let blob = random.bytes(length)
          try repository.add("app.bsky.feed.post/5k\(time)\(length)", blob: .blob(blob))
          try folder.write("blobs\(time)/\(length)", blob)
        }
        repository.rev = "3lscuqc52or2\(["a", "b", "c", "d", "e", "f"][time])"
        cars.append(try repository.car())
        try folder.write("\(time).car", cars[time])
      }
    }

    /// The line that packs the account as it was at a time.
    func line(_ time: Int) -> String {
      let folders = (0...time).map { "--blobs blobs\($0)" }.joined(separator: " ")
      return "carpack pack -q \(time).car \(folders) -o a.car.zst"
    }

    /// How long packing takes, when nothing else keeps the machine busy.
    func duration(_ time: Int, before: () throws -> Void) throws -> Double {
      try (0..<3).map { _ in
        try before()
        let begin = Date.now
        try expect(line(time), [0])
        return Date.now.timeIntervalSince(begin)
      }.min() ?? 0
    }

    /// Takes the archive away.
    func remove() throws {
      if isThere { try FileManager.default.removeItem(atPath: folder.file("a.car.zst")) }
    }

    /// Runs a line that has to end with one of these statuses.
    @discardableResult
    func expect(_ line: String, _ statuses: [Int32]) throws -> [UInt8] {
      let result = try command.run(line)
      guard statuses.contains(result.status) else {
        throw Unexpected("\(line) ends with \(result.status): \(result.errors)")
      }
      return result.output
    }

    /// Whether there is an archive.
    var isThere: Bool { FileManager.default.fileExists(atPath: folder.file("a.car.zst")) }

    /// Checks that the archive is whole, and gives the CAR back.
    func checkWhole(_ time: Int) throws {
      try expect("carpack verify -q a.car.zst", [0])
      guard try expect("carpack extract -q --car -d - a.car.zst", [0]) == cars[time] else {
        throw Unexpected("the CAR comes back otherwise")
      }
    }
  }

  @Test func `makes a new archive in full or not at all`() throws {
    var (kills, finished) = (0, 0)
    for var round in Torture.rounds(1, from: 0x0911_0000) {
      let account = try Account(using: &round.random, times: 1)
      let line = account.line(0)
      let duration = try account.duration(0, before: account.remove)
      try account.checkWhole(0)
      for number in 0..<40 {
        try account.remove()
        let delay = Double.random(in: 0...duration * 1.05, using: &round.random)
        do {
          let result = try account.command.run(line, killedAfter: delay)
          guard result.status == 137 || result.status == 0 else {
            throw Unexpected("\(line) ends with \(result.status): \(result.errors)")
          }
          kills += result.status == 137 ? 1 : 0
          finished += result.status == 0 ? 1 : 0
          if account.isThere { try account.checkWhole(0) }
          if !account.isThere || number % 4 == 0 {
            try account.expect("\(line) --force", [0])
            try account.checkWhole(0)
          }
        } catch {
          Issue.record("\(round), kill \(number) after \(delay) s: \(error)")
        }
      }
    }
    Torture.report(counts: "\(kills) processes killed, \(finished) were faster")
    #expect(kills > 3)
  }
}
