import Testing

@testable import ObjectStore

struct `An answer in XML` {
  private func read(_ text: String) -> XMLElement? { XMLElement(Array(text.utf8)) }

  @Test func `is elements, their text and the elements in them`() throws {
    let answer = try #require(
      read(
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <!-- a remark with <tags> -->
        <s3:List xmlns:s3="http://s3.amazonaws.com/doc/2006-03-01/">
          <Empty/><Contents kind="a"><Key>a&amp;b&#x3c;&#62;</Key><Size>12</Size></Contents>
          <Contents><Key>&quot;c&apos;&lt;</Key></Contents>
        </s3:List>
        """))
    #expect(answer.name == "List")
    #expect(answer["Empty"]?.text == "")
    #expect(answer.all("Contents").map { $0["Key"]?.text } == ["a&b<>", "\"c'<"])
    #expect(answer["Contents"]?["Size"]?.text == "12")
    #expect(answer["Other"] == nil)
  }

  @Test(arguments: [
    "", "text", "<a>", "<a></b>", "<a><b></a></b>", "</a>", "<a>&nbsp;</a>", "<a>&#xd800;</a>",
    "<a>&#99999999;</a>", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "<a", "<a>&amp</a>",
    String(repeating: "<a>", count: 100_000),
  ])
  func `is refused if it is malformed, or more than stores send`(_ text: String) {
    #expect(read(text) == nil)
  }

  @Test func `gives back text that was escaped`() {
    let text = "<\"a\" & 'b'>"
    #expect(read("<a>\(XMLElement.escaped(text))</a>")?.text == text)
  }
}

struct `An address in a store` {
  @Test(arguments: [
    ("s3://bucket/key", "bucket", "key"), ("s3://bucket", "bucket", ""),
    ("s3://bucket/", "bucket", ""),
    ("s3://my.bucket/a/b c/d%20?x#y", "my.bucket", "a/b c/d%20?x#y"),
    ("s3://bucket//a", "bucket", "/a"),
  ])
  func `is a bucket and a key, as it stands`(_ text: String, _ bucket: String, _ key: String) throws
  {
    let address = try BucketAddress(text)
    #expect(address.bucket == bucket)
    #expect(address.key == key)
  }

  @Test(arguments: [
    "https://bucket/key", "s3:/bucket/key", "s3://", "s3:///key", "s3://a/key", "s3://bu cket/key",
    "s3://user@host/key", "s3://bucket/../other", "s3://bucket/a/./b", "s3://bucket/a\nb",
    "s3://..x/key", "s3://bucket/" + String(repeating: "k", count: 1025),
  ])
  func `is refused if it could mean something else`(_ text: String) {
    #expect(throws: StoreError.self) { try BucketAddress(text) }
  }

  @Test(
    arguments: [
      ("bucket", nil, nil, "https://bucket.s3.eu-west-1.amazonaws.com", "/a%20b"),
      ("my.bucket", nil, nil, "https://s3.eu-west-1.amazonaws.com", "/my.bucket/a%20b"),
      ("bucket", nil, true, "https://s3.eu-west-1.amazonaws.com", "/bucket/a%20b"),
      ("bucket", "http://127.0.0.1:9000/", nil, "http://127.0.0.1:9000", "/bucket/a%20b"),
      ("bucket", "https://store.example/s3", nil, "https://store.example", "/s3/bucket/a%20b"),
      ("bucket", "https://store.example", false, "https://bucket.store.example", "/a%20b"),
    ] as [(String, String?, Bool?, String, String)])
  func `leads to a host and a path`(
    _ bucket: String, _ endpoint: String?, _ inPath: Bool?, _ origin: String, _ path: String
  ) throws {
    var options = StoreOptions { _ in nil }
    options.namesBucketInPath = inPath
    let place = try Endpoint(of: bucket, region: "eu-west-1", options, endpoint: endpoint)
    #expect(place.origin == origin)
    #expect(place.path(of: "a b") == path)
    #expect(origin.hasSuffix("://\(place.host)"))
  }

  @Test func `cannot be a host where its bucket has a dot`() {
    var options = StoreOptions { _ in nil }
    options.namesBucketInPath = false
    #expect(throws: StoreError.self) {
      try Endpoint(of: "my.bucket", region: "eu-west-1", options, endpoint: nil)
    }
  }
}
