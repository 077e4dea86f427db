import ATProtocol
import HTTP
import Testing
import XRPC

@Suite struct `Looking up a DID` {
  private static let url = "https://plc.directory/\(Sample.did)"

  private func resolver(_ fetcher: FakeFetcher, options: NetworkOptions = Sample.options())
    -> DIDResolver
  {
    DIDResolver(options, fetcher: fetcher)
  }

  private func failure(_ answer: FakeFetcher.Answer) async throws -> IdentityError? {
    await #expect(throws: IdentityError.self) {
      try await resolver(FakeFetcher([Self.url: answer])).document(of: DID(Sample.did))
    }
  }

  @Test func `finds the document in the directory, with one request`() async throws {
    let fetcher = FakeFetcher([Self.url: .body(Sample.document())])
    let (bytes, document) = try await resolver(fetcher).document(of: DID(Sample.did))
    #expect(bytes == Array(Sample.document().utf8))
    #expect(document.pds == "https://pds.bar")
    #expect(fetcher.asked == [Self.url])
  }

  @Test func `finds the log in the directory that the user set`() async throws {
    let url = "http://127.0.0.1:2582/\(Sample.did)/log/audit"
    let fetcher = FakeFetcher([url: .body("[]")])
    let options = Sample.options { $0.plcDirectory = "http://127.0.0.1:2582" }
    #expect(
      try await resolver(fetcher, options: options).plcLog(of: DID(Sample.did)) == Array("[]".utf8))
  }

  @Test func `finds the log without times, too`() async throws {
    let fetcher = FakeFetcher(["\(Self.url)/log": .body("[]")])
    let log = try await resolver(fetcher).untimedPLCLog(of: DID(Sample.did))
    #expect(log == Array("[]".utf8))
    #expect(fetcher.asked == ["\(Self.url)/log"])
  }

  @Test func `does not take somebody else's document`() async throws {
    let error = try await failure(.body(Sample.document(Sample.other)))
    #expect(error == .otherDocument(try DID(Sample.did), found: try DID(Sample.other)))
    #expect(error?.kind == .notGenuine)
  }

  @Test func `tells what never was from what was given up`() async throws {
    let did = try DID(Sample.did)
    #expect(
      try await failure(.body(#"{"message": "DID not registered: x"}"#, status: 404))
        == .didNotFound(did))
    #expect(try await failure(.body("", status: 404)) == .didNotFound(did))
    #expect(
      try await failure(.body(#"{"message": "DID not available: x"}"#, status: 404))
        == .didGone(did))
    #expect(try await failure(.body("", status: 410)) == .didGone(did))
  }

  @Test(
    arguments: [
      (.body("<html><body>Please log in</body></html>"), .unavailable),
      (.body("", status: 200), .unavailable), (.body("{}"), .unavailable),
      (.body("no", status: 403), .unavailable), (.body("oops", status: 500), .temporary),
      (.body("later", status: 429), .temporary), (.failure(.unknownHost), .temporary),
      (.failure(.stalled(seconds: 60)), .temporary),
      (.failure(.refusedAddress("10.0.0.1")), .refused),
      (.failure(.tooManyRedirects), .refused), (.failure(.notSecure("expired")), .unavailable),
      (.body(#"{"id": "\#(Sample.did)"}"# + String(repeating: " ", count: 300_000)), .refused),
    ] as [(FakeFetcher.Answer, IdentityError.Kind)])
  func `says what came instead`(_ answer: FakeFetcher.Answer, _ kind: IdentityError.Kind)
    async throws
  {
    let error = try await failure(answer)
    #expect(error?.kind == kind)
    #expect(error?.description.isEmpty == false)
    if case .body(let text, _) = answer, text.hasPrefix("<html>") {
      #expect(error?.description.contains("Please log in") == true)
    }
  }

  @Test func `shows what came without control characters, and briefly`() async throws {
    let text = "\u{1b}[2J\u{9b}31m" + String(repeating: "x", count: 5000)
    let error = try #require(try await failure(.body(text, status: 403)))
    #expect(
      !error.description.unicodeScalars.contains { $0.properties.generalCategory == .control })
    #expect(error.description.utf8.count < 500)
  }

  @Test(
    arguments: [
      ("did:web:example.com", "https://example.com/.well-known/did.json"),
      ("did:web:Sub.Example.com", "https://sub.example.com/.well-known/did.json"),
    ])
  func `asks the host of a did:web`(_ did: String, _ url: String) throws {
    #expect(try resolver(FakeFetcher()).documentURL(of: DID(did)) == url)
  }

  @Test(
    arguments: [
      ("did:web:localhost%3A2583", "http://localhost:2583/.well-known/did.json"),
      ("did:web:127.0.0.1%3a2583", "http://127.0.0.1:2583/.well-known/did.json"),
      ("did:web:localhost", "http://localhost/.well-known/did.json"),
    ])
  func `asks this machine only when the user works with it`(_ did: String, _ url: String) throws {
    let options = Sample.options { $0.plcDirectory = "http://127.0.0.1:2582" }
    #expect(try resolver(FakeFetcher(), options: options).documentURL(of: DID(did)) == url)
    #expect(throws: IdentityError.privateHost(try DID(did))) {
      try resolver(FakeFetcher()).documentURL(of: DID(did))
    }
  }

  @Test(arguments: ["did:web:10.0.0.1", "did:web:192.168.1.1%3A8080", "did:web:169.254.169.254"])
  func `refuses a did:web of a network of one's own`(_ text: String) async throws {
    let fetcher = FakeFetcher()
    let did = try DID(text)
    let error = await #expect(throws: IdentityError.self) {
      try await resolver(fetcher).document(of: did)
    }
    #expect(error == .privateHost(did))
    #expect(error?.kind == .refused)
    #expect(fetcher.asked.isEmpty)
  }

  @Test(arguments: [
    "did:key:zQ3she4kaQ448PnMgnWLrDxKj4fnLBeQbp8NZxEzET5EF28vf", "did:plc:short",
    "did:plc:EWVI7NXZYOUN6ZHXRHS64OIZ", "did:plc:ewvi7nxzyoun6zhxrhs64oi1",
    "did:web:example.com:user", "did:web:example.com%3A8080", "did:web:example.com%2Fx",
    "did:web:8.8.8.8", "did:web:2130706433", "did:web:example", "did:web:a..b", "did:web:-",
    "did:web:127.0.0.1%3A2583%3A1", "did:web:localhost%3A2583:x", "did:web:localhost%3Ax",
    "did:web:example.com%3A443",
  ])
  func `asks nobody about a DID that no account has`(_ text: String) async throws {
    let fetcher = FakeFetcher()
    let options = Sample.options { $0.plcDirectory = "http://127.0.0.1:2582" }
    let did = try DID(text)
    await #expect(throws: IdentityError.unsupportedDID(did)) {
      try await resolver(fetcher, options: options).document(of: did)
    }
    if did.method != "plc" || text.contains("short") {
      await #expect(throws: IdentityError.unsupportedDID(did)) {
        try await resolver(fetcher, options: options).plcLog(of: did)
      }
    }
    #expect(fetcher.asked.isEmpty)
  }
}
