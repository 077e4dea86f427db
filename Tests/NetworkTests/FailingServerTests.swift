import ATProtocol
import IPLD
import StandIn
import TestSupport
import Testing

/// A server on which things go wrong, one after the other: the outcome, the exit status, and how
/// often it was asked.
@Suite(.enabled(if: Command.path != nil, Comment(rawValue: Command.absence)))
struct `Backing up from a server that fails` {
  /// Something that goes wrong, and the expected result.
  struct Failure: CustomTestStringConvertible, Sendable {
    let fault: Fault
    /// What is requested when it happens.
    let endpoint: String
    /// How often it happens; nil for always.
    let times: Int?
    /// The exit statuses that say the result of it.
    let statuses: Set<Int32>
    /// The most requests of this endpoint that it may cost.
    let requests: Int

    init(
      _ fault: Fault, _ endpoint: String, times: Int? = nil, _ statuses: Set<Int32>, _ requests: Int
    ) {
      self.fault = fault
      self.endpoint = endpoint
      self.times = times
      self.statuses = statuses
      self.requests = requests
    }

    var testDescription: String {
      "\(fault) on \(endpoint), \(times.map { "\($0) times" } ?? "always")"
    }
  }

  /// What passes, and is mended by asking again.
  static let passing: [Failure] = ["getRepo", "listBlobs", "getBlob"].flatMap { endpoint in
    [
      .status(500), .page(status: 502), .status(503), .tooManyRequests(retryAfter: 1),
      .tooManyRequests(retryAfter: nil), .dropped, .reset, .distorted(.cut(at: 0.4)),
      .distorted(.reset(at: 0.4)),
    ].map { Failure($0, endpoint, times: 1, [0], 5) }
  }

  @Test(arguments: passing)
  func `is mended by asking again`(_ failure: Failure) throws {
    let scene = try NetworkScene(posts: 10, blobs: 4)
    scene.server.play(FaultRule(failure.fault, on: failure.endpoint, times: failure.times))
    let result = try scene.backUp("--attempts 3")
    #expect(failure.statuses.contains(result.status), "\(result.text)\(result.errors)")
    try scene.expectWhole()
    #expect(scene.requestCount(of: failure.endpoint) <= failure.requests)
  }

  @Test func `takes no repository that is larger than was said`() throws {
    let scene = try NetworkScene(posts: 100, blobs: 0)
    let result = try scene.backUp("--max-repo '1.5 kB'")
    #expect(result.status == 13)
    #expect(result.errors.contains("a repository of more than 1500 bytes"))
    #expect(result.errors.contains("--max-repo"))
    #expect(scene.requestCount(of: "getRepo") == 1)
    #expect(try scene.backUp("--max-repo 1mib").status == 0)
  }

  /// Repositories that are not what they should be; asked for once more, they are.
  @Test(arguments: [
    Fault.distorted(.corrupted(at: 0.5)), .distorted(.shortened(to: 0.5)),
    .distorted(.shortened(to: 0)), .lacksBlocks, .badSignature, .otherAccount, .rootless,
    .captivePortal,
  ])
  func `gets a repository anew that is not what it should be`(_ fault: Fault) throws {
    let bob = try StandInAccount("bob", posts: 5)
    let scene = try NetworkScene([try StandInAccount("alice", posts: 30, blobs: 2), bob])
    scene.server.play(FaultRule(fault, on: "getRepo", times: 1))
    let result = try scene.backUp("--attempts 3")
    if result.status == 0 {
      try scene.expectWhole()
      #expect(scene.requestCount(of: "getRepo") == 2)
    } else {
      // One of another account, or of none, may be reported at once.
      #expect([.otherAccount, .badSignature, .captivePortal].contains(fault), "\(result.errors)")
      #expect([12, 69, 75].contains(result.status), "\(result.errors)")
    }
  }

