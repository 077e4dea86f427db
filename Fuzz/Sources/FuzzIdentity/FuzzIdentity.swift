import ATProtocol
import FuzzSupport
import IPLD

@testable import HTTP
@testable import XRPC

/// What identities are made of: read or refused, the same when it is written and read again; and a
/// server is the same one for the parser that checks it as for the one that connects to it.
///
/// The first byte of the input says what the rest is: a DID document, a PLC log, or identifiers and
/// URLs, one a line.
enum FuzzIdentity: Fuzzer {
  static func run(_ bytes: Span<UInt8>) {
    guard bytes.count > 0 else { return }
    let rest = bytes.extracting(droppingFirst: 1)
    switch bytes[0] % 3 {
    case 0: document(rest)
    case 1: log(rest)
    default:
      for line in lines(of: rest).prefix(64) { text(String(decoding: line, as: UTF8.self)) }
    }
    let excerpt = IdentityError.excerpt(rest.copy)
    if !excerpt.isEmpty { requireLegible(excerpt) }
  }

  // MARK: Documents

  private static func document(_ bytes: Span<UInt8>) {
    do throws(DIDDocumentError) {
      let document = try DIDDocument(bytes)
      check(document.id)
      for handle in document.handles { check(handle) }
      switch document.signingKeyResult {
      case .success(let key): check(key)
      case .failure(let gap): requireLegible("\(gap)", limit: 2500)
      }
      switch document.pdsResult {
      case .success(let origin): check(origin)
      case .failure(let gap): requireLegible("\(gap)", limit: 2500)
      }
    } catch {
      requireLegible("\(error)")
    }
  }

