import ArchiveTestSupport
import Foundation
import IPLD
import TestSupport
import Testing

/// Verbs on a disk without room, and the same verbs when there is some.
@Suite(
  .enabled(if: Command.path != nil, Comment(rawValue: Command.absence)),
  .enabled(if: Command.canMount, "unshare is not allowed here"))
struct `A disk that is full` {
  /// Two snapshots with more pictures and records than fit, and a repository that is their CAR.
  private static let archive = Result {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    var repository = try TestRepository(posts: 1200)
    var random = SeededGenerator(seed: 0xf011)
    for number in 0..<12 {
      let picture = SampleFile.png("picture \(number)") + random.bytes(40_000)
      try folder.write("blobs/\(number)", picture)
      try repository.add(
        "app.bsky.feed.post/picture\(number)", blob: .blob(picture), size: picture.count)
    }
    for rev in ["3lscuqc52or2x", "3lscuqc52or3x"] {
      repository.rev = rev
      try repository.add("app.bsky.feed.like/\(rev)", ["n": .integer(1)])
      try folder.write("repo.car", try repository.car())
      let packed = try command.run("carpack pack -q repo.car --blobs blobs -o a.car.zst")
      #expect(packed.status == 0, "\(packed.errors)")
    }
    return (archive: try folder.read("a.car.zst"), car: try folder.read("repo.car"))
  }

  /// The result of a command.
  private typealias Outcome = (status: Int32, text: String, errors: String)
  /// What it came to without room, and then with some.
  private typealias Runs = (full: Outcome, roomy: Outcome)

  private let folder: TemporaryFolder
  private let command: Command

  init() throws {
    folder = try TemporaryFolder()
    command = try Command(in: folder)
    try folder.write("a.car.zst", try Self.archive.get().archive)
    try folder.write("repo.car", try Self.archive.get().car)
    try FileManager.default.createDirectory(
      atPath: folder.file("small"), withIntermediateDirectories: false)
  }

  /// Runs a command with a file system of a size at `small`, and again when that has room.
  private func run(_ line: String, _ again: String? = nil, size: String, check: String = "true")
    throws -> Runs
  {
    let script = """
      mount -t tmpfs -o size=\(size) none small || exit 99
      \(line) > first.out 2> first.err; echo $? > first.status
      mount -o remount,size=100m small || exit 98
      \(again ?? line) > second.out 2> second.err; echo $? > second.status
      \(check) || exit 97
      """
    try folder.write("script", Array(script.utf8))
    let all = try command.run("unshare -rm sh ./script")
    #expect(all.status == 0, "\(all.text)\(all.errors)")
    func outcome(_ name: String) throws -> Outcome {
      func text(_ ending: String) throws -> String {
        String(decoding: try folder.read("\(name).\(ending)"), as: UTF8.self)
      }
      return (
        Int32(try text("status").filter(\.isNumber)) ?? -1, try text("out"), try text("err")
      )
    }
    return (try outcome("first"), try outcome("second"))
  }

