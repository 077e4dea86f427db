import ATProtocol
import HTTP
import Testing
import XRPC

@Suite struct `Finding out about an account` {
  private static let url = "https://plc.directory/\(Sample.did)"
  private static let file = "https://alice.bar/.well-known/atproto-did"

  private func resolve(
    _ account: String, _ fetcher: FakeFetcher, dns: FakeDNS = FakeDNS(["alice.bar": Sample.did]),
    options: NetworkOptions = Sample.options(), confirmingHandle: Bool = true
  ) async throws -> ResolvedIdentity {
    try await IdentityResolver(options, fetcher: fetcher, dns: dns)
      .resolve(ATIdentifier(account), confirmingHandle: confirmingHandle)
  }

  @Test(arguments: ["alice.bar", Sample.did])
  func `gives the same from the handle and from the DID`(_ account: String) async throws {
    let fetcher = FakeFetcher([Self.url: .body(Sample.document())])
    let identity = try await resolve(account, fetcher)
    #expect(identity.did.text == Sample.did)
    #expect(identity.handle?.text == "alice.bar")
    #expect(identity.document.handle == identity.handle)
    #expect(identity.pds == "https://pds.bar")
    #expect(identity.document.signingKey?.multikey == Sample.key)
    #expect(identity.documentBytes == Array(Sample.document().utf8))
    #expect(identity.sources.handle == "DNS TXT _atproto.alice.bar")
    #expect(identity.sources.document == Self.url)
    #expect(identity.sources.pds == Self.url)
    #expect(identity.warnings.isEmpty)
    #expect(!identity.isContradictory)
  }

  @Test func `asks once for the document, and for no more unless the handle is to be confirmed`()
    async throws
  {
    let (fetcher, dns) = (FakeFetcher([Self.url: .body(Sample.document())]), FakeDNS())
    let identity = try await resolve(Sample.did, fetcher, dns: dns, confirmingHandle: false)
    #expect(identity.handle == nil)
    #expect(identity.document.handle?.text == "alice.bar")
    #expect(identity.warnings.isEmpty)
    #expect(fetcher.asked == [Self.url])
    #expect(dns.asked.isEmpty)
  }

  @Test func `goes to the server that the user set`() async throws {
    let fetcher = FakeFetcher([Self.url: .body(Sample.document(pds: nil))])
    let options = Sample.options { $0.pds = "https://elsewhere.bar" }
    let identity = try await resolve(Sample.did, fetcher, options: options)
    #expect(identity.pds == "https://elsewhere.bar")
    #expect(identity.sources.pds == ResolvedIdentity.Sources.user)
    #expect(identity.warnings.isEmpty)
  }

