import HTTP
import StandIn
import TestSupport
import Testing

@testable import ObjectStore

struct `A redirection of a store` {
  private static let old = "https://s3.example.com"

  /// What comes of a read when the store's first host points elsewhere.
  private func read(_ location: String, region: String? = nil, endpoint: String = old) async throws
    -> (text: String?, log: [HTTPRequest])
  {
    let bucket = try ScriptedBucket(endpoint: endpoint) { request, _ in
      guard request.url.hasPrefix(endpoint + "/") else { return .init(200, "there") }
      var fields = [(name: "location", value: location)]
      if let region { fields.append(("x-amz-bucket-region", region)) }
      return .error(307, "TemporaryRedirect", fields: fields)
    }
    do {
      let text = try await bucket.read("a b")
      // The next request goes there at once.
      _ = try await bucket.read("a b")
      return (text, bucket.transport.log)
    } catch is StoreError {
      return (nil, bucket.transport.log)
    }
  }

  @Test(arguments: [
    "https://s3.eu-west-1.example.com/archives/a%20b",
    "https://archives.s3.eu-west-1.example.com/a%20b",
    "https://archives.s3-eu-west-1.example.com/a%20b",
  ])
  func `is followed to the host of the bucket's region, with a signature for it`(
    location: String
  ) async throws {
    for region in [nil, "eu-west-1"] {
      let (text, log) = try await read(location, region: region)
      #expect(text == "there")
      #expect(log.map(\.url) == ["\(Self.old)/archives/a%20b", location, location])
      // Only what the user named may lie in a private network.
      #expect(log.map(\.isPointedTo) == [false, true, true])
      let signatures = log.map { request in
        request.fields.first { $0.name == "Authorization" }?.value ?? ""
      }
      #expect(signatures[0].contains("/us-east-1/s3/"))
      #expect(signatures[1].contains("/eu-west-1/s3/"))
    }
  }

  @Test(arguments: [
    "http://s3.eu-west-1.example.com/archives/a%20b",
    "https://s3.eu-west-1.example.com:8443/archives/a%20b",
    "https://s3.eu-west-1.example.org/archives/a%20b",
    "https://s3.eu-west-1.other.example.com/archives/a%20b",
    "https://s3.eu-west-1.example.com/other/a%20b",
    "https://s3.eu-west-1.example.com/archives/other",
    "https://other.s3.eu-west-1.example.com/a%20b",
    "https://s3.example.com/archives/a%20b", "https://10.0.0.1/archives/a%20b",
    "https://user@s3.eu-west-1.example.com/archives/a%20b", "/archives/a%20b", "nonsense:", "",
  ])
  func `is followed nowhere else`(location: String) async throws {
    let (text, log) = try await read(location)
    #expect(text == nil)
    #expect(log.count == 1)
  }

  @Test func `does not change the store's own domain, whatever that looks like`() async throws {
    let (text, _) = try await read(
      "https://s3.eu-west-1.com/archives/a%20b", endpoint: "https://s3.eu-west-2.com")
    #expect(text == nil)
  }

  @Test func `is followed once`() async throws {
    let bucket = try ScriptedBucket { _, _ in
      .error(
        307, "TemporaryRedirect",
        fields: [("location", "https://s3.eu-west-1.example.com/archives/key")])
    }
    await #expect(throws: StoreError.self) { try await bucket.read() }
    #expect(bucket.transport.count <= 3)
  }
}
