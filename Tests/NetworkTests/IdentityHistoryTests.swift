import Archive
import Foundation
import IPLD
import Snapshots
import StandIn
import SystemPackage
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The history of an account` {
  private static let fixture = "\(Command.packageRoot)/Fixtures/alice"

  private static let line =
    "carpack pack -q \(fixture)/alice.car --blobs \(fixture)/blobs --did-document \(fixture)/did-document.json"

  private func packed() throws -> (TemporaryFolder, Command) {
    let folder = try TemporaryFolder()
    let command = try Command(in: folder)
    let result = try command.run(
      "\(Self.line) --plc-log \(Self.fixture)/plc-audit-log.json -o a.car.zst")
    #expect(result.status == 0, "\(result.errors)")
    return (folder, command)
  }

  private static func log() throws -> String {
    try String(contentsOfFile: "\(fixture)/plc-audit-log.json", encoding: .utf8)
  }

  @Test func `is shown of an archive without asking anybody`() throws {
    let (_, command) = try packed()
    let text = try command.run("carpack identity a.car.zst")
    #expect(text.status == 0, "\(text.errors)")
    #expect(text.text.contains("each checked back to the first"), "\(text.text)")
    #expect(text.text.contains("alice.example.com") && text.text.contains("rotation did:key:"))
    let json = try command.run("carpack identity --json a.car.zst")
    #expect(OutputSchema.faults(in: json.text).isEmpty)
    #expect(json.text.contains(#""proven":true,"faults":[]"#))
  }

  @Test(arguments: [
    (#""sig":""#, #""sig":"A"#), ("https://pds.example.com", "https://evil.example.com"),
    ("\"nullified\":false", "\"nullified\":true"),
  ])
  func `does not hold if one byte of it is another`(_ old: String, _ new: String) throws {
    let log = try Self.log().replacingOccurrences(of: "\": ", with: "\":")
    let changed = log.replacingOccurrences(of: old, with: new)
    try #require(changed != log)
    let (folder, command) = try packed()
    try folder.write("log.json", Array(changed.utf8))
    let refused = try command.run("\(Self.line) --plc-log log.json -o b.car.zst")
    #expect(refused.status == 12, "\(refused.errors)")
    #expect(!folder.names(under: ".").contains("b.car.zst"))
    try ReplacedLog.write(Array(changed.utf8), to: folder.file("a.car.zst"))
    let result = try command.run("carpack identity a.car.zst")
    #expect(result.status == 12, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("not genuine: did:plc:"), "\(result.errors)")
    let json = try command.run("carpack identity --json a.car.zst")
    #expect(OutputSchema.faults(in: json.text + json.errors).isEmpty)
  }

  @Test func `is asked of the directory where no archive is named`() throws {
    let scene = try NetworkScene(posts: 2, blobs: 0)
    let result = try scene.command.run("carpack identity \(scene.account.did) \(scene.flags)")
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text.contains("each checked back to the first"), "\(result.text)")
    #expect(scene.requestCount == 0)
  }
}

/// An archive with another PLC log than `pack` takes, as another program may write it.
enum ReplacedLog {
  /// Adds a snapshot that says what the newest one says, except for the log.
  static func write(_ log: [UInt8], to path: String) throws {
    let head = try #require(try ArchiveReader(path: FilePath(path)).generation.head?.cid)
    var snapshot = try ArchivedSnapshot(head, in: ArchiveReader(path: FilePath(path))).snapshot
    let cid = CID(codec: .raw, hashing: log.span)
    (snapshot.plcLog, snapshot.previous) = (cid, head)
    let manifest = try snapshot.encode()
    let manifestCID = CID(codec: .dagCBOR, hashing: manifest.span)
    var writer = try ArchiveWriter.reopen(FileStorage.open(FilePath(path)))
    try writer.append(cid, log.span)
    try writer.append(manifestCID, manifest.span)
    _ = try writer.commit(manifest: manifestCID)
  }
}
