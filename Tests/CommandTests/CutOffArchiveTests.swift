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

  private var older: String { "a.car.zst is older than it was: when carpack last wrote to it," }

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

  /// Puts the state with one snapshot back over the file, as `cp` and `rsync --inplace` do.
  private func putBack(_ bytes: [UInt8]) throws {
    let file = try FileHandle(forUpdating: URL(filePath: folder.file("a.car.zst")))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: Data(bytes))
    try file.close()
  }

  /// What "carpack log" says of the newest snapshot of an archive: its manifest and its time.
  private func newest(of file: String) throws -> (head: String, time: String) {
    let lines = try command.run("carpack info --json \(file)").text
    func value(_ name: String) throws -> String {
      let start = try #require(lines.range(of: "\"\(name)\":\"")).upperBound
      return String(lines[start...].prefix { $0 != "\"" })
    }
    return (try value("archiveHead"), try value("createdAt"))
  }

  @Test func `is whole to what reads it, and said to be older by what judges it`() throws {
    guard hasAttributes else { return }
    for verb in ["status", "verify", "log", "ls"] {
      #expect(try command.run("carpack \(verb) a.car.zst").status == 0)
    }
    let was = try newest(of: "a.car.zst")
    try cutOff()
    let readers = [
      "log a.car.zst", "ls a.car.zst", "info a.car.zst", "find post a.car.zst", "stats a.car.zst",
      "missing a.car.zst", "cat a.car.zst app.bsky.feed.like/0",
      "extract a.car.zst --car -o out.car", "export a.car.zst --csv out",
    ]
    for line in readers {
      let result = try command.run("carpack \(line)")
      #expect(result.status == 0, "\(line): \(result.errors)")
      let said = result.errors.components(separatedBy: "is an older copy of what carpack").count - 1
      #expect(said == 1, "\(line): \(result.errors)")
    }
    for verb in ["status", "verify"] {
      let result = try command.run("carpack \(verb) a.car.zst")
      #expect(result.status == 10, "\(verb): \(result.errors)")
      for part in ["it held 2 snapshots", was.head, was.time, "bytes longer"] {
        #expect(result.errors.contains(part), "\(verb), \(part): \(result.errors)")
      }
    }
    let status = try command.run("carpack status --json a.car.zst").text
    #expect(status.contains(#""bytesLost":\#(lengths[1] - lengths[0])"#), "\(status)")
    for verb in ["prune --keep-last 1", "compact", "protect --parity 5"] {
      let result = try command.run("carpack \(verb) a.car.zst")
      #expect(
        result.status == 10 && result.errors.contains("error: \(older)"), "\(result.errors)")
    }
    let repaired = try command.run("carpack repair a.car.zst")
    #expect(
      repaired.status == 10 && repaired.errors.contains("warning: \(older)"),
      "\(repaired.errors)")
    for verb in ["status", "verify", "repair", "log"] {
      let result = try command.run("carpack \(verb) a.car.zst")
      #expect(result.status == 0 && !result.errors.contains("older"), "\(result.errors)")
    }
  }

  @Test func `is the same where an older copy was written over the file`() throws {
    guard hasAttributes else { return }
    let whole = try folder.read("a.car.zst")
    try putBack(Array(whole.prefix(lengths[0])))
    #expect(try command.run("carpack ls a.car.zst").status == 0)
    let verified = try command.run("carpack verify a.car.zst")
    #expect(verified.status == 10 && verified.errors.contains("it held 2 snapshots"))
    // The newer file put back again has lost nothing.
    try putBack(whole)
    let again = try command.run("carpack verify a.car.zst")
    #expect(again.status == 0 && !again.errors.contains("older"), "\(again.errors)")
    // Nor has a longer one.
    #expect(try command.run("carpack pack -q repo.car --blobs . -o b.car.zst").status != 64)
    try folder.write("longer.car.zst", whole)
    #expect(try command.run("carpack prune longer.car.zst --keep-last 1").status == 0)
    try putBack(try folder.read("longer.car.zst"))
    #expect(try command.run("carpack verify a.car.zst").status == 0)
  }

  @Test func `is not extended in silence, nor forgotten by what extends it`() throws {
    guard hasAttributes else { return }
    let was = try newest(of: "a.car.zst")
    try cutOff()
    for _ in 0..<2 {
      let packed = try command.run("carpack pack -q repo.car -o a.car.zst")
      #expect(
        packed.status == 10 && packed.errors.contains("incomplete: \(older)"), "\(packed.errors)")
    }
    let verified = try command.run("carpack verify a.car.zst")
    #expect(verified.status == 10 && verified.errors.contains(was.head), "\(verified.errors)")
    #expect(try command.run("carpack ls a.car.zst").status == 0)
  }

  @Test func `that was cut through is damaged as before`() throws {
    guard hasAttributes else { return }
    let whole = try folder.read("a.car.zst")
    for length in [lengths[1] - 1, lengths[1] - 100, lengths[0] + 200, lengths[0] - 30] {
      try putBack(Array(whole.prefix(length)))
      for verb in ["verify", "ls", "status"] {
        let result = try command.run("carpack \(verb) a.car.zst")
        #expect(result.status == 11, "\(length), \(verb): \(result.errors)")
        #expect(
          result.errors.contains("a.car.zst has lost \(lengths[1] - length) bytes"),
          "\(length), \(verb): \(result.errors)")
      }
    }
  }

  @Test func `is not one from which an unfinished write was cut off`() throws {
    try folder.write("a.car.zst", try folder.read("a.car.zst") + [UInt8](repeating: 0, count: 999))
    for (verb, status) in [("verify", 10), ("repair", 0), ("verify", 0)] as [(String, Int32)] {
      let result = try command.run("carpack \(verb) a.car.zst")
      #expect(result.status == status && !result.errors.contains("has lost"), "\(result.errors)")
    }
  }

  @Test func `is older, and no more, whatever was noted`() throws {
    guard hasAttributes else { return }
    let path = FilePath(folder.file("a.car.zst"))
    let (most, head) = (UInt64.max, try newest(of: "a.car.zst").head)
    let notes = [
      "\(most) \(most)", "\(most) 0", "0 \(most)", "\(most) 0 \(head) - 3",
      "\(most) 0 \(head) \u{1b}[2J 3", "\(most) 0 \(head) 2026 -1",
      "\(most) 0 \(head) 2026 \(Int.max)",
      "\(most) 0 \(String(repeating: "b", count: 190)) 2026-01-01T00:00:00Z 7",
    ]
    for note in notes {
      #expect(FileAttribute(name: "user.carpack.size").write(note, to: path))
      for (verb, status) in [
        ("ls", 0), ("verify", 10), ("status", 10), ("repair", 10), ("verify", 0),
      ] as [(String, Int32)] {
        let result = try command.run("carpack \(verb) a.car.zst")
        #expect(result.status == status, "\(note), \(verb): \(result.errors)")
        #expect(!result.errors.contains("\u{1b}[2J"))
      }
    }
    // What cannot be read says nothing.
    for note in [
      "", "x", "1", "-1 -1", "9999999 0 bafy", "9999999 0 a b c d", "99999999999999999999 0",
    ] {
      #expect(FileAttribute(name: "user.carpack.size").write(note, to: path))
      #expect(try command.run("carpack verify a.car.zst").status == 0, "\(note)")
    }
    // And it can be appended to all the same.
    #expect(FileAttribute(name: "user.carpack.size").write("0 0 \(head) 2026 \(Int.max)", to: path))
    try folder.write("repo.car", try TestRepository(posts: 9).car())
    #expect(try command.run("carpack pack -q repo.car -o a.car.zst").status != 132)
  }

  @Test func `is an archive like others where it was copied`() throws {
    try cutOff()
    try folder.write("copy.car.zst", try folder.read("a.car.zst"))
    #expect(try command.run("carpack verify copy.car.zst").status == 0)
  }
}
