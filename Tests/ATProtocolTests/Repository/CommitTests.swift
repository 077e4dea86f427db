import ATProtocol
import IPLD
import TestSupport
import Testing

@Suite struct `A commit` {
  private static let prev = CID.example(7)

  private func read(_ map: IPLDMap) throws -> Commit {
    try read(try DAGCBOREncoder.encode(.map(map)))
  }

  private func read(_ bytes: [UInt8]) throws -> Commit { try Commit(bytes.span) }

  private static func changed(_ changes: [String: IPLDValue?], from start: IPLDMap) -> IPLDMap {
    var map = start
    for (key, value) in changes { map[key] = value }
    return map
  }

  @Test func `of version 3 has a revision and a field prev`() throws {
    let commit = try read(exampleCommit(data: .example(3)))
    #expect(commit.did.text == "did:plc:ewvi7nxzyoun6zhxrhs64oiz")
    #expect(commit.version == 3)
    #expect(commit.rev?.text == "3lscuqc52or2x")
    #expect(commit.data == .example(3))
    #expect(commit.prev == nil)
    #expect(commit.hasPrev)
    #expect(commit.signature == [UInt8](repeating: 1, count: 64))
    #expect(commit.fields == ["did", "rev", "sig", "data", "prev", "version"])
  }

  @Test func `of version 3 may name the one before it, or have no field prev`() throws {
    let named = try read(Self.changed(["prev": .link(Self.prev)], from: exampleCommit()))
    #expect(named.prev == Self.prev)
    #expect(named.hasPrev)
    let bare = try read(Self.changed(["prev": nil], from: exampleCommit()))
    #expect(bare.prev == nil)
    #expect(!bare.hasPrev)
  }

  @Test func `of version 2 may lack the revision`() throws {
    let old = Self.changed(["version": .integer(2), "rev": nil], from: exampleCommit())
    let commit = try read(old)
    #expect(commit.version == 2)
    #expect(commit.rev == nil)
    #expect(try read(Self.changed(["version": .integer(2)], from: exampleCommit())).rev != nil)
  }

  @Test func `may have fields that are not known here`() throws {
    let commit = try read(Self.changed(["extra": .array([.null])], from: exampleCommit()))
    #expect(commit.fields.contains("extra"))
  }

