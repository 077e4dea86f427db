import ATProtocol
import Foundation
import IPLD
import StandIn
import TestSupport
import Testing

@Suite struct `An operation that is to follow a log` {
  private static let now = UnixTime("2026-01-01T00:00:00Z")!

  /// A log of one operation with a key of the test's own in front, and that key.
  private struct Scene {
    let did: DID
    let log: PLCLog
    let key: PrivateKey
    var state: PLCState

    init(curve: VerificationKey.Curve = .k256) throws {
      key = try PrivateKey.generate(on: curve)
      let fields: IPLDMap = [
        "type": .string("plc_operation"), "prev": .null,
        "rotationKeys": .array([
          .string(key.verificationKey.didKey),
          .string("did:key:" + SigningKey(seed: "server").multikey),
        ]),
        "verificationMethods": .map([
          "atproto": .string("did:key:" + SigningKey(seed: "signing").multikey),
          "labeler": .string("did:key:" + SigningKey(seed: "labels").multikey),
        ]),
        "alsoKnownAs": .array([
          .string("at://alice.old.example"), .string("https://alice.example"),
        ]),
        "services": .map([
          "atproto_pds": .map([
            "type": .string("AtprotoPersonalDataServer"),
            "endpoint": .string("https://old.example"),
          ]),
          "atproto_labeler": .map([
            "type": .string("AtprotoLabeler"), "endpoint": .string("https://labels.example"),
          ]),
        ]),
      ]
      let unsigned = try DAGCBOREncoder.encode(.map(fields))
      var signed = fields
      signed["sig"] = .string(Self.url(try key.sign(unsigned.span)))
      let bytes = try DAGCBOREncoder.encode(.map(signed))
      let digest = SHA256.digest(of: bytes.span).bytes
      let name = "did:plc:" + Base32.encode(digest.span).prefix(24)
      did = try DID(name)
      let entry: IPLDMap = [
        "did": .string(name), "operation": .map(signed),
        "cid": .string("\(CID(codec: .dagCBOR, hashing: bytes.span))"),
        "nullified": .boolean(false), "createdAt": .string("2025-01-01T00:00:00.000Z"),
      ]
      let text = Array(IPLDValue.array([.map(entry)]).json().utf8)
      log = try PLCLog(text.span, of: did)
      state = try #require(log.state)
    }

    static func url(_ bytes: [UInt8]) -> String {
      Data(bytes).base64EncodedString().map { $0 == "+" ? "-" : $0 == "/" ? "_" : $0 }
        .filter { $0 != "=" }.map(String.init).joined()
    }

    func sign(_ state: PLCState, _ now: UnixTime = PLCSuccessorTime.now) throws -> PLCSuccessor {
      try PLCSuccessor(state, after: log, of: did, signing: key, now: now)
    }
  }

  private enum PLCSuccessorTime { static let now = UnixTime("2026-01-01T00:00:00Z")! }

  @Test(arguments: VerificationKey.Curve.allCases)
  func `is signed, and taken by a directory`(_ curve: VerificationKey.Curve) throws {
    var scene = try Scene(curve: curve)
    scene.state.alsoKnownAs.append("at://alice.example")
    let operation = try scene.sign(scene.state)
    let last = try #require(scene.log.entries.last?.cid)
    #expect(operation.operation["prev"] == .string("\(last)"))
    let directory = try StandInDirectory()
    let first = try #require(scene.log.entries.first?.operation)
    #expect(directory.take(first, for: scene.did.text).status == 200)
    #expect(directory.take(operation.operation, for: scene.did.text).status == 200)
    // The same again follows what is not the last any more.
    #expect(directory.take(operation.operation, for: scene.did.text).status == 400)
  }

