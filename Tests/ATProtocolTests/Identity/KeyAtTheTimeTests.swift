import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

@Suite struct `The key at the time` {
  private typealias Signer = SignatureVerdict.Signer

  /// A commit of this account with a revision this many hours after the log's start, signed by a
  /// key.
  private func commit(
    of did: DID, by key: SigningKey, hours: Double?, highS: Bool = false
  ) throws -> Commit {
    var map = exampleCommit()
    map["did"] = .string(did.text)
    if let hours {
      let time = UInt64(MadeLog.time(hours: hours).microseconds)
      map["rev"] = .string(TID(integer: time << 10 | 5).text)
    } else {
      map["rev"] = nil
      map["version"] = .integer(2)
    }
    map["sig"] = nil
    let signature = key.sign(try DAGCBOREncoder.encode(.map(map)), highS: highS)
    map["sig"] = .bytes(signature)
    let bytes = try DAGCBOREncoder.encode(.map(map))
    return try Commit(bytes.span)
  }

  private static let now = MadeLog.time(hours: 10_000)

  private func verdict(_ log: MadeLog, by key: Int, hours: Double?) throws -> SignatureVerdict {
    let commit = try commit(of: log.did, by: MadeLog.signing[key], hours: hours)
    return try log.history().judge(commit, now: Self.now)
  }

  /// Key one from hour 0, key two from hour 100, key one again from hour 200, and no change of key
  /// at hour 250.
  private func moved() throws -> MadeLog {
    var log = MadeLog()
    try log.append(MadeLog.operation(), hours: 0)
    try log.append(MadeLog.operation(handle: "b.test"), hours: 50)
    try log.append(MadeLog.operation(signing: MadeLog.signing[1]), hours: 100)
    try log.append(MadeLog.operation(), hours: 200)
    try log.append(MadeLog.operation(handle: "c.test"), hours: 250)
    return log
  }

  @Test func `is not told by a log without times, but which keys the account has had is`() throws {
    let made = try moved()
    let operations = made.entries.compactMap { $0["operation"] }
    let forms = [
      [DataModelJSON.encode(.array(operations))], operations.map { DataModelJSON.encode($0) },
      made.entries.map { DataModelJSON.encode(.map($0)) },
    ]
    for (number, form) in forms.enumerated() {
      let text = Array(form.joined(separator: [0x0a]))
      let history = try PLCHistory(validating: PLCLog(text.span, of: made.did), of: made.did)
      #expect(history.keyPeriods.map(\.isCurrent) == [false, false, true])
      for (key, hours) in [(0, 40), (1, 150), (1, 9000), (2, 150)] {
        let commit = try commit(of: made.did, by: MadeLog.signing[key], hours: Double(hours))
        let signer = history.judge(commit, now: Self.now).signer
        let audited = try verdict(made, by: key, hours: Double(hours)).signer
        switch signer {
        case .currentKey(let period),
          .formerKey(let period) where number < 2:
          #expect(key < 2 && period.from == nil && period.until == nil)
          #expect("\(signer)".contains("a time that the PLC log does not give"))
        default: #expect(signer == audited)
        }
      }
    }
  }

  private func period(_ log: MadeLog, _ key: Int, _ from: Int, until: Double?) throws -> KeyPeriod {
    let history = try log.history()
    let span = history.spans[from]
    let periods = try [
      verdict(log, by: key, hours: nil), verdict(log, by: key, hours: 40),
      verdict(log, by: key, hours: 150),
    ]
    let found = periods.compactMap { verdict -> KeyPeriod? in
      switch verdict.signer {
      case .currentKey(let period), .formerKey(let period): period
      default: nil
      }
    }
    let period = try #require(found.first { $0.from == span.from })
    #expect(period.until == until.map { MadeLog.time(hours: $0) })
    #expect(period.operation == span.operation.cid)
    #expect(period.key.multikey == MadeLog.signing[key].multikey)
    return period
  }