  private func expectNoRoom(_ runs: Runs, _ what: String, _ status: Int32 = 0) {
    let said = runs.full.text + runs.full.errors
    #expect(runs.full.status == 74, "\(what): \(said)")
    #expect(runs.full.errors.contains("full") || runs.full.errors.contains("No space"), "\(said)")
    for word in ["damaged", "lost", "incomplete"] { #expect(!said.contains(word), "\(said)") }
    #expect(runs.roomy.status == status, "\(what): \(runs.roomy.text)\(runs.roomy.errors)")
  }

  @Test(arguments: ["-o out.car", "-d out"])
  func `for temporary files does not keep a CAR from its file`(_ output: String) throws {
    let line = "TMPDIR=$PWD/small carpack extract --car a.car.zst --overwrite \(output)"
    let runs = try run(line, size: "16k", check: "find out* -name '*.car' -exec cmp repo.car {} +")
    #expect(runs.full.status == 0 && runs.roomy.status == 0, "\(runs.full.errors)")
  }

  @Test(
    arguments: [
      "verify a.car.zst", "extract --all -d out a.car.zst", "extract --car -o - a.car.zst",
      "ls a.car.zst", "stats a.car.zst", "find zzz a.car.zst", "missing a.car.zst",
      "export --csv out a.car.zst", "export --html out a.car.zst",
      "export --sqlite out.db a.car.zst", "compact a.car.zst -o out.car.zst",
      "merge a.car.zst -o out.car.zst", "repair a.car.zst -o out.car.zst",
      "inspect - < repo.car", "pack - -o out.car.zst < repo.car",
    ])
  func `for temporary files is no damage, and the next run does all of it`(_ verb: String) throws {
    for size in ["16k", "64k"] {
      let line = "TMPDIR=$PWD/small carpack \(verb)"
      let runs = try run(line, line.replacing("-d out", with: "-d all"), size: size)
      // A text that is in no record, and blobs that are not given.
      let status: Int32 = verb.hasPrefix("find") ? 66 : verb.hasPrefix("pack") ? 10 : 0
      expectNoRoom(runs, "\(verb) with \(size)", status)
      for name in ["out", "out.car", "out.db", "out.car.zst", "all"] {
        try? FileManager.default.removeItem(atPath: folder.file(name))
      }
    }
  }

  @Test(arguments: ["8k", "100k", "700k"])
  func `for what is extracted leaves a folder that the next run completes`(_ size: String) throws {
    let runs = try run(
      "carpack extract a.car.zst -d small/out", size: size,
      check: "(cd small/out/* && sha256sum --quiet -c carpack-extracted.sha256)")
    expectNoRoom(runs, size)
  }

  @Test(arguments: ["4k", "8k", "100k", "700k"])
  func `for a database is no damage, and the next run completes it`(_ size: String) throws {
    let runs = try run("carpack export --sqlite small/a.db --json a.car.zst", size: size)
    expectNoRoom(runs, size)
    let whole = try command.run("carpack export --sqlite a.db --json a.car.zst")
    #expect(runs.roomy.text.contains("\"newSnapshots\":2,"))
    #expect(runs.roomy.text.replacing("small/", with: "") == whole.text)
  }

  @Test(arguments: ["--csv", "--html"], ["8k", "60k", "120k"])
  func `for other exports is no damage`(_ kind: String, _ size: String) throws {
    let line = "carpack export \(kind) small/out a.car.zst"
    expectNoRoom(try run(line, "\(line) --force", size: size), "\(kind) \(size)")
  }
}

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A database that was made of a damaged archive` {
  @Test func `is said to be so until the archive is repaired, and completed then`() throws {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    try folder.write("repo.car", try TestRepository(posts: 1500).car())
    #expect(try command.run("carpack pack -q repo.car -o a.car.zst").status == 0)
    let intact = try folder.read("a.car.zst")
    try folder.write("copy.car.zst", intact)
    var bytes = intact
    for place in 2000..<2100 { bytes[place] ^= 0x55 }
    try folder.write("a.car.zst", bytes)
    for _ in 0..<2 {
      let damaged = try command.run("carpack export --sqlite a.db a.car.zst")
      #expect(damaged.status == 11, "\(damaged.text)\(damaged.errors)")
    }
    #expect(try command.run("carpack repair a.car.zst --from copy.car.zst").status == 0)
    let repaired = try command.run("carpack export --sqlite a.db --json a.car.zst")
    #expect(repaired.status == 0, "\(repaired.text)\(repaired.errors)")
    let whole = try command.run("carpack export --sqlite b.db --json copy.car.zst").text
    func figures(_ text: String) -> Substring { text[text.range(of: "\"records\"")!.lowerBound...] }
    #expect(figures(repaired.text) == figures(whole))
    #expect(try command.run("carpack export --sqlite a.db a.car.zst").status == 0)
  }
}
