import ATProtocol
package import IPLD
import Synchronization
import TestSupport

/// An app view on loopback: it shows whatever account or post it is asked for, made up from the
/// name, unless a test has it behave otherwise.
package final class StandInAppView: Sendable {
  /// How it behaves.
  package struct Behaviour: Sendable {
    /// How many seconds an answer takes.
    package var latency = 0.0
    /// The status of each answer; nil for good ones.
    package var status: Int?
    /// After how many seconds it wants to be asked again, with a status of 429; nil for good answers.
    package var retryAfter: Int?
    /// The status of each picture; nil for good ones.
    package var pictureStatus: Int?
    /// What is not shown: DIDs and AT URIs.
    package var absent: Set<String> = []
    /// The DIDs of those who are shown to logged-in users only.
    package var withheld: Set<String> = []
    /// What is answered in place of the JSON of a method.
    package var bodies: [String: String] = [:]
    /// The URL of each picture; nil for those that it has itself.
    package var picture: String?
    /// What pictures consist of; nil for something that begins as a JPEG does.
    package var pictureBytes: [UInt8]?
    /// The records of posts, by their URIs, that are not made up.
    package var records: [String: IPLDMap] = [:]
    /// Appended to names and texts, as if their owners had changed them.
    package var addition = ""
    package init() {}
  }

  private let state: Mutex<Behaviour>
  private let running = Mutex<LoopbackServer?>(nil)

  /// Starts an app view.
  package init(_ behaviour: Behaviour = Behaviour()) throws {
    state = Mutex(behaviour)
    let server = try LoopbackServer { [weak self] in try self?.answer($0, $1) }
    running.withLock { $0 = server }
  }

  /// What it runs on, and its log.
  package var server: LoopbackServer { running.withLock { $0! } }
  /// Its address.
  package var url: String { server.url }

  /// How it behaves, from the next request on.
  package var behaviour: Behaviour {
    get { state.withLock { $0 } }
    set { state.withLock { $0 = newValue } }
  }

  /// The subjects that a method was requested, in their order.
  package func asked(_ method: String) -> [String] {
    server.log.filter { $0.path == "/xrpc/\(method)" }.flatMap { $0.query.map(\.value) }
  }

  /// How often a method was called.
  package func requestCount(_ method: String) -> Int {
    server.log.count { $0.path == "/xrpc/\(method)" }
  }

  /// How often pictures were requested.
  package var pictureCount: Int { server.log.count { $0.path.hasPrefix("/img/") } }

  private func answer(_ request: LoopbackRequest, _ response: LoopbackResponse) throws {
    let behaviour = behaviour
    if behaviour.latency > 0 { try response.pause(behaviour.latency) }
    if let seconds = behaviour.retryAfter {
      response.status = 429
      response.fields.append(("Retry-After", "\(seconds)"))
      return try response.send(#"{"error":"RateLimitExceeded"}"#, type: "application/json")
    }
    if let status = behaviour.status {
      response.status = status
      return try response.send(#"{"error":"Away"}"#, type: "application/json")
    }
    if request.path.hasPrefix("/img/") {
      if let status = behaviour.pictureStatus {
        response.status = status
        return try response.send("", type: "text/plain")
      }
      let noise = Array(request.path.utf8)
      return try response.send(
        behaviour.pictureBytes ?? [0xff, 0xd8, 0xff, 0xe0] + noise, type: "image/jpeg")
    }
    let method = String(request.path.dropFirst("/xrpc/".count))
    if let body = behaviour.bodies[method] {
      return try response.send(body, type: "application/json")
    }
    switch method {
    case "app.bsky.actor.getProfiles":
      try send(["profiles": .array(profiles(request.parameters("actors"), behaviour))], response)
    case "app.bsky.feed.getPosts":
      try send(["posts": .array(try posts(request.parameters("uris"), behaviour))], response)
    default:
      response.status = 501
      try response.send(#"{"error":"MethodNotImplemented"}"#, type: "application/json")
    }
  }

  private func send(_ json: IPLDMap, _ response: LoopbackResponse) throws {
    try response.send(IPLDValue.map(json).json(), type: "application/json; charset=utf-8")
  }

  private func profiles(_ actors: [String], _ behaviour: Behaviour) -> [IPLDValue] {
    actors.filter { !behaviour.absent.contains($0) }.map {
      .map(profile($0, behaviour, isDetailed: true))
    }
  }

  /// An account as it is shown.
  private func profile(_ did: String, _ behaviour: Behaviour, isDetailed: Bool) -> IPLDMap {
    let name = String(did.suffix(6))
    var profile: IPLDMap = [
      "did": .string(did), "handle": .string("\(name).test"),
      "displayName": .string("Somebody \(name)\(behaviour.addition)"),
      "avatar": .string(behaviour.picture ?? "\(url)/img/avatar/\(name).jpg"),
    ]
    if isDetailed { profile["description"] = .string("I am \(name)") }
    if behaviour.withheld.contains(did) {
      profile["labels"] = .array([
        .map(["src": .string(did), "val": .string("!no-unauthenticated")])
      ])
    }
    return profile
  }

  private func posts(_ uris: [String], _ behaviour: Behaviour) throws -> [IPLDValue] {
    try uris.filter { !behaviour.absent.contains($0) }.map { uri in
      let did = String(uri.dropFirst("at://".count).prefix { $0 != "/" })
      let key = String(uri.suffix(13))
      let made: IPLDMap = [
        "$type": .string("app.bsky.feed.post"),
        "text": .string("What \(key) says\(behaviour.addition)"),
        "createdAt": .string("2025-01-01T00:00:00Z"),
      ]
      let record = behaviour.records[uri] ?? made
      let bytes = try DAGCBOREncoder.encode(.map(record))
      return .map([
        "uri": .string(uri), "cid": .string("\(CID(codec: .dagCBOR, hashing: bytes.span))"),
        "author": .map(profile(did, behaviour, isDetailed: false)), "record": .map(record),
        "embed": .map([
          "$type": .string("app.bsky.embed.images#view"),
          "images": .array([
            .map(["thumb": .string(behaviour.picture ?? "\(url)/img/thumb/\(key).jpg")])
          ]),
        ]),
      ])
    }
  }
}

extension StandInAccount {
  /// The DID of a person that is made up.
  package static func person(_ number: Int) -> String {
    let letters = Array("abcdefghijklmnopqrstuvwxyz234567")
    var (rest, text) = (number, "")
    for _ in 0..<24 {
      text = "\(letters[rest % 32])" + text
      rest /= 32
    }
    return "did:plc:\(text)"
  }

  /// The AT URI of a made-up post of another account.
  package static func othersPost(_ number: Int, of person: Int? = nil) -> String {
    let key = TID(integer: UInt64(1_700_000_000_000_000 + number * 1_000_000) << 10 | 3).text
    return "at://\(Self.person(person ?? number))/app.bsky.feed.post/\(key)"
  }

  /// Likes of posts, and follows of people, by their numbers.
  package static func pointing(likes: Range<Int>, follows: Range<Int> = 0..<0) -> [Write] {
    likes.map { number in
      .put(
        path: "app.bsky.feed.like/\(key(number))",
        record: [
          "$type": .string("app.bsky.feed.like"), "createdAt": .string(time(number)),
          "subject": .map([
            "uri": .string(othersPost(number)),
            "cid": .string("\(CID.blob([UInt8(number & 255)]))"),
          ]),
        ])
    }
      + follows.map { number in
        .put(
          path: "app.bsky.graph.follow/\(key(number))",
          record: [
            "$type": .string("app.bsky.graph.follow"), "createdAt": .string(time(number)),
            "subject": .string(person(number)),
          ])
      }
  }

  private static func key(_ number: Int) -> String {
    TID(integer: UInt64(1_740_000_000_000_000 + number * 1_000_000) << 10 | 5).text
  }

  private static func time(_ number: Int) -> String {
    "2025-01-\(10 + number / 1440 % 20)T\(10 + number / 60 % 10):\(10 + number % 50):00Z"
  }
}
