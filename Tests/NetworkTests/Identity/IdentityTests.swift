import ATProtocol
import HTTP
import StandIn
import Testing
import XRPC

/// Looking up accounts on the stand-in, with the real transport.
struct `An identity on the network` {
  private static let handle = "alice.example.com"

  private func resolve(
    _ account: String, _ server: StandInPDS, change: (inout NetworkOptions) -> Void = { _ in }
  ) async throws -> ResolvedIdentity {
    var options = NetworkOptions(userAgent: "carpack tests")
    options.plcDirectory = server.url
    options.dnsOverHTTPS = server.url
    options.hostPins = ["\(Self.handle):\(server.server.port):127.0.0.1"]
    options.attempts = 3
    change(&options)
    // On a machine that runs all tests, an answer may come late.
    let patience = HandleResolver.Patience(answer: .seconds(600), conflict: .seconds(600))
    return try await IdentityResolver(network: try Network(options), patience: patience)
      .resolve(ATIdentifier(account))
  }

  @Test(arguments: [false, true], [SigningKey.Curve.k256, .p256])
  func `is found from the handle and from the DID`(_ isLegacy: Bool, _ curve: SigningKey.Curve)
    async throws
  {
    var style = AccountStyle()
    style.hasLegacyDocument = isLegacy
    style.curve = curve
    let account = try StandInAccount("alice", handle: Self.handle, style: style)
    let server = try StandInPDS(accounts: [account])
    defer { server.stop() }
    for name in [Self.handle, account.did] {
      let identity = try await resolve(name, server)
      #expect(identity.did.text == account.did)
      #expect(identity.handle?.text == Self.handle)
      #expect(identity.pds == server.url)
      #expect(identity.document.signingKey?.multikey == account.key.multikey)
      #expect(identity.sources.handle == "DNS TXT _atproto.\(Self.handle)")
      #expect(identity.sources.document == "\(server.url)/\(account.did)")
      #expect(identity.warnings.isEmpty)
      // DNS, the website and the directory are asked once each.
      #expect(server.server.log.map(\.path).sorted().count == 3)
      server.server.forgetLog()
    }
  }

  @Test func `has a log that says where the account was`() async throws {
    let account = try StandInAccount("alice")
    let server = try StandInPDS(accounts: [account])
    defer { server.stop() }
    var options = NetworkOptions(userAgent: "carpack tests")
    options.plcDirectory = server.url
    let resolver = IdentityResolver(network: try Network(options)).dids
    let did = try DID(account.did)
    let bytes = try await resolver.plcLog(of: did)
    let log = try PLCLog(bytes.span, of: did)
    // The first operation, and one that names this server.
    #expect(log.entries.count == 2 && log.servers.last?.text == server.url)
    #expect(log.signingKeys.map(\.multikey) == [account.key.multikey])
  }

  @Test func `may be on the website alone`() async throws {
    let account = try StandInAccount("alice", handle: Self.handle)
    let server = try StandInPDS(accounts: [account])
    defer { server.stop() }
    server.setTextRecords([], for: Self.handle)
    let identity = try await resolve(Self.handle, server)
    #expect(identity.did.text == account.did)
    #expect(identity.sources.handle?.hasSuffix("/.well-known/atproto-did") == true)
  }

  @Test func `is what DNS says, if the website says something else`() async throws {
    let account = try StandInAccount("alice", handle: Self.handle)
    let other = try StandInAccount("eve")
    let server = try StandInPDS(accounts: [account, other])
    defer { server.stop() }
    server.setWellKnown(other.did, for: Self.handle)
    let identity = try await resolve(Self.handle, server)
    #expect(identity.handle?.text == Self.handle)
    #expect(
      identity.warnings == [
        .conflict(try Handle(Self.handle), dns: try DID(account.did), website: try DID(other.did))
      ])
  }

  @Test func `is not two accounts`() async throws {
    let account = try StandInAccount("alice", handle: Self.handle)
    let server = try StandInPDS(accounts: [account])
    defer { server.stop() }
    server.setTextRecords(
      ["did=\(account.did)", "did=did:web:eve.example.com"], for: Self.handle)
    let error = await #expect(throws: IdentityError.self) { try await resolve(Self.handle, server) }
    #expect(error?.kind == .notGenuine)
  }

  @Test func `is not somebody else's document`() async throws {
    let account = try StandInAccount("alice", handle: Self.handle)
    let server = try StandInPDS(accounts: [account])
    defer { server.stop() }
    server.setDocument(#"{"id": "did:web:eve.example.com"}"#, for: account.did)
    await #expect(
      throws: IdentityError.otherDocument(
        try DID(account.did), found: try DID("did:web:eve.example.com"))
    ) { try await resolve(account.did, server) }
  }

  @Test func `is found on a server that the user names, if DNS and website say nothing`()
    async throws
  {
    let account = try StandInAccount("alice", handle: Self.handle)
    let server = try StandInPDS(accounts: [account])
    defer { server.stop() }
    server.setTextRecords([], for: Self.handle)
    server.setWellKnown("nothing", for: Self.handle)
    let identity = try await resolve(Self.handle, server) { $0.pds = server.url }
    #expect(identity.did.text == account.did)
    #expect(identity.sources.handle == server.url)
    #expect(identity.sources.pds == ResolvedIdentity.Sources.user)
  }

  @Test func `of a did:web is on its host`() async throws {
    let server = try StandInPDS()
    defer { server.stop() }
    let did = "did:web:127.0.0.1%3A\(server.server.port)"
    server.add(try StandInAccount("alice", handle: Self.handle, did: did))
    // The host as it comes back from the request's field is in lower case, and so is its percent
    // sign's number.
    let identity = try await resolve(did, server)
    #expect(identity.did.text == did)
    #expect(identity.handle?.text == Self.handle)
    #expect(identity.sources.document == "\(server.url)/.well-known/did.json")
  }

  @Test(
    arguments: [
      (.captivePortal, .unavailable), (.status(500), .temporary), (.dropped, .temporary),
      (.redirect(status: 302, to: "http://10.0.0.1/"), .refused),
      (.distorted(.endless), .refused), (.garbage, .unavailable),
    ] as [(Fault, IdentityError.Kind)])
  func `is not had from a directory that misbehaves`(_ fault: Fault, _ kind: IdentityError.Kind)
    async throws
  {
    let account = try StandInAccount("alice", handle: Self.handle)
    let server = try StandInPDS(accounts: [account])
    defer { server.stop() }
    server.play(FaultRule(fault, on: account.did))
    let error = await #expect(throws: IdentityError.self) { try await resolve(account.did, server) }
    #expect(error?.kind == kind, "\(String(describing: error))")
  }

  @Test(.enabled(if: Peers.arePresent, "\(Peers.absence)"))
  func `is found on a server of another project`() async throws {
    var options = NetworkOptions(userAgent: "carpack tests")
    options.plcDirectory = Peers.directory
    let resolver = IdentityResolver(network: try Network(options))
    let identity = try await resolver.resolve(ATIdentifier("bob.test"))
    #expect(identity.handle?.text == "bob.test")
    #expect(identity.pds == Peers.pds)
    #expect(identity.document.signingKey != nil)
    #expect(identity.warnings.isEmpty)
    let again = try await resolver.resolve(.did(identity.did))
    #expect(again.handle == identity.handle)
    #expect(again.document.signingKey == identity.document.signingKey)
  }
}
