import ATProtocol
import HTTP
import Testing
import XRPC

@Suite struct `Looking up a handle` {
  private static let file = "https://alice.bar/.well-known/atproto-did"
  private static let did = Sample.did
  private static let other = Sample.other

  private func resolve(
    _ handle: String = "alice.bar", _ fetcher: FakeFetcher = FakeFetcher(),
    dns: FakeDNS = FakeDNS(), options: NetworkOptions = Sample.options(),
    conflict: Duration = .seconds(3), website: Duration = .seconds(15)
  ) async throws -> HandleResolver.Answer {
    try await HandleResolver(
      options, fetcher: fetcher, dns: dns,
      patience: HandleResolver.Patience(answer: website, conflict: conflict)
    ).resolve(Handle(handle))
  }

  @Test func `finds the DID in DNS`() async throws {
    let dns = FakeDNS(["alice.bar": Self.did])
    let answer = try await resolve(dns: dns)
    #expect(answer.did.text == Self.did)
    #expect(answer.source == "DNS TXT _atproto.alice.bar")
    #expect(answer.conflict == nil)
    #expect(answer.isAuthoritative)
    #expect(dns.asked == ["_atproto.alice.bar"])
  }

  @Test(arguments: ["", " \n", "\r\n\t"])
  func `finds the DID on the website`(_ space: String) async throws {
    let fetcher = FakeFetcher([Self.file: .body(space + Self.did + space)])
    let answer = try await resolve("alice.bar", fetcher)
    #expect(answer.did.text == Self.did)
    #expect(answer.source == Self.file)
    #expect(fetcher.asked == [Self.file])
  }

  @Test func `takes the website's word when DNS does not answer`() async throws {
    let fetcher = FakeFetcher([Self.file: .body(Self.did)])
    let dns = FakeDNS(["_atproto.alice.bar": .failure(.noAnswer)])
    #expect(try await resolve("alice.bar", fetcher, dns: dns).did.text == Self.did)
  }

  @Test func `believes DNS where the website says otherwise, and tells`() async throws {
    let fetcher = FakeFetcher([Self.file: .body(Self.other)])
    let answer = try await resolve("alice.bar", fetcher, dns: FakeDNS(["alice.bar": Self.did]))
    #expect(answer.did.text == Self.did)
    #expect(answer.source.hasPrefix("DNS"))
    #expect(answer.conflict?.text == Self.other)
  }

  @Test func `does not wait for a website that does not answer`() async throws {
    let fetcher = FakeFetcher([Self.file: .never])
    let answer = try await resolve(
      "alice.bar", fetcher, dns: FakeDNS(["alice.bar": Self.did]), conflict: .milliseconds(50))
    #expect(answer.did.text == Self.did)
    #expect(answer.conflict == nil)
  }