  @Test func `keeps everything that a move does not change`() throws {
    let scene = try Scene()
    let own = scene.key.verificationKey.didKey
    let server = "did:key:" + SigningKey(seed: "server").multikey
    let new = "did:key:" + SigningKey(seed: "new server").multikey
    let signing = "did:key:" + SigningKey(seed: "new signing").multikey
    let json: IPLDMap = [
      "alsoKnownAs": .array([.string("at://alice.new.example")]),
      "verificationMethods": .map(["atproto": .string(signing)]),
      "rotationKeys": .array([.string(new)]),
      "services": .map([
        "atproto_pds": .map([
          "type": .string("AtprotoPersonalDataServer"),
          "endpoint": .string("https://new.example"),
        ])
      ]),
    ]
    let credentials = try #require(PLCCredentials(.map(json)))
    let moved = scene.state.moved(
      to: credentials, owners: [own], givingUp: "at://alice.old.example")
    #expect(moved.rotationKeys == [own, new, server])
    #expect(moved.alsoKnownAs == ["at://alice.new.example", "https://alice.example"])
    #expect(moved.signingKey == signing)
    #expect(moved.pds == "https://new.example")
    #expect(moved.verificationMethods["labeler"] == scene.state.verificationMethods["labeler"])
    #expect(moved.services["atproto_labeler"] == scene.state.services["atproto_labeler"])
    // Once more, nothing changes.
    #expect(moved.moved(to: credentials, owners: [own], givingUp: nil) == moved)
    _ = try scene.sign(moved)
  }

  @Test func `is refused here if a directory would refuse it`() throws {
    let scene = try Scene()
    func fault(_ change: (inout PLCState) -> Void) -> PLCSuccessor.Fault? {
      var state = scene.state
      change(&state)
      do throws(PLCSuccessor.Fault) {
        _ = try PLCSuccessor(
          state, after: scene.log, of: scene.did, signing: scene.key, now: Self.now)
        return nil
      } catch {
        return error
      }
    }
    #expect(fault { $0.rotationKeys = [] } == .noRotationKey)
    #expect(
      fault { $0.rotationKeys.append($0.rotationKeys[0]) } == .twice(scene.state.rotationKeys[0]))
    #expect(
      fault { $0.alsoKnownAs.append($0.alsoKnownAs[0]) } == .twice(scene.state.alsoKnownAs[0]))
    #expect(
      fault { state in
        state.rotationKeys += (0..<9).map { "did:key:" + SigningKey(seed: "\($0)").multikey }
      } == .tooMany("rotation keys"))
    #expect(
      fault { $0.alsoKnownAs.append("at://" + String(repeating: "a", count: 254)) }
        == .longText("name"))
    #expect(
      fault { $0.services["x"] = .pds("https://" + String(repeating: "a", count: 505)) }
        == .longText("server"))
    guard case .broken? = fault({ $0.rotationKeys.append("did:key:zNothing") }) else {
      Issue.record("a key that is none was taken")
      return
    }
    // Ten names of 258 bytes, ten servers and keys: each within its limit, together too long.
    let long = fault { state in
      state.alsoKnownAs = (0..<10).map { "at://\($0)" + String(repeating: "a", count: 240) }
      for number in 0..<8 {
        state.services["s\(number)"] = .pds("https://" + String(repeating: "b", count: 400))
      }
    }
    guard case .tooLong(let count)? = long else {
      Issue.record("\(String(describing: long))")
      return
    }
    #expect(count > PLCSuccessor.maximumLength)
  }

  @Test func `is not signed with a key that may not`() throws {
    let scene = try Scene()
    let other = try PrivateKey.generate(on: .k256)
    #expect(throws: PLCSuccessor.Fault.strangeKey) {
      try PLCSuccessor(scene.state, after: scene.log, of: scene.did, signing: other, now: Self.now)
    }
  }

  @Test func `that a server signed is what was asked for, or refused`() throws {
    var scene = try Scene()
    scene.state.alsoKnownAs.append("at://alice.example")
    let signed = try scene.sign(scene.state)
    func check(_ operation: IPLDValue, _ state: PLCState) throws {
      _ = try PLCSuccessor(
        checking: operation, state, after: scene.log, of: scene.did, now: Self.now)
    }
    try check(signed.operation, scene.state)
    var other = scene.state
    other.rotationKeys.removeLast()
    #expect(throws: PLCSuccessor.Fault.otherContent("rotationKeys")) {
      try check(signed.operation, other)
    }
    var map = try #require(signed.operation.map)
    map["sig"] = .string(Scene.url([UInt8](repeating: 1, count: 64)))
    let spoilt = map
    #expect(throws: PLCSuccessor.Fault.self) { try check(.map(spoilt), scene.state) }
  }

  @Test func `is not older than the last one, whatever the own clock says`() throws {
    var scene = try Scene()
    let directory = try StandInDirectory()
    let first = try #require(scene.log.entries.first?.operation)
    #expect(directory.take(first, for: scene.did.text).status == 200)
    let log = try Self.log(of: scene.did, directory)
    // The directory writes milliseconds.
    let time = try #require(log.entries.first?.createdAt)
    #expect(time.contains(/\.\d\d\dZ$/))
    scene.state.alsoKnownAs = ["at://alice.new.example"]
    for now in [Self.present, Self.present.advanced(by: -180_000_000), UnixTime(microseconds: 0)] {
      let operation = try PLCSuccessor(
        scene.state, after: log, of: scene.did, signing: scene.key, now: now)
      #expect(operation.operation["prev"]?.string == log.entries.last?.cid.map { "\($0)" })
    }
  }

  @Test func `is put off where the directory takes no more for now`() throws {
    var scene = try Scene()
    let directory = try StandInDirectory()
    let first = try #require(scene.log.entries.first?.operation)
    #expect(directory.take(first, for: scene.did.text).status == 200)
    // The first was taken just now, by the directory's clock.
    var log = try Self.log(of: scene.did, directory)
    for number in 0..<9 {
      scene.state.alsoKnownAs = ["at://alice-\(number).example"]
      let operation = try PLCSuccessor(
        scene.state, after: log, of: scene.did, signing: scene.key, now: Self.present)
      #expect(directory.take(operation.operation, for: scene.did.text).status == 200)
      log = try Self.log(of: scene.did, directory)
    }
    scene.state.alsoKnownAs = ["at://once-more.example"]
    let (full, state, key, did) = (log, scene.state, scene.key, scene.did)
    #expect(throws: PLCSuccessor.Fault.tooOften("ten operations an hour")) {
      try PLCSuccessor(state, after: full, of: did, signing: key, now: Self.present)
    }
  }

  private static var present: UnixTime {
    UnixTime(microseconds: Int64(Date().timeIntervalSince1970 * 1_000_000))
  }

  private static func log(of did: DID, _ directory: StandInDirectory) throws -> PLCLog {
    let (_, body) = try LoopbackClient.get(
      port: directory.server.port, path: "/\(did)/log/audit")
    let bytes = Array(body.utf8)
    return try PLCLog(bytes.span, of: did)
  }
}

