package import ATProtocol
package import HTTP
internal import IPLD
internal import Synchronization

/// One bucket of an object store that speaks as Amazon's S3 does.
///
/// Every request is signed for itself, unless the bucket is read without a signature; a wrong clock
/// is corrected by the store's (`RequestTimeTooSkewed`), and credentials that have ended are looked
/// for again. Of redirections only one is followed, that to the host of a new bucket's region
/// (``Endpoint/regional(_:asked:bucket:)``), with a signature of its own.
///
/// Source: [S3 API
/// reference](https://docs.aws.amazon.com/AmazonS3/latest/API/API_Operations_Amazon_Simple_Storage_Service.html).
package final class BucketClient: Sendable {
  /// The bucket.
  package let bucket: String
  let endpoint: Endpoint
  private let network: Network
  private let options: StoreOptions
  private let search: CredentialSearch
  private let state: Mutex<State>

  private struct State {
    var credentials: StoreCredentials?
    /// Where the bucket is asked, and in which region.
    var place: (endpoint: Endpoint, region: String, isPointedTo: Bool)
    /// By how many microseconds the store's clock is ahead of this machine's.
    var clockOffset: Int64 = 0
  }

  /// Credentials are looked for again when they end within this many microseconds.
  private static let leastRest: Int64 = 300_000_000
  /// How many requests a second a store gets on average: it says itself when that is too much.
  private static let requestsPerSecond = 2000.0
  /// The codes of failures that pass, whatever the status is: stores answer 200 before they are
  /// done with what takes long, and some say 400 of a body that came too slowly.
  private static let passingCodes: Set = [
    "InternalError", "ServiceUnavailable", "SlowDown", "RequestTimeout", "OperationAborted",
    "Throttling", "ThrottlingException", "TooManyRequests", "RequestLimitExceeded",
    "BandwidthLimitExceeded",
  ]

  /// A bucket as the user set it.
  ///
  /// - Parameters:
  ///   - bucket: Its name.
  ///   - options: Where and how it is asked.
  ///   - network: What the user set about the network.
  /// - Throws: ``StoreError`` if the options cannot be used; `TransportError`.
  package convenience init(_ bucket: String, _ options: StoreOptions, network: NetworkOptions)
    throws
  {
    try self.init(bucket, options, network: network) { try Network($0) }
  }

  /// Injects the network (tests).
  init(
    _ bucket: String, _ options: StoreOptions, network: NetworkOptions,
    through makeNetwork: (NetworkOptions) throws -> Network
  ) throws {
    self.bucket = bucket
    self.options = options
    search = CredentialSearch(options: options, userAgent: network.userAgent)
    let url =
      try options.endpoint ?? options.environment("AWS_ENDPOINT_URL_S3")
      ?? options.environment("AWS_ENDPOINT_URL") ?? search.setting("endpoint_url")
    let region =
      try options.region ?? options.environment("AWS_REGION")
      ?? options.environment("AWS_DEFAULT_REGION") ?? search.setting("region") ?? "us-east-1"
    endpoint = try Endpoint(of: bucket, region: region, options, endpoint: url)
    state = Mutex(State(place: (endpoint, region, false)))
    var network = network
    if url != nil { network.plainServers.append(endpoint.origin) }
    network.requestsPerSecond = Self.requestsPerSecond
    network.overloadSeconds = network.badMinute
    self.network = try makeNetwork(network)
  }

  /// What is asked of the bucket.
  struct Call {
    var method: HTTPRequest.Method
    /// The key of the object; nil for the bucket itself.
    var key: String?
    var query: [(name: String, value: String)] = []
    var fields: [(name: String, value: String)] = []
    var body = RequestBody([])
    /// The digest of the body.
    var digest = SHA256.digest(of: [UInt8]().span)
    /// Whether a part of the object is requested.
    var asksForPart = false
    /// For how many seconds the store may say nothing.
    var patience: Int?

    init(_ method: HTTPRequest.Method, _ key: String?) { (self.method, self.key) = (method, key) }
  }

  /// Sends a call, and reads the answer if it is a success.
  ///
  /// - Throws: ``StoreError`` if the store refuses; `TransportError`; what `receive` throws.
  func send<Value>(_ call: Call, receive: (HTTPResponse) async throws -> Value) async throws
    -> Value
  {
    var mends = 0
    while true {
      let request = try await signed(call)
      let (delivery, value) = try await network.send(
        request,
        explain: { response, body in
          let error = refusal(response, body, of: call.key)
          return error.code.map(Self.passingCodes.contains) == true ? "\(error)" : nil
        }, receive: receive)
      if let value { return value }
      let error = refusal(
        delivery.response, delivery.errorBody, of: call.key, attempts: delivery.attempts)
      guard mends < 2, mend(after: error, delivery.response, to: call) else { throw error }
      mends += 1
    }
  }

  /// Sends a call whose answer is short.
  ///
  /// One that says in its body that the store failed is a failure, whatever its status: stores
  /// answer 200 before they are done.
  ///
  /// - Returns: The head of the answer and its body.
  func send(_ call: Call) async throws -> (HTTPResponse, [UInt8]) {
    try await send(call) { response in
      let body = try await response.body.collect(upTo: Self.longestAnswer, of: endpoint.origin)
      if response.isForBrowsers(body) { throw refusal(response, body, of: call.key) }
      if body.count <= maximumErrorBody, XMLElement(body)?.name == "Error" {
        let error = refusal(response, body, of: call.key)
        throw error.mayPass ? LateFailure(error) as any Error : error
      }
      return (response, body)
    }
  }

  /// A list has a thousand keys of a thousand bytes at most, each escaped.
  private static let longestAnswer = 8 << 20

  /// Puts right what a refusal says is wrong here; returns whether there is anything.
  private func mend(after error: StoreError, _ response: HTTPResponse, to call: Call) -> Bool {
    if [307, 308].contains(response.status) { return move(to: response, call) }
    switch error.code {
    case "RequestTimeTooSkewed":
      guard let date = response["date"], let theirs = HTTPDate.unixTime(date) else { return false }
      let offset = Int64(theirs * 1e6) - Self.now.microseconds
      state.withLock { $0.clockOffset = offset }
      return true
    case "ExpiredToken", "TokenRefreshRequired":
      return state.withLock { state in
        defer { state.credentials = nil }
        return state.credentials?.sessionToken != nil
      }
    default: return false
    }
  }

  /// Asks the bucket where a redirection says that it is, if that is a host of this store.
  private func move(to response: HTTPResponse, _ call: Call) -> Bool {
    guard let location = response["location"],
      let found = endpoint.regional(location, asked: call.key ?? "", bucket: bucket)
    else { return false }
    state.withLock {
      $0.place = (found.endpoint, response["x-amz-bucket-region"] ?? found.region, true)
    }
    return true
  }

  private func signed(_ call: Call) async throws -> HTTPRequest {
    let (endpoint, region, isPointedTo) = state.withLock { $0.place }
    let path = endpoint.path(of: call.key ?? "")
    var url = endpoint.origin + path
    if !call.query.isEmpty { url += "?" + RequestSigner.queryText(call.query) }
    var fields = call.fields
    if !options.isUnsigned {
      let signer = RequestSigner(try await credentials(), region: region)
      fields = signer.fields(
        signing: .init(
          method: call.method.rawValue, path: path, query: call.query,
          fields: call.fields + [("Host", endpoint.host)], payload: "\(call.digest)"),
        at: now)
      // The transport names the host itself, in the same way.
      fields.removeAll { $0.name == "Host" }
    }
    var request = HTTPRequest(
      call.method, url, fields: fields, acceptsCompression: false, isStreamed: true,
      followsRedirects: false)
    request.isPointedTo = isPointedTo
    request.body = call.body
    request.asksForPart = call.asksForPart
    request.patience = call.patience
    return request
  }

  /// The time by the store's clock, if that is known.
  package var now: UnixTime { Self.now.advanced(by: state.withLock { $0.clockOffset }) }

  /// Where the bucket is asked: it tells the buckets of one name in several stores apart.
  package var location: String { "\(endpoint.origin)\(endpoint.prefix)/ \(bucket)" }

  private static var now: UnixTime { UnixTime(microseconds: Int64(SystemClock().unixTime * 1e6)) }

  private func credentials() async throws -> StoreCredentials {
    let known = state.withLock { $0.credentials }
    if let known, known.end.map({ Self.now < $0.advanced(by: -Self.leastRest) }) ?? true {
      return known
    }
    guard let found = try await search.credentials() else {
      throw StoreError(
        .noCredentials,
        "no credentials were found for \(BucketAddress.scheme)\(bucket): not in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, not in Amazon's files, and no container or instance lends any; --unsigned reads a bucket that everyone may read"
      )
    }
    state.withLock { $0.credentials = found }
    return found
  }
}