  private static func log(_ bytes: Span<UInt8>) {
    // The log is one of whom its first entry is about, so that the others are reached.
    let first = (try? DataModelJSON.decode(bytes.copy))?.array?.first?["did"]?.string
    guard
      let did = (try? DID(first ?? "")) ?? (try? DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz"))
    else { fatalError("a DID is none") }
    do throws(PLCLogError) {
      let log = try PLCLog(bytes, of: did)
      for entry in log.entries {
        if let pds = entry.pds { check(pds) }
        if let handle = entry.handle { check(handle) }
        if let key = entry.signingKey { check(key) }
      }
      require(Set(log.servers).count == log.servers.count, "a server twice")
      require(Set(log.signingKeys).count == log.signingKeys.count, "a key twice")
      history(log, of: did)
    } catch {
      requireLegible("\(error)", limit: 2500)
    }
  }

  /// A log whose operations hold has as many of them as it has entries.
  private static func history(_ log: PLCLog, of did: DID) {
    do throws(PLCFault) {
      let history = try PLCHistory(validating: log, of: did)
      require(history.operations.count == log.entries.count, "operations are lost")
    } catch {
      requireLegible("\(error)", limit: 2500)
    }
  }

  // MARK: Texts

  private static func text(_ text: String) {
    let did = read(DID.self, text)
    let handle = read(Handle.self, text)
    require(did == nil || handle == nil, "a DID that is a handle")
    switch read(ATIdentifier.self, text) {
    case .did(let found)?: require(found == did, "another DID")
    case .handle(let found)?: require(found == handle, "another handle")
    case nil: require(did == nil && handle == nil, "what names an account does not")
    }
    if let did { check(did) }
    if let handle { check(handle) }
    if let uri = read(ATURI.self, text) {
      require((try? ATURI(uri.text)) == uri, "an AT URI changes")
    }
    do throws(ServerOriginError) {
      check(try ServerOrigin(text))
    } catch {
      requireLegible("\(error)")
    }
    if let (origin, path) = try? ServerOrigin.split(text) {
      require(text.hasSuffix(path), "another path")
      check(origin)
      check(origin, in: origin.text + path)
    }
    for key in keys(text) { check(key) }
  }

  private static func read<I: Identifier & Equatable>(_ type: I.Type, _ text: String) -> I? {
    do throws(IdentifierError) {
      let value = try I(text)
      require((try? I(value.text)) == value, "an identifier changes when it is read again")
      return value
    } catch {
      require(
        (0...text.utf8.count).contains(error.offset), "a fault outside of the text: \(error)")
      requireLegible("\(error)")
      return nil
    }
  }

  private static func keys(_ text: String) -> [VerificationKey] {
    [
      try? VerificationKey(didKey: text), try? VerificationKey(multikey: text),
      try? VerificationKey(legacyMultibase: text, on: .k256),
      try? VerificationKey(legacyMultibase: text, on: .p256),
    ].compactMap(\.self)
  }

  // MARK: What must hold

  private static func check(_ did: DID) {
    require(did.text == "did:\(did.method):\(did.methodSpecificID)", "parts of a DID are missing")
    for allowsLoopback in [true, false] {
      var options = NetworkOptions(userAgent: "fuzz")
      options.allowsLoopback = allowsLoopback
      let resolver = DIDResolver(options, fetcher: NoFetcher())
      do throws(IdentityError) {
        let location = try resolver.documentURL(of: did)
        guard did.method == "web" else { continue }
        guard let url = try? HTTPURL(location) else { fatalError("\(location) is no URL") }
        require(url.path == "/.well-known/did.json", "\(did) is elsewhere: \(url)")
        require(
          did.methodSpecificID.lowercased().hasPrefix(url.authority.host), "\(did) is at \(url)")
        require(url.isSecure || url.authority.isLoopback, "\(did) is asked over http: \(url)")
        require(allowsLoopback || !url.authority.isLoopback, "\(did) is at home: \(url)")
      } catch {
        requireLegible("\(error)", limit: 3000)
      }
    }
  }

  private static func check(_ handle: Handle) {
    require(handle.text == handle.text.lowercased(), "a handle in capitals")
    require(handle.text.hasSuffix(".\(handle.topLevel)"), "another top level")
    guard let url = try? HTTPURL("https://\(handle)/.well-known/atproto-did") else {
      fatalError("\(handle) is no host")
    }
    require(url.authority.host == handle.text, "\(handle) is at \(url)")
  }

  private static func check(_ origin: ServerOrigin) {
    require((try? ServerOrigin(origin.text)) == origin, "\(origin) changes when it is read again")
    require(origin.isSecure || origin.isLoopback, "\(origin) is over http")
    check(origin, in: origin.text)
  }

  /// Makes sure that libcurl sees the same server in a URL.
  private static func check(_ origin: ServerOrigin, in text: String) {
    // What is in brackets, or longer than a host may be, libcurl may refuse.
    guard let url = try? HTTPURL(text) else { return }
    require(url.isSecure == origin.isSecure, "\(origin) is \(url): the scheme")
    require(Int(url.authority.port) == origin.port, "\(origin) is \(url): the port")
    require(
      !origin.isLoopback || url.authority.isLoopback, "\(origin) is this machine, and \(url) is not"
    )
    // An address in brackets it writes in its own way.
    guard !origin.host.hasPrefix("[") else { return }
    require(url.authority.host == origin.host, "\(origin) is \(url): the host")
  }

  private static func check(_ key: VerificationKey) {
    require((try? VerificationKey(didKey: key.didKey)) == key, "a key changes")
    require(
      (try? VerificationKey(point: key.compressedPoint, on: key.curve)) == key, "a point changes")
  }

  /// Nobody is asked here.
  private struct NoFetcher: DocumentFetcher {
    func get(_ url: String, limit: Int, accept: String?, retries: Bool) async throws -> (
      HTTPResponse, [UInt8]
    ) { throw TransportError(.silent, url: url) }
  }

  // MARK: Seeds

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    let document = #"""
      {"@context":["https://www.w3.org/ns/did/v1"],"id":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","alsoKnownAs":["at://a.example.com","x"],
      "verificationMethod":[{"id":"did:plc:ewvi7nxzyoun6zhxrhs64oiz#atproto","type":"Multikey","controller":"did:plc:ewvi7nxzyoun6zhxrhs64oiz",
      "publicKeyMultibase":"zQ3shXjHeiBuRCKmM36cuYnm7YEMzhGnCmCyW92sRJ9pribSF"}],
      "service":[{"id":"#atproto_pds","type":"AtprotoPersonalDataServer","serviceEndpoint":"https://pds.example.com"}]}
      """#
    let log = #"""
      [{"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","operation":{"type":"create","service":"pds.example.com","handle":"a.example.com",
      "signingKey":"did:key:zQ3shXjHeiBuRCKmM36cuYnm7YEMzhGnCmCyW92sRJ9pribSF","prev":null},"cid":"bafyreib","nullified":false,"createdAt":"2022"},
      {"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","operation":{"type":"plc_operation","alsoKnownAs":["at://b.example.com"],
      "verificationMethods":{"atproto":"did:key:zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv"},
      "services":{"atproto_pds":{"endpoint":"http://localhost:2583"}}},"nullified":true},
      {"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","operation":{"type":"plc_tombstone"}}]
      """#
    let texts = """
      did:plc:ewvi7nxzyoun6zhxrhs64oiz
      did:web:example.com
      did:web:localhost%3A2583
      did:web:127.0.0.1%3a80
      alice.bsky.social
      8.cn
      at://alice.test/app.bsky.feed.post/3jui7kd54zh2y
      https://pds.example.com:8443/
      HTTP://127.0.0.1:2583
      http://[::1]:80/xrpc/a?b=c
      https://[2001:db8::1]
      did:key:zDnaerx9CtbPJ1q36T5Ln5wYt3MQYeGRG5ehnPAmxcf5mDZpv
      zQ3shXjHeiBuRCKmM36cuYnm7YEMzhGnCmCyW92sRJ9pribSF
      """
    let found = try corpus?.files(".json", limit: 12 << 10) ?? []
    // The interop tests list texts of each kind that are right, and that are wrong.
    let listed = try corpus?.files("syntax_valid.txt", limit: 16 << 10) ?? []
    let wrong = try corpus?.files("syntax_invalid.txt", limit: 16 << 10) ?? []
    return [[0] + document.utf8, [1] + log.utf8, [2] + texts.utf8]
      + found.flatMap { [[0] + $0, [1] + $0] } + (listed + wrong).map { [2] + $0 }
  }
}