@Suite struct `A token that vouches for an account` {
  @Test(arguments: VerificationKey.Curve.allCases)
  func `says whose, for whom and for what, and is signed`(_ curve: VerificationKey.Curve) throws {
    let key = try PrivateKey.generate(on: curve)
    let token = try ServiceToken.make(
      account: DID("did:plc:abcdefghijklmnopqrstuvwx"), audience: DID("did:web:pds.example"),
      method: "com.atproto.server.createAccount", now: 1_700_000_000, key: key)
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    #expect(parts.count == 3)
    func decode(_ part: Substring) throws -> [UInt8] {
      var text = part.map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
      while text.count % 4 != 0 { text.append("=") }
      return try [UInt8](#require(Data(base64Encoded: String(text))))
    }
    let header = try DataModelJSON.decode(decode(parts[0]))
    #expect(header["alg"] == .string(curve == .k256 ? "ES256K" : "ES256"))
    #expect(header["typ"] == .string("JWT"))
    let claims = try DataModelJSON.decode(decode(parts[1]))
    #expect(claims["iss"] == .string("did:plc:abcdefghijklmnopqrstuvwx"))
    #expect(claims["aud"] == .string("did:web:pds.example"))
    #expect(claims["lxm"] == .string("com.atproto.server.createAccount"))
    #expect(claims["exp"]?.integer == 1_700_000_060)
    #expect(claims["jti"]?.string?.utf8.count == 32)
    let signature = try decode(parts[2])
    let signed = Array("\(parts[0]).\(parts[1])".utf8)
    // Low-S and 64 bytes, or it does not verify.
    let isValid = key.verificationKey.verifies(signature, of: signed.span)
    #expect(isValid)
  }
}
