import Foundation
import Synchronization

extension StandInStore {
  /// Gives an object, or a part of it.
  func give(_ key: String, _ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let (object, behaviour) = state.withLock { ($0.objects[key], $0.behaviour) }
    guard let object else { return try refuse(404, "NoSuchKey", response) }
    if let tag = request["if-match"], tag != object.tag {
      return try refuse(412, "PreconditionFailed", response)
    }
    response.fields.append(("ETag", object.tag))
    var range = 0..<object.bytes.count
    if behaviour.knowsRanges, let asked = request["range"] {
      guard let part = Self.part(asked, of: object.bytes.count) else {
        return try refuse(416, "InvalidRange", response)
      }
      range = part
      response.status = behaviour.saysWhole ? 200 : 206
      response.fields.append(
        (
          "Content-Range",
          "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(object.bytes.count)"
        ))
    }
    if let cut = behaviour.bytesBeforeCut, cut < range.count {
      response.distortion = .cut(at: Double(cut) / Double(range.count))
    }
    if let stall = behaviour.bytesBeforeStall, stall < range.count {
      response.distortion = .stalled(at: Double(stall) / Double(range.count))
    }
    try response.begin(length: range.count)
    var bytes = object.bytes
    if !range.isEmpty, range.upperBound == bytes.count, takesWrongEnd() {
      for place in max(range.lowerBound, bytes.count - 512)..<bytes.count { bytes[place] = 0 }
    }
    try response.write(bytes.span.extracting(range))
    try response.end()
  }

  /// Whether this answer is one of those that end in zeros.
  private func takesWrongEnd() -> Bool {
    state.withLock { state in
      guard state.behaviour.wrongEnds > 0 else { return false }
      state.behaviour.wrongEnds -= 1
      return true
    }
  }

  /// Gives bytes, or the part of them that is requested, as a web server does.
  package static func give(
    _ bytes: [UInt8], to request: LoopbackRequest, _ response: LoopbackResponse
  ) throws {
    response.fields.append(("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"))
    guard let text = request["range"], let part = part(text, of: bytes.count) else {
      return try response.send(bytes)
    }
    response.status = 206
    response.fields.append(
      ("Content-Range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(bytes.count)"))
    try response.send(Array(bytes[part]))
  }

  /// The bytes that a `Range` field means; nil if there are none.
  package static func part(_ text: String, of count: Int) -> Range<Int>? {
    let parts = text.dropFirst("bytes=".count).split(
      separator: "-", omittingEmptySubsequences: false)
    guard text.hasPrefix("bytes="), parts.count == 2 else { return nil }
    guard let first = Int(parts[0]) else {
      guard let suffix = Int(parts[1]), suffix > 0, count > 0 else { return nil }
      return max(0, count - suffix)..<count
    }
    guard first < count else { return nil }
    return first..<min(count, (Int(parts[1]) ?? count - 1) + 1)
  }

  /// Takes an object.
  func put(_ key: String, _ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let tag = state.withLock { state -> String? in
      guard state.permits(request, at: key) else { return nil }
      state.put(request.body, at: key)
      return state.objects[key]?.tag
    }
    guard let tag else { return try refuse(412, "PreconditionFailed", response) }
    response.fields.append(("ETag", tag))
    try response.send()
  }

  /// Removes an object, or an upload.
  func remove(_ key: String, _ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let isThere = state.withLock { state in
      guard let id = request.parameter("uploadId") else {
        state.objects[key] = nil
        return true
      }
      return state.uploads.removeValue(forKey: id) != nil
    }
    guard isThere else { return try refuse(404, "NoSuchUpload", response) }
    response.status = 204
    try response.send()
  }

  /// Lists objects or uploads, two to a page.
  func answerBucket(_ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let prefix = request.parameter("prefix") ?? ""
    guard request.method == "GET" else { return try refuse(405, "MethodNotAllowed", response) }
    if request.parameter("uploads") != nil {
      let after = request.parameter("upload-id-marker") ?? ""
      let open = state.withLock { state in
        state.uploads.filter { $0.key > after && $0.value.key.hasPrefix(prefix) }
          .map { (id: $0.key, key: $0.value.key, begun: $0.value.begun) }
      }.sorted { $0.id < $1.id }
      let page = open.prefix(2)
      let items = page.map {
        "<Upload><Key>\(Self.escaped($0.key))</Key><UploadId>\($0.id)</UploadId><Initiated>\($0.begun.formatted(.iso8601))</Initiated></Upload>"
      }
      let more =
        open.count > page.count
        ? "<IsTruncated>true</IsTruncated><NextKeyMarker>\(Self.escaped(page.last?.key ?? ""))</NextKeyMarker><NextUploadIdMarker>\(page.last?.id ?? "")</NextUploadIdMarker>"
        : "<IsTruncated>false</IsTruncated>"
      return try response.send(
        "<?xml version=\"1.0\"?><ListMultipartUploadsResult>\(items.joined())\(more)</ListMultipartUploadsResult>",
        type: "application/xml")
    }
    let after = request.parameter("continuation-token") ?? ""
    let found = state.withLock { state in
      state.objects.filter { $0.key > after && $0.key.hasPrefix(prefix) }
        .map { (key: $0.key, object: $0.value) }
    }.sorted { $0.key < $1.key }
    let page = found.prefix(2)
    let items = page.map {
      "<Contents><Key>\(Self.escaped($0.key))</Key><Size>\($0.object.bytes.count)</Size><ETag>\(Self.escaped($0.object.tag))</ETag></Contents>"
    }
    let more =
      found.count > page.count
      ? "<IsTruncated>true</IsTruncated><NextContinuationToken>\(Self.escaped(page.last?.key ?? ""))</NextContinuationToken>"
      : ""
    try response.send(
      "<?xml version=\"1.0\"?><ListBucketResult>\(items.joined())\(more)</ListBucketResult>",
      type: "application/xml")
  }

  static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
  }
}
