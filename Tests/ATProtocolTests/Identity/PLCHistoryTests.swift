import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

@Suite struct `Rotation keys of a server` {
  private func keys(_ log: MadeLog, of server: String) throws -> Set<String> {
    try log.history().rotationKeys(of: ServerOrigin(server))
  }

  @Test func `are those that came alone with the server`() throws {
    let (own, one, two) = (MadeLog.rotation[0], MadeLog.rotation[1], MadeLog.rotation[2])
    func name(_ key: SigningKey) -> String { "did:key:" + key.multikey }
    var log = MadeLog()
    try log.append(MadeLog.operation(rotation: [one]), by: one, hours: 0)
    // The owner's own, while the account is there, and then another server's after it.
    try log.append(MadeLog.operation(rotation: [own, one]), by: one, hours: 1)
    try log.append(
      MadeLog.operation(rotation: [own, two, one], pds: "https://two.example"), by: own, hours: 2)
    #expect(try keys(log, of: "https://one.example") == [name(one)])
    #expect(try keys(log, of: "https://two.example") == [name(two)])
    #expect(try keys(log, of: "https://three.example").isEmpty)
  }

  @Test func `are none of which it is not known whose they are`() throws {
    let (own, one, two) = (MadeLog.rotation[0], MadeLog.rotation[1], MadeLog.rotation[2])
    // Two at once, from the beginning.
    var log = MadeLog()
    try log.append(MadeLog.operation(rotation: [own, one]), by: one, hours: 0)
    #expect(try keys(log, of: "https://one.example").isEmpty)
    // A server of the same operator, with the same key: what came along is the owner's.
    var same = MadeLog()
    try same.append(MadeLog.operation(rotation: [one]), by: one, hours: 0)
    try same.append(
      MadeLog.operation(rotation: [own, one], pds: "https://two.example"), by: one, hours: 1)
    #expect(try keys(same, of: "https://two.example").isEmpty)
    // Both with the move.
    var both = MadeLog()
    try both.append(MadeLog.operation(rotation: [one]), by: one, hours: 0)
    try both.append(
      MadeLog.operation(rotation: [own, two, one], pds: "https://two.example"), by: one, hours: 1)
    #expect(try keys(both, of: "https://two.example").isEmpty)
  }
}

@Suite struct `A PLC history` {
  private func fault(_ log: MadeLog) throws -> PLCFault? {
    do {
      _ = try log.history()
      return nil
    } catch let fault as PLCFault {
      return fault
    }
  }

  /// A DID with one operation.
  private func begun() throws -> MadeLog {
    var log = MadeLog()
    try log.append(MadeLog.operation(), hours: 0)
    return log
  }