  /// Repositories that never are what they should be: nothing of them is kept as good, and the
  /// server is not asked for ever.
  @Test(arguments: [
    Failure(.distorted(.corrupted(at: 0.5)), "getRepo", [11, 13, 69, 75], 5),
    Failure(.distorted(.shortened(to: 0.5)), "getRepo", [75], 5),
    Failure(.distorted(.cut(at: 0.5)), "getRepo", [69, 75], 5),
    Failure(.lacksBlocks, "getRepo", [75], 5),
    Failure(.badSignature, "getRepo", [12], 5),
    Failure(.otherAccount, "getRepo", [12], 5),
    Failure(.rootless, "getRepo", [11, 13, 69, 75], 5),
    Failure(.captivePortal, "getRepo", [11, 13, 69, 75], 5),
    Failure(.status(500), "getRepo", [69, 75], 5),
    Failure(.status(400), "getRepo", [69, 75], 5),
    Failure(.page(status: 404), "getRepo", [69], 5),
    Failure(.dropped, "getRepo", [69, 75], 5),
    Failure(.garbage, "getRepo", [11, 13, 69, 75], 5),
    Failure(.distorted(.endless), "getRepo", [11, 13, 69, 75], 5),
    Failure(.largeHead(bytes: 4 << 20), "getRepo", [11, 13, 69, 75], 5),
    Failure(.endlessHead, "getRepo", [11, 13, 69, 75], 5),
    Failure(.endlessHead, "getLatestCommit", [11, 13, 69, 75], 5),
    Failure(.bomb(bytes: 1 << 30), "getLatestCommit", [11, 13, 69, 75], 5),
    Failure(.distorted(.endless), "getLatestCommit", [11, 13, 69, 75], 5),
    Failure(.redirect(status: 302, to: "http://10.0.0.1{path}"), "getRepo", [13], 5),
    Failure(.redirect(status: 302, to: "http://169.254.169.254/"), "getRepo", [13], 5),
    Failure(.redirect(status: 302, to: "file:///etc/passwd"), "getRepo", [13], 5),
    Failure(.redirect(status: 302, to: "{path}"), "getRepo", [13], 20),
  ])
  func `ends, says so, and keeps nothing as good`(_ failure: Failure) throws {
    let scene = try NetworkScene([
      try StandInAccount("alice", posts: 30, blobs: 2), try StandInAccount("bob", posts: 5),
    ])
    scene.server.play(FaultRule(failure.fault, on: failure.endpoint))
    let result = try scene.backUp("--attempts 2 --timeout 5")
    #expect(failure.statuses.contains(result.status), "\(result.status): \(result.errors)")
    #expect(result.errors.contains("error: "))
    #expect(scene.requestCount(of: failure.endpoint) <= failure.requests)
    // Whatever there is now, it is not a snapshot.
    if scene.folder.names().contains(NetworkScene.archive) {
      let log = try scene.command.run("carpack log --json \(NetworkScene.archive)")
      #expect(!log.text.contains(scene.account.did))
    }
  }

  /// What the newest commit is only spares a request.
  @Test(arguments: [
    Fault.captivePortal, .deepJSON(depth: 200_000), .status(400), .page(status: 404),
  ])
  func `does not need to be told the newest commit`(_ fault: Fault) throws {
    let scene = try NetworkScene(posts: 10, blobs: 2)
    scene.server.play(FaultRule(fault, on: "getLatestCommit"))
    let result = try scene.backUp("--attempts 2")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
  }

  /// Blobs that never come as they should: each is in the ledger, and all others are there.
  @Test(arguments: [
    (Fault.status(500), "server-error"), (.status(403), "refused"),
    (.page(status: 502), "server-error"),
    (.page(status: 404), "not-found"), (.otherContent, "mismatch"),
    (.distorted(.corrupted(at: 0.5)), "mismatch"), (.distorted(.shortened(to: 0.5)), "mismatch"),
    (.distorted(.cut(at: 0.5)), "no-answer"), (.dropped, "no-answer"), (.reset, "no-answer"),
    (.captivePortal, "mismatch"), (.garbage, "no-answer"), (.distorted(.endless), "too-large"),
    (.distorted(.stalled(at: 0.5)), "no-answer"), (.silent, "no-answer"),
    (.redirect(status: 302, to: "http://10.0.0.1{path}"), "hostile-redirect"),
    (.redirect(status: 307, to: "{path}"), "hostile-redirect"),
    (.redirect(status: 302, to: "ftp://example.com/"), "hostile-redirect"),
    (.tooManyRequests(retryAfter: nil), "rate-limited"), (.bomb(bytes: 1 << 30), "mismatch"),
    (.largeHead(bytes: 4 << 20), "no-answer"),
  ])
  func `misses one blob, and brings all others`(_ fault: Fault, _ reason: String) throws {
    let scene = try NetworkScene(posts: 10, blobs: 12)
    let cid = try #require(scene.account.referencedBlobs.min { "\($0)" < "\($1)" })
    scene.server.play(FaultRule(fault, on: "getBlob", cid: "\(cid)"))
    let result = try scene.backUp("--attempts 2 --timeout 2")
    #expect(result.status == 10, "\(result.text)\(result.errors)")
    try scene.expectWhole(without: [cid])
    #expect(try scene.ledger() == ["\(cid)": reason])
    #expect(scene.server.blobRequests["\(cid)", default: 0] <= 8)
    scene.server.clearFaults()
    // The next backup asks again for what may have passed; for the rest, tomorrow's does, or fill.
    let mayPass = ["server-error", "no-answer", "rate-limited", "mismatch"].contains(reason)
    let next = try scene.backUp()
    #expect(next.status == (mayPass ? 0 : 10), "\(next.text)\(next.errors)")
    let filled = try scene.command.run("carpack fill \(NetworkScene.archive) \(scene.flags)")
    #expect(filled.status == 0, "\(filled.text)\(filled.errors)")
    try scene.expectWhole()
  }

