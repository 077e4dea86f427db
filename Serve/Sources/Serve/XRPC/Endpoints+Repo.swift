import ATProtocol
import Hummingbird
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
    guard let record = try repository.record(path.text),
      try parameters["cid"].map({ try Parameters.cid($0) == record.cid }) ?? true
    else {
      throw XRPCFault(
        "RecordNotFound", "Could not locate record: at://\(account.did)/\(path.text)")
    }
    let value = try value(of: record.bytes.span, path.text)
    return .json { json in write(account, path.text, record.cid, value, to: &json) }
  }

  func listRecords(_ parameters: Parameters) async throws -> Response {
    let account = try account(parameters, "repo")
    let collection = try parameters.required("collection")
    guard (try? NSID(collection)) != nil else {
      throw XRPCFault.invalid("\"\(collection.prefix(100))\" is no collection")
    }
    let limit = try parameters.limit(50, upTo: 100)
    let isReversed = parameters["reverse"] == "true"
    let repository = try await repository(account)
    let names = try repository.records(
      in: collection, after: parameters["cursor"], limit: limit,
      isReversed ? .ascending : .descending)
    return .json { json in
      if names.count == limit, let last = names.last { json.field("cursor", last.recordKey) }
      json.key("records")
      json.beginArray()
      for name in names {
        let path = "\(collection)/\(name.recordKey)"
        // One that is not there, or no DAG-CBOR, cannot be said in JSON: sync.getRecord has it.
        guard
          let value = repository.withBlock(name.cid, { try? DAGCBORDecoder.decode($0) }) ?? nil
        else { continue }
        json.beginObject()
        write(account, path, name.cid, value, to: &json)
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
      throw .invalid("\"\(text.prefix(200))\" is no path of a record: \(error)")
    }
  }

  private func value(of block: Span<UInt8>, _ path: String) throws(XRPCFault) -> IPLDValue {
    do throws(DAGCBORError) {
      return try DAGCBORDecoder.decode(block)
    } catch {
      throw .invalid("\(path) is no DAG-CBOR: com.atproto.sync.getRecord gives its bytes")
    }
  }

  private func write(
    _ account: ServedAccount, _ path: String, _ cid: CID, _ value: IPLDValue,
    to json: inout JSONWriter
  ) {
    json.field("uri", "at://\(account.did)/\(path)")
    json.field("cid", "\(cid)")
    json.key("value")
    value.writeJSON(to: &json)
  }
}
