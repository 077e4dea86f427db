package import ATProtocol
package import HTTP
package import IPLD

/// Uploads in parts, of which the store makes one object at once when they are complete.
extension BucketClient {
  /// The least that a part may have which is not the last, in bytes.
  package static let leastPart: UInt64 = 5 << 20
  /// The most that a part may have, in bytes.
  package static let largestPart: UInt64 = 5 << 30
  /// How many parts an upload may have.
  package static let maximumParts = 10_000

  /// For how many seconds a store may work without sending anything.
  private static let longWork = 600

  /// An upload that was begun.
  package struct Upload: Equatable, Sendable {
    /// The key of the object that it is to become.
    package let key: String
    /// What the store calls it.
    package let id: String
    /// When it was begun, by the store's clock; nil if the store did not say.
    package let begun: UnixTime?

    /// An upload.
    package init(key: String, id: String, begun: UnixTime? = nil) {
      (self.key, self.id, self.begun) = (key, id, begun)
    }
  }

  /// A part that the store has.
  package struct Part: Equatable, Sendable {
    /// Its number, from 1.
    package let number: Int
    /// Its tag.
    package let tag: String
  }

  /// Begins an upload.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  package func beginUpload(of key: String) async throws -> Upload {
    var call = Call(.post, key)
    call.query = [("uploads", "")]
    call.fields = [("Content-Type", Self.contentType)]
    let (_, body) = try await send(call)
    guard let id = XMLElement(body)?["UploadId"]?.text, !id.isEmpty else {
      throw malformed("the store began an upload without giving its ID")
    }
    return Upload(key: key, id: id)
  }

  /// Sends a part.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  package func send(
    _ body: RequestBody, digest: SHA256Digest, asPart number: Int, of upload: Upload
  ) async throws -> Part {
    var call = Call(.put, upload.key)
    call.query = [("partNumber", "\(number)"), ("uploadId", upload.id)]
    (call.body, call.digest) = (body, digest)
    guard let tag = try await send(call).0["etag"] else {
      throw malformed("the store accepted a part without giving its tag")
    }
    return Part(number: number, tag: tag)
  }

  /// Has the store take a part from an object that it has.
  ///
  /// - Parameters:
  ///   - source: The key of the object.
  ///   The expected content.
  ///   - range: Which bytes of it.
  ///   - number: The number of the part.
  ///   - upload: The upload.
  /// - Throws: ``StoreError``, also if the store reports success and copies nothing;
  ///   `TransportError`.
  /// - Returns: The part.
  package func copy(
    _ source: String, tag: String, _ range: Range<UInt64>, asPart number: Int, of upload: Upload
  ) async throws -> Part {
    var call = Call(.put, upload.key)
    call.query = [("partNumber", "\(number)"), ("uploadId", upload.id)]
    call.fields = [
      ("x-amz-copy-source", HTTPURL.escaped("/\(bucket)/\(source)", isPath: true)),
      ("x-amz-copy-source-range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"),
      ("x-amz-copy-source-if-match", tag),
    ]
    call.patience = Self.longWork
    let answer: XMLElement?
    do {
      answer = XMLElement(try await send(call).1)
    } catch let error as StoreError where error.status == 501 {
      throw StoreError(.cannotCopy, error.description, status: error.status, code: error.code)
    }
    guard let tag = answer?["ETag"]?.text, !tag.isEmpty else {
      throw error(.cannotCopy, "the store does not copy parts of objects", status: 200)
    }
    return Part(number: number, tag: tag)
  }

  /// Makes an object of the parts.
  ///
  /// - Parameters:
  ///   - upload: The upload.
  ///   - parts: Its parts.
  ///   - condition: On what that depends.
  /// - Throws: ``StoreError``, of the kind `unconfirmed` for a success without a result;
  ///   `TransportError`. After an error that says nothing of a condition the object may be there
  ///   anyway.
  /// - Returns: The tag of the object; nil if the store did not say.
  @discardableResult
  package func complete(_ upload: Upload, _ parts: [Part], if condition: Condition = .none)
    async throws -> String?
  {
    let list = parts.sorted { $0.number < $1.number }.map {
      "<Part><PartNumber>\($0.number)</PartNumber><ETag>\(XMLElement.escaped($0.tag))</ETag></Part>"
    }
    let text =
      "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\(list.joined())</CompleteMultipartUpload>"
    let bytes = Array(text.utf8)
    var call = Call(.post, upload.key)
    call.query = [("uploadId", upload.id)]
    call.fields = [("Content-Type", "application/xml")] + condition.fields
    (call.body, call.digest) = (RequestBody(bytes), SHA256.digest(of: bytes.span))
    call.patience = Self.longWork
    let answer = try await send(call)
    guard let result = XMLElement(answer.1), result.name == "CompleteMultipartUploadResult" else {
      throw error(
        .unconfirmed, "the store does not say what became of the upload (status 200)",
        of: upload.key, status: 200)
    }
    return result["ETag"]?.text ?? answer.0["etag"]
  }

  /// Aborts an upload; it is not an error if the upload is gone already.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  package func abandon(_ upload: Upload) async throws {
    var call = Call(.delete, upload.key)
    call.query = [("uploadId", upload.id)]
    do {
      _ = try await send(call)
    } catch let error as StoreError where [.noSuchUpload, .noSuchObject].contains(error.kind) {
      // It is gone already.
    }
  }

  /// The uploads to keys that begin with some text that were begun and neither completed nor given
  /// up.
  ///
  /// - Throws: ``StoreError``; `TransportError`.
  package func uploads(to prefix: String) async throws -> [Upload] {
    var found: [Upload] = []
    try await forEachPage(
      of: ("ListMultipartUploads", "ListMultipartUploadsResult", "Upload"),
      [("uploads", ""), ("prefix", prefix)],
      next: [("key-marker", "NextKeyMarker"), ("upload-id-marker", "NextUploadIdMarker")]
    ) { answer in
      for entry in answer.all("Upload") {
        if let key = entry["Key"]?.text, key.hasPrefix(prefix), let id = entry["UploadId"]?.text {
          let begun = entry["Initiated"].flatMap { UnixTime($0.text) }
          found.append(Upload(key: key, id: id, begun: begun))
        }
      }
    }
    return found
  }
}