  @Test(arguments: [
    Behaviour.Paging.cursorOnEveryPage, .integerCursor, .noCursor, .twice, .emptyCursor,
    .emptyPages, .garbled,
  ])
  func `brings what records refer to, however blobs are listed`(_ paging: Behaviour.Paging) throws {
    var behaviour = Behaviour()
    behaviour.paging = paging
    behaviour.maximumPage = 5
    let scene = try NetworkScene(posts: 10, blobs: 13, behaviour)
    let result = try scene.backUp("--attempts 2 --json")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
    #expect(scene.requestCount(of: "listBlobs") <= 10)
    let listed = paging == .noCursor ? 5 : 13
    #expect(result.text.contains(#""listed":\#(listed)"#), "\(result.text)")
  }

  @Test func `says that a list of blobs broke off, and brings what records refer to`() throws {
    var behaviour = Behaviour()
    behaviour.paging = .loop
    behaviour.maximumPage = 5
    let scene = try NetworkScene(posts: 10, blobs: 13, behaviour)
    for _ in 0..<2 {
      let result = try scene.backUp("--attempts 2")
      #expect(result.status == 10, "\(result.text)\(result.errors)")
      let words =
        "com.atproto.sync.listBlobs at \(scene.server.url): the list broke off after 10 entries"
      #expect(result.errors.contains(words), "\(result.errors)")
      #expect(result.text.contains("it broke off before its end"), "\(result.text)")
    }
    #expect(scene.server.blobRequests.values.allSatisfy { $0 == 1 })
    // A list that ends makes it whole.
    scene.server.behaviour.paging = .proper
    #expect(try scene.backUp().status == 0)
    try scene.expectWhole()
  }

  @Test func `does not follow a list of blobs that has no end`() throws {
    var behaviour = Behaviour()
    behaviour.paging = .endless
    behaviour.maximumPage = 1000
    let scene = try NetworkScene(posts: 10, blobs: 3, behaviour)
    // No server has the blobs of that list, so each is requested once at most.
    let result = try scene.backUp("--attempts 2")
    #expect(result.status == 10)
    #expect(result.errors.contains("it does not end (limit"))
    #expect(scene.requestCount(of: "listBlobs") <= 20)
    #expect(scene.requestCount(of: "getBlob") <= 12_000)
  }

  @Test(arguments: [
    Fault.passing, [.distorted(.corrupted(at: 0.5)), .distorted(.shortened(to: 0.5))],
  ])
  func `brings a thousand blobs through a fifth of failures`(_ kinds: [Fault]) throws {
    let scene = try NetworkScene(posts: 250, blobs: 1000, blobSize: 2000)
    scene.server.randomFaults = RandomFaults(rate: 0.2, kinds: kinds, seed: 4, endpoint: "getBlob")
    let result = try scene.backUp("--attempts 12")
    #expect(result.status == 0, "\(result.text)\(result.errors)")
    try scene.expectWhole()
    // A blob that came as it should is not asked for again, and the rest not more often than it
    // takes.
    #expect(scene.server.blobDeliveries.values.allSatisfy { $0 == 1 })
    #expect(scene.requestCount(of: "getBlob") < 1500)
  }
}