  @Test func `of version 1 is told apart by its separate root`() throws {
    let map: IPLDMap = ["root": .link(.example()), "sig": .bytes([1])]
    let error = #expect(throws: RepositoryError.version1(fields: ["sig", "root"])) {
      try read(map)
    }
    #expect(error?.description.contains("2022") == true)
    #expect(error?.rootFields == ["sig", "root"])
  }

  @Test(
    arguments: [
      ["did": nil], ["did": .integer(1)], ["did": .string("alice.test")],
      ["did": .string("did:plc:")], ["rev": nil], ["rev": .null],
      ["rev": .string("today")], ["rev": .integer(3)], ["prev": .string("\(prev)")],
      ["prev": .bytes([1])], ["sig": nil], ["sig": .null], ["sig": .string("AAAA")],
      ["version": .integer(2), "rev": .null],
    ] as [[String: IPLDValue?]])
  func `with a malformed field names it`(_ changes: [String: IPLDValue?]) throws {
    let field = changes.keys.contains("version") ? "rev" : try #require(changes.keys.first)
    let error = #expect(throws: RepositoryError.self) {
      try read(Self.changed(changes, from: exampleCommit()))
    }
    guard case .malformedField(field, _)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(error?.description.contains("\"\(field)\"") == true)
  }

  @Test(
    arguments: [
      ["version": nil], ["version": .string("3")], ["data": nil],
      ["data": .string("\(prev)")], ["data": .null],
    ] as [[String: IPLDValue?]])
  func `without a version or a tree is something else`(_ changes: [String: IPLDValue?]) {
    let map = Self.changed(changes, from: exampleCommit())
    #expect(throws: RepositoryError.notACommit(fields: map.keys)) { try read(map) }
  }

  @Test(arguments: [0, 1, 4, -3, 1 << 40])
  func `of an unknown version says which`(_ version: Int) {
    let map = Self.changed(["version": .integer(Int128(version))], from: exampleCommit())
    #expect(throws: RepositoryError.unknownCommitVersion(version)) { try read(map) }
  }

  @Test(arguments: [IPLDValue.null, .array([]), .string("commit"), .integer(3)])
  func `is a map`(_ value: IPLDValue) throws {
    let bytes = try DAGCBOREncoder.encode(value)
    #expect(throws: RepositoryError.notACommit(fields: [])) { try read(bytes) }
  }

  @Test func `is short`() throws {
    let padding = IPLDValue.bytes([UInt8](repeating: 0, count: Commit.maximumLength))
    #expect(throws: RepositoryError.commitTooLong) {
      try read(Self.changed(["extra": padding], from: exampleCommit()))
    }
  }

  @Test func `that is something else is named without control characters, and briefly`() {
    var map: IPLDMap = ["\u{1b}[2J\u{9b}": .null, String(repeating: "a", count: 9999): .null]
    for number in 0..<100 { map["\(number)"] = .null }
    let text = RepositoryError.notACommit(fields: map.keys).description
    #expect(text.utf8.count < 1000)
    let first = RepositoryError.notACommit(fields: ["\u{1b}[2J\u{9b}", "sig"]).description
    #expect(first.hasSuffix(#"(it has the fields \u{1B}[2J\u{009B}, sig)"#))
  }

  @Test(arguments: SampleKey.all)
  func `is signed over everything but the signature`(_ sample: SampleKey) throws {
    let key = try VerificationKey(didKey: sample.didKey)
    var map = exampleCommit()
    map["sig"] = .bytes(try [UInt8](hex: sample.commitSignature))
    let commit = try read(map)
    #expect(commit.isSigned(by: key))
    map["sig"] = nil
    #expect(commit.unsignedBytes == (try DAGCBOREncoder.encode(.map(map))))
    #expect(!(try read(exampleCommit())).isSigned(by: key))
  }

  @Test(arguments: SampleKey.all)
  func `is signed with the fields that are not known here`(_ sample: SampleKey) throws {
    let key = try VerificationKey(didKey: sample.didKey)
    // A "sig" further down is one of them, and fields stand before and after the signature.
    let extra: [String: IPLDValue?] = [
      "extra": .array([.integer(1), .map(["sig": .bytes([])])]), "s": .integer(1),
      "zzz": .string("after"), "sig": .bytes(try [UInt8](hex: sample.extendedCommitSignature)),
    ]
    var map = Self.changed(extra, from: exampleCommit())
    #expect(try read(map).isSigned(by: key))
    map["zzz"] = .string("later")
    #expect(!(try read(map)).isSigned(by: key))
    map["zzz"] = nil
    #expect(!(try read(map)).isSigned(by: key))
  }

  @Test func `may have so many fields that the head changes its length`() throws {
    for count in [17, 18, 19, 249, 250, 251] {
      var map = exampleCommit()
      for number in 0..<count { map["field\(number)"] = .null }
      let commit = try read(map)
      map["sig"] = nil
      #expect(commit.unsignedBytes == (try DAGCBOREncoder.encode(.map(map))))
    }
  }

  @Test func `is DAG-CBOR to its last byte`() throws {
    let bytes = try DAGCBOREncoder.encode(.map(exampleCommit()))
    for length in 0..<bytes.count {
      #expect(throws: RepositoryError.self) { try read(Array(bytes[..<length])) }
    }
    #expect(
      throws: RepositoryError.commitNotDAGCBOR(DAGCBORError(.trailingBytes, offset: bytes.count))
    ) { try read(bytes + [0]) }
  }
}