  @Test func `ends when nobody answers`() async throws {
    let fetcher = FakeFetcher([Self.file: .never])
    let error = await #expect(throws: IdentityError.self) {
      try await resolve(
        "alice.bar", fetcher, dns: FakeDNS([:], isSilent: true), website: .milliseconds(50))
    }
    #expect(error?.kind == .temporary)
  }

  @Test func `ends when it is cancelled`() async throws {
    let fetcher = FakeFetcher([Self.file: .never])
    let task = Task { try await resolve("alice.bar", fetcher, dns: FakeDNS([:], isSilent: true)) }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test func `ignores other records, and the same one twice`() async throws {
    let dns = FakeDNS([
      "_atproto.alice.bar": .success([
        "v=spf1", "did=", "did=nonsense", "DID=did:plc:abc", "did=\(Self.did)", "did=\(Self.did)",
      ])
    ])
    #expect(try await resolve(dns: dns).did.text == Self.did)
  }

  @Test func `refuses several DIDs in DNS, whatever the website says`() async throws {
    let fetcher = FakeFetcher([Self.file: .body(Self.did)])
    let dns = FakeDNS([
      "_atproto.alice.bar": .success(["did=\(Self.did)", "did=\(Self.other)"])
    ])
    let error = await #expect(throws: IdentityError.self) {
      try await resolve("alice.bar", fetcher, dns: dns)
    }
    #expect(
      error == .ambiguousHandle(try Handle("alice.bar"), [try DID(Self.did), try DID(Self.other)]))
    #expect(error?.kind == .notGenuine)
  }

  @Test(
    arguments: [
      .body("not found", status: 404), .body("<html>hello</html>"), .body(""),
      .body("\(did) \(other)"), .body("did:plc:"),
      .body(String(repeating: "a", count: 3000)), .failure(.unknownHost),
      .failure(.tooManyRedirects),
    ] as [FakeFetcher.Answer])
  func `that leads nowhere says what was asked`(_ answer: FakeFetcher.Answer) async throws {
    let error = await #expect(throws: IdentityError.self) {
      try await resolve("alice.bar", FakeFetcher([Self.file: answer]))
    }
    guard case .handleNotFound(_, let attempts)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(attempts.count == 2)
    #expect(attempts[0].contains("DNS"))
    #expect(attempts[1].contains("alice.bar"))
    #expect(error?.kind == .unavailable)
  }

  @Test(
    arguments: [
      .body("oops", status: 502), .body("slow down", status: 429), .failure(.stalled(seconds: 60)),
      .failure(.notConnected("refused")),
    ] as [FakeFetcher.Answer])
  func `that could not be asked about may be asked about again`(_ answer: FakeFetcher.Answer)
    async throws
  {
    let error = await #expect(throws: IdentityError.self) {
      try await resolve("alice.bar", FakeFetcher([Self.file: answer]))
    }
    #expect(error?.kind == .temporary)
  }

  @Test(
    arguments: [
      (.refusedAddress("10.0.0.1"), .refused), (.refusedRedirect("http://10.0.0.1/"), .refused),
      (.notSecure("unknown authority"), .unavailable),
    ] as [(TransportError.Reason, IdentityError.Kind)])
  func `that leads astray, or to a server that proves nothing, says so`(
    _ reason: TransportError.Reason, _ kind: IdentityError.Kind
  ) async throws {
    let fetcher = FakeFetcher([Self.file: .failure(reason)])
    let error = await #expect(throws: IdentityError.self) {
      try await resolve("alice.bar", fetcher)
    }
    #expect(error?.kind == kind)
    #expect(error?.description.contains("alice.bar") == true)
    // Where DNS knows the account, the website does not count.
    let answer = try await resolve("alice.bar", fetcher, dns: FakeDNS(["alice.bar": Self.did]))
    #expect(answer.did.text == Self.did)
    // A server that resolves handles is no different.
    let options = Sample.options { $0.handleResolver = "https://resolver.bar" }
    let url = "https://resolver.bar/xrpc/com.atproto.identity.resolveHandle?handle=alice.bar"
    let asked = await #expect(throws: IdentityError.self) {
      try await resolve("alice.bar", FakeFetcher([url: .failure(reason)]), options: options)
    }
    #expect(asked?.kind == kind)
  }

  @Test func `that was led astray is not excused by DNS that did not answer`() async throws {
    let fetcher = FakeFetcher([Self.file: .failure(.refusedAddress("10.0.0.1"))])
    let error = await #expect(throws: IdentityError.self) {
      try await resolve(
        "alice.bar", fetcher, dns: FakeDNS(["_atproto.alice.bar": .failure(.noAnswer)]))
    }
    #expect(error?.kind == .refused)
  }

  @Test func `does not look in DNS for the names that Bluesky gives away`() async throws {
    let dns = FakeDNS(["alice.bsky.social": Self.other])
    let fetcher = FakeFetcher([
      "https://alice.bsky.social/.well-known/atproto-did": .body(Self.did)
    ])
    #expect(try await resolve("alice.bsky.social", fetcher, dns: dns).did.text == Self.did)
    #expect(dns.asked.isEmpty)
  }

  @Test
  func `takes a name that Bluesky gives away, and leads to no address, for a network that is away`()
    async throws
  {
    let error = await #expect(throws: IdentityError.self) {
      try await resolve("alice.bsky.social", FakeFetcher(), dns: FakeDNS([:]))
    }
    #expect(error?.kind == .temporary)
  }

  @Test(arguments: [
    "handle.invalid", "alice.example", "alice.local", "alice.internal", "alice.onion", "alice.test",
    "alice.localhost",
  ])
  func `asks nobody about names that nobody has`(_ handle: String) async throws {
    let (fetcher, dns) = (FakeFetcher(), FakeDNS([handle: Self.did]))
    await #expect(throws: IdentityError.unresolvableHandle(try Handle(handle))) {
      try await resolve(handle, fetcher, dns: dns)
    }
    #expect(fetcher.asked.isEmpty)
    #expect(dns.asked.isEmpty)
  }

  @Test func `asks a server that resolves handles, if one is set, and nobody else`() async throws {
    let url = "https://resolver.bar/xrpc/com.atproto.identity.resolveHandle?handle=alice.bar"
    let options = Sample.options { $0.handleResolver = "https://resolver.bar" }
    let (fetcher, dns) = (FakeFetcher([url: .body(#"{"did": "\#(Self.did)"}"#)]), FakeDNS())
    let answer = try await resolve("alice.bar", fetcher, dns: dns, options: options)
    #expect(answer.did.text == Self.did)
    #expect(answer.source == "https://resolver.bar")
    #expect(fetcher.asked == [url])
    #expect(dns.asked.isEmpty)

    let answers: [(FakeFetcher.Answer, IdentityError.Kind)] = [
      (.body(#"{"error": "HandleNotFound", "message": "no"}"#, status: 400), .unavailable),
      (.body("{}"), .unavailable), (.body("<html>"), .unavailable),
      (.body(#"{"did": "x"}"#), .unavailable), (.body("", status: 503), .temporary),
      (.failure(.cutOff("x")), .temporary),
    ]
    for (answer, kind) in answers {
      let error = await #expect(throws: IdentityError.self) {
        try await resolve("alice.bar", FakeFetcher([url: answer]), options: options)
      }
      #expect(error?.kind == kind)
    }
    let stranger = FakeFetcher()
    await #expect(throws: IdentityError.unresolvableHandle(try Handle("alice.local"))) {
      try await resolve("alice.local", stranger, options: options)
    }
    #expect(stranger.asked.isEmpty)
  }

  @Test func `asks the server that the user named when the domain does not say`() async throws {
    let url = "https://pds.bar/xrpc/com.atproto.identity.resolveHandle?handle=alice.bar"
    let options = Sample.options { $0.pds = "https://pds.bar" }
    let fetcher = FakeFetcher([url: .body(#"{"did": "\#(Self.did)"}"#)])
    #expect(
      try await resolve("alice.bar", fetcher, options: options).source == "https://pds.bar")
    #expect(fetcher.asked == [Self.file, url])
    let known = FakeFetcher([Self.file: .body(Self.other), url: .body(#"{"did": "\#(Self.did)"}"#)])
    #expect(try await resolve("alice.bar", known, options: options).did.text == Self.other)
  }

  @Test func `asks servers on this machine about names for development`() async throws {
    let pds = "http://127.0.0.1:2590"
    let url = "\(pds)/xrpc/com.atproto.identity.resolveHandle?handle=alice.test"
    let options = Sample.options { $0.pds = pds }
    let fetcher = FakeFetcher([url: .body(#"{"did": "\#(Self.did)"}"#)])
    let answer = try await resolve("alice.test", fetcher, options: options)
    #expect(answer.source == pds)
    #expect(answer.isAuthoritative)
    #expect(fetcher.asked == [url])
  }

  @Test func `asks a bare directory on this machine, whose word alone does not count`() async throws
  {
    let directory = "http://127.0.0.1:2591"
    let options = Sample.options { $0.plcDirectory = directory }
    let fetcher = FakeFetcher([
      "\(directory)/xrpc/com.atproto.identity.resolveHandle?handle=bob.test": .body(
        "<html>", status: 404),
      "\(directory)/.well-known/atproto-did": .body(Self.did),
    ])
    let answer = try await resolve("bob.test", fetcher, options: options)
    #expect(answer.did.text == Self.did)
    #expect(!answer.isAuthoritative)
  }

  @Test func `asks where a handle is pinned to`() async throws {
    let options = Sample.options { $0.hostPins = ["other.test:1:::1", "Bob.test:2591:127.0.0.1"] }
    let url = "http://bob.test:2591/.well-known/atproto-did"
    let fetcher = FakeFetcher([url: .body(Self.did)])
    #expect(try await resolve("bob.test", fetcher, options: options).source == url)
    let secure = Sample.options { $0.hostPins = ["bob.test:443:127.0.0.1"] }
    let website = "https://bob.test/.well-known/atproto-did"
    #expect(
      try await resolve("bob.test", FakeFetcher([website: .body(Self.did)]), options: secure).source
        == website)
  }

  @Test func `asks DNS on this machine about names for development`() async throws {
    let options = Sample.options { $0.dnsOverHTTPS = "http://127.0.0.1:53" }
    let answer = try await resolve(
      "alice.test", dns: FakeDNS(["alice.test": Self.did]), options: options)
    #expect(answer.source == "DNS TXT _atproto.alice.test")
  }
}

@Suite struct `The system's DNS` {
  @Test func `ends, with an answer or without`() async {
    do {
      let records = try await SystemDNS().records(of: "_atproto.nothing-there.invalid")
      #expect(records.isEmpty)
    } catch {
      #expect(error is DNSError)
    }
  }

  @Test func `is not waited for once the task is cancelled`() async {
    let lookup = Task {
      while !Task.isCancelled { await Task.yield() }
      return try await SystemDNS().records(of: "_atproto.nothing-there.invalid")
    }
    lookup.cancel()
    await #expect(throws: CancellationError.self) { try await lookup.value }
  }
}
