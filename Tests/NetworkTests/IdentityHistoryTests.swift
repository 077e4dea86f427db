import Foundation
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The history of an account` {
  private static let fixture = "\(Command.packageRoot)/Fixtures/alice"

  private func packed(_ log: String) throws -> (TemporaryFolder, Command) {
    let folder = try TemporaryFolder()
    try folder.write("log.json", Array(log.utf8))
    let command = try Command(in: folder)
    let result = try command.run(
      "carpack pack -q \(Self.fixture)/alice.car --blobs \(Self.fixture)/blobs --plc-log log.json"
        + " --did-document \(Self.fixture)/did-document.json -o a.car.zst")
    #expect(result.status == 0, "\(result.errors)")
    return (folder, command)
  }

  private static func log() throws -> String {
    try String(contentsOfFile: "\(fixture)/plc-audit-log.json", encoding: .utf8)
  }

  @Test func `is shown of an archive without asking anybody`() throws {
    let (_, command) = try packed(Self.log())
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
    let (_, command) = try packed(changed)
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
