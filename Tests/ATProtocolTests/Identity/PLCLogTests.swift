import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `A PLC log` {
  private static let did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz"

  private func read(_ json: String, of did: String = did) throws -> PLCLog {
    let bytes = Array(json.utf8)
    return try PLCLog(bytes.span, of: DID(did))
  }

  private static func entry(
    _ operation: String, nullified: Bool = false, at date: String = "2024-01-01T00:00:00.000Z",
    did: String = did
  ) -> String {
    #"{"did": "\#(did)", "operation": \#(operation), "cid": "bafyreigp6shzy6dlcxuowwoxz7u5nemdrkad2my5zwzpwilcnhih7bw6zm", "nullified": \#(nullified), "createdAt": "\#(date)"}"#
  }

  private static func operation(pds: String, handle: String, key: String) -> String {
    """
    {"type": "plc_operation", "sig": "x", "prev": null, "rotationKeys": [],
     "alsoKnownAs": ["https://x.example", "at://\(handle)"], "verificationMethods": {"atproto": "\(key)"},
     "services": {"atproto_pds": {"type": "AtprotoPersonalDataServer", "endpoint": "\(pds)"}}}
    """
  }

  @Test func `lists servers, handles and keys in their order`() throws {
    let (old, new) = (SampleKey.k256.didKey, SampleKey.p256.didKey)
    let log = try read(
      "["
        + [
          Self.entry(
            """
            {"type": "create", "sig": "x", "prev": null, "handle": "alice.old.example", "service": "https://one.example",
             "signingKey": "\(old)", "recoveryKey": "\(old)"}
            """, at: "2022-01-01T00:00:00.000Z"),
          Self.entry(Self.operation(pds: "https://Two.example/", handle: "a.test", key: old)),
          Self.entry(
            Self.operation(pds: "https://evil.example", handle: "evil.test", key: new),
            nullified: true),
          Self.entry(Self.operation(pds: "https://one.example", handle: "b.test", key: new)),
          Self.entry(#"{"type": "plc_tombstone", "sig": "x", "prev": "y"}"#),
        ].joined(separator: ",") + "]")
    #expect(log.entries.count == 5)
    #expect(log.servers.map(\.text) == ["https://one.example", "https://two.example"])
    #expect(log.signingKeys.map(\.didKey) == [old, new])
    #expect(
      log.entries.map(\.handle?.text) == [
        "alice.old.example", "a.test", "evil.test", "b.test", nil,
      ])
    #expect(log.entries.map(\.isNullified) == [false, false, true, false, false])
    #expect(log.entries.map(\.isTombstone) == [false, false, false, false, true])
    #expect(log.entries[0].createdAt == "2022-01-01T00:00:00.000Z")
    #expect(log.entries[2].pds?.text == "https://evil.example")
    #expect(log.entries[0].cid != nil)
    #expect(log.entries[4].operation["prev"] == .string("y"))
  }

  @Test func `of 2022 may lack schemes`() throws {
    let log = try read(
      "[\(Self.entry(#"{"type": "create", "handle": "at://a.test", "service": "pds.example"}"#))]")
    #expect(log.entries[0].pds?.text == "https://pds.example")
    #expect(log.entries[0].handle?.text == "a.test")
    #expect(log.entries[0].signingKey == nil)
  }

  @Test(arguments: [
    "{}", #"{"services": 7, "alsoKnownAs": 7, "verificationMethods": []}"#,
    #"{"services": {"atproto_pds": "x"}, "alsoKnownAs": [7], "verificationMethods": {"atproto": 7}}"#,
    #"{"services": {"atproto_pds": {"endpoint": "http://x.example"}}, "alsoKnownAs": ["at://x"], "verificationMethods": {"atproto": "did:key:z"}}"#,
  ])
  func `keeps operations that say nothing of use`(_ operation: String) throws {
    let log = try read("[\(Self.entry(operation))]")
    #expect(log.entries.count == 1)
    #expect(log.servers.isEmpty)
    #expect(log.signingKeys.isEmpty)
    #expect(log.entries[0].handle == nil)
  }

  @Test(arguments: [
    "{}", "7", "[7]", "[{}]", #"[{"did": "\#(did)"}]"#, #"[{"did": "\#(did)", "operation": []}]"#,
  ])
  func `is a list of operations`(_ json: String) {
    #expect(throws: PLCLogError.notALog) { try read(json) }
  }

  @Test func `may leave out what the directory says of its operations`() throws {
    let operation = Self.operation(pds: "https://one.example", handle: "a.test", key: "x")
      .replacing("\"prev\": null", with: "\"prev\": \"y\"")
    for text in ["[\(operation), \(operation)]", "\(operation)\n\(operation)\n"] {
      let log = try read(text)
      #expect(log.entries.map(\.createdAt) == [nil, nil] && !log.isAudit)
      let bytes = try DAGCBOREncoder.encode(log.entries[0].operation)
      let cid = CID(codec: .dagCBOR, hashing: bytes.span)
      #expect(log.entries.map(\.cid) == [cid, cid])
      #expect(log.entries.map(\.handle?.text) == ["a.test", "a.test"])
    }
    #expect(throws: PLCLogError.notALog) { try read("\(operation) 7") }
    #expect(throws: PLCLogError.self) { try read("\(operation),\(operation)") }
  }

  @Test func `is about one DID`() {
    let other = "did:plc:z72i7hdynmk6r22z27h6tvur"
    #expect(throws: PLCLogError.otherAccount(other)) {
      try read("[\(Self.entry("{}", did: other))]")
    }
  }

  @Test func `is JSON, and not endless`() {
    #expect(throws: PLCLogError.notJSON(JSONError(.truncated, offset: 0))) { try read("") }
    #expect(throws: PLCLogError.tooLong) {
      try read("[]" + String(repeating: " ", count: PLCLog.maximumLength))
    }
  }

  @Test(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
  func `of a real account is read`() throws {
    let bytes = try Corpus.bytes("repos/bsky.app/plc_audit_log.json")
    let log = try PLCLog(bytes.span, of: DID("did:plc:z72i7hdynmk6r22z27h6tvur"))
    #expect(log.entries.count == 4)
    #expect(
      log.servers.map(\.text) == [
        "https://bsky.social", "https://puffball.us-east.host.bsky.network",
      ])
    #expect(log.signingKeys.count == 2)
    #expect(log.entries.last?.handle?.text == "bsky.app")
    for (name, did) in [
      ("legacy_dholms", "did:plc:yk4dd2qkboz2yv6tpubpc6co"),
      ("tombstone", "did:plc:6adr3q2labdllanslzhqkqd3"),
    ] {
      let bytes = try Corpus.bytes("plc/valid/log_\(name).json")
      let log = try PLCLog(bytes.span, of: DID(did))
      #expect(log.entries.count >= 2)
      #expect(log.entries.contains(where: \.isTombstone) == (name == "tombstone"))
    }
  }
}
