package import ATProtocol
package import HTTP
package import IPLD

// Methods of `com.atproto.repo`: what an account's owner has.

extension XRPCCall {
  /// `com.atproto.repo.importRepo`: replaces the account's records with those of a CAR.
  ///
  /// The reference server takes 400 µs a record, and sends nothing before it is done: the call
  /// waits half an hour.
  package static func importRepo(_ car: RequestBody) -> XRPCCall {
    XRPCCall(post: "com.atproto.repo.importRepo", isRepeatable: true)
      .with { $0.upload = (car, "application/vnd.ipld.car", 1800) }
  }

  /// One of several writes.
  package enum Write: Sendable {
    /// Creates a record.
    case create(RecordPath, IPLDValue)
    /// Replaces a record.
    case update(RecordPath, IPLDValue)
    /// Deletes a record.
    case delete(RecordPath)

    /// Where.
    package var path: RecordPath {
      switch self {
      case .create(let path, _), .update(let path, _), .delete(let path): path
      }
    }
  }

  /// `com.atproto.repo.applyWrites`: several writes, all or none, if the head is still the given
  /// one.
  ///
  /// The server is not asked to know the records' lexicons. The reference server takes 200.
  package static func applyWrites(_ writes: [Write], of did: DID, after head: CID) -> XRPCCall {
    XRPCCall(
      post: "com.atproto.repo.applyWrites",
      json([
        "repo": .string(did.text), "validate": .boolean(false), "swapCommit": .string("\(head)"),
        "writes": .array(
          writes.map { write in
            let (kind, path, value): (String, RecordPath, IPLDValue?) =
              switch write {
              case .create(let path, let value): ("create", path, value)
              case .update(let path, let value): ("update", path, value)
              case .delete(let path): ("delete", path, nil)
              }
            var fields: IPLDMap = [
              "$type": .string("com.atproto.repo.applyWrites#\(kind)"),
              "collection": .string(path.collection), "rkey": .string(path.recordKey),
            ]
            if let value { fields["value"] = value }
            return .map(fields)
          }),
      ]))
  }

  /// `com.atproto.repo.deleteRecord`: deletes a record, if it still has the given CID.
  ///
  /// - Parameter cid: the record's.
  package static func deleteRecord(_ path: RecordPath, of did: DID, expecting cid: CID)
    -> XRPCCall
  {
    XRPCCall(
      post: "com.atproto.repo.deleteRecord",
      json([
        "repo": .string(did.text), "collection": .string(path.collection),
        "rkey": .string(path.recordKey), "swapRecord": .string("\(cid)"),
      ]))
  }
}

extension XRPCCall {
  /// A call that tells only whether the server has a method: without a token and what it takes, and
  /// with GET, which changes nothing.
  package static func probe(_ nsid: String) -> XRPCCall { XRPCCall(get: nsid) }
}

extension XRPCQuery<CID> {
  /// `com.atproto.repo.uploadBlob`: a blob for records to refer to; the CID that the server gives
  /// it.
  ///
  /// The server keeps the media type of the first upload of the same bytes. The server may have to
  /// pass a video on to its video storage: the call waits five minutes.
  ///
  /// - Parameters:
  ///   - body: the bytes.
  ///   - contentType: the media type that records name.
  package static func uploadBlob(_ body: RequestBody, contentType: String) -> XRPCQuery {
    let call = XRPCCall(post: "com.atproto.repo.uploadBlob", isRepeatable: true)
      .with { $0.upload = (body, contentType, 300) }
    return XRPCQuery(call) { answer throws(AnswerFault) in
      guard case .link(let cid)? = answer.json["blob"]?["ref"] else {
        throw AnswerFault("it names no blob")
      }
      return cid
    }
  }

  /// `com.atproto.repo.createRecord` or, with the CID of one that is replaced, `putRecord`; the CID
  /// of what was written.
  ///
  /// The server is not asked to know the record's lexicon.
  package static func writeRecord(
    _ record: IPLDValue, at path: RecordPath, of did: DID, replacing cid: CID? = nil
  ) -> XRPCQuery {
    let call = XRPCCall(
      post: "com.atproto.repo." + (cid == nil ? "createRecord" : "putRecord"),
      XRPCCall.json([
        "repo": .string(did.text), "collection": .string(path.collection),
        "rkey": .string(path.recordKey), "validate": .boolean(false), "record": record,
        "swapRecord": cid.map { .string("\($0)") },
      ]))
    return XRPCQuery(call) { answer throws(AnswerFault) in try answer.cid("cid") }
  }

  /// `com.atproto.repo.getRecord`: a record as JSON, of which only the CID is read.
  package static func getRecord(_ path: RecordPath, of did: DID) -> XRPCQuery {
    let call = XRPCCall(
      get: "com.atproto.repo.getRecord",
      [
        ("repo", did.text), ("collection", path.collection), ("rkey", path.recordKey),
      ])
    return XRPCQuery(call) { answer throws(AnswerFault) in try answer.cid("cid") }
  }
}

extension XRPCQuery<ListPage<CID>> {
  /// `com.atproto.repo.listMissingBlobs`: blobs that the account's records refer to and that the
  /// server has no row for, page by page.
  ///
  /// The server does not check the files: a blob whose bytes are gone, or differ, is not listed.
  ///
  /// - Parameters:
  ///   - limit: how many to a page, 1 to 1,000.
  ///   - cursor: where to continue.
  package static func listMissingBlobs(limit: Int, cursor: String?) -> XRPCQuery {
    let call = XRPCCall(
      get: "com.atproto.repo.listMissingBlobs", [("limit", "\(limit)"), ("cursor", cursor)])
    return XRPCQuery(call) { answer throws(AnswerFault) in
      var page = ListPage<CID>(entries: [], cursor: try answer.cursor())
      for item in try answer.items("blobs") { page.entries.append(try Answer(item).cid("cid")) }
      return page
    }
  }
}
