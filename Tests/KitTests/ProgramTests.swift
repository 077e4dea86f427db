import CarpackKit
import Foundation
import StandIn
import SystemPackage
import TestSupport
import Testing

@testable import KitPrograms

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

  @Test func `stop at a record that is not there, and go no further`() async throws {
    let folder = try TemporaryFolder()
    var bytes = try Array(Data(contentsOf: URL(filePath: Self.archive)))
    for index in 200..<400 { bytes[index] ^= 0xff }
    try folder.write("damaged.car.zst", bytes)
    let path = folder.file("damaged.car.zst")
    await #expect(throws: ArchiveError.self) { _ = try await listRecords(of: path) }
    var records = try Archive(path: path).snapshot().records.makeAsyncIterator()
    do {
      while let record = try await records.next() { #expect(!record.bytes.isEmpty) }
      Issue.record("nothing is damaged")
    } catch is ArchiveError {
      #expect(try await records.next() == nil)
    }
  }

  @Test func `print every path`() async throws {
    try await printPaths(of: Self.archive)
  }

  @Test func `ask where an account stands, and back it up`() async throws {
    let account = try StandInAccount("alice", posts: 3, blobs: 2)
    let server = try StandInPDS(accounts: [account])
    var options = NetworkOptions(userAgent: "tests")
    options.plcDirectory = server.url
    options.handleResolver = server.url
    options.allowsLoopback = true
    let did = try DID(account.did)
    #expect(try await latestCommit(of: did, at: server.url, with: options).cid == account.head)
    // Requests go to this machine only if the program says so.
    await #expect(throws: (any Error).self) { try await latestCommit(of: did, at: server.url) }
    let folder = try TemporaryFolder()
    #expect(try await backUp(.did(did), into: FilePath(folder.path), with: options))
    let archive = try Archive(path: folder.file("alice.example.com.car.zst"))
    #expect(try archive.snapshot(of: "alice.example.com").snapshot.commit == account.head)
    #expect(try archive.snapshot("1", of: account.did).snapshot.did == did)
    #expect(throws: (any Error).self) { try archive.snapshot(of: "bob.example.com") }
    #expect(try archive.verify().verdict == .intact)
  }

  @Test func `hand over a blob in pieces, and no more at once than is asked for`() throws {
    let snapshot = try Archive(path: Self.archive).snapshot()
    var held = 0
    for blob in try snapshot.blobs() {
      var pieces: [UInt8] = []
      let isHeld = try snapshot.readBlob(blob.cid) { pieces += $0.array }
      #expect(try snapshot.blob(blob.cid) == (isHeld ? pieces : nil))
      guard isHeld else { continue }
      held += 1
      #expect(CID.blob(pieces) == blob.cid)
      #expect(throws: ArchiveError.self) {
        try snapshot.blob(blob.cid, limit: pieces.count - 1)
      }
    }
    #expect(held > 0)
  }

  @Test(arguments: [
    ("ListRecords", "Sources/CarpackKit/CarpackKit.docc/ReadAnArchive.md"),
    ("SavePictures", "Sources/CarpackKit/CarpackKit.docc/ReadAnArchive.md"),
    ("CheckCAR", "Sources/CarpackKit/CarpackKit.docc/CheckACAR.md"),
    ("LatestCommit", "Sources/CarpackKit/CarpackKit.docc/BackUpAnAccount.md"),
    ("BackUp", "Sources/CarpackKit/CarpackKit.docc/BackUpAnAccount.md"),
    ("PrintPaths", "Sources/CarpackKit/CarpackKit.docc/CarpackKit.md"),
    ("PrintPaths", "README.md"),
  ])
  func `are the code that is tested`(_ name: String, in article: String) throws {
    func text(_ path: String) throws -> String {
      try String(contentsOf: URL(filePath: "\(Command.packageRoot)/\(path)"), encoding: .utf8)
    }
    let code = try text("Tests/KitPrograms/\(name).swift")
    #expect(code.split(separator: "\n").count <= 20)
    #expect(try text(article).contains("```swift\n\(code)```"))
  }
}
