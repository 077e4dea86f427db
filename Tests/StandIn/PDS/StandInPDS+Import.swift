import ATProtocol
import IPLD
import TestSupport

/// What is put into an account's repository and its blobs.
extension StandInPDS {
  func importRepo(_ owner: StandInAccount, _ call: Call) throws {
    typealias Refused = Call.Refused
    guard call.behaviour.takesImports else {
      throw Refused(400, "InvalidRequest", "Service is not accepting repo imports")
    }
    guard call.request.body.count <= call.behaviour.importLimit else {
      throw Refused(413, "PayloadTooLarge", "request entity too large")
    }
    let fails = Refused(500, "InternalServerError", "Internal Server Error")
    var rest: [UInt8]? = call.request.body
    var reader = CARReader<Never>(limits: .mapped) { () throws(Never) -> [UInt8]? in
      defer { rest = nil }
      return rest
    }
    var found: [CID: Block] = [:]
    let roots: [CID]
    do {
      roots = try reader.readHeader().roots
      while let block = try reader.next() {
        guard CID(codec: block.cid.codec, hashing: block.bytes.span) == block.cid else {
          throw fails
        }
        found[block.cid] = block
      }
    } catch {
      throw fails
    }
    guard roots.count == 1 else { throw Refused(400, "InvalidRequest", "expected one root") }
    guard let commitBlock = found[roots[0]], let commit = try? Commit(commitBlock.bytes.span),
      commit.hasPrev, commit.rev != nil
    else { throw fails }
    var nodes: [Block] = []
    var bodies: [[UInt8]: Block] = [:]
    var open = [commit.data]
    while let cid = open.popLast() {
      guard let block = found[cid], let node = try? MSTNode(block.bytes.span) else { throw fails }
      nodes.append(block)
      if let left = node.left { open.append(left) }
      var key: [UInt8] = []
      for entry in node.entries {
        key = Array(key.prefix(entry.prefixLength)) + node.suffixes[entry.suffix]
        let path = String(decoding: key, as: UTF8.self)
        guard RecordPath.oddity(in: key.span) == nil else { throw fails }
        guard let body = found[entry.value],
          (try? DAGCBORDecoder.decode(body.bytes.span))?.map != nil
        else { throw Refused(400, "InvalidRequest", "Could not parse record at '\(path)'") }
        bodies[key] = body
        if let right = entry.right { open.append(right) }
      }
    }
    owner.change { state in
      let before = state.referencedBlobs(since: nil)
      let (blobs, rows) = (state.blobs, state.rows)
      let last = state.rev?.integer ?? 0
      let fresh = TID(integer: max(UInt64(Self.now * 1_000_000) << 10, last + 1 << 10))
      state.replace(
        commit: commitBlock, nodes: nodes, data: commit.data, records: bodies, rev: fresh)
      // An import takes records away, and leaves what they referred to.
      (state.blobs, state.rows) = (blobs, rows)
      let after = state.referencedBlobs(since: nil)
      state.ghosts = state.ghosts.union(before).subtracting(after)
    }
    try call.response.send()
  }

  func listMissingBlobs(_ owner: StandInAccount, _ call: Call) throws {
    let limit = call.request.parameter("limit").map { Int($0) ?? 0 } ?? 500
    guard 1...1000 ~= limit else {
      throw Call.Refused(400, "InvalidRequest", "Error: limit must be from 1 to 1000")
    }
    guard var cursor = try cursor(of: call, listing: "blobs") else { return }
    if call.behaviour.paging == .loop { cursor = "" }
    let state = owner.snapshot()
    let names = state.missingBlobs.map { "\($0)" }.sorted().drop { $0 <= cursor }.prefix(limit)
    let items = names.map { name -> IPLDValue in
      let item: IPLDMap = [
        "cid": .string(name), "recordUri": .string("at://\(owner.did)/app.bsky.feed.post/x"),
      ]
      return .map(item)
    }
    var answer: IPLDMap = ["blobs": .array(items)]
    if let last = names.last { answer["cursor"] = .string(last) }
    if call.behaviour.paging == .loop { answer["cursor"] = .string("again") }
    try call.send(answer)
  }

