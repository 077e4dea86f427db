import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `The exit status of a backup` {
  private static let handle = "alice.example.com"

  private let scene: NetworkScene

  init() throws {
    scene = try NetworkScene([StandInAccount("alice", posts: 3, blobs: 2)])
  }

  /// Backs up by the handle, which only DNS and the handle's own website know.
  private func backUpByHandle(_ more: String = "") throws -> Command.Result {
    let url = scene.server.url
    return try scene.command.run(
      "carpack backup \(Self.handle) --plc \(url) --dns \(url) --pin \(Self.handle):\(scene.server.server.port):127.0.0.1 --attempts 1 -o a.car.zst \(more)"
    )
  }

  private func expectNothingMade() { #expect(scene.folder.names().isEmpty) }

  @Test(arguments: ["--ca-file no-such-file", "--ca-file ."])
  func `is 66 for certificates that cannot be read, before anything is asked`(_ more: String)
    throws
  {
    let result = try scene.backUp(more)
    #expect(result.status == 66, "\(result.errors)")
    #expect(result.errors.contains("--ca-file"))
    #expect(scene.server.server.log.isEmpty)
    expectNothingMade()
  }

  @Test(arguments: ["CARPACK_CA_FILE", "SSL_CERT_FILE"])
  func `is 66 for certificates that the environment names and are not there`(_ name: String) throws
  {
    let result = try scene.command.start(scene.line(), environment: [name: "no-such-file"]).wait()
    #expect(result.status == 66, "\(result.errors)")
    #expect(result.errors.contains(name))
    #expect(scene.server.server.log.isEmpty)
  }

  @Test func `is 66 for a file of certificates that has none`() throws {
    _ = try scene.folder.write("ca.pem", [UInt8]("not a certificate".utf8))
    let result = try scene.backUp("--ca-file ca.pem")
    #expect(result.status == 66, "\(result.errors)")
    #expect(result.errors.contains("no certificate in ca.pem"))
    #expect(scene.server.server.log.isEmpty)
  }

  @Test(arguments: [
    "http://10.0.0.1/x", "https://169.254.169.254/", "https://printer.local/",
    "http://pds.example.com/",
  ])
  func `is 13 for a handle that leads to a private address or to plain http`(_ target: String)
    throws
  {
    scene.server.setTextRecords([], for: Self.handle)
    scene.server.play(FaultRule(.redirect(status: 302, to: target), on: "atproto-did"))
    let result = try backUpByHandle("--pin pds.example.com:80:8.8.8.8")
    #expect(result.status == 13, "\(result.errors)")
    #expect(result.errors.contains("refused to follow"))
    expectNothingMade()
  }

  @Test(arguments: ["http://10.0.0.1/x", "https://intranet/", "http://pds.example.com/"])
  func `is 13 for a DID document, and for a repository, that lead there`(_ target: String) throws {
    for endpoint in [scene.account.did, "getRepo"] {
      scene.server.play(FaultRule(.redirect(status: 302, to: target), on: endpoint))
      let result = try scene.backUp("--pin pds.example.com:80:8.8.8.8 --attempts 1")
      #expect(result.status == 13, "\(result.errors)")
      #expect(result.errors.contains("refused to follow"))
      scene.server.clearFaults()
    }
  }

  @Test(arguments: ["did:web:10.0.0.1", "did:web:printer.local"])
  func `is 13 for a did:web of a private network`(_ did: String) throws {
    let result = try scene.command.run("carpack backup \(did) --attempts 1")
    #expect(result.status == 13, "\(result.errors)")
    expectNothingMade()
  }

  @Test(arguments: [
    ("https://10.0.0.1", "not on the public internet"),
    ("https://pds.internal", "not on the public internet"),
    ("https://pds", "not on the public internet"),
    ("http://pds.example.com", "http is used for servers on this machine only"),
    ("https://pds.example.com/path", "must be a scheme, a host"), ("nonsense", "not an https URL"),
    ("ftp://pds.example.com", "not an https URL"),
  ])
  func `is 13 for a server that may not be asked, and the reason is named`(
    _ endpoint: String, _ reason: String
  ) throws {
    scene.account.endpoint = endpoint
    let result = try scene.backUp("--attempts 1")
    #expect(result.status == 13, "\(result.errors)")
    #expect(result.errors.contains("\"\(endpoint)\""), "\(result.errors)")
    #expect(result.errors.contains(reason), "\(result.errors)")
    #expect(scene.requestCount(of: "getLatestCommit") == 0)
    expectNothingMade()
    // Another one can be named.
    #expect(try scene.backUp("--pds \(scene.server.url)").status == 0)
  }

  @Test func `is 10 where a server's list has entries that name no account`() throws {
    let json = #"{"repos":[{"did":"nobody \u001b[2J"},{"did":"x"}],"cursor":"1"}"#
    let other = try LoopbackServer { [server = scene.server] request, response in
      guard request.path.hasSuffix("listRepos") else {
        response.status = 302
        response.fields = [("Location", server.url + request.target)]
        return try response.send()
      }
      let account = server.accounts[0]
      try response.send(
        request.parameter("cursor") == nil
          ? json : #"{"repos":[{"did":"\#(account.did)","head":"\#(account.head)"}]}"#)
    }
    let line =
      "carpack backup --all --pds \(other.url) --plc \(scene.server.url) --resolver \(scene.server.url) -o out/"
    let result = try scene.command.run(line)
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    #expect(result.errors.contains("names no account"))
    #expect(!result.errors.contains("\u{1b}[2J"))
    #expect(result.text.contains("2 malformed in the list"), "\(result.text)")
    #expect(try scene.folder.read("out/\(Self.handle).car.zst").count > 0)
    let json2 = try scene.command.run("\(line) --json")
    #expect(json2.status == 10)
    #expect(json2.text.contains(#""event":"malformed""#))
    #expect(json2.text.contains(#""malformed":2"#))
  }
}
