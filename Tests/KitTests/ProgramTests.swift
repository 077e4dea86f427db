import CarpackKit
import Foundation
import TestSupport
import Testing

@Suite struct `The programs of the overview` {
  private static let archive = "\(Command.packageRoot)/Fixtures/archives/one.car.zst"

  @Test func `list every record`() async throws {
    let snapshot = try Archive(path: Self.archive).snapshot()
    #expect(try await listRecords(of: Self.archive) == snapshot.snapshot.counts.records)
    var paths: [String] = []
    for try await record in snapshot.records {
      paths.append(record.path)
      #expect(record.json != nil)
      let value = try record.value()
      #expect(value["$type"] != nil)
      let known = try snapshot.record(record.path)
      #expect(known?.bytes == record.bytes && known?.cid == record.cid)
    }
    #expect(paths == paths.sorted())
  }

  @Test func `save the pictures, and say which are missing`() throws {
    let folder = try TemporaryFolder()
    let snapshot = try Archive(path: Self.archive).snapshot()
    let missing = try savePictures(of: Self.archive, into: folder.path)
    let pictures = try snapshot.blobs().filter { $0.mimeType?.hasPrefix("image/") == true }
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(!names.isEmpty && names.count + missing.count == pictures.count)
    for name in names {
      let cid = CID.blob(try folder.read(name))
      #expect("\(cid)" == name)
    }
  }

  @Test func `check a CAR`() throws {
    let folder = try TemporaryFolder()
    var repository = try TestRepository(posts: 12)
    try folder.write("repo.car", try repository.car())
    #expect(try check(folder.file("repo.car")).hasSuffix("all 12 records; they refer to 0 blobs"))
    var bytes = try repository.car()
    bytes[bytes.count - 3] ^= 1
    try folder.write("repo.car", bytes)
    #expect(try check(folder.file("repo.car")).hasSuffix("is damaged"))
    let last = try repository.blocks().last
    repository.omitted = Set([last?.cid].compactMap(\.self))
    try folder.write("repo.car", try repository.car())
    #expect(try check(folder.file("repo.car")).contains("missing"))
  }

  @Test func `stop at a record that is not there`() async throws {
    let path = "\(Command.packageRoot)/Fixtures/archives/one.car.zst"
    let folder = try TemporaryFolder()
    var bytes = try Array(Data(contentsOf: URL(filePath: path)))
    for index in 200..<400 { bytes[index] ^= 0xff }
    try folder.write("damaged.car.zst", bytes)
    await #expect(throws: (any Error).self) {
      _ = try await listRecords(of: folder.file("damaged.car.zst"))
    }
  }

  @Test(arguments: [
    ("ListRecords", "CarpackKit"), ("SavePictures", "CarpackKit"), ("CheckCAR", "CarpackKit"),
    ("LatestCommit", "XRPC"), ("BackUp", "Backup"),
  ])
  func `are the code that is tested`(_ name: String, of module: String) throws {
    func text(_ path: String) throws -> String {
      try String(contentsOf: URL(filePath: "\(Command.packageRoot)/\(path)"), encoding: .utf8)
    }
    let code = try text("Tests/KitTests/Programs/\(name).swift")
    #expect(code.split(separator: "\n").count <= 20)
    let article = try text("Sources/\(module)/\(module).docc/\(module).md")
    #expect(article.contains("```swift\n\(code)```"))
  }
}
