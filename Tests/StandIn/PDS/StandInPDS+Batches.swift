import ATProtocol
import IPLD

/// Several writes at once.
extension StandInPDS {
  private static let maximumWrites = 200

  /// All of them or none, as the reference server does.
  func applyWrites(_ owner: StandInAccount, _ input: IPLDMap, _ call: Call) throws {
    typealias Refused = Call.Refused
    guard let items = input["writes"]?.array, items.count <= Self.maximumWrites else {
      throw Refused(400, "InvalidRequest", "Too many writes. Max: 200")
    }
    guard owner.status == .active else {
      throw Refused(400, "InvalidRequest", "Account is deactivated")
    }
    if let swap = input["swapCommit"]?.string, swap != "\(owner.head)" {
      throw Refused(400, "InvalidSwap", "Commit was at \(owner.head)")
    }
    let state = owner.snapshot()
    var present = Set(state.records.keys)
    var writes: [StandInAccount.Write] = []
    var used: [BlobRef] = []
    for item in items {
      guard let kind = item["$type"]?.string?.split(separator: "#").last,
        let collection = item["collection"]?.string, let rkey = item["rkey"]?.string
      else { throw Refused(400, "InvalidRequest", "Action not supported") }
      let path = "\(collection)/\(rkey)"
      let isThere = present.contains(Array(path.utf8))
      guard isThere == (kind != "create") else {
        throw Refused(500, "InternalServerError", "Internal Server Error")
      }
      if kind == "delete" {
        present.remove(Array(path.utf8))
        writes.append(.delete(path: path))
        continue
      }
      present.insert(Array(path.utf8))
      guard var record = item["value"]?.map else {
        throw Refused(400, "InvalidRequest", "Input must have the property \"value\"")
      }
      if record["$type"] == nil { record["$type"] = .string(collection) }
      let bytes = try DAGCBOREncoder.encode(.map(record))
      used += try blobs(in: bytes, state)
      writes.append(.putBytes(path: path, bytes: bytes))
    }
    if !writes.isEmpty { try owner.commit(writes) }
    owner.change { state in
      for ref in used {
        state.rows[ref.cid]?.isTemporary = false
        state.unreferenced.remove(ref.cid)
      }
    }
    try call.response.send()
  }

  /// The blobs that a record refers to, each of which has to be there, as the type that it names.
  func blobs(in bytes: [UInt8], _ state: AccountState) throws -> [BlobRef] {
    typealias Refused = Call.Refused
    var refs: [BlobRef] = []
    var scanner = BlobRefScanner(profile: .dagCBOR)
    _ = try scanner.scan(bytes.span, found: { refs.append($0) })
    for ref in refs {
      if ref.isLegacy { throw Refused(400, "InvalidRequest", "Legacy blob ref at 'embed'") }
      guard let row = state.rows[ref.cid] else {
        throw Refused(400, "BlobNotFound", "Could not find blob: \(ref.cid)")
      }
      guard row.type == ref.mimeType else {
        throw Refused(
          400, "InvalidMimeType",
          "Referenced Mimetype does not match stored blob. Expected: \(row.type)")
      }
    }
    return refs
  }
}
