import Age
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
    /// To whom new archives are sealed; nil if they are not.
    private let recipient: String?
    /// The command with the key that it needs.
    var program: String {
      recipient == nil ? "carpack" : "env CARPACK_AGE_IDENTITY=key.age carpack"
    }
    /// The CARs in order of time.
    private(set) var cars: [[UInt8]] = []

    init(
      using random: inout SeededGenerator, times: Int, largest: Int = 5_000_000,
      isSealed: Bool = false
    ) throws {
      folder = try TemporaryFolder()
      command = try Command(in: folder)
      if isSealed {
        let identity = try AgeIdentity.generate()
        try folder.write("key.age", identity.text.withBytes { $0.array })
        try FileManager.default.setAttributes(
          [.posixPermissions: 0o600], ofItemAtPath: folder.file("key.age"))
        recipient = identity.recipient.text
      } else {
        recipient = nil
      }
      var repository = try TestRepository(posts: 1500)
      for time in 0..<times {
        for number in 0..<60 {
          let path = "app.bsky.feed.post/4k\(time)\(1000 + number)"
          // A text that does not compress, so that there is something to write.
          let text = random.bytes(300).map { String($0, radix: 36) }.joined()
          try repository.add(path, ["$type": .string("app.bsky.feed.post"), "text": .string(text)])
        }
        for length in [2000, 90_000, largest] {
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
      let seal = recipient.map { " --recipient \($0)" } ?? ""
      return "\(program) pack -q \(time).car \(folders) -o a.car.zst\(seal)"
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

    /// Packs, and kills that after this many seconds.
    ///
    /// - Returns: Whether it was killed before it had ended.
    func kill(_ time: Int, after seconds: Double) throws -> Bool {
      let result = try command.run(line(time), killedAfter: seconds)
      guard result.status == 137 || result.status == 0 else {
        throw Unexpected("\(line(time)) ends with \(result.status): \(result.errors)")
      }
      return result.status == 137
    }

    /// Packs, whatever was left by those that were killed.
    func finish(_ time: Int) throws {
      try expect(line(time), [0])
      try checkWhole(time)
    }

    /// Whether there is an archive.
    var isThere: Bool { FileManager.default.fileExists(atPath: folder.file("a.car.zst")) }

    /// Checks that the archive begins as it did.
    ///
    /// In a sealed one a piece may have been written again in its place.
    func requireUntouched(_ before: [UInt8]) throws {
      guard try recipient != nil || folder.read("a.car.zst").starts(with: before) else {
        throw Unexpected("what was committed has changed")
      }
    }

    /// Checks that the archive is whole, and gives the CAR back.
    func checkWhole(_ time: Int) throws {
      try expect("\(program) verify -q a.car.zst", [0])
      for (number, car) in cars[...time].enumerated() {
        let line = "\(program) extract -q --car -d - a.car.zst --at \(number - time - 1)"
        guard try expect(line, [0]) == car else {
          throw Unexpected("the CAR of time \(number) comes back otherwise")
        }
      }
    }

    /// Checks that the archive is as it was before a time or as it is after it, whatever follows
    /// it.
    func checkEither(_ time: Int) throws {
      try expect("\(program) verify -q a.car.zst", [0, 10])
      // 10 where something follows what is committed.
      let car = try expect("\(program) extract -q --car -d - a.car.zst", [0, 10])
      guard car == cars[time] || car == cars[time - 1] else {
        throw Unexpected("the CAR is that of no time")
      }
    }

    /// Has programs look at the archive that share nothing with the one that made it.
    func checkIndependently() throws {
      let path = folder.file("a.car.zst")
      guard try ZstdProgram.accepts(path) else { throw Unexpected("zstd does not accept it") }
      guard recipient == nil, IndependentReader.isPresent else { return }
      guard try IndependentReader.run(["verify", path]).status == 0 else {
        throw Unexpected("the reader that knows the document alone does not accept it")
      }
    }
  }

  @Test(arguments: [false, true])
  func `makes a new archive in full or not at all`(isSealed: Bool) throws {
    var (kills, finished) = (0, 0)
    for var round in Torture.rounds(1, from: 0x0911_0000) {
      let account = try Account(using: &round.random, times: 1, isSealed: isSealed)
      let duration = try account.duration(0, before: account.remove)
      try account.checkWhole(0)
      for number in 0..<25 {
        try account.remove()
        let delay = Double.random(in: 0...duration * 1.05, using: &round.random)
        do {
          let isKilled = try account.kill(0, after: delay)
          kills += isKilled ? 1 : 0
          finished += isKilled ? 0 : 1
          // Under its name there is an archive that is whole, or none.
          if account.isThere { try account.checkWhole(0) } else { try account.finish(0) }
          guard account.folder.names().filter({ $0.hasSuffix(".partial") }).isEmpty else {
            throw Unexpected("something is left beside the archive")
          }
        } catch {
          Issue.record("\(round), kill \(number) after \(delay) s: \(error)")
        }
      }
    }
    Torture.report(counts: "\(kills) processes killed, \(finished) were faster")
    #expect(kills > 8)
  }

  @Test(arguments: [false, true])
  func `appends in full or not at all, and goes on the next time`(isSealed: Bool) throws {
    var (kills, finished) = (0, 0)
    for var round in Torture.rounds(1, from: 0x0912_0000) {
      let account = try Account(using: &round.random, times: 3, isSealed: isSealed)
      try account.expect(account.line(0), [0])
      for time in 1..<3 {
        let before = try account.folder.read("a.car.zst")
        let duration = try account.duration(time) {
          try account.folder.write("a.car.zst", before)
        }
        for number in 0..<10 {
          try account.folder.write("a.car.zst", before)
          // Also while it recovers from having been killed.
          let delays = (0..<Int.random(in: 1...3, using: &round.random)).map { _ in
            Double.random(in: 0...duration * 1.05, using: &round.random)
          }
          do {
            for delay in delays {
              let isKilled = try account.kill(time, after: delay)
              kills += isKilled ? 1 : 0
              finished += isKilled ? 0 : 1
              try account.requireUntouched(before)
              try account.checkEither(time)
            }
            try account.finish(time)
            try account.checkWhole(time)
            try account.requireUntouched(before)
          } catch {
            Issue.record("\(round), time \(time), kill \(number) after \(delays) s: \(error)")
          }
        }
        try account.folder.write("a.car.zst", before)
        try account.finish(time)
      }
      try account.checkIndependently()
    }
    Torture.report(counts: "\(kills) processes killed, \(finished) were faster")
    #expect(kills > 15)
  }

  @Test(arguments: [false, true])
  func `says that the disk is full, and leaves the archive as it was`(isSealed: Bool) throws {
    var failures = 0
    for var round in Torture.rounds(1, from: 0x0913_0000) {
      let account = try Account(using: &round.random, times: 2, isSealed: isSealed)
      try account.expect(account.line(0), [0])
      let before = try account.folder.read("a.car.zst")
      try account.expect(account.line(1), [0])
      let after = try account.folder.read("a.car.zst")
      for _ in 0..<6 {
        try account.folder.write("a.car.zst", before)
        // The shell counts in 512 bytes.
        let limit = Int.random(in: before.count / 512...after.count / 512 - 1, using: &round.random)
        let line = "ulimit -f \(limit); exec \(account.line(1))"
        do {
          try account.expect(line, [74])
          failures += 1
          try account.requireUntouched(before)
          try account.checkEither(1)
          try account.finish(1)
          try account.checkWhole(1)
        } catch {
          Issue.record("\(round), limit of \(limit) × 512 bytes: \(error)")
        }
      }
    }
    Torture.report(counts: "\(failures) files that could not grow")
    #expect(failures > 4)
  }

  @Test func `reads while another process writes`() throws {
    var reads = 0
    for var round in Torture.rounds(1, from: 0x0914_0000) {
      let account = try Account(using: &round.random, times: 5)
      try account.expect(account.line(0), [0])
      for time in 1..<5 {
        let writing = Background { _ in try account.command.run(account.line(time)).status }
        do {
          // While the writer has not written its footer, what there is of the next state is an
          // interrupted tail.
          repeat {
            try account.checkEither(time)
            reads += 1
          } while !writing.isOver
        } catch {
          Issue.record("\(round), time \(time): \(error)")
        }
        #expect(writing.results == [0])
        try account.checkWhole(time)
      }
    }
    Torture.report(counts: "\(reads) reads of an archive that is being written to")
    #expect(reads >= 2)
  }

  @Test func `lets one of several writers in, and none does any harm`() throws {
    var (writers, refused) = (0, 0)
    for var round in Torture.rounds(1, from: 0x0915_0000) {
      // So large that nobody is done before the others have begun.
      let account = try Account(using: &round.random, times: 2, largest: 30_000_000)
      for number in 0..<6 {
        do {
          // New archives at first, then such as are appended to.
          if number < 3 { try account.remove() }
          let writing = Background(4) { number in
            Thread.sleep(forTimeInterval: Double(number) * 0.01)
            let result = try account.command.run(account.line(number % 2))
            // A late writer finds another one there, or the name taken. Which of two revisions gets
            // in first is chance; the older one after the newer is a rollback.
            if ![0, 12, 73].contains(result.status) { throw Unexpected(result.errors) }
            return result.status
          }
          let statuses = writing.results
          writers += statuses.count
          refused += statuses.count { $0 == 73 }
          guard writing.errors.isEmpty else { throw Unexpected("\(writing.errors)") }
          guard statuses.contains(where: { $0 != 73 }) else {
            throw Unexpected("no writer is let in")
          }
          try account.expect("\(account.program) verify -q a.car.zst", [0, 12])
          guard account.folder.names().filter({ $0.hasSuffix(".partial") }).isEmpty else {
            throw Unexpected("something is left beside the archive")
          }
        } catch {
          Issue.record("\(round), number \(number): \(error)")
        }
      }
    }
    Torture.report(counts: "\(writers) writers, \(refused) of which found another there")
    #expect(writers > 20 && refused > 0)
  }
}
