import Foundation
import StandIn
import TestSupport
import Testing

@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `carpack resolve` {
  private static let handle = "alice.example.com"

  private let account: StandInAccount
  private let server: StandInPDS
  private let command: Command

  init() throws {
    account = try StandInAccount("alice", handle: Self.handle)
    server = try StandInPDS(accounts: [account])
    command = try Command(in: TemporaryFolder())
  }

  private func run(_ arguments: String) throws -> Command.Result {
    defer { server.clearFaults() }
    return try command.run("carpack resolve \(arguments) \(servers)")
  }

  private var servers: String {
    "--plc \(server.url) --dns \(server.url) --pin \(Self.handle):\(server.server.port):127.0.0.1 --attempts 1"
  }

  @Test func `says who, where, signed with what, and who said so`() throws {
    for name in [Self.handle, "@\(Self.handle)", account.did, "at://\(account.did)/a.b.c/d"] {
      let result = try run(name)
      #expect(result.status == 0)
      #expect(result.errors == "")
      let source = "           from \(server.url)/\(account.did)"
      let lines: [String] = [
        account.did, "  handle   \(Self.handle), both ways",
        "           from DNS TXT _atproto.\(Self.handle)", "  server   \(server.url)", source,
        "  key      did:key:\(account.key.multikey), k256", source,
      ]
      #expect(result.text == lines.map { $0 + "\n" }.joined())
    }
    server.stop()
  }

  @Test func `writes JSON`() throws {
    struct Answer: Decodable {
      let did: String
      let handle: String?
      let pds: String?
      let signingKey: String?
      let sources: [String: String?]
      let warnings: [String]
    }
    let result = try run("\(account.did) --json")
    #expect(result.status == 0)
    let answer = try JSONDecoder().decode(Answer.self, from: Data(result.output))
    #expect(answer.did == account.did)
    #expect(answer.handle == Self.handle)
    #expect(answer.pds == server.url)
    #expect(answer.signingKey == "did:key:\(account.key.multikey)")
    #expect(answer.sources["document"] == "\(server.url)/\(account.did)")
    #expect(answer.warnings.isEmpty)
    server.stop()
  }

  @Test func `says what is left of an account that was deleted`() throws {
    let directory = try LoopbackServer { _, response in
      response.status = 404
      try response.send("DID not available")
    }
    let result = try command.run("carpack resolve \(account.did) --plc \(directory.url)")
    #expect(result.status == 69)
    #expect(result.errors.contains("\(account.did) was deleted"), "\(result.errors)")
    #expect(result.errors.contains("hint: an archive keeps what it has"), "\(result.errors)")
    server.stop()
  }

  @Test func `takes servers from the environment`() throws {
    let result = try command.start(
      "carpack resolve \(account.did)",
      environment: [
        "ATP_PLC_HOST": server.url, "CARPACK_DNS_URL": server.url + "/",
        "CARPACK_PINS": "\(Self.handle):\(server.server.port):127.0.0.1",
        "CARPACK_PDS_URL": "https://pds.example.com",
      ]
    ).wait()
    #expect(result.status == 0)
    #expect(
      result.text.contains("  server   https://pds.example.com\n           set by the user\n"))
    server.stop()
  }

  @Test(arguments: [
    "alice.example.com:PORT:127.0.0.1\nb.test:1:10.0.0.1",
    "b.test:1:10.0.0.1,alice.example.com:PORT:127.0.0.1",
    "b.test:1:10.0.0.1,10.0.0.2 alice.example.com:PORT:127.0.0.1",
  ])
  func `takes several pins from the environment`(_ pins: String) throws {
    server.setTextRecords([], for: Self.handle)
    let result = try command.start(
      "carpack resolve \(Self.handle) --plc \(server.url) --dns \(server.url)",
      environment: ["CARPACK_PINS": pins.replacing("PORT", with: "\(server.server.port)")]
    ).wait()
    #expect(result.status == 0, "\(result.errors)")
    #expect(result.text.hasPrefix(account.did))
    let odd = try command.start(
      "carpack resolve \(Self.handle)", environment: ["CARPACK_PINS": "alice.test"]
    ).wait()
    #expect(odd.status == 64)
    #expect(odd.errors.contains("CARPACK_PINS"))
    server.stop()
  }

  @Test func `ends with 12 when handle and account contradict each other`() throws {
    let other = try StandInAccount("eve", handle: "eve.example.com")
    server.add(other)
    server.setTextRecords(["did=\(other.did)"], for: Self.handle)
    server.setWellKnown(other.did, for: Self.handle)
    let fromHandle = try run(Self.handle)
    #expect(fromHandle.status == 12)
    #expect(fromHandle.text.contains("  claims   eve.example.com"))
    #expect(
      fromHandle.errors
        == "carpack: warning: alice.example.com leads to the account, which goes by eve.example.com\n"
    )
    let fromDID = try run(account.did)
    #expect(fromDID.status == 12)
    #expect(fromDID.errors.contains("which leads to \(other.did)"))
    server.setTextRecords([], for: Self.handle)
    server.setWellKnown("", for: Self.handle)
    #expect(try run(account.did).status == 12)
    server.setDocument(#"{"id": "\#(other.did)"}"#, for: account.did)
    let foreign = try run(account.did)
    #expect(foreign.status == 12)
    #expect(foreign.errors.contains("is the DID document of \(other.did)"))
    server.stop()
  }

  @Test func `ends with 10 when the account names no server or no key`() throws {
    server.setDocument(
      #"{"id": "\#(account.did)", "alsoKnownAs": ["at://\#(Self.handle)"]}"#, for: account.did)
    let result = try run(account.did)
    #expect(result.status == 10)
    #expect(result.text.contains("  server   none"))
    #expect(result.text.contains("  key      none"))
    #expect(result.errors.contains("names no signing key"))
    #expect(result.errors.contains("names no server"))
    server.stop()
  }

  @Test func `says in words what a server answers to a handle that it does not know`() throws {
    let result = try command.run(
      "carpack resolve nobody.example.com --resolver \(server.url) --plc \(server.url) --attempts 1"
    )
    #expect(result.status == 69, "\(result.errors)")
    #expect(result.errors.contains("HandleNotFound: Unable to resolve handle"), "\(result.errors)")
    #expect(!result.errors.contains("{"), "\(result.errors)")
    #expect(result.errors.contains("hint: check the spelling"), "\(result.errors)")
    server.stop()
  }

  @Test func `ends with 69 when there is no such account`() throws {
    let never = try run("did:plc:ewvi7nxzyoun6zhxrhs64oiz")
    #expect(never.status == 69)
    #expect(never.errors.hasSuffix("did:plc:ewvi7nxzyoun6zhxrhs64oiz was not found\n"))
    server.setTextRecords([], for: Self.handle)
    server.setWellKnown("", for: Self.handle)
    #expect(try run(Self.handle).status == 69)
    server.stop()
  }

  @Test func `ends with 75 when trying again may help, and with 13 when it was led astray`() throws
  {
    server.play(FaultRule(.status(503), on: account.did))
    #expect(try run(account.did).status == 75)
    server.play(FaultRule(.status(500), on: "dns-query"))
    server.setWellKnown("", for: Self.handle)
    let silent = try run(account.did)
    #expect(silent.status == 75)
    #expect(silent.errors.contains("was not confirmed"))
    server.play(
      FaultRule(.redirect(status: 302, to: "http://169.254.169.254/latest"), on: account.did))
    #expect(try run(account.did).status == 13)
    server.stop()
  }

  @Test func `ends with 130 when it is interrupted, without waiting for the server`() throws {
    server.play(FaultRule(.silent, on: account.did))
    let running = try command.start("carpack resolve \(account.did) \(servers)")
    while server.server.connectionCount == 0, running.isRunning { usleep(10_000) }
    running.signal(SIGINT)
    let result = try running.wait()
    #expect(result.status == 130)
    #expect(result.text == "")
    server.stop()
  }
}
