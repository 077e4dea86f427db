package import ATProtocol
package import HTTP
package import IPLD

/// `com.atproto.repo.createRecord`: a record that was not there.
package struct CreateRecord: XRPCQuery {
  /// Its name.
  package var nsid: String { "com.atproto.repo.createRecord" }
  /// It has a record written.
  package static let method = HTTPRequest.Method.post

  /// The account.
  package var did: DID
  /// Where.
  package var path: RecordPath
  /// The record, which the server is not asked to know the lexicon of.
  package var record: IPLDValue

  /// Asks for it.
  package init(did: DID, path: RecordPath, record: IPLDValue) {
    self.did = did
    self.path = path
    self.record = record
  }

  /// What is sent along.
  package var input: [UInt8] { DataModelJSON.encode(.map(fields)) }

  fileprivate var fields: IPLDMap {
    [
      "repo": .string(did.text), "collection": .string(path.collection.text),
      "rkey": .string(path.recordKey.text), "validate": .boolean(false), "record": record,
    ]
  }

  /// Reads the CID of what was written.
  package static func read(_ answer: Answer) throws(AnswerFault) -> CID { try answer.cid("cid") }
}

/// `com.atproto.repo.putRecord`: a record in the place of the one that is there.
package struct PutRecord: XRPCQuery {
  /// The errors it declares.
  package enum DeclaredError: String, Sendable, CaseIterable {
    /// Another record is there than the one that was to be replaced.
    case invalidSwap = "InvalidSwap"
  }

  /// Its name.
  package var nsid: String { "com.atproto.repo.putRecord" }
  /// It has a record written.
  package static let method = HTTPRequest.Method.post

  private let creation: CreateRecord
  /// The CID of the record that is replaced.
  package var replacing: CID

  /// Asks for it.
  package init(did: DID, path: RecordPath, record: IPLDValue, replacing: CID) {
    creation = CreateRecord(did: did, path: path, record: record)
    self.replacing = replacing
  }

  /// What is sent along.
  package var input: [UInt8] {
    var fields = creation.fields
    fields["swapRecord"] = .string("\(replacing)")
    return DataModelJSON.encode(.map(fields))
  }

  /// Reads the CID of what was written.
  package static func read(_ answer: Answer) throws(AnswerFault) -> CID { try answer.cid("cid") }
}

/// `com.atproto.repo.deleteRecord`: takes a record away, if it is the one that is meant.
package struct DeleteRecord: XRPCProcedure {
  /// The errors it declares.
  package enum DeclaredError: String, Sendable, CaseIterable {
    /// Another record is there.
    case invalidSwap = "InvalidSwap"
  }

  /// Its name.
  package var nsid: String { "com.atproto.repo.deleteRecord" }

  /// The account.
  package var did: DID
  /// Which.
  package var path: RecordPath
  /// The record's CID.
  package var expected: CID

  /// Asks for it.
  package init(did: DID, path: RecordPath, expecting expected: CID) {
    (self.did, self.path, self.expected) = (did, path, expected)
  }

  /// What is sent along.
  package var input: [UInt8] {
    let input: IPLDMap = [
      "repo": .string(did.text), "collection": .string(path.collection.text),
      "rkey": .string(path.recordKey.text), "swapRecord": .string("\(expected)"),
    ]
    return DataModelJSON.encode(.map(input))
  }
}

/// `com.atproto.repo.getRecord`: a record as JSON; of it, only its CID.
package struct GetRecordCID: XRPCQuery {
  /// The errors it declares.
  package enum DeclaredError: String, Sendable, CaseIterable {
    /// There is none.
    case recordNotFound = "RecordNotFound"
  }

  /// Its name.
  package var nsid: String { "com.atproto.repo.getRecord" }

  /// The account.
  package var did: DID
  /// Which.
  package var path: RecordPath

  /// Asks for it.
  package init(did: DID, path: RecordPath) {
    self.did = did
    self.path = path
  }

  /// The query.
  package var parameters: [(name: String, value: String)] {
    [
      ("repo", did.text), ("collection", path.collection.text), ("rkey", path.recordKey.text),
    ]
  }

  /// Reads the CID.
  package static func read(_ answer: Answer) throws(AnswerFault) -> CID { try answer.cid("cid") }
}