/// The meanings of error responses.
extension BucketClient {
  /// What an answer refuses.
  private func refusal(
    _ response: HTTPResponse, _ body: [UInt8], of key: String?, attempts: Int = 1
  ) -> StoreError {
    let answer = XMLElement(body)
    let code = answer?["Code"]?.text
    let (kind, what): (StoreError.Kind, String) =
      switch (response.status, code) {
      case _ where response.isForBrowsers(body): (.unavailable, Self.pageBefore)
      case (300..<400, nil) where response["location"] != nil:
        (.unavailable, "something before the store points elsewhere, as a network's login does")
      case (_, "NoSuchBucket"): (.noSuchBucket, "there is no such bucket")
      case (_, "NoSuchUpload"): (.noSuchUpload, "the upload no longer exists")
      case (404, _): (.noSuchObject, "there is no such object")
      case (412, _), (304, _), (_, "ConditionalRequestConflict"), (200, "PreconditionFailed"):
        (.conditionFailed, "the object has been replaced in the meantime")
      case (_, let code?) where Self.passingCodes.contains(code):
        (.unavailable, "the store is not available now")
      case (let status, _) where HTTPStatus.mayPass(status):
        (.unavailable, "the store is not available now")
      case (500..., _): (.unsupported, "the store cannot do that")
      case (_, "ExpiredToken"), (_, "TokenRefreshRequired"):
        (.denied, "the credentials have expired")
      case (_, "RequestTimeTooSkewed"):
        (.denied, "the store does not accept this machine's time")
      case (401, _), (403, _), (_, "InvalidToken"):
        (.denied, "the store does not allow this user to do this")
      default: (.refused, "the store refused the request")
      }
    let words = [code, answer?["Message"]?.text].compactMap { $0 }.filter { !$0.isEmpty }
    var text = "\(what) (status \(response.status)"
    if !words.isEmpty { text += ", \(Excerpt.of(words.joined(separator: ": ")))" }
    if attempts > 1 { text += ", \(attempts) attempts" }
    text += ")"
    if let region = response["x-amz-bucket-region"], 300..<500 ~= response.status {
      text += "; the bucket is in the region \(Excerpt.of(region))"
    }
    return error(kind, text, of: key, status: response.status, code: code)
  }

  private static let pageBefore =
    "a page for a browser stands before the store, such as a network's login or a proxy's challenge"

  /// What went wrong with an object, or with the bucket.
  func error(
    _ kind: StoreError.Kind, _ what: String, of key: String? = nil, status: Int? = nil,
    code: String? = nil
  ) -> StoreError {
    let place = key.map { "\(bucket)/\($0)" } ?? bucket
    return StoreError(
      kind, "\(BucketAddress.scheme)\(place): \(what)", status: status, code: code)
  }

  func malformed(_ what: String) -> StoreError { error(.malformed, what) }
}