  @Test(arguments: [200, 225, 300, 9999.9])
  func `is the current one`(_ hours: Double) throws {
    let log = try moved()
    let verdict = try verdict(log, by: 0, hours: hours)
    #expect(verdict.signer == .currentKey(try period(log, 0, 3, until: nil)))
    #expect(verdict.revisionTime == .plausible(MadeLog.time(hours: hours)))
    #expect(verdict.isGenuine)
    #expect(
      verdict.description
        == "signed with the account's current key, valid since 2024-01-09T08:00:00Z")
  }

  @Test func `may be a former one, which an account that has moved goes on with until it writes`()
    throws
  {
    let log = try moved()
    for (key, hours, from, until) in [(0, 40, 0, 100), (0, 60, 0, 100), (1, 150, 2, 200)]
      as [(Int, Double, Int, Double)]
    {
      let verdict = try verdict(log, by: key, hours: hours)
      #expect(verdict.signer == .formerKey(try period(log, key, from, until: until)))
      #expect(verdict.isGenuine)
    }
    #expect(
      try verdict(log, by: 1, hours: 150).description
        == "signed with the key that was valid from 2024-01-05T04:00:00Z until 2024-01-09T08:00:00Z"
    )
  }

  @Test(arguments: [(200.0, true), (200.99, true), (201.01, false), (9000, false)])
  func `may be a former one for an hour after its end`(_ hours: Double, _ isGenuine: Bool) throws {
    let log = try moved()
    let verdict = try verdict(log, by: 1, hours: hours)
    let period = try period(log, 1, 2, until: 200)
    #expect(verdict.signer == (isGenuine ? .formerKey(period) : .expiredKey(period)))
    #expect(verdict.isGenuine == isGenuine)
    // The key holds again now, but did not then.
    #expect(try !self.verdict(log, by: 0, hours: 150).isGenuine)
  }

  @Test(arguments: [(99.9, true), (99.8, false), (1.0, false)])
  func `is not one that came later, but for the difference of clocks`(
    _ hours: Double, _ isGenuine: Bool
  ) throws {
    let log = try moved()
    let verdict = try verdict(log, by: 1, hours: hours)
    let period = try period(log, 1, 2, until: 200)
    #expect(verdict.signer == (isGenuine ? .formerKey(period) : .laterKey(period)))
    #expect(verdict.isGenuine == isGenuine)
    #expect(verdict.key == period.key)
  }

  @Test func `is not one of an operation that was nullified`() throws {
    var log = MadeLog()
    try log.append(MadeLog.operation(), hours: 0)
    try log.append(MadeLog.operation(signing: MadeLog.signing[2]), hours: 10, nullified: true)
    try log.append(MadeLog.operation(), by: MadeLog.rotation[0], after: 0, hours: 20)
    for hours in [5.0, 15, 25] {
      let verdict = try verdict(log, by: 2, hours: hours)
      guard case .nullifiedKey(let key, let operation, let other) = verdict.signer else {
        Issue.record("\(verdict)")
        continue
      }
      #expect(key.multikey == MadeLog.signing[2].multikey)
      #expect(operation == (try log.cid(1)))
      #expect(other == (try log.cid(2)))
      #expect(!verdict.isGenuine)
      // What the owner signed meanwhile is genuine: his key never ceased to hold.
      let own = try self.verdict(log, by: 0, hours: hours)
      #expect(own.signer == .currentKey(try period(log, 0, 0, until: nil)))
    }
  }

  @Test(arguments: [(9.0, true), (10.1, true), (10.5, false), (99, false)])
  func `has an end at the tombstone`(_ hours: Double, _ isGenuine: Bool) throws {
    var log = MadeLog()
    try log.append(MadeLog.operation(), hours: 0)
    try log.append(MadeLog.tombstone, hours: 10)
    let verdict = try verdict(log, by: 0, hours: hours)
    let period = try period(log, 0, 0, until: 10)
    let tombstone = try log.cid(1)
    #expect(
      verdict.signer
        == (isGenuine ? .formerKey(period) : .afterTombstone(period, tombstone: tombstone)))
    #expect(verdict.isGenuine == isGenuine)
  }

  @Test func `is not a stranger's, nor the same key's with the higher s`() throws {
    let log = try moved()
    let stranger = try verdict(log, by: 2, hours: 300)
    #expect(stranger.signer == .noKey(keyCount: 2))
    #expect(stranger.description == "signed with none of the 2 keys that the account has had")
    let high = try commit(of: log.did, by: MadeLog.signing[0], hours: 300, highS: true)
    #expect(try log.history().judge(high, now: Self.now).signer == .noKey(keyCount: 2))
    let other = try DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz")
    let foreign = try commit(of: other, by: MadeLog.signing[0], hours: 300)
    #expect(try log.history().judge(foreign, now: Self.now).signer == .otherAccount(other))
  }

  @Test func `is found first where the log names more keys than are tried`() throws {
    var log = MadeLog()
    let keys = (0...SignatureVerdict.maximumKeys).map {
      SigningKey(.k256, seed: "one of many \($0)")
    }
    for (number, key) in keys.enumerated() {
      try log.append(MadeLog.operation(signing: key), hours: Double(number))
    }
    let history = try log.history()
    for number in [0, 1, keys.count / 2, keys.count - 1] {
      let commit = try commit(of: log.did, by: keys[number], hours: Double(number) + 0.5)
      #expect(history.judge(commit, now: Self.now).isGenuine)
    }
    let stranger = try commit(of: log.did, by: MadeLog.signing[2], hours: 100)
    let verdict = history.judge(stranger, now: Self.now)
    #expect(verdict.signer == .tooManyKeys && !verdict.isGenuine)
    #expect(
      verdict.description
        == "signed with none of 256 of the account's keys; no more are tried")
  }

  @Test func `is missing where the account named none`() throws {
    var log = MadeLog()
    try log.append(MadeLog.operation(signing: nil), hours: 0)
    #expect(try verdict(log, by: 0, hours: 5).signer == .noKeyNamed)
    try log.append(MadeLog.operation(), hours: 10)
    try log.append(MadeLog.operation(signing: nil), hours: 20)
    let verdict = try verdict(log, by: 0, hours: 15)
    #expect(verdict.signer == .formerKey(try period(log, 0, 1, until: 20)))
  }

  @Test func `is judged as of now where the revision is in the future`() throws {
    let log = try moved()
    for (hours, isFuture) in [(10_000.1, false), (10_000.2, true), (90_000, true)] {
      let verdict = try verdict(log, by: 0, hours: hours)
      let time = MadeLog.time(hours: hours)
      #expect(verdict.revisionTime == (isFuture ? .future(time) : .plausible(time)))
      #expect(verdict.isGenuine)
      #expect(verdict.description.hasSuffix("in the future, \(time)") == isFuture)
      #expect(try !self.verdict(log, by: 1, hours: hours).isGenuine)
    }
  }

  @Test func `is judged without a time where the revision can be none`() throws {
    let log = try moved()
    for hours in [-0.2, -20_000, -400_000] {
      for key in [0, 1] {
        let verdict = try verdict(log, by: key, hours: hours)
        #expect(verdict.revisionTime == .impossible(MadeLog.time(hours: hours)))
        #expect(verdict.isGenuine)
      }
      #expect(try verdict(log, by: 2, hours: hours).signer == .noKey(keyCount: 2))
    }
    #expect(
      try verdict(log, by: 0, hours: -0.1).revisionTime == .plausible(MadeLog.time(hours: -0.1)))
    let old = try verdict(log, by: 1, hours: nil)
    #expect(old.revisionTime == SignatureVerdict.RevisionTime.none)
    #expect(old.isGenuine)
  }

  @Test func `of a document is weaker`() throws {
    let did = try DID("did:web:a.test")
    func document(_ key: String) throws -> DIDDocument {
      let json = Array(
        """
        {"id": "\(did)", "verificationMethod": [{"id": "#atproto", "type": "Multikey", \(key)
         "controller": "\(did)"}]}
        """.utf8)
      return try DIDDocument(json.span)
    }
    let named = try document(#""publicKeyMultibase": "\#(MadeLog.signing[1].multikey)","#)
    let commit = try commit(of: did, by: MadeLog.signing[1], hours: 5)
    let verdict = named.judge(commit, now: Self.now)
    #expect(verdict.isGenuine)
    #expect(verdict.signer == .documentKey(try #require(named.signingKey)))
    #expect(verdict.revisionTime == .plausible(MadeLog.time(hours: 5)))
    #expect(
      named.judge(commit, now: MadeLog.time(hours: 1)).revisionTime
        == .future(MadeLog.time(hours: 5)))
    let foreign = try self.commit(of: did, by: MadeLog.signing[0], hours: 5)
    #expect(named.judge(foreign, now: Self.now).signer == .noKey(keyCount: 1))
    #expect(try document("").judge(commit, now: Self.now).signer == .noKeyNamed)
    let other = try self.commit(of: DID("did:web:b.test"), by: MadeLog.signing[1], hours: 5)
    #expect(named.judge(other, now: Self.now).signer == .otherAccount(other.did))
  }
}

