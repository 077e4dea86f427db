package import Archive
internal import HTTP
package import ObjectStore

/// Reads one object, part by part.
protocol RangeReader: Sendable {
  /// The object's name in messages, without anything that could be secret.
  var name: String { get }

  /// Requests the object or a part of it.
  ///
  /// - Parameters:
  ///   - range: the part, as the field `Range` names it; nil for all of it.
  ///   - tag: the expected content; nil for any.
  ///   - receive: reads a successful answer, whatever part it brings.
  /// - Throws: ``FetchFailure`` if there is none; what `receive` throws.
  func get<Value>(_ range: String?, tag: String?, receive: (HTTPResponse) async throws -> Value)
    async throws -> Value
}

extension RangeReader {
  /// The part of the object that an answer contains; nil for all of it.
  ///
  /// - Throws: ``FetchFailure`` if it does not say which, or is compressed by the server.
  func part(of response: HTTPResponse) throws -> ContentRange? {
    let encoding = response["content-encoding"]?.lowercased() ?? "identity"
    guard encoding == "identity" || encoding == "aws-chunked" else {
      throw refused("the server adds a compression of its own (\(Excerpt.of(encoding)))")
    }
    guard let text = response["content-range"] else {
      if response.status == 200 { return nil }
      throw refused("the server does not say which part it sends")
    }
    guard let part = ContentRange(text) else { throw otherPart("than requested") }
    return part
  }

  func otherPart(_ than: String) -> FetchFailure {
    refused("the server sends a different part \(than)")
  }

  private func refused(_ why: String) -> FetchFailure { FetchFailure(.refused, "\(name): \(why)") }

  func cutOff(_ received: Int, _ expected: Int) -> TransportError {
    TransportError(.cutOff("\(received) of \(expected) bytes arrived"), url: name)
  }
}

/// The fields by which a server's answers show that they are of the same content.
struct ContentVersion {
  /// The content's identifier.
  let tag: String?
  /// When it was written.
  let date: String?

  /// What an answer shows; nothing without one.
  init(_ answer: HTTPResponse? = nil) {
    (tag, date) = (answer?["etag"], answer?["last-modified"])
  }

  /// Whether an answer is of the same content, as far as it says.
  func agrees(with other: ContentVersion) -> Bool {
    if let tag, let its = other.tag { return tag == its }
    if let date, let its = other.date { return date == its }
    return true
  }
}

/// A file on a web server.
struct WebFile: RangeReader {
  let network: Network
  let url: HTTPURL

  var name: String { "\(url)" }

  func get<Value>(
    _ range: String?, tag: String?, receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    var fields: [(name: String, value: String)] = []
    if let range { fields.append(("Range", range)) }
    // A weak tag may stay while the bytes change, and servers may not compare it (RFC 9110,
    // 13.1.1).
    if let tag, !tag.hasPrefix("W/") { fields.append(("If-Match", tag)) }
    var request = HTTPRequest(
      .get, url.text, fields: fields, acceptsCompression: false, isStreamed: true)
    request.asksForPart = range != nil
    let (delivery, value) = try await FetchFailure.telling { [request] in
      try await network.send(request, receive: receive)
    }
    if let value { return value }
    let status = delivery.response.status
    let (kind, what): (FetchFailure.Kind, String) =
      switch status {
      case 404, 410: (.absent, "not found")
      case 401, 403: (.forbidden, "the server denies access")
      case 412: (.replaced, "it has been replaced")
      case 429, 500...: (.unavailable, "the server cannot answer now")
      default: (.refused, "the server refuses the request")
      }
    throw FetchFailure(kind, "\(name): \(what) (status \(status))", status: status)
  }
}

extension FetchFailure {
  /// Does something, and turns a failure of the store or the network into one for readers.
  static func telling<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let error as StoreError {
      throw FetchFailure(error)
    } catch let error as TransportError {
      throw FetchFailure(error)
    }
  }

  /// What `body` finds; nil if not found.
  static func unlessAbsent<Value>(_ body: () async throws -> Value) async throws -> Value? {
    do {
      return try await body()
    } catch let failure as FetchFailure where failure.kind == .absent {
      return nil
    }
  }

  /// What a store's refusal means for a reader.
  package init(_ error: StoreError) {
    let kind: Kind =
      switch error.kind {
      case .noSuchObject, .noSuchBucket: error.status == 416 ? .refused : .absent
      case .noAddress: .noAddress
      case .denied, .noCredentials: .forbidden
      case .conditionFailed: .replaced
      case .unavailable, .unconfirmed: .unavailable
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
}
