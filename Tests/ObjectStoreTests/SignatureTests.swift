import ATProtocol
import HTTP
import ObjectStore
import Testing
import XRPC

/// The examples of "Authenticating Requests: Using the Authorization Header" in the S3 API
/// reference.
struct `The signature of a request` {
  struct Example: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var subject: RequestSigner.Subject
    var signature: String
  }

  static let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  static let host = (name: "Host", value: "examplebucket.s3.amazonaws.com")

  static let published = [
    Example(
      testDescription: "a part of an object",
      subject: .init(
        method: "GET", path: "/test.txt", fields: [host, ("Range", "bytes=0-9")], payload: nothing),
      signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
    Example(
      testDescription: "an object that is put",
      subject: .init(
        method: "PUT", path: "/test%24file.text",
        fields: [
          host, ("Date", "Fri, 24 May 2013 00:00:00 GMT"),
          ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ],
        payload: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"),
      signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
    Example(
      testDescription: "a name without a value",
      subject: .init(
        method: "GET", path: "/", query: [("lifecycle", "")], fields: [host], payload: nothing),
      signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    Example(
      testDescription: "several names",
      subject: .init(
        method: "GET", path: "/", query: [("prefix", "J"), ("max-keys", "2")], fields: [host],
        payload: nothing),
      signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
  ]

  @Test(arguments: published)
  func `is the published one`(_ example: Example) throws {
    let signer = RequestSigner(
      StoreCredentials(
        key: "AKIAIOSFODNN7EXAMPLE",
        secret: Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")),
      region: "us-east-1")
    let time = try #require(UnixTime("2013-05-24T00:00:00Z"))
    let fields = signer.fields(signing: example.subject, at: time)
    let authorization = try #require(fields.first { $0.name == "Authorization" }).value
    #expect(authorization.hasSuffix("Signature=\(example.signature)"), "\(authorization)")
    #expect(
      authorization.hasPrefix(
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders="
      ))
  }

  @Test func `carries the token of a session, signed`() throws {
    let signer = RequestSigner(
      StoreCredentials(key: "AK", secret: Secret("s"), sessionToken: Secret("token")),
      region: "eu-central-1")
    let fields = signer.fields(
      signing: .init(method: "GET", path: "/", fields: [Self.host], payload: Self.nothing),
      at: UnixTime(microseconds: 0))
    #expect(fields.contains { $0 == ("x-amz-security-token", "token") })
    let authorization = try #require(fields.first { $0.name == "Authorization" }).value
    #expect(authorization.contains("x-amz-security-token"))
    #expect(authorization.contains("/19700101/eu-central-1/s3/"))
  }

  @Test(arguments: [
    ("a b/c", "a%20b/c"), ("did:plc:x.car.zst", "did%3Aplc%3Ax.car.zst"),
    ("ü+%25&'(x)*~!@,;$=", "%C3%BC%2B%2525%26%27%28x%29%2A~%21%40%2C%3B%24%3D"),
  ])
  func `names a key by its bytes, each escaped once`(_ key: String, _ escaped: String) {
    #expect(HTTPURL.escaped(key, isPath: true) == escaped)
  }

  @Test func `sorts the query by what is sent`() {
    #expect(
      RequestSigner.queryText([("b", "2"), ("a", ""), ("A", "x/y"), ("a", "1")])
        == "A=x%2Fy&a=&a=1&b=2")
  }
}
