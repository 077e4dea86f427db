import ATProtocol
import Archive
import ArchiveTestSupport
import IPLD
internal import Repository
import Snapshots
import TestSupport
import Testing

/// What a list of a snapshot's records is made of.
@Suite struct `The blocks of a snapshot` {
  /// A repository with records of every kind.
  private static func repository() throws -> TestRepository {
    var repository = try TestRepository(posts: 120)
    try repository.add("a.b.c/blob", blob: .blob([1, 2, 3]), size: 3)
    let long = String(repeating: "a record with frames of its own ", count: 5000)
    try repository.add("a.b.c/long", ["text": .string(long)])
    for length in [79, 80, 81, 127, 128, 16_300, 16_350] {
      try repository.add("a.b.c/l\(length)", ["t": .string(String(repeating: "x", count: length))])
    }
    for key in ["one", "two"] { try repository.add("a.b.same/\(key)", ["x": .integer(1)]) }
    repository.add("a.b.c/odd", bytes: [0xff])
    repository.strays = [Block(cid: .blob([9]), bytes: [9])]
    return repository
  }

  @Test(arguments: [false, true])
  func `are the records that the inspector finds, and as long`(keepsRecords: Bool) throws {
    let repository = try Self.repository()
    let car = try repository.car()
    let packed = try Packed(car: car)
    var expected: [String] = []
    let file = try CARFile(MappedFile(copying: car))
    let inspection = RepositoryInspection(of: file) { record in
      let key = String(decoding: record.key, as: UTF8.self)
      let length = record.number.map { number in file.withBody(number) { $0.count } }
      expected.append("\(key) \(record.cid) \(length ?? -1)")
    }
    var found: [String] = []
    let blocks = SnapshotBlocks(try packed.snapshot, keepsRecords: keepsRecords)
    let contents = try blocks.contents { record, body in
      let key = String(decoding: record.key, as: UTF8.self)
      found.append("\(key) \(record.cid) \(record.length.map { Int($0) } ?? -1)")
      guard keepsRecords else { return }
      #expect(body.array == repository.records[record.key])
    }
    #expect(found == expected)
    #expect(contents.flaw == nil)
    #expect(contents.tree.isComplete)
    #expect(contents.blobs.entries.map(\.cid) == inspection.blobs.entries.map(\.cid))
    #expect(
      contents.blobs.entries.map(\.firstRecord) == inspection.blobs.entries.map(\.firstRecord))
  }

  @Test(arguments: ["app.bsky.feed.post/3k1000050", "a.b.c/long"])
  func `are all but the one that does not hash to its CID in a frame that holds`(path: String)
    throws
  {
    let repository = try Self.repository()
    let spoilt = try #require(repository.cid(of: path))
    var bytes = try #require(repository.records[Array(path.utf8)])
    bytes[bytes.count - 1] ^= 1
    let folder = try TemporaryFolder()
    let archive = try handMadeArchive(in: folder, repository, spoilt: (spoilt, bytes))
    var missing: [String] = []
    var count = 0
    let blocks = SnapshotBlocks(try .newest(in: ArchiveReader(path: archive)))
    let contents = try blocks.contents { record, _ in
      count += 1
      if record.length == nil { missing.append(String(decoding: record.key, as: UTF8.self)) }
    }
    #expect(contents.flaw?.contains("\(spoilt)") == true)
    #expect(missing == [path])
    #expect(count == repository.records.count)
  }

  @Test func `are fewer or more than the manifest says, and that is a flaw`() throws {
    for difference in [-1, 1] {
      let folder = try TemporaryFolder()
      let path = try handMadeArchive(in: folder, TestRepository(posts: 20)) { snapshot in
        snapshot.car.byteCount = UInt64(Int(snapshot.car.byteCount) + difference)
      }
      let contents = try SnapshotBlocks(.newest(in: ArchiveReader(path: path))).contents()
      #expect(contents.flaw?.contains("not those in the manifest") == true)
      #expect(contents.tree.isComplete)
    }
  }
}
