import Archive
import HTTP
import IPLD
import StandIn
import TestSupport
import Testing

@testable import ObjectStore
@testable import Remote

struct `A bucket` {
  private func client(_ store: StandInStore, _ environment: [String: String] = [:]) throws
    -> BucketClient
  {
    let variables = store.environment.merging(environment) { $1 }
    var network = NetworkOptions(userAgent: "test")
    network.attempts = 3
    return try BucketClient(
      StandInStore.bucket, StoreOptions { variables[$0] }, network: network)
  }

  private func put(
    _ text: String, _ client: BucketClient, _ key: String,
    _ condition: BucketClient.Condition = .none
  ) async throws -> String? {
    let bytes = Array(text.utf8)
    return try await client.put(
      RequestBody(bytes), digest: SHA256.digest(of: bytes.span), at: key, if: condition)
  }

  private func read(_ client: BucketClient, _ key: String, range: String? = nil, tag: String? = nil)
    async throws -> String
  {
    try await client.object(key, range: range, tag: tag) { response in
      String(decoding: try await response.body.collect(upTo: 1 << 20, of: key), as: UTF8.self)
    }
  }

  private func tag(_ client: BucketClient, _ key: String) async throws -> String? {
    try await client.object(key, range: nil, tag: nil) { $0["etag"] }
  }

  @Test(arguments: ["plain", "a b/ü+%25&'(x)*~!@,;$=", "did:plc:abc.car.zst", "a//b", "ends/"])
  func `keeps an object under any key, and gives it back`(_ key: String) async throws {
    let store = try StandInStore()
    let client = try client(store)
    let absent = await #expect(throws: StoreError.self) { try await read(client, key) }
    #expect(absent?.kind == .noSuchObject)
    let tag = try await put("hello, store", client, key)
    #expect(store.keys == [key])
    #expect(try await read(client, key) == "hello, store")
    #expect(try await read(client, key, range: "bytes=7-11", tag: tag) == "store")
    #expect(try await self.tag(client, key) == tag)
    try await client.remove(key)
    try await client.remove(key)
    #expect(store.keys.isEmpty)
  }