  @Test func `sees a handle whose account goes by another`() async throws {
    for (claimed, text) in [("bob.bar", "goes by bob.bar"), (nil, "claims no handle")] {
      let fetcher = FakeFetcher([Self.url: .body(Sample.document(handle: claimed))])
      let identity = try await resolve("alice.bar", fetcher)
      #expect(identity.handle == nil)
      #expect(identity.isContradictory)
      let warning = try #require(identity.warnings.first)
      #expect(
        warning
          == .handleNotClaimed(try Handle("alice.bar"), claimed: try claimed.map { try Handle($0) })
      )
      #expect(warning.description.contains(text))
    }
  }

  @Test func `takes a handle that the account has beside another`() async throws {
    let document = Sample.document().replacing(
      "\"at://alice.bar\"", with: "\"at://first.bar\", \"at://alice.bar\"")
    let identity = try await resolve("alice.bar", FakeFetcher([Self.url: .body(document)]))
    #expect(identity.handle?.text == "alice.bar")
    #expect(identity.document.handle?.text == "first.bar")
    #expect(!identity.isContradictory)
  }

  @Test func `sees a claim to somebody else's handle`() async throws {
    let fetcher = FakeFetcher([Self.url: .body(Sample.document())])
    let identity = try await resolve(
      Sample.did, fetcher, dns: FakeDNS(["alice.bar": Sample.other]))
    #expect(identity.handle == nil)
    #expect(identity.isContradictory)
    #expect(
      identity.warnings == [.handleLeadsElsewhere(try Handle("alice.bar"), try DID(Sample.other))])
  }

  @Test func `does not lose an account for its handle`() async throws {
    let fetcher = FakeFetcher([
      Self.url: .body(Sample.document()), Self.file: .body("", status: 404),
    ])
    let gone = try await resolve(Sample.did, fetcher, dns: FakeDNS())
    #expect(gone.handle == nil)
    #expect(gone.pds == "https://pds.bar")
    #expect(gone.isContradictory)
    let silent = try await resolve(
      Sample.did, fetcher, dns: FakeDNS(["_atproto.alice.bar": .failure(.noAnswer)]))
    #expect(silent.handle == nil)
    #expect(!silent.isContradictory)
    #expect(silent.warnings.count == 1)
    #expect(silent.warnings[0].description.contains("was not confirmed"))
  }

  @Test func `does not confirm a handle that cannot be one`() async throws {
    let fetcher = FakeFetcher([Self.url: .body(Sample.document(handle: "handle.invalid"))])
    let identity = try await resolve(Sample.did, fetcher)
    #expect(identity.handle == nil)
    #expect(identity.isContradictory)
    #expect(fetcher.asked == [Self.url])
  }

  @Test func `tells of a conflict between DNS and the website`() async throws {
    let fetcher = FakeFetcher([
      Self.url: .body(Sample.document()), Self.file: .body(Sample.other),
    ])
    for account in ["alice.bar", Sample.did] {
      let identity = try await resolve(account, fetcher)
      #expect(identity.handle?.text == "alice.bar")
      #expect(
        identity.warnings == [
          .conflict(
            try Handle("alice.bar"), dns: try DID(Sample.did), website: try DID(Sample.other))
        ])
    }
  }

  @Test func `says which of server and key is missing`() async throws {
    let fetcher = FakeFetcher([
      Self.url: .body(Sample.document(pds: "http://pds.bar", key: nil))
    ])
    let identity = try await resolve("alice.bar", fetcher)
    #expect(identity.pds == nil)
    #expect(identity.document.signingKey == nil)
    #expect(identity.sources.pds == nil)
    #expect(
      identity.warnings == [.gap(.noKey), .gap(.unusableServer("http://pds.bar", .notSecure))])
  }

  @Test func `of a bare directory on this machine has the account's document confirm`() async throws
  {
    let directory = "http://127.0.0.1:2591"
    let options = Sample.options { $0.plcDirectory = directory }
    let fetcher = FakeFetcher([
      "\(directory)/.well-known/atproto-did": .body(Sample.did),
      "\(directory)/\(Sample.did)": .body(Sample.document(handle: "bob.test")),
      "\(directory)/\(Sample.other)": .body(Sample.document(Sample.other, handle: "eve.test")),
    ])
    let bob = try await resolve("bob.test", fetcher, options: options)
    #expect(bob.handle?.text == "bob.test")
    let error = await #expect(throws: IdentityError.self) {
      try await resolve("alice.test", fetcher, options: options)
    }
    #expect(error?.kind == .unavailable)
    // One file does not contradict the others.
    let eve = try await resolve(Sample.other, fetcher, options: options)
    #expect(eve.handle == nil)
    #expect(
      !eve.warnings.contains(.handleLeadsElsewhere(try Handle("eve.test"), try DID(Sample.did))))
  }

  @Test func `ends when the document cannot be had`() async throws {
    let fetcher = FakeFetcher([Self.url: .body("", status: 500)])
    let error = await #expect(throws: IdentityError.self) {
      try await resolve("alice.bar", fetcher)
    }
    #expect(error?.kind == .temporary)
  }
}

extension ResolvedIdentity {
  /// Whether handle and account contradict each other.
  fileprivate var isContradictory: Bool { warnings.contains(where: \.isContradiction) }
}
