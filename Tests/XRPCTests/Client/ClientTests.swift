import ATProtocol
import IPLD
import StandIn
import Synchronization
import Testing

@testable import HTTP
@testable import XRPC

@Suite struct `a call` {
  private let did: DID
  private let cid = CID(codec: .raw, hashing: [1, 2, 3].span)

  init() throws { did = try DID("did:plc:abcdefghijklmnopqrstuvwx") }

  private func client(_ script: @escaping ScriptedTransport.Script) -> (
    XRPCClient, ScriptedNetwork
  ) {
    let scripted = ScriptedNetwork({ _ in }, script)
    return (XRPCClient(service: "https://pds.test/", network: scripted.network), scripted)
  }

  private func answering(_ status: Int, _ body: String) -> XRPCClient {
    client { _, _ in (status, [], Array(body.utf8)) }.0
  }

  @Test func `asks as the lexicon says`() async throws {
    let (client, scripted) = client { _, _ in (200, [], Array("{\"cids\":[]}".utf8)) }
    _ = try await client.call(
      .listBlobs(did, since: try TID("2222222223d22"), limit: 500, cursor: "a b&c=é"))
    #expect(
      scripted.transport.log.first?.url
        == "https://pds.test/xrpc/com.atproto.sync.listBlobs?did=did%3Aplc%3Aabcdefghijklmnopqrstuvwx&since=2222222223d22&limit=500&cursor=a%20b%26c%3D%C3%A9"
    )
  }

  @Test func `reads a commit`() async throws {
    let output = try await answering(200, "{\"cid\":\"\(cid)\",\"rev\":\"3jzfcijpj2z2a\"}").call(
      .getLatestCommit(did))
    #expect(output.cid == cid)
    #expect(output.rev.text == "3jzfcijpj2z2a")
  }

  @Test(arguments: [("\"12\"", "12"), ("12", "12"), ("null", nil), ("\"\"", nil)])
  func `reads cursors that are text or numbers`(json: String, cursor: String?) async throws {
    let output = try await answering(200, "{\"cids\":[\"\(cid)\"],\"cursor\":\(json)}").call(
      .listBlobs(did))
    #expect(output == ListPage(entries: [cid], cursor: cursor))
  }

  @Test(arguments: ["true", "false", "[]", "{}", "[\"1\"]"])
  func `refuses a cursor of another kind`(json: String) async throws {
    let error = await #expect(throws: XRPCError.self) {
      _ = try await answering(200, "{\"repos\":[],\"cursor\":\(json)}").call(.listRepos())
    }
    #expect(error?.fault == "its cursor is not a text")
  }

  @Test(arguments: [(1, "x", "x"), (1, nil, nil), (2, "x", "x"), (2, "", "2"), (2, nil, "2")])
  func `continues a full page of blobs without a cursor behind its last one`(
    count: Int, given: String?, cursor: String?
  ) async throws {
    let cids = (1...count).map { CID(codec: .raw, hashing: [UInt8($0)].span) }
    let list = cids.map { "\"\($0)\"" }.joined(separator: ",")
    let field = given.map { ",\"cursor\":\"\($0)\"" } ?? ""
    let output = try await answering(200, "{\"cids\":[\(list)]\(field)}").call(
      .listBlobs(did, limit: 2))
    #expect(output == ListPage(entries: cids, cursor: cursor == "2" ? "\(cids[1])" : cursor))
  }

  @Test func `keeps the good of a list that has something else in it`() async throws {
    let output = try await answering(200, "{\"cids\":[\"odd\",\"\(cid)\",7]}").call(
      .listBlobs(did))
    #expect(output == ListPage(entries: [cid], malformed: ["odd", ""]))
    let repos = try await answering(
      200,
      "{\"repos\":[{\"did\":\"\(did)\",\"head\":\"\(cid)\",\"rev\":\"3jzfcijpj2z2a\"},{\"did\":\"x\"}],\"cursor\":5}"
    ).call(.listRepos())
    #expect(repos.entries.map(\.did) == [did])
    #expect(repos.entries.first?.active == true)
    #expect(repos.malformed == ["x"])
    #expect(repos.cursor == "5")
  }

  @Test func `gives a declared error as a case`() async throws {
    let error = await #expect(throws: XRPCError.self) {
      _ = try await answering(
        400, "{\"error\":\"RepoDeactivated\",\"message\":\"Repo has been deactivated\"}"
      )
      .call(.getLatestCommit(did))
    }
    #expect(error?.declared(RepoError.self) == .deactivated)
    #expect(
      error?.description
        == "com.atproto.sync.getLatestCommit at pds.test: status 400, RepoDeactivated: Repo has been deactivated"
    )
    #expect(error?.mayPass == false)
  }

  @Test func `keeps an error that is not declared`() async throws {
    let error = await #expect(throws: XRPCError.self) {
      _ = try await answering(400, "{\"error\":\"InvalidRequest\",\"message\":\"Blob not found\"}")
        .bytes(.getBlob(cid, of: did), limit: 100)
    }
    #expect(error?.declared(RepoError.self) == nil)
    #expect(error?.name == "InvalidRequest")
    #expect(error?.message == "Blob not found")
  }

  @Test(arguments: [
    (404, "Could not find repo for DID"), (500, "Internal Server Error"),
    (401, "unauthorized"), (404, "<html><body><h1>404</h1></body></html>"),
    (400, "{\"message\":\"x\"}"),
    (400, ""), (400, "{\"error\":7}"),
  ])
  func `shows an error that is not JSON as it came`(status: Int, body: String) async throws {
    let error = await #expect(throws: XRPCError.self) {
      _ = try await answering(status, body).call(.getLatestCommit(did))
    }
    #expect(error?.status == status)
    #expect(error?.name == nil)
    #expect(error?.excerpt == body)
    #expect(error?.attempts == (status == 500 ? 6 : 1))
  }

  @Test(arguments: [
    (403, "text/html", "<!DOCTYPE html><title>Just a moment…</title>", true),
    (503, "text/html; charset=utf-8", " \r\n<HTML><body>", true),
    (200, "text/plain", "<html>", true),
    (511, "text/html", "<!-- sign in -->", true), (401, "text/html", "<?xml version='1.0'?>", true),
    (403, "application/xml", "<?xml version='1.0'?>", false),
    (403, "text/html", #"{"error":"AuthMissing"}"#, false), (404, "text/html", "<html>", false),
    (403, "text/html", "", false),
  ])
  func `tells a page for browsers from a server's refusal`(
    status: Int, type: String, body: String, isPage: Bool
  ) async throws {
    let (client, _) = client { _, _ in
      (status, [(name: "content-type", value: type)], Array(body.utf8))
    }
    let error = await #expect(throws: XRPCError.self) {
      _ = try await client.call(.getLatestCommit(did), attempts: 1)
    }
    #expect(error?.isPage == isPage)
    #expect(error?.description.contains("a page for a browser stands before the server") == isPage)
    #expect(error?.mayPass == (isPage || status == 503))
  }

  @Test func `shows the page that came instead of an answer`() async throws {
    let page =
      "<!DOCTYPE html>\n<html>\n  <title>Welcome to the café</title>\u{1b}[2J\u{202e}"
      + String(repeating: "x", count: 9000)
    let error = await #expect(throws: XRPCError.self) {
      _ = try await answering(200, page).call(.getLatestCommit(did))
    }
    let text = try #require(error?.description)
    #expect(
      text.contains(
        "<!DOCTYPE html> <html> <title>Welcome to the café</title>\\u{1b}[2J\\u{202e}xxx"))
    #expect(text.unicodeScalars.allSatisfy { $0.value >= 0x20 })
    #expect(text.count < 600)
    #expect(error?.status == 200)
    #expect(error?.fault?.hasPrefix("it is not JSON") == true)
  }

  @Test(arguments: [
    "{}", "[]", "null", "{\"cid\":7,\"rev\":\"3jzfcijpj2z2a\"}",
    "{\"cid\":\"x\",\"rev\":\"3jzfcijpj2z2a\"}",
    "{\"cid\":\"bafkreibwwv27vj2jy4rzv6tvb4w5nasxxsr5ysqqf6tdpqrknqkeuykhgu\"}",
  ])
  func `refuses an answer that lacks what it is about`(body: String) async throws {
    let error = await #expect(throws: XRPCError.self) {
      _ = try await answering(200, body).call(.getLatestCommit(did))
    }
    #expect(error?.fault != nil)
    #expect(error?.mayPass == false)
  }

  @Test func `streams bytes of any media type`() async throws {
    let (client, scripted) = client { _, _ in
      (200, [(name: "content-type", value: "text/html")], [1, 2, 3])
    }
    let (type, bytes) = try await client.stream(.getRepo(did), isCompressed: true) { response in
      (response["content-type"], try await response.read())
    }
    #expect(type == "text/html")
    #expect(bytes == [1, 2, 3])
    #expect(try await client.bytes(.getBlob(cid, of: did), limit: 3) == [1, 2, 3])
    #expect(scripted.transport.log.map(\.acceptsCompression) == [true, false])
  }

  @Test func `reads no more than an answer may have`() async throws {
    await #expect(throws: TransportError.self) {
      _ = try await answering(
        200, "{\"cids\":[\"" + String(repeating: "x", count: 2 << 20) + "\"]}"
      ).call(
        .listBlobs(did))
    }
  }
}

