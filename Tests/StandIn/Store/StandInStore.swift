import ATProtocol
import Foundation
import HTTP
import IPLD
import ObjectStore
import Synchronization
import XRPC

/// An object store for tests that speaks as S3 does: objects, ranges, conditions, uploads in parts,
/// parts copied from objects.
///
/// It keeps the rules of the strict ones (a signature that holds, 5 MiB for every part but the
/// last, conditions that are obeyed), and breaks those that it is set to break.
package final class StandInStore: Sendable {
  /// How it behaves.
  package struct Behaviour: Sendable {
    /// What becomes of an upload, and what the answer, of status 200, says.
    package enum Completion: Sendable {
      /// It becomes an object, which the answer names.
      case made
      /// It becomes an object, and the answer is empty.
      case madeInSilence
      /// Nothing becomes of it, and the answer is empty.
      case droppedInSilence
      /// Nothing becomes of it, and the answer names an object.
      case droppedAsMade
    }

    /// Whether conditions of writes are obeyed.
    package var obeysConditions = true
    /// Whether parts are copied from objects; one that does not answers well anyway.
    package var copiesParts = true
    /// What becomes of an upload that a client completes.
    package var completion = Completion.made
    /// Whether parts of objects are given.
    package var knowsRanges = true
    /// Whether parts of objects are given with the status of the whole.
    package var saysWhole = false
    /// Whether the signature is checked.
    package var checksSignatures = true
    /// By how many seconds its clock is ahead.
    package var clockOffset: Double = 0
    /// How likely a request is to be answered with a fault, 0 to 1.
    package var faultRate = 0.0
    /// After how many bytes of an object the connection ends; nil for never.
    package var bytesBeforeCut: Int?
    /// After how many bytes of an object nothing more comes; nil for never.
    package var bytesBeforeStall: Int?
    /// After how many more requests the credentials have expired, which is said as Amazon does; nil
    /// for never.
    package var requestsUntilExpiry: Int?
    /// How many answers more end in zeros.
    package var wrongEnds = 0
    /// How many seconds each answer takes at the least.
    package var latency = 0.0
    /// How many seconds each answer to a write takes more.
    package var writeLatency = 0.0

    /// A strict store.
    package init() {}
  }

  /// An object.
  package struct Object: Sendable {
    /// What it holds.
    package var bytes: [UInt8]
    /// What names this content.
    package var tag: String
  }

  /// When a store stops answering.
  package struct Freeze: Sendable {
    /// How many requests are answered before.
    package var count: Int
    /// Whether what is asked is done, and only its answer does not come.
    package var isDone: Bool
    /// Whether the requests after that are answered again.
    package var isOnce: Bool

    /// A freeze.
    package init(after count: Int, isDone: Bool = false, isOnce: Bool = false) {
      (self.count, self.isDone, self.isOnce) = (count, isDone, isOnce)
    }
  }

  struct Upload {
    var key: String
    var begun = Date()
    var parts: [Int: Object] = [:]
    /// Whether all of the answer was sent that has its name.
    var isTold = false
  }

  /// Another writer is at work.
  package struct Replacement: Sendable {
    /// How many requests are answered before.
    package var count: Int
    /// Which object is replaced.
    package var key: String
    /// By what.
    package var bytes: [UInt8]

    /// A replacement.
    package init(after count: Int, _ key: String, by bytes: [UInt8]) {
      (self.count, self.key, self.bytes) = (count, key, bytes)
    }
  }

  struct State {
    var replacement: Replacement?
    var freeze: Freeze?
    /// Whether a request has met the freeze.
    var isFrozen = false
    /// How many times another program gives up an upload when its next part comes.
    var aborts = 0
    var objects: [String: Object] = [:]
    var uploads: [String: Upload] = [:]
    var count = 0
    var behaviour = Behaviour()
  }

  /// The key that its requests have to be signed by.
  package static let key = "AKSTANDIN"
  /// The secret of that key.
  package static let secret = "a-secret-of-the-stand-in"
  /// The only bucket.
  package static let bucket = "archives"

  let state = Mutex(State())
  private let listening = Mutex<LoopbackServer?>(nil)

  /// Starts a store.
  ///
  /// - Throws: if it cannot listen.
  package init() throws {
    let server = try LoopbackServer { [weak self] request, response in
      try self?.answer(request, response)
    }
    listening.withLock { $0 = server }
  }

  /// What has been asked of it; the server itself.
  package var server: LoopbackServer {
    guard let server = listening.withLock({ $0 }) else { preconditionFailure("it was stopped") }
    return server
  }

  /// How it behaves.
  package var behaviour: Behaviour {
    get { state.withLock { $0.behaviour } }
    set { state.withLock { $0.behaviour = newValue } }
  }

  /// Has another writer replace an object after some more requests.
  package func replace(_ replacement: Replacement) {
    state.withLock { $0.replacement = replacement }
  }

  /// Has it stop answering after some more requests; nil to have it answer again.
  package func freeze(_ freeze: Freeze?) {
    state.withLock { ($0.freeze, $0.isFrozen) = (freeze, false) }
  }

  /// Whether a request has not been answered since it was told to freeze.
  package var isFrozen: Bool { state.withLock { $0.isFrozen } }

  /// Begins an upload as another machine's writer does, this many days ago.
  package func beginUpload(of key: String, daysAgo: Double = 0) {
    let begun = Date(timeIntervalSinceNow: -daysAgo * 86_400)
    state.withLock { state in
      state.count += 1
      state.uploads["upload-\(state.count)"] = Upload(key: key, begun: begun)
    }
  }

  /// Has another program give up the upload of the next parts, this many times.
  package func abortUploads(_ times: Int) { state.withLock { $0.aborts = times } }

  /// An object of the bucket.
  package subscript(key: String) -> [UInt8]? {
    get { state.withLock { $0.objects[key]?.bytes } }
    set { state.withLock { state in state.put(newValue, at: key) } }
  }

  /// The keys of all objects, sorted.
  package var keys: [String] { state.withLock { $0.objects.keys.sorted() } }

  /// How many uploads were begun and neither completed nor given up.
  package var openUploads: Int { uploadKeys.count }

  /// The keys of those by what it calls the uploads.
  package var uploadKeys: [String: String] { state.withLock { $0.uploads.mapValues(\.key) } }

  /// How many of them have a name that a client was told: others it cannot give up.
  package var toldUploads: Int { state.withLock { $0.uploads.values.count(where: \.isTold) } }

  /// What the environment of a command has to hold.
  package var environment: [String: String] {
    [
      "AWS_ACCESS_KEY_ID": Self.key, "AWS_SECRET_ACCESS_KEY": Self.secret,
      "AWS_ENDPOINT_URL": server.url, "AWS_EC2_METADATA_DISABLED": "true",
    ]
  }

  private func answer(_ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let behaviour = behaviour
    switch state.withLock({ state in
      state.replaceIfDue()
      return state.freezesNow()
    }) {
    case .some(true): response.withheld = { self.state.withLock { $0.isFrozen = true } }
    case .some(false):
      state.withLock { $0.isFrozen = true }
      try response.pauseForEver()
    case nil: break
    }
    let latency = behaviour.latency + (request.method == "GET" ? 0 : behaviour.writeLatency)
    if latency > 0 { try response.pause(latency) }
    if behaviour.faultRate > 0, Double.random(in: 0..<1) < behaviour.faultRate {
      switch Int.random(in: 0..<3) {
      case 0: return try refuse(503, "SlowDown", response)
      case 1: return response.reset()
      default: response.distortion = .cut(at: Double.random(in: 0..<1))
      }
    }
    if expiresNow() { return try refuse(400, "ExpiredToken", response) }
    let now = Date().timeIntervalSince1970 + behaviour.clockOffset
    response.fields.append(("Date", Self.httpDate(now)))
    if behaviour.checksSignatures, let code = Self.flaw(of: request, now: now) {
      return try refuse(403, code, response)
    }
    let prefix = "/\(Self.bucket)"
    guard request.path == prefix || request.path.hasPrefix(prefix + "/") else {
      return try refuse(404, "NoSuchBucket", response)
    }
    let key = String(request.path.dropFirst(prefix.count + 1))
    guard !key.isEmpty else { return try answerBucket(request, response) }
    switch request.method {
    case "GET", "HEAD": try give(key, request, response)
    case "PUT" where request.parameter("uploadId") != nil: try takePart(key, request, response)
    case "PUT": try put(key, request, response)
    case "POST" where request.parameter("uploads") != nil: try begin(key, response)
    case "POST": try complete(key, request, response)
    case "DELETE": try remove(key, request, response)
    default: try refuse(405, "MethodNotAllowed", response)
    }
  }

  private func expiresNow() -> Bool {
    state.withLock { state in
      guard let rest = state.behaviour.requestsUntilExpiry else { return false }
      state.behaviour.requestsUntilExpiry = max(0, rest - 1)
      return rest == 0
    }
  }

  func refuse(_ status: Int, _ code: String, _ response: LoopbackResponse) throws {
    response.status = status
    try response.send(
      "<?xml version=\"1.0\"?>\n<Error><Code>\(code)</Code><Message>stand-in</Message></Error>",
      type: "application/xml")
  }

  // MARK: Signatures

  /// What is wrong with a request's signature or body; nil if nothing is.
  private static func flaw(of request: LoopbackRequest, now: Double) -> String? {
    guard let given = request["authorization"], let stamp = request["x-amz-date"],
      let payload = request["x-amz-content-sha256"]
    else { return "AccessDenied" }
    guard payload == hexadecimal(SHA256.digest(of: request.body.span).bytes) else {
      return "XAmzContentSHA256Mismatch"
    }
    let form = stamp.enumerated().reduce(into: "") { text, next in
      if next.offset == 4 || next.offset == 6 { text += "-" }
      if next.offset == 11 || next.offset == 13 { text += ":" }
      text.append(next.element)
    }
    guard let time = UnixTime(form) else { return "AccessDenied" }
    guard abs(Double(time.microseconds) / 1e6 - now) < 900 else { return "RequestTimeTooSkewed" }
    guard let names = given.split(separator: "SignedHeaders=").last?.split(separator: ",").first
    else { return "AccessDenied" }
    let added: Set = ["x-amz-date", "x-amz-content-sha256", "x-amz-security-token"]
    let fields = names.split(separator: ";").filter { !added.contains(String($0)) }.map {
      (name: String($0), value: request[String($0)] ?? "")
    }
    let path = String(request.target.prefix { $0 != "?" })
    let signer = RequestSigner(
      StoreCredentials(key: key, secret: Secret(secret)), region: "us-east-1")
    let expected = signer.fields(
      signing: .init(
        method: request.method, path: path, query: request.query, fields: fields, payload: payload),
      at: time)
    return expected.contains { $0.name == "Authorization" && $0.value == given }
      ? nil : "SignatureDoesNotMatch"
  }

  static func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
  }

  private static func httpDate(_ seconds: Double) -> String {
    let formatter = DateFormatter()
    formatter.locale = Locale(identifier: "en_US_POSIX")
    formatter.timeZone = TimeZone(secondsFromGMT: 0)
    formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
    return formatter.string(from: Date(timeIntervalSince1970: seconds))
  }
}

extension StandInStore.State {
  /// Puts an object; nil removes it.
  mutating func put(_ bytes: [UInt8]?, at key: String) {
    objects[key] = bytes.map { StandInStore.Object(bytes: $0, tag: nextTag()) }
  }

  mutating func replaceIfDue() {
    guard let due = replacement else { return }
    guard due.count > 0 else {
      replacement = nil
      return put(due.bytes, at: due.key)
    }
    replacement?.count -= 1
  }

  /// Whether the next request is not answered: whether it is done anyway; nil if it is answered.
  mutating func freezesNow() -> Bool? {
    guard let due = freeze else { return nil }
    guard due.count <= 0 else {
      freeze?.count -= 1
      return nil
    }
    if due.isOnce { freeze = nil } else { freeze?.isDone = false }
    return due.isDone
  }

  /// A tag that no object has had.
  mutating func nextTag() -> String {
    count += 1
    return "\"tag-\(count)\""
  }

  /// Whether a write's condition holds.
  func permits(_ request: LoopbackRequest, at key: String) -> Bool {
    guard behaviour.obeysConditions else { return true }
    if request["if-none-match"] == "*", objects[key] != nil { return false }
    if let tag = request["if-match"], objects[key]?.tag != tag { return false }
    return true
  }
}