  @Test func `obeys the conditions of a write`() async throws {
    let store = try StandInStore()
    let client = try client(store)
    let first = try #require(try await put("1", client, "key", .isAbsent))
    for condition in [BucketClient.Condition.isAbsent, .isTagged("\"other\"")] {
      let error = await #expect(throws: StoreError.self) {
        try await put("2", client, "key", condition)
      }
      #expect(error?.kind == .conditionFailed)
    }
    _ = try await put("3", client, "key", .isTagged(first))
    #expect(try await read(client, "key") == "3")
    let error = await #expect(throws: StoreError.self) {
      try await read(client, "key", tag: first)
    }
    #expect(error?.kind == .conditionFailed)
  }

  @Test(arguments: [
    StandInStore.Behaviour.Completion.madeInSilence, .droppedInSilence,
  ])
  func `does not take an empty answer to the end of an upload for an object`(
    _ completion: StandInStore.Behaviour.Completion
  ) async throws {
    let store = try StandInStore()
    store.behaviour.completion = completion
    let client = try client(store)
    let upload = try await client.beginUpload(of: "key")
    let text = Array("text".utf8)
    let part = try await client.send(
      RequestBody(text), digest: SHA256.digest(of: text.span), asPart: 1, of: upload)
    let error = await #expect(throws: StoreError.self) {
      try await client.complete(upload, [part])
    }
    #expect(error?.kind == .unconfirmed)
    #expect(store["key"] == (completion == .madeInSilence ? text : nil))
  }

  @Test func `makes an object of parts of another and of what is sent`() async throws {
    let store = try StandInStore()
    let client = try client(store)
    var random = SeededGenerator(seed: 6)
    let old = random.bytes(6 << 20)
    store["old"] = old
    let tag = try #require(try await tag(client, "old"))
    let upload = try await client.beginUpload(of: "new")
    let tail = Array("tail".utf8)
    let parts = [
      try await client.copy("old", tag: tag, 0..<UInt64(old.count), asPart: 1, of: upload),
      try await client.send(
        RequestBody(tail), digest: SHA256.digest(of: tail.span), asPart: 2, of: upload),
    ]
    #expect(store.openUploads == 1)
    try await client.complete(upload, parts.reversed(), if: .isAbsent)
    #expect(store["new"] == old + tail)
    #expect(store.openUploads == 0)
    let error = await #expect(throws: StoreError.self) {
      try await client.copy("old", tag: "\"other\"", 0..<10, asPart: 1, of: upload)
    }
    #expect(error?.kind == .conditionFailed)
  }

  @Test func `that copies nothing is found out, whatever it answers`() async throws {
    let store = try StandInStore()
    store.behaviour.copiesParts = false
    store["old"] = [1, 2, 3]
    let client = try client(store)
    let upload = try await client.beginUpload(of: "new")
    let error = await #expect(throws: StoreError.self) {
      try await client.copy("old", tag: "\"any\"", 0..<3, asPart: 1, of: upload)
    }
    #expect(error?.kind == .cannotCopy)
    try await client.abandon(upload)
    try await client.abandon(upload)
    #expect(store.openUploads == 0)
  }

  @Test func `lists objects and uploads, page by page`() async throws {
    let store = try StandInStore()
    let client = try client(store)
    for number in 0..<7 { store["a/\(number) & <more>"] = [UInt8(number)] }
    store["b"] = [0]
    var found: [String] = []
    try await client.list("a/") { page in found += page }
    #expect(found == (0..<7).map { "a/\($0) & <more>" })
    for _ in 0..<5 { _ = try await client.beginUpload(of: "a/0 & <more>") }
    _ = try await client.beginUpload(of: "a/0 & <more> and on")
    #expect(try await client.uploads(to: "a/0 & <more>").count == 6)
    #expect(try await client.uploads(to: "a/0 & <more> and").map(\.key) == ["a/0 & <more> and on"])
  }

  @Test(arguments: [-86_400.0, -1000, 1000, 31_536_000])
  func `with another time is asked by its own`(_ offset: Double) async throws {
    let store = try StandInStore()
    store.behaviour.clockOffset = offset
    store["key"] = [65]
    let client = try client(store)
    #expect(try await read(client, "key") == "A")
    store.server.forgetLog()
    #expect(try await read(client, "key") == "A")
    #expect(store.server.log.count == 1)
  }

  @Test func `says what it refuses, without the secret`() async throws {
    let store = try StandInStore()
    let wrong = try client(store, ["AWS_SECRET_ACCESS_KEY": "not-the-secret"])
    let denied = await #expect(throws: StoreError.self) { try await read(wrong, "key") }
    #expect(denied?.kind == .denied)
    #expect(denied?.code == "SignatureDoesNotMatch")
    #expect("\(String(describing: denied))".contains("secret") == false)
    let absent = await #expect(throws: StoreError.self) { try await read(client(store), "key") }
    #expect(absent?.kind == .noSuchObject)
  }

  @Test func `is read without a signature where that was asked for`() async throws {
    let store = try StandInStore()
    store.behaviour.checksSignatures = false
    store["key"] = [65]
    var options = StoreOptions { [endpoint = store.server.url] in
      $0 == "AWS_ENDPOINT_URL" ? endpoint : nil
    }
    options.isUnsigned = true
    let client = try BucketClient(
      StandInStore.bucket, options, network: NetworkOptions(userAgent: "test"))
    #expect(try await read(client, "key") == "A")
    #expect(store.server.log.allSatisfy { $0["authorization"] == nil })
  }

  @Test(arguments: [["a", "b", "a"], ["a", "a"], ["a"] + (0..<300).map { "\($0)" }])
  func `says that a list goes round`(marks: [String]) async throws {
    let bucket = try ScriptedBucket { request, _ in
      let place = marks.firstIndex { request.url.contains("continuation-token=\($0)&") }
      let next = marks[place.map { $0 + 1 < marks.count ? $0 + 1 : 0 } ?? 0]
      return .init(
        200,
        "<ListBucketResult><Contents><Key>k</Key></Contents><IsTruncated>true</IsTruncated><NextContinuationToken>\(next)</NextContinuationToken></ListBucketResult>"
      )
    }
    let error = await #expect(throws: BrokenList.self) { try await bucket.client.list("") { _ in } }
    #expect(error?.description.contains("ListObjectsV2 at https://s3.example.com/archives") == true)
    #expect(bucket.transport.count <= BrokenList.maximumIdlePages + 2)
  }

  @Test(
    arguments: [
      (403, [("cf-mitigated", "challenge")], "Just a moment"),
      (503, [], "<!DOCTYPE html><title>Just a moment…</title>"), (200, [], "<html>Log in</html>"),
      (511, [], "<html>Log in</html>"), (302, [("location", "https://login.example.net/")], ""),
    ] as [(Int, [(String, String)], String)])
  func `says that something else answers for its store, to reads and writes`(
    status: Int, fields: [(String, String)], body: String
  ) async throws {
    let bucket = try ScriptedBucket { _, _ in
      .init(status, body, fields: fields.map { (name: $0.0, value: $0.1) })
    }
    let bytes = Array("text".utf8)
    let written = await #expect(throws: StoreError.self) {
      try await bucket.client.put(
        RequestBody(bytes), digest: SHA256.digest(of: bytes.span), at: "key")
    }
    #expect(written?.kind == .unavailable)
    let listed = await #expect(throws: StoreError.self) {
      try await bucket.client.list("") { _ in }
    }
    #expect(listed?.kind == .unavailable)
    let object = BucketObject(client: bucket.client, key: "key")
    let read = await #expect(throws: FetchFailure.self) { try await RemoteObject.find(object) }
    #expect(read?.kind == .temporary)
  }

  @Test func `says that the credentials have ended, whatever the status is`() async throws {
    for (status, code) in [(400, "ExpiredToken"), (403, "ExpiredToken"), (400, "InvalidToken")] {
      let bucket = try ScriptedBucket { _, _ in .error(status, code) }
      let error = await #expect(throws: StoreError.self) { try await bucket.read() }
      #expect(error?.kind == .denied)
      #expect(error?.code == code)
    }
  }

  @Test func `is not followed elsewhere`() async throws {
    let other = try LoopbackServer { _, response in try response.send("elsewhere") }
    let server = try LoopbackServer { _, response in
      response.status = 307
      response.fields.append(("Location", "\(other.url)/archives/key"))
      try response.send()
    }
    let client = try BucketClient(
      "archives",
      StoreOptions {
        [
          "AWS_ENDPOINT_URL": server.url, "AWS_ACCESS_KEY_ID": "AK",
          "AWS_SECRET_ACCESS_KEY": "secret",
        ][$0]
      }, network: NetworkOptions(userAgent: "test"))
    await #expect(throws: StoreError.self) { try await read(client, "key") }
    #expect(other.log.isEmpty)
  }
}
