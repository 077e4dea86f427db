import ATProtocol
import IPLD
import Snapshots

/// `com.atproto.repo`: records as JSON.
extension Endpoints {
  func describeRepo(_ parameters: Parameters, _ origin: String) async throws -> Response {
    let account = try account(parameters, "repo")
    let repository = try await repository(account)
    let collections = try repository.collections()
    let document = try directory.document(of: account, origin: origin)
    return .json { json in
      json.field("handle", account.entry.handle?.text ?? "handle.invalid")
      json.field("did", account.did.text)
      json.key("didDoc")
      if let document {
        document.writeJSON(to: &json)
      } else {
        json.beginObject()
        json.endObject()
      }
      json.field("collections", collections)
      let doubts = account.entry.standing.doubts
      json.field("handleIsCorrect", account.entry.handle != nil && !doubts.contains(.handle))
    }
  }

  func getRecord(_ parameters: Parameters) async throws -> Response {
    let account = try account(parameters, "repo")
    let path = try path(parameters)
    let repository = try await repository(account)
    guard let cid = try repository.recordCID(path.text),
      try parameters["cid"].map({ try Parameters.cid($0) == cid }) ?? true
    else {
      throw XRPCFault(
        "RecordNotFound", "Could not locate record: at://\(account.did)/\(path.text)")
    }
    return try .json { json in try write(account, path.text, cid, in: repository, to: &json) }
  }

  func listRecords(_ parameters: Parameters) async throws -> Response {
    let account = try account(parameters, "repo")
    let collection = try parameters.required("collection")
    guard RecordPath.isValid("\(collection)/self".utf8.span) else {
      throw XRPCFault.invalid("\"\(collection.prefix(100))\" is not a collection")
    }
    let limit = try parameters.limit(50, upTo: 100)
    let isReversed = parameters["reverse"] == "true"
    let repository = try await repository(account)
    let names = try repository.records(
      in: collection, after: parameters["cursor"], limit: limit,
      isReversed ? .ascending : .descending)
    return try .json { json in
      if names.count == limit, let last = names.last { json.field("cursor", last.recordKey) }
      json.key("records")
      json.beginArray()
      for name in names {
        json.beginObject()
        try write(account, "\(collection)/\(name.recordKey)", name.cid, in: repository, to: &json)
        json.endObject()
      }
      json.endArray()
    }
  }

  /// The path that the parameters `collection` and `rkey` make.
  func path(_ parameters: Parameters) throws(XRPCFault) -> RecordPath {
    let text = "\(try parameters.required("collection"))/\(try parameters.required("rkey"))"
    do throws(IdentifierError) {
      return try RecordPath(text)
    } catch {
      throw .invalid("\"\(text.prefix(200))\" is not the path of a record: \(error)")
    }
  }

  /// Writes a record: one that the archive lacks, or that JSON cannot express, is never left out.
  private func write(
    _ account: ServedAccount, _ path: String, _ cid: CID, in repository: LaidOutRepository,
    to json: inout JSONWriter
  ) throws(XRPCFault) {
    guard let value = repository.withBlock(cid, { try? DAGCBORDecoder.decode($0) }) else {
      throw .missing("the record \(path), block \(cid)")
    }
    guard let value else {
      throw .invalid("\(path) is not DAG-CBOR: com.atproto.sync.getRecord gives its bytes")
    }
    json.field("uri", "at://\(account.did)/\(path)")
    json.field("cid", "\(cid)")
    json.key("value")
    value.writeJSON(to: &json)
  }
}
