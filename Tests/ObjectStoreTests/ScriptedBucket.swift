import HTTP
import StandIn
import TestSupport

@testable import ObjectStore

/// A bucket whose store is a script, and whose time passes by itself.
struct ScriptedBucket {
  let clock = VirtualClock()
  let transport: ScriptedTransport
  let client: BucketClient

  /// A bucket with keys of its own.
  init(
    endpoint: String = "https://s3.example.com", attempts: Int = 6,
    _ script: @escaping @Sendable (HTTPRequest, VirtualClock) throws -> ScriptedBucket.Answer
  ) throws {
    let clock = clock
    let transport = ScriptedTransport { request, _ in
      let answer = try script(request, clock)
      return (answer.status, answer.fields, Array(answer.body.utf8))
    }
    self.transport = transport
    var network = NetworkOptions(userAgent: "test")
    network.attempts = attempts
    let variables = [
      "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": "AK", "AWS_SECRET_ACCESS_KEY": "secret",
    ]
    client = try BucketClient("archives", StoreOptions { variables[$0] }, network: network) {
      Network($0, transport: transport, clock: clock, chance: { 1 })
    }
  }

  /// What a store answers.
  struct Answer {
    var status = 200
    var fields: [(name: String, value: String)] = []
    var body = ""

    /// An answer.
    init(_ status: Int = 200, _ body: String = "", fields: [(name: String, value: String)] = []) {
      (self.status, self.body, self.fields) = (status, body, fields)
    }

    /// A refusal, perhaps with the status of a success.
    static func error(
      _ status: Int, _ code: String, fields: [(name: String, value: String)] = []
    ) -> Answer { Answer(status, "<Error><Code>\(code)</Code></Error>", fields: fields) }
  }

  func read(_ key: String = "key") async throws -> String {
    try await client.object(key, range: nil, tag: nil) { response in
      String(decoding: try await response.body.collect(upTo: 1 << 20, of: key), as: UTF8.self)
    }
  }
}
