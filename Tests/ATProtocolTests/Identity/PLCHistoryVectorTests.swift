import ATProtocol
import IPLD
import TestSupport
import Testing

/// The logs of the corpus: those of real accounts, and the labelled ones.
@Suite(.enabled(if: Corpus.isPresent, "\(Corpus.absence)"))
struct `PLC histories of the corpus` {
  private static let audited =
    Corpus.files(under: "plc/valid", suffix: ".json")
    + Corpus.files(under: "repos", suffix: "plc_audit_log.json")

  /// The account that the log says it is about.
  private func did(_ value: IPLDValue) throws -> DID {
    try DID(try #require(value.array?.first?["did"]?.string))
  }

  @Test(arguments: audited)
  func `with the directory's envelopes are proven`(_ path: String) throws {
    let bytes = try Corpus.bytes(path)
    let value = try DataModelJSON.decode(bytes)
    let did = try did(value)
    let log = try PLCLog(bytes.span, of: did)
    let history = try PLCHistory(validating: log, of: did)
    #expect(history.operations.count == value.array?.count)
    #expect(history.nullified.count == log.entries.count(where: \.isNullified))
    #expect((history.tombstone != nil) == (log.entries.last?.isTombstone == true))

    // One bit of any operation's signature, and it is another's.
    for number in log.entries.indices {
      var items = try #require(value.array)
      var entry = try #require(items[number].map)
      var operation = try #require(entry["operation"]?.map)
      let text = try #require(operation["sig"]?.string)
      operation["sig"] = .string((text.first == "A" ? "B" : "A") + text.dropFirst())
      entry["operation"] = .map(operation)
      let signed = try DAGCBOREncoder.encode(.map(operation))
      entry["cid"] = .string("\(CID(codec: .dagCBOR, hashing: signed.span))")
      items[number] = .map(entry)
      let changed = Array(IPLDValue.array(items).json().utf8)
      let other = try PLCLog(changed.span, of: did)
      #expect(throws: PLCFault.self) { try PLCHistory(validating: other, of: did) }
    }
  }

  @Test(arguments: Corpus.files(under: "plc/invalid", suffix: ".json"))
  func `that are invalid are refused`(_ path: String) throws {
    let bytes = try Corpus.bytes(path)
    let did = try did(try DataModelJSON.decode(bytes))
    let log = try PLCLog(bytes.span, of: did)
    let fault = #expect(throws: PLCFault.self) { try PLCHistory(validating: log, of: did) }
    let reasons: [(String, PLCFault.Reason)] = [
      ("too_slow", .tooLate), ("padding_chars", .malformedSignature),
      ("padding_bits", .malformedSignature), ("sig_der", .notSigned), ("high_s", .notSigned),
      ("update_tombstoned", .previousTombstone), ("update_nullified", .previousNullified),
      ("reused_key", .notOfHigherAuthority),
    ]
    for (name, reason) in reasons where path.contains(name) { #expect(fault?.reason == reason) }
  }

  /// Logs of bare operations, which lack what the directory says of them.
  private static let bare =
    Corpus.files(under: "plc/real", suffix: "_plc_history.jsonc")
    + Corpus.files(under: "repos", suffix: "_plc_history.jsonc")
    + Corpus.files(under: "repos", suffix: "plc_log.json")

  @Test(arguments: bare)
  func `of bare operations prove the keys, and not when they held`(_ path: String) throws {
    let bytes = try Corpus.bytes(path)
    var did = try DID("did:plc:ewvi7nxzyoun6zhxrhs64oiz")
    do throws(PLCLogError) {
      _ = try PLCLog(bytes.span, of: did)
      Issue.record("the log was taken for another account's")
    } catch {
      guard case .otherAccount(let own) = error else { throw error }
      did = try DID(own)
    }
    let log = try PLCLog(bytes.span, of: did)
    let history = try PLCHistory(validating: log, of: did)
    #expect(!log.isAudit && history.spans.count == log.entries.count)
    #expect(history.operations.allSatisfy { $0.receivedAt == nil })
    #expect(
      history.keyPeriods.map(\.isCurrent)
        == history.keyPeriods.indices.map { $0 == history.keyPeriods.count - 1 })
    #expect(path.contains("wish") ? history.did.text == "did:plc:foxemuxgrwgjfj4v75tjeynd" : true)
  }

  @Test func `name the keys and servers of a real account in their order`() throws {
    let bytes = try Corpus.bytes("repos/bsky.app/plc_audit_log.json")
    let did = try DID("did:plc:z72i7hdynmk6r22z27h6tvur")
    let history = try PLCHistory(validating: PLCLog(bytes.span, of: did), of: did)
    #expect(
      history.spans.map(\.from?.description) == [
        "2023-04-12T04:53:57Z", "2023-04-12T17:26:46Z", "2023-06-01T20:05:52Z",
        "2023-11-09T21:49:10Z",
      ])
    #expect(history.current?.operation.handles.map(\.text) == ["bsky.app"])
  }
}