  @Test func `lists what held when`() throws {
    var log = try begun()
    try log.append(MadeLog.operation(handle: "b.test"), by: MadeLog.rotation[0], hours: 1)
    try log.append(
      MadeLog.operation(signing: MadeLog.signing[1], pds: "https://two.example"), hours: 2)
    let history = try log.history()
    #expect(history.did == (try log.did))
    #expect(history.operations.map(\.kind) == [.update, .update, .update])
    #expect(history.operations.map(\.cid) == (try (0..<3).map { try log.cid($0) }))
    #expect(
      history.operations.map(\.signer.multikey) == [1, 0, 1].map { MadeLog.rotation[$0].multikey })
    #expect(history.spans.map(\.from) == [0, 1, 2].map { MadeLog.time(hours: $0) })
    #expect(history.spans.map(\.until) == [MadeLog.time(hours: 1), MadeLog.time(hours: 2), nil])
    #expect(history.spans.map(\.operation.handles.first?.text) == ["a.test", "b.test", "a.test"])
    #expect(
      history.spans.map(\.operation.signingKey?.multikey)
        == [0, 0, 1].map { MadeLog.signing[$0].multikey })
    #expect(history.current?.operation.pds?.text == "https://two.example")
    #expect(history.current?.operation.rotationKeys.count == 3)
    #expect(history.nullified.isEmpty)
    #expect(history.tombstone == nil)
  }

  @Test func `may begin in the form of 2022, whose recovery key has the higher authority`() throws {
    var log = MadeLog()
    try log.append(MadeLog.legacy, hours: 0)
    try log.append(MadeLog.operation(), hours: 1, nullified: true)
    try log.append(MadeLog.operation(), by: MadeLog.rotation[0], after: 0, hours: 2)
    let history = try log.history()
    #expect(history.operations[0].kind == .legacyCreate)
    #expect(history.operations[0].handles.map(\.text) == ["old.test"])
    #expect(history.operations[1].nullifiedBy == (try log.cid(2)))
    var late = try begun()
    try late.append(MadeLog.legacy, hours: 1)
    #expect(try fault(late) == PLCFault(.lateCreate, operation: 1))
  }

  @Test func `leaves out of its spans what was nullified`() throws {
    var log = try begun()
    try log.append(MadeLog.operation(signing: MadeLog.signing[1]), hours: 1, nullified: true)
    try log.append(MadeLog.operation(signing: MadeLog.signing[2]), hours: 2, nullified: true)
    try log.append(MadeLog.operation(), by: MadeLog.rotation[0], after: 0, hours: 3)
    let history = try log.history()
    #expect(history.nullified.map(\.cid) == (try [log.cid(1), log.cid(2)]))
    #expect(history.nullified.allSatisfy { $0.nullifiedBy == history.operations[3].cid })
    #expect(history.spans.map(\.operation.cid) == (try [log.cid(0), log.cid(3)]))
    #expect(history.spans[0].until == MadeLog.time(hours: 3))
  }

  @Test func `ends with a tombstone, unless that is nullified`() throws {
    var log = try begun()
    try log.append(MadeLog.tombstone, hours: 1)
    let ended = try log.history()
    #expect(ended.tombstone?.cid == (try log.cid(1)))
    #expect(ended.current == nil)
    #expect(ended.spans.map(\.until) == [MadeLog.time(hours: 1)])
    log.change(1, "nullified", to: .boolean(true))
    try log.append(MadeLog.operation(), by: MadeLog.rotation[0], after: 0, hours: 2)
    let recovered = try log.history()
    #expect(recovered.tombstone == nil)
    #expect(recovered.current?.operation.cid == (try log.cid(2)))
  }

  @Test func `ends for ever with an operation without rotation keys`() throws {
    var log = try begun()
    try log.append(MadeLog.operation(rotation: []), hours: 1)
    #expect(try log.history().current?.operation.rotationKeys == [])
    try log.append(MadeLog.operation(), hours: 2)
    #expect(try fault(log) == PLCFault(.notSigned, operation: 2))
  }

  @Test func `begins with an operation that hashes to the DID`() throws {
    let log = try begun()
    let other = try DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz")
    let web = try DID("did:web:a.test")
    let read = try log.log()
    #expect(throws: PLCFault(.otherDID(try log.did.text), operation: 0)) {
      try PLCHistory(validating: read, of: other)
    }
    #expect(throws: PLCFault(.notAPLC)) { try PLCHistory(validating: read, of: web) }
    let none = Array("[]".utf8)
    let empty = try PLCLog(none.span, of: other)
    #expect(throws: PLCFault(.empty)) { try PLCHistory(validating: empty, of: other) }
    var dead = MadeLog()
    try dead.append(MadeLog.tombstone, hours: 0)
    #expect(try fault(dead) == PLCFault(.notAGenesis, operation: 0))
    var foreign = MadeLog()
    try foreign.append(MadeLog.operation(), by: MadeLog.signing[2], hours: 0)
    #expect(try fault(foreign) == PLCFault(.notSigned, operation: 0))
  }

  @Test func `goes on with the rotation keys of the operation before, not of the same one`() throws
  {
    var log = try begun()
    try log.append(MadeLog.operation(rotation: [MadeLog.signing[0]]), hours: 1)
    var wrong = log
    try wrong.append(MadeLog.operation(), by: MadeLog.rotation[0], hours: 2)
    #expect(try fault(wrong) == PLCFault(.notSigned, operation: 2))
    try log.append(MadeLog.operation(), by: MadeLog.signing[0], hours: 2)
    #expect(try fault(log) == nil)
    var taken = try begun()
    try taken.append(
      MadeLog.operation(rotation: [MadeLog.signing[2]]), by: MadeLog.signing[2], hours: 1)
    #expect(try fault(taken) == PLCFault(.notSigned, operation: 1))
  }

  @Test(arguments: [(0, 1, true), (1, 2, true), (1, 1, false), (2, 1, false), (0, 0, false)])
  func `is rewritten by a key of higher authority only`(_ by: Int, _ over: Int, _ isAllowed: Bool)
    throws
  {
    var log = try begun()
    try log.append(
      MadeLog.operation(handle: "b.test"), by: MadeLog.rotation[over], hours: 1, nullified: true)
    try log.append(MadeLog.operation(), by: MadeLog.rotation[by], after: 0, hours: 2)
    #expect(
      try fault(log) == (isAllowed ? nil : PLCFault(.notOfHigherAuthority, operation: 2)))
  }

  @Test func `is not rewritten by a stranger, nor by a key that stands there twice`() throws {
    var log = try begun()
    try log.append(MadeLog.operation(handle: "b.test"), hours: 1, nullified: true)
    try log.append(MadeLog.operation(), by: MadeLog.signing[2], after: 0, hours: 2)
    #expect(try fault(log) == PLCFault(.notSigned, operation: 2))
    let twice = [MadeLog.rotation[0], MadeLog.rotation[1], MadeLog.rotation[0]]
    var reused = MadeLog()
    try reused.append(MadeLog.operation(rotation: twice), hours: 0)
    try reused.append(
      MadeLog.operation(rotation: twice), by: MadeLog.rotation[0], hours: 1, nullified: true)
    try reused.append(
      MadeLog.operation(handle: "b.test"), by: MadeLog.rotation[0], after: 0, hours: 2)
    #expect(try fault(reused) == PLCFault(.notOfHigherAuthority, operation: 2))
  }

  @Test(arguments: [(73.0, true), (73.001, false)])
  func `is rewritten within 72 hours of the first operation that is taken back`(
    _ hours: Double, _ isAllowed: Bool
  ) throws {
    var log = try begun()
    try log.append(MadeLog.operation(handle: "b.test"), hours: 1, nullified: true)
    try log.append(MadeLog.operation(handle: "c.test"), hours: 60, nullified: true)
    try log.append(MadeLog.operation(), by: MadeLog.rotation[0], after: 0, hours: hours)
    #expect(try fault(log) == (isAllowed ? nil : PLCFault(.tooLate, operation: 3)))
  }

  @Test func `can be rewritten twice, each time by a higher key`() throws {
    var log = try begun()
    try log.append(
      MadeLog.operation(handle: "b.test"), by: MadeLog.rotation[2], hours: 1, nullified: true)
    try log.append(
      MadeLog.operation(handle: "c.test"), by: MadeLog.rotation[1], after: 0, hours: 2,
      nullified: true)
    try log.append(
      MadeLog.operation(handle: "d.test"), by: MadeLog.rotation[0], after: 0, hours: 3)
    let history = try log.history()
    #expect(history.operations.map(\.nullifiedBy) == (try [nil, log.cid(2), log.cid(3), nil]))
  }

  @Test func `follows only what stands`() throws {
    var log = try begun()
    try log.append(MadeLog.operation(handle: "b.test"), hours: 1, nullified: true)
    try log.append(MadeLog.operation(), by: MadeLog.rotation[0], after: 0, hours: 2)
    var nullified = log
    try nullified.append(MadeLog.operation(), after: 1, hours: 3)
    #expect(try fault(nullified) == PLCFault(.previousNullified, operation: 3))
    var unknown = log
    try unknown.add(
      Self.operation(of: log, 2, ["prev": .string("\(CID.example(1))")]), hours: 3)
    #expect(try fault(unknown) == PLCFault(.unknownPrevious, operation: 3))
    var again = try begun()
    try again.add(Self.operation(of: again, 0), hours: 1)
    #expect(try fault(again) == PLCFault(.unknownPrevious, operation: 1))
    var repeated = log
    try repeated.add(Self.operation(of: log, 2), hours: 3)
    #expect(try fault(repeated) == PLCFault(.notOfHigherAuthority, operation: 3))
    var dead = try begun()
    try dead.append(MadeLog.tombstone, hours: 1)
    try dead.append(MadeLog.operation(), hours: 2)
    #expect(try fault(dead) == PLCFault(.previousTombstone, operation: 2))
  }

  /// A signed operation of a log, changed afterwards.
  private static func operation(
    of log: MadeLog, _ number: Int, _ changes: [String: IPLDValue] = [:]
  ) -> IPLDMap {
    var map = log.entries[number]["operation"]?.map ?? [:]
    for (key, value) in changes { map[key] = value }
    return map
  }

  @Test func `agrees with what the directory says of each operation`() throws {
    var log = try begun()
    try log.append(MadeLog.operation(handle: "b.test"), hours: 1, nullified: true)
    try log.append(MadeLog.operation(), by: MadeLog.rotation[0], after: 0, hours: 2)
    #expect(try fault(log) == nil)
    for (number, field, value, reason) in [
      (1, "nullified", .boolean(false), .wrongMark(isNullified: false)),
      (2, "nullified", .boolean(true), .wrongMark(isNullified: true)),
      (2, "cid", .string("\(CID.example(3))"), .wrongCID(.example(3))),
      (2, "cid", .null, .wrongCID(nil)), (1, "createdAt", .string("yesterday"), .malformedTime),
      (1, "createdAt", .string("2024-02-30T00:00:00Z"), .malformedTime),
      (2, "createdAt", .string("2024-01-01T00:59:59.999Z"), .timeGoesBack),
    ] as [(Int, String, IPLDValue, PLCFault.Reason)] {
      var changed = log
      changed.change(number, field, to: value)
      #expect(try fault(changed) == PLCFault(reason, operation: number))
    }
  }

  @Test func `has one spelling for each signature`() throws {
    for change in [
      { $0 + "==" }, { $0 + "=" }, { $0 + "\n" }, { String($0.dropLast()) + "\u{212a}" },
      { String($0.dropLast(2)) }, { _ in "" }, { _ in String(repeating: "A", count: 96) },
      // The last character has four bits that belong to no byte.
      { text in
        let alphabet = Array(
          "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let last = alphabet.firstIndex(of: text.last ?? "A") ?? 0
        return String(text.dropLast()) + String(alphabet[last | 1])
      },
    ] as [(String) -> String] {
      var log = MadeLog()
      try log.append(MadeLog.operation(), hours: 0) { operation in
        operation["sig"] = .string(change(operation["sig"]?.string ?? ""))
      }
      #expect(try fault(log) == PLCFault(.malformedSignature, operation: 0))
    }
    for curve in [SigningKey.Curve.k256, .p256] {
      let key = SigningKey(curve, seed: "high")
      for highS in [false, true] {
        var log = MadeLog()
        try log.append(MadeLog.operation(rotation: [key]), by: key, hours: 0, highS: highS)
        #expect(try fault(log) == (highS ? PLCFault(.notSigned, operation: 0) : nil))
      }
    }
  }

  @Test func `has only operations that the directory takes`() throws {
    let key = "did:key:" + MadeLog.rotation[1].multikey
    let many = (0..<11).map { SigningKey(.p256, seed: "many \($0)") }
    for (field, value, reason) in [
      ("extra", .null, .wrongFields("extra")), ("services", nil, .wrongFields(nil)),
      ("type", .string("plc_future"), .malformedField("type")),
      ("type", .integer(1), .malformedField("type")),
      ("rotationKeys", .string(key), .malformedField("rotationKeys")),
      ("rotationKeys", .array([.string(key), .null]), .malformedField("rotationKeys")),
      ("rotationKeys", .array([.string(key + "x")]), .malformedField("rotationKeys")),
      (
        "rotationKeys", .array(many.map { .string("did:key:" + $0.multikey) }),
        .tooManyRotationKeys(11)
      ),
      ("alsoKnownAs", .array([.integer(1)]), .malformedField("alsoKnownAs")),
      ("alsoKnownAs", .null, .malformedField("alsoKnownAs")),
      ("verificationMethods", .map(["atproto": .null]), .malformedField("verificationMethods")),
      ("services", .map(["atproto_pds": .string("x")]), .malformedField("services")),
      (
        "services", .map(["atproto_pds": .map(["type": .string("x")])]), .malformedField("services")
      ),
      ("prev", .string("x"), .malformedField("prev")),
      ("prev", .integer(0), .malformedField("prev")),
      ("prev", .string("\(CID.example(2))"), .notAGenesis),
      ("prev", nil, .wrongFields(nil)),
    ] as [(String, IPLDValue?, PLCFault.Reason)] {
      var log = MadeLog()
      try log.append(MadeLog.operation(), hours: 0) { $0[field] = value }
      #expect(try fault(log) == PLCFault(reason, operation: 0), "\(field)")
    }
  }

  @Test func `has no operation over 7,500 bytes`() throws {
    func log(padding: Int) throws -> MadeLog {
      var log = MadeLog()
      var operation = MadeLog.operation()
      operation["alsoKnownAs"] = .array([.string(String(repeating: "a", count: padding))])
      try log.append(operation, hours: 0)
      return log
    }
    let small = try log(padding: 1000)
    let length = try DAGCBOREncoder.encode(try #require(small.entries[0]["operation"])).count
    let room = 7500 - length
    #expect(try fault(log(padding: 1000 + room)) == nil)
    #expect(try fault(log(padding: 1001 + room)) == PLCFault(.tooLong(7501), operation: 0))
  }

  @Test func `names its faults in plain text`() {
    let hostile = PLCFault(
      .wrongFields("\u{1b}[2J" + String(repeating: "a", count: 999)), operation: 1)
    #expect(
      hostile.description.hasPrefix(
        #"operation 2 of the PLC log has an unknown field, "\u{1B}[2Jaaa"#))
    #expect(hostile.description.utf8.count < 200)
    #expect(PLCFault(.empty).description == "the PLC log is empty")
  }

  @Test func `may have hundreds of operations`() throws {
    var log = try begun()
    for number in 1...400 {
      try log.append(
        MadeLog.operation(signing: MadeLog.signing[number % 3]), hours: Double(number))
    }
    #expect(try log.history().spans.count == 401)
  }
}