@Suite struct `an excerpt` {
  @Test(arguments: [
    ("a\r\n\tb   c ", "a b c"), ("\u{0}\u{7f}\u{9b}", "\\u{0}\\u{7f}\\u{9b}"),
    ("\u{feff}x", "\\u{feff}x"),
    ("naïve 😀", "naïve 😀"), ("", ""),
  ])
  func `is one line without control characters`(text: String, shown: String) {
    #expect(Excerpt.of(text) == shown)
  }

  @Test func `is short`() {
    #expect(Excerpt.of(String(repeating: "x", count: 100_000)).count == 201)
    #expect(Excerpt.of(String(repeating: "\u{1}", count: 100_000)).count < 300)
    #expect(Excerpt.of([0xff, 0xfe, 0x41]) == "\u{fffd}\u{fffd}A")
  }

  @Test func `is what errors show of texts that are not theirs`() throws {
    let text = "a\u{202e}b\u{1b}[2J"
    let shown = "a\\u{202e}b\\u{1b}[2J"
    #expect(IdentityError.excerpt(Array(text.utf8)) == "\"\(shown)\"")
    #expect(throws: TransportError(.unusableURL, url: "x://\(shown)")) {
      try HTTPURL("x://\(text)?query")
    }
    var reception = try Reception(of: HTTPURL("https://pds.test"))
    let line = Array("HTTP/\(text)\r\n".utf8)
    let error = #expect(throws: TransportError.self) { try reception.takeLine(line.span) }
    #expect(error?.reason == .malformedAnswer("it begins with 'HTTP/\(shown)'"))
  }
}

@Suite struct `a secret` {
  @Test(arguments: [
    ("a door", "a door"), ("key key.", "… …."), ("key\u{301}", "…\u{301}"), ("", ""),
    ("\u{1f1e6}key\u{fe0f}", "\u{1f1e6}…\u{fe0f}"),
  ])
  func `is taken out of a text, whatever follows it`(text: String, shown: String) {
    #expect(Secret("key").removed(from: text) == shown)
  }

  @Test func `of no letters takes nothing out`() { #expect(Secret("").removed(from: "a") == "a") }
}