  func uploadBlob(_ owner: StandInAccount, _ call: Call) throws {
    typealias Refused = Call.Refused
    if let limit = call.behaviour.uploadLimit {
      guard update({ $0.uploads.admit(limit, now: Self.now, call.response) }) else {
        throw Refused(429, "RateLimitExceeded", "Rate Limit Exceeded")
      }
    }
    let body = call.request.body
    guard body.count <= call.behaviour.blobLimit else {
      throw Refused(413, "PayloadTooLarge", "request entity too large")
    }
    let said = call.request["content-type"].map { String($0.prefix { $0 != ";" }) } ?? ""
    guard !call.behaviour.refusedTypes.contains(said) else {
      throw Refused(500, "InternalServerError", "Internal Server Error")
    }
    let type = Self.sniffed(body) ?? said
    let blob = BlobContent(body, mimeType: type)
    let refusal = owner.change { state -> Refused? in
      if state.rows[blob.cid]?.isTakenDown == true {
        return Refused(400, "InvalidRequest", "Blob has been taken down, cannot re-upload")
      }
      let isReferenced =
        state.ghosts.contains(blob.cid) || state.referencedBlobs(since: nil).contains(blob.cid)
      if let row = state.rows[blob.cid] {
        guard row.isTemporary, isReferenced else { return nil }
        guard row.type == type else {
          return Refused(400, "InvalidMimeType", "Referenced Mimetype does not match stored blob")
        }
        state.rows[blob.cid]?.isTemporary = false
      } else {
        state.rows[blob.cid] = AccountState.BlobRow(
          type: type, size: blob.size, isTemporary: !isReferenced)
      }
      state.blobs[blob.cid] = blob
      if !isReferenced {
        state.unreferenced.insert(blob.cid)
      } else {
        state.unreferenced.remove(blob.cid)
      }
      return nil
    }
    if let refusal { throw refusal }
    try call.send([
      "blob": .map([
        "$type": .string("blob"), "ref": .link(blob.cid), "mimeType": .string(type),
        "size": .integer(Int128(blob.size)),
      ])
    ])
  }

  /// The type that a blob's first bytes tell.
  private static func sniffed(_ bytes: [UInt8]) -> String? {
    if bytes.starts(with: [0x89, 0x50, 0x4e, 0x47]) { return "image/png" }
    if bytes.starts(with: [0xff, 0xd8, 0xff]) { return "image/jpeg" }
    if bytes.dropFirst(4).starts(with: Array("ftyp".utf8)) { return "video/mp4" }
    return nil
  }

  // MARK: Records

  func getRecordValue(_ call: Call) throws {
    let account = try account(call, parameter: "repo")
    let path =
      "\(call.request.parameter("collection") ?? "")/\(call.request.parameter("rkey") ?? "")"
    let state = account.snapshot()
    guard let record = state.records[Array(path.utf8)],
      let bytes = state.blocks[record.cid]?.bytes
    else {
      throw Call.Refused(
        400, "RecordNotFound", "Could not locate record: at://\(account.did)/\(path)")
    }
    try call.send([
      "uri": .string("at://\(account.did)/\(path)"), "cid": .string("\(record.cid)"),
      "value": try DAGCBORDecoder.decode(bytes.span),
    ])
  }

  func writeRecord(_ method: String, _ owner: StandInAccount, _ input: IPLDMap, _ call: Call) throws
  {
    typealias Refused = Call.Refused
    guard let repo = input["repo"]?.string, let collection = input["collection"]?.string,
      let rkey = input["rkey"]?.string, let path = try? RecordPath("\(collection)/\(rkey)"),
      path.oddity == nil
    else { throw Refused(400, "InvalidRequest", "Input must have collection and rkey") }
    guard repo == owner.did || repo == owner.handle else {
      throw Refused(401, "AuthenticationRequired", "Authentication Required")
    }
    guard owner.status == .active else {
      throw call.behaviour.newestAnswers
        ? Refused(401, "AccountDeactivated", "Account is deactivated")
        : Refused(400, "InvalidRequest", "Account is deactivated")
    }
    let state = owner.snapshot()
    let existing = state.records[Array(path.text.utf8)]?.cid
    if let swap = input["swapRecord"] {
      guard
        swap.string.map({ text in existing.map { "\($0)" == text } ?? false })
          ?? (existing == nil)
      else {
        throw Refused(400, "InvalidSwap", "Record was at \(existing.map { "\($0)" } ?? "null")")
      }
    }
    if method.hasSuffix("deleteRecord") {
      if existing != nil { try owner.commit([.delete(path: path.text)]) }
      return try call.response.send()
    }
    if method.hasSuffix("createRecord"), existing != nil {
      throw Refused(500, "InternalServerError", "Internal Server Error")
    }
    guard var record = input["record"]?.map else {
      throw Refused(400, "InvalidRequest", "Input must have the property \"record\"")
    }
    if record["$type"] == nil { record["$type"] = .string(collection) }
    let bytes = try DAGCBOREncoder.encode(.map(record))
    let refs = try blobs(in: bytes, state)
    let cid = CID(codec: .dagCBOR, hashing: bytes.span)
    if cid != existing {
      try owner.commit([.putBytes(path: path.text, bytes: bytes)])
      owner.change { state in
        for ref in refs {
          state.rows[ref.cid]?.isTemporary = false
          state.unreferenced.remove(ref.cid)
        }
      }
    }
    try call.send(["uri": .string("at://\(owner.did)/\(path)"), "cid": .string("\(cid)")])
  }
}
