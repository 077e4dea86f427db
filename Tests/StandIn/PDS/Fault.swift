/// Something that goes wrong with one answer.
package enum Fault: Sendable, Hashable {
  /// A status with an XRPC error.
  case status(Int)
  /// A status with a page of HTML, as proxies have it.
  case page(status: Int)
  /// Status 429; `retryAfter` in seconds.
  case tooManyRequests(retryAfter: Int?)
  /// The connection ends before an answer.
  case dropped
  /// The connection is reset before an answer.
  case reset
  /// There never is an answer.
  case silent
  /// The answer comes after this many seconds.
  case late(seconds: Double)
  /// The answer comes once there are no faults any more.
  case held
  /// The body suffers on its way.
  case distorted(Distortion)
  /// A page of HTML with status 200, as captive portals have it.
  case captivePortal
  /// A redirection; `{path}` stands for the path and query that were requested.
  case redirect(status: Int, to: String)
  /// Header fields of this many bytes.
  case largeHead(bytes: Int)
  /// Header fields without an end.
  case endlessHead
  /// Something that is not HTTP.
  case garbage
  /// A small body that says it is gzip, and grows to this many bytes.
  case bomb(bytes: Int)
  /// JSON with this many brackets that open.
  case deepJSON(depth: Int)
  /// Other bytes than those asked for, as many.
  case otherContent
  /// A CAR without every third of its blocks but the first: the tree has changed while it was
  /// written.
  case lacksBlocks
  /// A CAR whose commit is not signed.
  case badSignature
  /// The CAR of another account.
  case otherAccount
  /// The CAR as it was in the revision before.
  case previousRevision
  /// A CAR whose header names no root, or one that is not there.
  case rootless

  /// The fault of this name, as the program `stand-in` and its controls take it.
  package init?(name: String) {
    let parts = name.split(separator: "=", maxSplits: 1).map(String.init)
    let value = parts.count > 1 ? parts[1] : nil
    switch parts.first {
    case "status": self = .status(value.flatMap { Int($0) } ?? 500)
    case "page": self = .page(status: value.flatMap { Int($0) } ?? 502)
    case "429": self = .tooManyRequests(retryAfter: value.flatMap { Int($0) })
    case "drop": self = .dropped
    case "reset": self = .reset
    case "silent": self = .silent
    case "late": self = .late(seconds: value.flatMap { Double($0) } ?? 1)
    case "held": self = .held
    case "cut": self = .distorted(.cut(at: value.flatMap { Double($0) } ?? 0.5))
    case "cut-reset": self = .distorted(.reset(at: value.flatMap { Double($0) } ?? 0.5))
    case "short": self = .distorted(.shortened(to: value.flatMap { Double($0) } ?? 0.5))
    case "corrupt": self = .distorted(.corrupted(at: value.flatMap { Double($0) } ?? 0.5))
    case "stall": self = .distorted(.stalled(at: value.flatMap { Double($0) } ?? 0.5))
    case "drip": self = .distorted(.dripping(bytesPerSecond: value.flatMap { Int($0) } ?? 10_000))
    case "misannounced": self = .distorted(.misannounced(by: value.flatMap { Int($0) } ?? 10))
    case "endless": self = .distorted(.endless)
    case "html": self = .captivePortal
    case "redirect":
      guard let value else { return nil }
      self = .redirect(status: 302, to: value)
    case "large-head": self = .largeHead(bytes: value.flatMap { Int($0) } ?? 1 << 20)
    case "endless-head": self = .endlessHead
    case "garbage": self = .garbage
    case "bomb": self = .bomb(bytes: value.flatMap { Int($0) } ?? 1 << 30)
    case "deep-json": self = .deepJSON(depth: value.flatMap { Int($0) } ?? 100_000)
    case "other-content": self = .otherContent
    case "lacks-blocks": self = .lacksBlocks
    case "bad-signature": self = .badSignature
    case "other-account": self = .otherAccount
    case "previous-revision": self = .previousRevision
    case "rootless": self = .rootless
    default: return nil
    }
  }

  /// Ordinary network failures that a retry fixes.
  package static let passing: [Fault] = [
    .status(500), .page(status: 502), .status(503), .dropped, .reset,
    .distorted(.cut(at: 0.5)), .distorted(.reset(at: 0.3)), .distorted(.shortened(to: 0.7)),
    .distorted(.corrupted(at: 0.6)),
  ]
}

/// Which answers a fault befalls.
package struct FaultRule: Sendable {
  /// What happens.
  package var fault: Fault
  /// The end of the path, `getBlob` for one; nil for any under `/xrpc/`.
  package var endpoint: String?
  /// The blob; nil for any.
  package var cid: String?
  /// The account; nil for any.
  package var did: String?
  /// How often it still happens; nil for always.
  package var remaining: Int?
  /// Whether requests that only ask are spared.
  package var sparesQuestions = false

  /// A rule.
  package init(
    _ fault: Fault, on endpoint: String? = nil, cid: String? = nil, did: String? = nil,
    times remaining: Int? = nil
  ) {
    self.fault = fault
    self.endpoint = endpoint
    self.cid = cid
    self.did = did
    self.remaining = remaining
  }

  func concerns(_ request: LoopbackRequest) -> Bool {
    guard remaining != 0, !sparesQuestions || request.method == "POST" else { return false }
    if let endpoint {
      guard request.path.hasSuffix(endpoint) else { return false }
    } else if !request.path.hasPrefix("/xrpc/") {
      return false
    }
    if let cid, request.parameter("cid") != cid { return false }
    if let did, request.parameter("did") != did { return false }
    return true
  }
}

/// Faults that befall answers at random, and each time the same for the same requests: what happens
/// depends on the seed, on what is requested, and how often it has been.
package struct RandomFaults: Sendable {
  /// How likely a fault is, 0 to 1.
  package var rate: Double
  /// Which faults there are.
  package var kinds: [Fault]
  /// What decides.
  package var seed: UInt64
  /// The end of the paths that are concerned; nil for all under `/xrpc/`.
  package var endpoint: String?

  /// Faults at random.
  package init(
    rate: Double, kinds: [Fault] = Fault.passing, seed: UInt64 = 1, endpoint: String? = nil
  ) {
    self.rate = rate
    self.kinds = kinds
    self.seed = seed
    self.endpoint = endpoint
  }
}
