import ATProtocol
import Foundation
import HTTP
import IPLD
import TestSupport
import Testing

/// Backing up from a server of another project, and through a proxy that spoils its answers.
@Suite(
  .enabled(if: Command.path != nil, Comment(rawValue: Command.absence)),
  .enabled(if: Peers.arePresent, Comment(rawValue: Peers.absence)))
struct `Backing up from a server of another project` {
  private let folder: TemporaryFolder
  private let command: Command

  init() throws {
    folder = try TemporaryFolder()
    command = try Command(in: folder)
  }

  private static func get(_ url: String) async throws -> [UInt8] {
    var options = NetworkOptions(userAgent: "carpack tests")
    // Addresses on loopback are for servers that the user names.
    options.pds = Peers.pds
    options.plcDirectory = Peers.directory
    return try await Network(options).get(url, limit: 64 << 20).1
  }

  private static func did() async throws -> String {
    String(decoding: try await get("\(Peers.directory)/.well-known/atproto-did"), as: UTF8.self)
      .trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Backs up the account by way of a server.
  private func backUp(_ did: String, from server: String, _ more: String = "") throws
    -> Command.Result
  {
    try command.run(
      "carpack backup \(did) --plc \(Peers.directory) --resolver \(Peers.pds) --pds \(server)"
        // The handles that these servers give their accounts do not resolve.
        + " --accept handle"
        + " -o archive.car.zst \(more)")
  }

  /// Expects the archive to hold what the server itself gives.
  private func expectWhole(_ did: String) async throws {
    let verified = try command.run("carpack verify archive.car.zst")
    #expect(verified.status == 0, "\(verified.text)\(verified.errors)")
    let extracted = try command.run("carpack extract --all -d out archive.car.zst")
    #expect(extracted.status == 0, "\(extracted.errors)")
    let names = folder.names(under: "out")
    let car = try #require(names.first { $0.hasSuffix(".car") })
    let served = try await Self.get("\(Peers.pds)/xrpc/com.atproto.sync.getRepo?did=\(did)")
    #expect(try folder.read("out/\(car)") == served)
    let blobs = names.filter { $0.contains("/blobs/") }
    #expect(blobs.count == 12)
    for name in blobs {
      let bytes = try folder.read("out/\(name)")
      let given = try await Self.get(
        "\(Peers.pds)/xrpc/com.atproto.sync.getBlob?did=\(did)&cid=\(CID.blob(bytes))")
      #expect(bytes == given)
    }
  }

  @Test func `brings the CAR bit for bit, and every blob`() async throws {
    let did = try await Self.did()
    let result = try backUp(did, from: Peers.pds)
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try await expectWhole(did)
    let bytes = try folder.read("archive.car.zst")
    let again = try backUp(did, from: Peers.pds)
    #expect(again.status == 0, "\(again.text)\(again.errors)")
    #expect(try folder.read("archive.car.zst") == bytes)
  }

  @Test(
    .enabled(if: Peers.haveFaults, Comment(rawValue: Peers.absenceOfFaults)),
    arguments: ["slow", "429", "flaky", "redir"])
  func `gets through`(_ fault: String) async throws {
    let did = try await Self.did()
    let result = try backUp(did, from: "\(Peers.faults)/\(fault)", "--attempts 10")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try await expectWhole(did)
  }

  @Test(
    .enabled(if: Peers.haveFaults, Comment(rawValue: Peers.absenceOfFaults)),
    arguments: [("down", 75), ("drop", 75), ("moved", 69), ("html", 69)] as [(String, Int32)])
  func `says that there is nothing to be had`(_ fault: String, _ status: Int32) async throws {
    let result = try backUp(
      try await Self.did(), from: "\(Peers.faults)/\(fault)", "--attempts 2")
    #expect(result.status == status, "\(result.text)\(result.errors)")
    #expect(!folder.names().contains("archive.car.zst"))
  }
}
