package import Archive
internal import HTTP
package import ObjectStore

/// Reads one object, part by part.
protocol RangeReader: Sendable {
  /// The object's name in messages, without anything that could be secret.
  var name: String { get }
  /// Whether it is only ever replaced as a whole, as a store's objects are: then it cannot end in a
  /// write that was not finished, as a file on a web server can.
  var isPutWhole: Bool { get }

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
    guard
      encoding.split(whereSeparator: { $0 == "," || $0.isWhitespace }).allSatisfy({
        Self.ownEncodings.contains($0)
      })
    else { throw refused("the server adds a compression of its own (\(Excerpt.of(encoding)))") }
    guard let text = response["content-range"] else {
      if response.status == 200 { return nil }
      throw refused("the server does not say which part it sends")
    }
    guard let part = ContentRange(text) else { throw otherPart("than requested") }
    return part
  }

  /// The codings that leave the bytes as they are stored: of an archive it is also true that it is
  /// compressed with zstd, and it is not asked for to be decompressed.
  private static var ownEncodings: [Substring] { ["identity", "aws-chunked", "zstd"] }

  /// Refuses an answer that is not the object, but a page for a browser.
  ///
  /// - Parameters:
  ///   - response: an answer that brings all of the object.
  ///   - beginning: the beginning of its body.
  /// - Throws: ``FetchFailure``.
  func refusePage(_ response: HTTPResponse, _ beginning: [UInt8]) throws {
    guard response.isForBrowsers(beginning) else { return }
    throw FetchFailure(
      .temporary, "\(name): \(Self.pageBefore) (status \(response.status))",
      status: response.status)
  }

  fileprivate static var pageBefore: String {
    "a page for a browser stands before it, such as a network's login or a proxy's challenge"
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
  /// The content's identifier, weak or not.
  private let entityTag: String?
  /// When it was written.
  let date: String?

  /// What an answer shows; nothing without one.
  init(_ answer: HTTPResponse? = nil) {
    (entityTag, date) = (answer?["etag"], answer?["last-modified"])
  }

  private static let weak = "W/"

  /// The content's identifier in conditions; nil if there is none, or only a weak one, which may
  /// stay while the bytes change and never fulfils a condition (RFC 9110, 8.8.3 and 13.1.1).
  var tag: String? { isWeak ? nil : entityTag }
  /// Whether the only identifier is a weak one.
  var isWeak: Bool { entityTag?.hasPrefix(Self.weak) == true }

  /// Whether an answer is of the same content, as far as it says: a proxy on the way may mark a tag
  /// as weak in one answer and not in the next.
  func agrees(with other: ContentVersion) -> Bool {
    if let entityTag, let its = other.entityTag {
      guard entityTag.trimmingPrefix(Self.weak) == its.trimmingPrefix(Self.weak) else {
        return false
      }
      if tag != nil, other.tag != nil { return true }
    }
    if let date, let its = other.date { return date == its }
    return true
  }
}

/// A file on a web server.
struct WebFile: RangeReader {
  let network: Network
  let url: HTTPURL

  var name: String { "\(url)" }
  var isPutWhole: Bool { false }

  func get<Value>(
    _ range: String?, tag: String?, receive: (HTTPResponse) async throws -> Value
  ) async throws -> Value {
    var fields: [(name: String, value: String)] = []
    if let range { fields.append(("Range", range)) }
    if let tag { fields.append(("If-Match", tag)) }
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
      case _ where isChallenge(delivery): (.temporary, Self.pageBefore)
      case _ where HTTPStatus.mayPass(status): (.temporary, "the server cannot answer now")
      case 404, 410: (.absent, "not found")
      case 401, 403: (.forbidden, "the server denies access")
      case 412: (.replaced, "it has been replaced")
      case 500...: (.unavailable, "the server cannot answer")
      default: (.refused, "the server refuses the request")
      }
    throw FetchFailure(kind, "\(name): \(what) (status \(status))", status: status)
  }

  /// Whether a refusal is a page that wants a browser; the pages with which web servers themselves
  /// deny access want none, for nothing in them runs.
  private func isChallenge(_ delivery: Network.Delivery) -> Bool {
    let (response, body) = (delivery.response, delivery.errorBody)
    guard response.isForBrowsers(body) else { return false }
    return response["cf-mitigated"] != nil
      || String(decoding: body, as: UTF8.self).lowercased().contains("<script")
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
      case .unavailable: .temporary
      case .unsupported, .unconfirmed: .unavailable
      case .refused, .cannotCopy, .noSuchUpload, .malformed: .refused
      }
    self.init(kind, "\(error)", status: error.status, code: error.code)
  }

  /// The code of a proxy's refusal, which no server gives.
  package static let proxyLogin = "proxy"

  init(_ error: TransportError) {
    let kind: Kind =
      switch error.reason {
      case .unusableProxy: .noProxy
      case .proxyRefused: .forbidden
      case .unusableURL, .unusablePin, .malformedAnswer, .refusedAddress, .refusedRedirect,
        .tooManyRedirects, .tooLong, .notSecure:
        .refused
      default: error.mayPass ? .temporary : .unavailable
      }
    self.init(
      kind, "\(error)", code: error.reason == .proxyRefused ? Self.proxyLogin : nil)
  }
}
