import ATProtocol
import Archive
import ArchiveTestSupport
import Foundation
import IPLD
import Repository
import SystemPackage
import TestSupport
import Testing

@testable import Extraction
@testable import Snapshots

@Suite struct `Tables of records` {
  private func export(
    _ packed: Packed, replacing: Bool = false
  ) throws -> (tables: [CSVExporter.Table], contents: LaidOutRepository) {
    let snapshot = try ArchivedSnapshot.newest(in: ArchiveReader(path: packed.path))
    return try CSVExporter.export(
      snapshot, to: FilePath(packed.folder.file("tables")), replacing: replacing,
      observer: { _ in })
  }

  private func table(_ packed: Packed, _ name: String) throws -> String {
    String(decoding: try packed.folder.read("tables/\(name)"), as: UTF8.self)
  }

  @Test(arguments: [
    ("plain", "plain"), ("", ""), ("a,b", "\"a,b\""), ("say \"no\"", "\"say \"\"no\"\"\""),
    ("two\nlines", "\"two\nlines\""), ("=1+1", "'=1+1"), ("+44", "'+44"), ("-3", "'-3"),
    ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'\t=1"), ("\r=1", "\"'\r=1\""),
    ("=HYPERLINK(\"x\",1)", "\"'=HYPERLINK(\"\"x\"\",1)\""), ("1=1", "1=1"),
  ])
  func `have cells that no spreadsheet takes for anything else`(_ text: String, _ cell: String) {
    #expect(String(decoding: CSVExporter.row([text, "b"]), as: UTF8.self) == "\(cell),b\r\n")
  }

  @Test func `have a row for each record, and columns by what it is`() throws {
    var repository = TestRepository()
    func add(_ path: String, _ json: String) throws {
      try repository.add(path, #require(DataModelJSON.decode(Array(json.utf8)).map))
    }
    try add(
      "app.bsky.feed.post/3lkxag2qhdc2b",
      """
      {"$type": "app.bsky.feed.post", "text": "=a, \\"b\\"\\nc", "langs": ["en", "de"],
       "createdAt": "2025-01-02T03:04:05.000Z",
       "reply": {"parent": {"uri": "at://p"}, "root": {"uri": "at://r"}},
       "embed": {"$type": "app.bsky.embed.recordWithMedia",
        "media": {"$type": "app.bsky.embed.images", "images": [
         {"alt": "one", "image": {"$type": "blob", "ref": {"$link": "\(CID.blob([1]))"},
          "mimeType": "image/png", "size": 1}},
         {"alt": "two", "image": {"cid": "\(CID.blob([2]))", "mimeType": "image/png"}}]},
        "record": {"record": {"uri": "at://q", "cid": "x"}}}}
      """)
    try add(
      "app.bsky.feed.like/3lkxag2qhdc2b", #"{"subject": {"uri": "at://liked", "cid": "c"}}"#)
    try add("com.example.other/1", #"{"deep": [1, 2]}"#)
    repository.add("com.example.other/2", bytes: [0xff])
    let packed = try Packed(car: try repository.car())
    let report = try export(packed)
    #expect(
      report.tables.map { "\($0.name) \($0.rows)" } == [
        "app.bsky.feed.like.csv 1", "app.bsky.feed.post.csv 1", "com.example.other.csv 2",
      ])
    #expect(report.contents.tree.missingRecordCount == 0 && report.contents.flaw == nil)
    let posts = try table(packed, "app.bsky.feed.post.csv")
    #expect(
      posts.hasPrefix(
        "uri,cid,created,text,langs,reply_to,reply_root,quote,link,alt_texts,media,tags,labels\r\n")
    )
    #expect(
      posts.hasSuffix(
        ",2025-01-02T03:04:05.000Z,\"'=a, \"\"b\"\"\nc\",en de,at://p,at://r,at://q,,\"one\ntwo\",\(CID.blob([1])) \(CID.blob([2])),,\r\n"
      ), "\(posts)")
    #expect(try table(packed, "app.bsky.feed.like.csv").hasSuffix(",at://liked,c\r\n"))
    let others = try table(packed, "com.example.other.csv").components(separatedBy: "\r\n")
    #expect(others.count == 4 && others[1].hasSuffix("\"{\"\"deep\"\":[1,2]}\""), "\(others)")
    // Neither the record nor its key has a time.
    #expect(others[1].contains(",,"), "\(others)")
    #expect(others[2].contains("com.example.other/2") && others[2].hasSuffix(","), "\(others)")
  }

  @Test func `replace nothing unless they are told to`() throws {
    let packed = try Packed(car: try TestRepository(posts: 3).car())
    _ = try export(packed)
    let name = "app.bsky.feed.post.csv"
    try packed.folder.write("tables/\(name)", Array("mine".utf8))
    #expect(throws: (any Error).self) { try export(packed) }
    #expect(try table(packed, name) == "mine")
    _ = try export(packed, replacing: true)
    #expect(try table(packed, name).components(separatedBy: "\r\n").count == 5)
    #expect(packed.folder.names(under: "tables").allSatisfy { $0.hasSuffix(name) })
  }

  @Test func `name the records that are missing`() throws {
    var repository = try TestRepository(posts: 5)
    let last = try repository.blocks().last
    repository.omitted = Set([last?.cid].compactMap(\.self))
    let packed = try Packed(car: try repository.car())
    let report = try export(packed)
    #expect(report.contents.tree.missingRecordCount == 1 && report.tables.first?.rows == 5)
  }
}
