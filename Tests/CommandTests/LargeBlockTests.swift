import ArchiveTestSupport
import Foundation
import IPLD
import Repository
import Snapshots
import SystemPackage
import TestSupport
import Testing

/// Records and tree nodes far longer than any that an app writes: an account may make them.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `A repository with a long block` {
  private let folder: TemporaryFolder
  private let command: Command
  private static let key = "com.example.note/long"

  init() throws {
    folder = try TemporaryFolder()
    command = try Command(in: folder)
  }

  /// Runs commands, which all end with this status.
  private func expect(_ status: Int32, _ lines: [String]) throws {
    for line in lines {
      let result = try command.run("carpack \(line)")
      #expect(result.status == status, "\(line): \(result.errors)")
    }
  }

  /// A repository with a record of this many bytes and some more.
  private func repository(record length: Int, image: [UInt8]? = nil) throws -> TestRepository {
    var repository = try TestRepository(posts: 3, revision: 1)
    var record: IPLDMap = [
      "$type": .string("com.example.note"), "text": .string("needle"),
      "data": .bytes([UInt8](repeating: 7, count: length)),
    ]
    record["image"] = image.map {
      .map([
        "$type": .string("blob"), "ref": .link(.blob($0)), "mimeType": .string("image/png"),
        "size": .integer(Int128($0.count)),
      ])
    }
    try repository.add(Self.key, record)
    return repository
  }

  /// What reads one record, and what reads them all.
  private func readers(of record: String) -> [String] {
    [
      "verify a.car.zst", "ls a.car.zst", "find needle a.car.zst", "stats a.car.zst",
      "cat a.car.zst \(record)", "cat --raw a.car.zst \(record)", "log a.car.zst \(record)",
      "prove a.car.zst \(record) -o proof.car", "diff a.car.zst 1 2",
      "extract a.car.zst \(record) -d one", "extract a.car.zst -d all",
      "extract --car a.car.zst -o out.car", "export a.car.zst --csv tables",
      "repair a.car.zst", "compact a.car.zst -o b.car.zst", "verify b.car.zst",
    ]
  }

  @Test(arguments: [5, 20]) func `can be read by every verb`(mebibytes: Int) throws {
    try folder.write("blobs/1", CommandFixture.image)
    try folder.write("1.car", try TestRepository(posts: 3).car())
    let car = try repository(record: mebibytes << 20, image: CommandFixture.image).car()
    try folder.write("2.car", car)
    try expect(
      0,
      [
        "inspect 2.car", "pack -q 1.car -o a.car.zst",
        "pack -q 2.car --blobs blobs -o a.car.zst",
      ] + readers(of: Self.key))
    #expect(try folder.read("out.car") == car)
    let proof = try command.run("carpack verify-proof proof.car")
    #expect(proof.status == 10 && proof.text.contains(Self.key), "\(proof.errors)")
    // With the blob that the record refers to.
    let files = try command.run("find one -type f").text
    #expect(files.contains("long.json") && files.contains(".png"), "\(files)")
  }

  @Test func `can be read by every verb if the block is a tree node`() throws {
    var repository = try TestRepository(posts: 3)
    try folder.write("1.car", try repository.car())
    try repository.advance()
    // Keys that share no beginnings; three in four of them are in the lowest layer, whose nodes are
    // short only where others come between.
    let rest = String(repeating: "-", count: 220)
    var paths: [String] = []
    for number in 0..<30_000 where paths.count < 18_500 {
      let path = "com.example.note/\(number)\(rest)"
      guard SHA256.digest(of: Array(path.utf8).span).bytes[0] >= 0x40 else { continue }
      paths.append(path)
      try repository.add(path, ["text": .string("needle")])
    }
    for post in 0..<3 { repository.remove("app.bsky.feed.post/3k\(1_000_000 + post)") }
    #expect(try repository.blocks().contains { $0.bytes.count > 4 << 20 })
    try folder.write("2.car", try repository.car())
    try expect(
      0,
      ["inspect 2.car", "pack -q 1.car -o a.car.zst", "pack -q 2.car -o a.car.zst"]
        + readers(of: paths[4711]))
  }

  @Test func `is refused where it comes in if the block is over the limit`() throws {
    try folder.write("1.car", try TestRepository(posts: 3).car())
    try folder.write("2.car", try repository(record: RepositoryLimits.block).car())
    for line in ["inspect 2.car", "pack 2.car -o new.car.zst"] {
      let result = try command.run("carpack \(line)")
      #expect(result.status == 13 && result.errors.contains("67108864"), "\(result.errors)")
    }
    try expect(0, ["pack -q 1.car -o a.car.zst"])
    let before = try folder.read("a.car.zst")
    try expect(13, ["pack 2.car -o a.car.zst"])
    #expect(try folder.read("a.car.zst") == before)
    #expect(try command.run("ls").text == "1.car\n2.car\na.car.zst\n")
    // One that is damaged, too, is damaged.
    var bytes = try folder.read("2.car")
    bytes[bytes.count / 2] ^= 1
    try folder.write("2.car", bytes)
    try expect(11, ["inspect 2.car", "pack 2.car -o a.car.zst"])
  }

  @Test func `takes a blob over the limit, which is no block of a repository`() throws {
    let blob = [UInt8](repeating: 5, count: RepositoryLimits.block + 1)
    var repository = try TestRepository(posts: 3)
    try repository.add("app.bsky.feed.post/large", blob: .blob(blob), size: blob.count)
    repository.strays = [Block(cid: .blob(blob), bytes: blob)]
    try folder.write("1.car", try repository.car())
    try expect(0, ["inspect 1.car", "pack -q 1.car -o a.car.zst", "verify a.car.zst"])
  }

  @Test func `is read from an archive that took it in before there was a limit`() throws {
    let repository = try repository(record: RepositoryLimits.block)
    let inspection = try RepositoryInspection(car: repository.car())
    let made = try handMadeArchive(in: folder, repository) {
      $0.counts = Snapshot.Counts(inspection)
    }
    try FileManager.default.moveItem(atPath: made.string, toPath: folder.file("a.car.zst"))
    var later = repository
    try later.advance()
    later.remove(Self.key)
    try folder.write("2.car", try later.car())
    try expect(0, ["pack -q 2.car -o a.car.zst"])
    try expect(
      0,
      [
        "verify a.car.zst", "ls a.car.zst --at 1", "find needle a.car.zst",
        "log a.car.zst \(Self.key)", "diff a.car.zst 1 2",
        "extract a.car.zst \(Self.key) --at 1 -d one", "extract --car a.car.zst --at 1 -o out.car",
        "export a.car.zst --at 1 --csv tables", "compact a.car.zst -o b.car.zst",
        "verify b.car.zst",
      ])
    #expect(try folder.read("out.car") == repository.car())
    for verb in ["cat a.car.zst", "prove -o proof.car a.car.zst"] {
      let result = try command.run("carpack \(verb) \(Self.key) --at 1")
      #expect(result.status == 13 && result.errors.contains("67108864"), "\(result.errors)")
    }
    #expect(try !command.run("ls").text.contains("proof.car"))
  }
}