/// Real commits, and the histories that came with them.
@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `The key at the time of real commits` {
  private static let now = UnixTime("2026-06-01T00:00:00Z")

  private func commit(_ path: String) throws -> Commit {
    let bytes = try Corpus.bytes(path)
    var reader = CARReader<Never>(pulling: Self.once(bytes))
    let root = try #require(try reader.readHeader().roots.first)
    while let block = try reader.next() {
      if block.cid == root { return try Commit(block.bytes.span) }
    }
    throw RepositoryError.commitMissing(root)
  }

  private static func once(_ bytes: [UInt8]) -> () -> [UInt8]? {
    var bytes: [UInt8]? = bytes
    return {
      defer { bytes = nil }
      return bytes
    }
  }

  @Test(arguments: [
    ("bsky.app/bsky.app.3ld7z52fef622", "bsky.app/"),
    ("bsky.app/bsky.app.3lvzjbqtnva2s", "bsky.app/"),
    ("bnewbold.robocracy.org", "bnewbold.robocracy.org."),
  ])
  func `is in the log`(_ car: String, _ log: String) throws {
    let commit = try commit("repos/\(car).car")
    let bytes = try Corpus.bytes("repos/\(log)plc_audit_log.json")
    let history = try PLCHistory(validating: PLCLog(bytes.span, of: commit.did), of: commit.did)
    let verdict = history.judge(commit, now: try #require(Self.now))
    guard case .currentKey = verdict.signer else {
      Issue.record("\(verdict)")
      return
    }
    guard case .plausible = verdict.revisionTime else {
      Issue.record("\(verdict)")
      return
    }
    // At the time of the last operation the revision lay in the future.
    let then = try #require(history.spans.last?.from)
    guard case .future = history.judge(commit, now: then).revisionTime else {
      Issue.record("\(verdict)")
      return
    }
  }

  @Test(arguments: Corpus.files(under: "repos/kurimochi", suffix: ".car"))
  func `is not named by a document that has keys for other purposes only`(_ path: String) throws {
    let bytes = try Corpus.bytes("repos/kurimochi/did.json")
    let commit = try commit(path)
    let verdict = try DIDDocument(bytes.span).judge(commit, now: try #require(Self.now))
    #expect(verdict.signer == .noKeyNamed)
    let key = try VerificationKey(
      didKey: "did:key:zQ3shNkGgbWX2ByxgHeR5ggTSHkdpSCs4wMdmyDSPdrYrC9rx")
    #expect(commit.isSigned(by: key))
  }
}
