import HTTP
import IPLD
import StandIn
import TestSupport
import Testing

@testable import ObjectStore

struct `A store that is overloaded` {
  @Test(
    arguments: [
      (503, "SlowDown", nil), (503, "SlowDown", "1"), (503, "ServiceUnavailable", "20"),
      (429, "TooManyRequests", nil), (429, "TooManyRequests", "2"), (500, "InternalError", nil),
      (400, "RequestTimeout", nil),
    ] as [(Int, String, String?)])
  func `is asked again for as long as a bad minute lasts`(
    status: Int, code: String, retryAfter: String?
  ) async throws {
    let fields = retryAfter.map { [(name: "retry-after", value: $0)] } ?? []
    let bucket = try ScriptedBucket { _, clock in
      clock.now < 60 ? .error(status, code, fields: fields) : .init(200, "there")
    }
    #expect(try await bucket.read() == "there")
    #expect(bucket.clock.now >= 60 && bucket.clock.now < 120)
    #expect(bucket.transport.count < 65)
  }

  @Test func `is given up after two minutes, and how often it was asked is said`() async throws {
    let bucket = try ScriptedBucket { _, _ in .error(503, "SlowDown") }
    let error = await #expect(throws: StoreError.self) { try await bucket.read() }
    #expect(error?.kind == .unavailable)
    #expect(bucket.clock.now >= 120 && bucket.clock.now < 180)
    #expect(bucket.transport.count < 20)
    #expect(error?.description.contains("\(bucket.transport.count) attempts") == true)
  }

  @Test func `is asked once where the user wants one attempt`() async throws {
    let bucket = try ScriptedBucket(attempts: 1) { _, _ in .error(503, "SlowDown") }
    await #expect(throws: StoreError.self) { try await bucket.read() }
    #expect(bucket.transport.count == 1)
  }

  @Test func `is not waited for any more when the task is cancelled`() async throws {
    let bucket = try ScriptedBucket { _, _ in .error(503, "SlowDown") }
    let task = Task { try await bucket.read() }
    while bucket.transport.count == 0 { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(bucket.transport.count < 20)
  }

  @Test(arguments: ["InternalError", "SlowDown"])
  func `is asked again where it says so after it has answered 200`(code: String) async throws {
    let bucket = try ScriptedBucket { request, clock in
      guard clock.now >= 30 else { return .error(200, code) }
      return .init(
        200,
        request.method == .put
          ? "<CopyPartResult><ETag>\"part\"</ETag></CopyPartResult>"
          : "<CompleteMultipartUploadResult><ETag>\"all\"</ETag></CompleteMultipartUploadResult>")
    }
    let upload = BucketClient.Upload(key: "key", id: "id")
    let part = try await bucket.client.copy("old", tag: "\"1\"", 0..<10, asPart: 1, of: upload)
    #expect(part.tag == "\"part\"")
    bucket.clock.advance(-bucket.clock.now)
    #expect(try await bucket.client.complete(upload, [part]) == "\"all\"")
  }

  @Test func `is not asked again for what stays, whatever the status is`() async throws {
    let bucket = try ScriptedBucket { _, _ in .error(200, "PreconditionFailed") }
    let upload = BucketClient.Upload(key: "key", id: "id")
    let error = await #expect(throws: StoreError.self) {
      try await bucket.client.copy("old", tag: "\"1\"", 0..<10, asPart: 1, of: upload)
    }
    #expect(error?.kind == .conditionFailed)
    #expect(bucket.transport.count == 1)
  }

  @Test func `that does not copy parts is not asked again`() async throws {
    let bucket = try ScriptedBucket { _, _ in .error(501, "NotImplemented") }
    let upload = BucketClient.Upload(key: "key", id: "id")
    let error = await #expect(throws: StoreError.self) {
      try await bucket.client.copy("old", tag: "\"1\"", 0..<10, asPart: 1, of: upload)
    }
    #expect(error?.kind == .cannotCopy)
    #expect(bucket.transport.count == 1)
  }
}
