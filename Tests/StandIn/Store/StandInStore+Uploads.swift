import Foundation
import Synchronization

extension StandInStore {
  /// How many bytes every part has but the last.
  private static let leastPart = 5 << 20

  func begin(_ key: String, _ response: LoopbackResponse) throws {
    let id = state.withLock { state in
      state.count += 1
      let id = "upload-\(state.count)"
      state.uploads[id] = Upload(key: key)
      return id
    }
    try response.send(
      "<InitiateMultipartUploadResult><UploadId>\(id)</UploadId></InitiateMultipartUploadResult>",
      type: "application/xml")
    state.withLock { $0.uploads[id]?.isTold = true }
  }

  /// Takes a part: what is sent, or bytes of an object.
  func takePart(_ key: String, _ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let id = request.parameter("uploadId") ?? ""
    let number = request.parameter("partNumber").flatMap { Int($0) } ?? 0
    guard let source = request["x-amz-copy-source"] else {
      let tag = keep(request.body, number, id)
      guard let tag else { return try refuse(404, "NoSuchUpload", response) }
      response.fields.append(("ETag", tag))
      return try response.send()
    }
    let (object, behaviour) = state.withLock { state in
      let name = source.removingPercentEncoding?.dropFirst("/\(Self.bucket)/".count) ?? ""
      return (state.objects[String(name)], state.behaviour)
    }
    // One of the stores that were observed answers so.
    guard behaviour.copiesParts else { return try response.send() }
    guard let object else { return try refuse(404, "NoSuchKey", response) }
    if behaviour.obeysConditions, let tag = request["x-amz-copy-source-if-match"], tag != object.tag
    {
      return try refuse(412, "PreconditionFailed", response)
    }
    guard let range = Self.part(request["x-amz-copy-source-range"] ?? "", of: object.bytes.count)
    else { return try refuse(400, "InvalidArgument", response) }
    guard let tag = keep(Array(object.bytes[range]), number, id) else {
      return try refuse(404, "NoSuchUpload", response)
    }
    try response.send(
      "<CopyPartResult><ETag>\(Self.escaped(tag))</ETag></CopyPartResult>", type: "application/xml")
  }

  private func keep(_ bytes: [UInt8], _ number: Int, _ id: String) -> String? {
    state.withLock { state in
      if state.aborts > 0, state.uploads.removeValue(forKey: id) != nil { state.aborts -= 1 }
      guard state.uploads[id] != nil else { return nil }
      let tag = state.nextTag()
      state.uploads[id]?.parts[number] = Object(bytes: bytes, tag: tag)
      return tag
    }
  }

  func complete(_ key: String, _ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let id = request.parameter("uploadId") ?? ""
    let text = String(decoding: request.body, as: UTF8.self)
    let named = text.matches(
      of: /<PartNumber>(\d+)<\/PartNumber><ETag>([^<]*)<\/ETag>/
    ).map { (number: Int($0.output.1) ?? 0, tag: $0.output.2.replacing("&quot;", with: "\"")) }
    let completion = behaviour.completion
    let outcome = state.withLock { state -> (tag: String?, refusal: (Int, String)?) in
      guard let upload = state.uploads[id] else { return (nil, (404, "NoSuchUpload")) }
      guard state.permits(request, at: key) else { return (nil, (412, "PreconditionFailed")) }
      if [.droppedInSilence, .droppedAsMade].contains(completion) {
        return (state.objects[key]?.tag, nil)
      }
      var bytes: [UInt8] = []
      for (place, part) in named.enumerated() {
        guard let kept = upload.parts[part.number], kept.tag == part.tag else {
          return (nil, (400, "InvalidPart"))
        }
        guard place == named.count - 1 || kept.bytes.count >= Self.leastPart else {
          return (nil, (400, "EntityTooSmall"))
        }
        bytes += kept.bytes
      }
      guard !named.isEmpty else { return (nil, (400, "MalformedXML")) }
      state.put(bytes, at: key)
      state.uploads[id] = nil
      return (state.objects[key]?.tag, nil)
    }
    if let (status, code) = outcome.refusal { return try refuse(status, code, response) }
    if [.madeInSilence, .droppedInSilence].contains(completion) { return try response.send() }
    try response.send(
      "<?xml version=\"1.0\"?>\n<CompleteMultipartUploadResult><ETag>\(Self.escaped(outcome.tag ?? ""))</ETag></CompleteMultipartUploadResult>",
      type: "application/xml")
  }
}
