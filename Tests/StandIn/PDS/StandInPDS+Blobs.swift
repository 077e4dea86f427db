import ATProtocol
import IPLD
import TestSupport

/// `com.atproto.sync`, as far as it is about blobs.
extension StandInPDS {
  func listBlobs(_ call: Call) throws {
    let behaviour = call.behaviour
    if behaviour.hasNoBlobs {
      return try call.refuse(500, "InternalServerError", "Internal Server Error")
    }
    let account = try account(call)
    var since: TID?
    if let text = call.request.parameter("since"), !text.isEmpty {
      switch behaviour.listSince {
      case .exact: since = try? TID(text)
      case .ignored: break
      case .refused: return try call.refuse(400, "InvalidRequest", "since is not supported")
      case .fails: return try call.refuse(500, "InternalServerError", "Internal Server Error")
      }
    }
    let state = account.snapshot()
    var cids = state.referencedBlobs(since: since)
    if since == nil { cids.formUnion(state.ghosts) }
    if !behaviour.listsMissing { cids.formIntersection(state.blobs.keys) }
    if behaviour.givesUnreferenced { cids.formUnion(state.unreferenced) }
    let asked = call.request.parameter("limit").flatMap { Int($0) } ?? 500
    guard 1...1000 ~= asked else {
      return try call.refuse(400, "InvalidRequest", "Error: limit must be from 1 to 1000")
    }
    try sendPage(
      of: cids.map { "\($0)" }.sorted(), limit: min(asked, behaviour.maximumPage), call)
  }

  /// The cursor of a call; nil if it was answered with an empty page.
  ///
  /// - Parameter list: the field with the entries.
  func cursor(of call: Call, listing list: String) throws -> String? {
    let cursor = call.request.parameter("cursor") ?? ""
    guard call.behaviour.paging == .emptyPages else { return cursor }
    let mark = "behind:"
    if cursor.hasPrefix(mark) { return String(cursor.dropFirst(mark.count)) }
    try call.send([list: .array([]), "cursor": .string(mark + cursor)])
    return nil
  }

  private func sendPage(of cids: [String], limit: Int, _ call: Call) throws {
    guard let cursor = try cursor(of: call, listing: "cids") else { return }
    let start: Int
    switch call.behaviour.paging {
    case .integerCursor: start = Int(cursor) ?? 0
    case .loop: start = 0
    case .endless:
      let number = UInt64(cursor) ?? 0
      let made = (0..<UInt64(limit)).map { index -> IPLDValue in
        let text = Array("nobody has \(number + index)".utf8)
        return .string("\(CID(codec: .raw, hashing: text.span))")
      }
      return try call.send([
        "cids": .array(made), "cursor": .string("\(number + UInt64(limit))"),
      ])
    case .twice:
      let after = cursor.hasPrefix("again:") ? String(cursor.dropFirst(6)) : cursor
      start = cids.firstIndex { $0 > after } ?? cids.count
    default: start = cids.firstIndex { $0 > cursor } ?? cids.count
    }
    let page = cids[min(start, cids.count)...].prefix(limit)
    let isLast = start + page.count >= cids.count
    var items = page.map { IPLDValue.string($0) }
    var next: IPLDValue?
    switch call.behaviour.paging {
    case .proper, .emptyPages: next = isLast ? nil : page.last.map { .string($0) }
    case .garbled:
      next = isLast ? nil : page.last.map { .string($0) }
      items += [.string("no CID"), .integer(42), .null, .string("")]
    case .cursorOnEveryPage: next = page.last.map { .string($0) }
    case .integerCursor: next = isLast ? nil : .integer(Int128(start + page.count))
    case .noCursor, .endless: next = nil
    case .loop: next = .string("again")
    case .twice:
      if cursor.hasPrefix("again:") {
        next = isLast ? nil : page.last.map { .string($0) }
      } else {
        next = .string("again:" + cursor)
      }
    case .emptyCursor: next = isLast ? .string("") : page.last.map { .string($0) }
    }
    var answer: IPLDMap = ["cids": .array(items)]
    if let next { answer["cursor"] = next }
    try call.send(answer)
  }

  func getBlob(_ call: Call) throws {
    let behaviour = call.behaviour
    let response = call.response
    if behaviour.hasNoBlobs {
      return try call.refuse(500, "InternalServerError", "Internal Server Error")
    }
    let account = try account(call)
    guard let text = call.request.parameter("cid"), let cid = try? CID(text) else {
      return try call.refuse(400, "InvalidRequest", "Error: cid must be a CID")
    }
    if let target = behaviour.blobRedirect {
      response.status = 301
      response.fields.append(
        (
          "Location",
          target.split(separator: "{cid}", omittingEmptySubsequences: false)
            .joined(separator: text)
        ))
      return try response.send("moved\n")
    }
    let state = account.snapshot()
    let row = state.rows[cid]
    guard var blob = state.blobs[cid], row?.isTemporary != true, row?.isTakenDown != true,
      behaviour.givesUnreferenced || !state.unreferenced.contains(cid)
    else {
      throw Call.Refused(behaviour.unknownBlob, 400, "BlobNotFound", "Blob not found")
    }
    if call.fault == .otherContent {
      blob = BlobContent(noise: 0xbad, size: blob.size, mimeType: blob.mimeType)
    }
    response.fields += [
      ("Content-Type", behaviour.blobsHaveTypes ? blob.mimeType : "application/octet-stream"),
      ("Content-Disposition", "attachment; filename=\"\(cid)\""),
      ("X-Content-Type-Options", "nosniff"),
      ("Content-Security-Policy", "default-src 'none'; sandbox"),
    ]
    var range = 0..<blob.size
    if behaviour.honoursRange {
      response.fields.append(("Accept-Ranges", "bytes"))
      if let asked = call.request["range"] {
        guard let part = Self.range(asked, of: blob.size) else {
          response.status = 416
          response.fields.append(("Content-Range", "bytes */\(blob.size)"))
          return try response.send()
        }
        range = part
        response.status = 206
        response.fields.append(
          ("Content-Range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(blob.size)"))
      }
    }
    try response.begin(length: range.count, framing: behaviour.blobFraming)
    if call.request.method != "HEAD" {
      try blob.forEachPiece(in: range) { try response.write($0) }
    }
    try response.end()
  }

  /// The bytes that a `Range` field asks for; nil if there are none.
  private static func range(_ field: String, of size: Int) -> Range<Int>? {
    guard field.hasPrefix("bytes=") else { return 0..<size }
    let ends = field.dropFirst("bytes=".count).split(
      separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
    guard ends.count == 2 else { return nil }
    guard let first = Int(ends[0]) else {
      return Int(ends[1]).map { max(0, size - $0)..<size }
    }
    let last = min(Int(ends[1]) ?? (size - 1), size - 1)
    return first <= last ? first..<(last + 1) : nil
  }
}
