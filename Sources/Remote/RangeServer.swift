package import Archive
package import ObjectStore
internal import XRPC

/// What one object can be asked for, part by part.
protocol RangeServer: Sendable {
  /// What a message calls the object; without what could be secret.
  var name: String { get }

  /// Asks for the object or a part of it.
  ///
  /// - Parameters:
  ///   - range: the part, as the field `Range` names it; nil for all of it.
  ///   - tag: the content that is meant; nil for any.
  ///   - receive: reads an answer of success, whatever part it brings.
  /// - Throws: ``FetchFailure`` if there is none; what `receive` throws.
  func get<Value>(
    _ range: String?, tag: String?, receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value
}

extension RangeServer {
  /// Reads a part of the object.
  ///
  /// - Parameter tag: the content that is meant; nil for any.
  /// - Returns: its bytes, and what names the content.
  /// - Throws: ``FetchFailure`` if another part comes; `TransportError` if not all of it does.
  func part(_ range: Range<UInt64>, tag: String?) async throws -> (
    bytes: [UInt8], version: ContentVersion
  ) {
    try await get("bytes=\(range.lowerBound)-\(range.upperBound - 1)", tag: tag) { response in
      guard let part = response["content-range"].flatMap({ ContentRange($0) }),
        part.first == range.lowerBound, part.last == range.upperBound - 1
      else { throw otherPart("than it was asked for") }
      return (try await bytes(of: response, count: range.count), ContentVersion(response))
    }
  }

  /// The bytes of an answer, of which there have to be so many.
  func bytes(of response: HTTPResponse, count: Int) async throws -> [UInt8] {
    let bytes = try await response.body.collect(upTo: count, of: name)
    guard bytes.count == count else { throw cutOff(bytes.count, count) }
    return bytes
  }

  func otherPart(_ than: String) -> FetchFailure {
    FetchFailure(.refused, "\(name): the server sends another part \(than)")
  }

  func cutOff(_ received: Int, _ expected: Int) -> TransportError {
    TransportError(.cutOff("\(received) of \(expected) bytes came"), url: name)
  }

  func refuseEncoded(_ response: HTTPResponse) throws {
    let encoding = response["content-encoding"]?.lowercased() ?? "identity"
    guard encoding == "identity" || encoding == "aws-chunked" else {
      throw FetchFailure(
        .refused, "\(name): the server sends it compressed once more (\(Excerpt.of(encoding)))")
    }
  }
}

/// By what a server's answers show that they are of one content.
struct ContentVersion: Equatable {
  /// What names the content.
  var tag: String?
  /// When it was written.
  var date: String?

  init(_ response: HTTPResponse) {
    tag = response["etag"]
    date = response["last-modified"]
  }

  /// Whether an answer is of the same content, as far as it says.
  func agrees(with other: ContentVersion) -> Bool {
    if let tag, let its = other.tag { return tag == its }
    if let date, let its = other.date { return date == its }
    return true
  }
}

/// An object in a bucket.
struct BucketObject: RangeServer {
  let client: BucketClient
  let key: String

  var name: String { "\(BucketAddress(bucket: client.bucket, key: key))" }

  func get<Value>(
    _ range: String?, tag: String?, receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    do {
      return try await client.object(key, range: range, tag: tag, receive: receive)
    } catch let error as StoreError {
      throw FetchFailure(error)
    } catch let error as TransportError {
      throw FetchFailure(error)
    }
  }
}

/// A file on a web server.
struct WebFile: RangeServer {
  let network: Network
  let url: HTTPURL

  var name: String { "\(url)" }

  func get<Value>(
    _ range: String?, tag: String?, receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    var fields: [(name: String, value: String)] = []
    if let range { fields.append(("Range", range)) }
    // A weak tag may stay while the bytes change, and servers may not compare it (RFC 9110, 13.1.1).
    if let tag, !tag.hasPrefix("W/") { fields.append(("If-Match", tag)) }
    var request = HTTPRequest(
      .get, url.text, fields: fields, acceptsCompression: false, isStreamed: true)
    request.asksForPart = range != nil
    do {
      let (delivery, value) = try await network.send(request, receive: receive)
      if let value { return value }
      throw FetchFailure(status: delivery.response.status, of: name)
    } catch let error as TransportError {
      throw FetchFailure(error)
    }
  }
}

extension FetchFailure {
  /// What a store's refusal means for one who reads.
  package init(_ error: StoreError) {
    let kind: Kind =
      switch error.kind {
      case .noSuchObject, .noSuchBucket: error.status == 416 ? .refused : .absent
      case .denied, .noCredentials: .forbidden
      case .conditionFailed: .replaced
      case .unavailable: .unavailable
      case .refused, .cannotCopy, .noSuchUpload, .malformed: .refused
      }
    self.init(kind, "\(error)", status: error.status)
  }

  init(_ error: TransportError) {
    let kind: Kind =
      switch error.reason {
      case .unusableURL, .unusablePin, .malformedAnswer, .refusedAddress, .refusedRedirect,
        .tooManyRedirects, .tooLong, .notSecure:
        .refused
      default: .unavailable
      }
    self.init(kind, "\(error)")
  }

  init(status: Int, of name: String) {
    let (kind, what): (Kind, String) =
      switch status {
      case 404, 410: (.absent, "there is nothing there")
      case 401, 403: (.forbidden, "the server does not let it be read")
      case 412: (.replaced, "it is another one by now")
      case 429, 500...: (.unavailable, "the server cannot answer now")
      default: (.refused, "the server refuses")
      }
    self.init(kind, "\(name): \(what) (status \(status))", status: status)
  }
}
