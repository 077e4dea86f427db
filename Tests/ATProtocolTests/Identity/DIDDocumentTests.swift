import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `A DID document` {
  private static let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"
  private static let key = SampleKey.k256.didKey.dropFirst("did:key:".count)

  private func read(_ json: String) throws -> DIDDocument {
    let bytes = Array(json.utf8)
    return try DIDDocument(bytes.span)
  }

  private func document(
    names: String = #"["at://alice.test"]"#,
    methods: String =
      "[\(method())]",
    services: String = "[\(service())]"
  ) throws -> DIDDocument {
    try read(
      """
      {"@context": ["https://www.w3.org/ns/did/v1"], "id": "\(Self.did)", "alsoKnownAs": \(names),
       "verificationMethod": \(methods), "service": \(services)}
      """)
  }

  private static func method(
    id: String = did + "#atproto", type: String = "Multikey", controller: String? = did,
    key: String = String(key)
  ) -> String {
    #"{"id": "\#(id)", "type": "\#(type)", "#
      + (controller.map { #""controller": "\#($0)", "# } ?? "")
      + #""publicKeyMultibase": "\#(key)"}"#
  }

  private static func service(
    id: String = "#atproto_pds", type: String = #""AtprotoPersonalDataServer""#,
    endpoint: String = #""https://pds.example.com""#
  ) -> String {
    #"{"id": "\#(id)", "type": \#(type), "serviceEndpoint": \#(endpoint)}"#
  }

  @Test func `says who, by what name, signed with what and where`() throws {
    let document = try document()
    #expect(document.id.text == Self.did)
    #expect(document.handle?.text == "alice.test")
    #expect(document.signingKey?.didKey == SampleKey.k256.didKey)
    #expect(document.pds == "https://pds.example.com")
  }

  @Test func `may say no more than who`() throws {
    let document = try read(#"{"id": "did:web:example.com"}"#)
    #expect(document.id.text == "did:web:example.com")
    #expect(document.handle == nil)
    #expect(document.signingKeyResult == .failure(.noKey))
    #expect(document.pdsResult == .failure(.noServer))
  }

  @Test func `claims the first name that is a handle`() throws {
    let names =
      #"["https://x.example", "at://not a handle", 7, null, "at://B.test", "at://c.test"]"#
    let document = try document(names: names)
    #expect(document.handle?.text == "b.test")
    #expect(document.handles.map(\.text) == ["b.test", "c.test"])
    for none in ["[]", "null", "7", #""at://b.test""#, #"["b.test"]"#, #"["at://b.test/x"]"#] {
      #expect(try self.document(names: none).handle == nil)
    }
  }

  @Test func `has ids with the DID in front or without`() throws {
    let document = try document(
      methods: "[\(Self.method(id: "#atproto"))]",
      services: "[\(Self.service(id: Self.did + "#atproto_pds"))]")
    #expect(document.signingKey != nil)
    #expect(document.pds != nil)
  }

  @Test func `may name other keys and services of any shape`() throws {
    let document = try document(
      methods:
        ##"[null, "#atproto", {"id": 7}, {"id": "#key-1", "publicKeyJwk": {"kty": "EC"}}, \##(Self.method())]"##,
      services:
        ##"["x", {"id": "#bsky_fg", "serviceEndpoint": {"a": [1.5]}}, {"id": ["#atproto_pds"]}, \##(Self.service())]"##
    )
    #expect(document.signingKey != nil)
    #expect(document.pds != nil)
  }

  @Test func `does not borrow another DID's entries`() throws {
    let other = "did:plc:z72i7hdynmk6r22z27h6tvur"
    let document = try document(
      methods: "[\(Self.method(id: other + "#atproto"))]",
      services: "[\(Self.service(id: other + "#atproto_pds"))]")
    #expect(document.signingKeyResult == .failure(.noKey))
    #expect(document.pdsResult == .failure(.noServer))
  }

  @Test(arguments: SampleKey.all)
  func `of an older type has a key without a codec`(_ sample: SampleKey) throws {
    let type =
      sample.curve == .k256
      ? "EcdsaSecp256k1VerificationKey2019" : "EcdsaSecp256r1VerificationKey2019"
    for key in [sample.legacyUncompressed, sample.legacyCompressed] {
      let document = try document(methods: "[\(Self.method(type: type, key: key))]")
      #expect(document.signingKey?.didKey == sample.didKey)
    }
    let mixed = try document(
      methods: "[\(Self.method(type: type, key: String(Self.key)))]")
    #expect(mixed.signingKeyResult == .failure(.malformedKey(.malformedPoint)))
  }

  @Test func `says why it has no key`() throws {
    let cases: [(String, DIDDocumentGap)] = [
      ("[]", .noKey), ("{}", .noKey), ("null", .noKey),
      ("[\(Self.method(id: "#atproto2"))]", .noKey),
      (##"[{"id": "#atproto", "type": "Multikey"}]"##, .noKey),
      ("[\(Self.method(controller: "did:web:evil.example"))]", .foreignKey),
      (##"[{"id": "#atproto", "controller": 7, "type": "Multikey"}]"##, .foreignKey),
      ("[\(Self.method(type: "Ed25519"))]", .unknownKeyType("Ed25519")),
      ("[\(Self.method(key: "z"))]", .malformedKey(.unknownCurve)),
      ("[\(Self.method(key: "f00"))]", .malformedKey(.notBase58)),
      // The first entry of the name counts, and it alone.
      ("[\(Self.method(key: "z")), \(Self.method())]", .malformedKey(.unknownCurve)),
    ]
    for (methods, gap) in cases {
      let document = try document(methods: methods)
      #expect(document.signingKeyResult == .failure(gap))
      #expect(document.signingKey == nil)
      #expect(!gap.description.isEmpty)
    }
    #expect(try document(methods: "[\(Self.method(controller: nil))]").signingKey != nil)
  }

  @Test func `says why it has no server`() throws {
    let cases: [(String, DIDDocumentGap)] = [
      ("[]", .noServer), (#""https://pds.example.com""#, .noServer),
      ("[\(Self.service(type: #""BskyFeedGenerator""#))]", .noServer),
      ("[\(Self.service(endpoint: #"{"uri": "https://x.example"}"#))]", .noServer),
      (
        "[\(Self.service(endpoint: #""http://pds.example.com""#))]",
        .unusableServer("http://pds.example.com", .notSecure)
      ),
      (
        "[\(Self.service(endpoint: #""https://pds.example.com/path""#))]",
        .unusableServer("https://pds.example.com/path", .notAnOrigin)
      ),
      (
        "[\(Self.service(endpoint: #""file:///etc/passwd""#))]",
        .unusableServer("file:///etc/passwd", .notHTTP)
      ),
    ]
    for (services, gap) in cases {
      let document = try document(services: services)
      #expect(document.pdsResult == .failure(gap))
      #expect(document.pds == nil)
      #expect(!gap.description.isEmpty)
    }
  }

  @Test func `may have a server of several types, of none, or on this machine`() throws {
    let types = #"["Other", "AtprotoPersonalDataServer"]"#
    #expect(try document(services: "[\(Self.service(type: types))]").pds != nil)
    let bare = ##"[{"id": "#atproto_pds", "serviceEndpoint": "https://pds.example.com"}]"##
    #expect(try document(services: bare).pds == "https://pds.example.com")
    let local = Self.service(endpoint: #""http://127.0.0.1:2590/""#)
    #expect(try document(services: "[\(local)]").pds == "http://127.0.0.1:2590")
  }

  @Test(arguments: [
    "[]", "7", "null", "{}", #"{"id": 7}"#, #"{"id": "alice.test"}"#, #"{"id": "did:plc:"}"#,
  ])
  func `is about a DID`(_ json: String) {
    #expect(throws: DIDDocumentError.noID) { try read(json) }
  }

  @Test(arguments: [
    "", "{", "<html>", #"{"id": "did:web:a.example"} x"#,
    #"{"id": "did:web:a.example", "id": "x"}"#,
    String(repeating: "[", count: 100_000),
  ])
  func `is JSON`(_ json: String) throws {
    let error = #expect(throws: DIDDocumentError.self) { try read(json) }
    guard case .notJSON? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func `is not endless`() {
    let padding = String(repeating: " ", count: DIDDocument.maximumLength)
    #expect(throws: DIDDocumentError.tooLong) {
      try read(#"{"id": "did:web:a.example"}"# + padding)
    }
  }

  @Test func `does not rule the terminal`() throws {
    let hostile = try document(
      services:
        "[\(Self.service(endpoint: #""https://x/\u001b[2J\#(String(repeating: "y", count: 9999))""#))]"
    )
    guard case .failure(let gap) = hostile.pdsResult else {
      Issue.record("a server")
      return
    }
    #expect(!gap.description.unicodeScalars.contains("\u{1b}"))
    #expect(gap.description.utf8.count < 1000)
  }

  @Test(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
  func `of a real account has everything`() throws {
    let all = try DataModelJSON.decode(try Corpus.bytes("firehose/did_docs.json"))
    let entries = try #require(all.map?.entries)
    #expect(entries.count > 50)
    for entry in entries {
      let document = try read(entry.value.json())
      #expect(document.id.text == entry.key)
      #expect(document.handle != nil)
      #expect(document.signingKey != nil)
      #expect(document.pds != nil)
    }
  }
}
