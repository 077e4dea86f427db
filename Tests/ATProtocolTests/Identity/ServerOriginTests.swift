import ATProtocol
import Testing

@Suite struct `A server's origin` {
  @Test(
    arguments: [
      ("https://pds.example.com", "https://pds.example.com", "pds.example.com", 443),
      ("https://PDS.Example.com/", "https://pds.example.com", "pds.example.com", 443),
      ("https://pds.example.com:443", "https://pds.example.com", "pds.example.com", 443),
      ("https://pds.example.com:8443", "https://pds.example.com:8443", "pds.example.com", 8443),
      ("https://192.0.2.1", "https://192.0.2.1", "192.0.2.1", 443),
      ("https://[2001:db8::1]:444", "https://[2001:db8::1]:444", "[2001:db8::1]", 444),
      ("http://127.0.0.1:2590", "http://127.0.0.1:2590", "127.0.0.1", 2590),
      ("http://localhost", "http://localhost", "localhost", 80),
      ("http://pds.localhost:80", "http://pds.localhost", "pds.localhost", 80),
      ("http://[::1]:2583", "http://[::1]:2583", "[::1]", 2583),
    ])
  func `is scheme, host and port`(_ text: String, _ normal: String, _ host: String, _ port: Int)
    throws
  {
    let origin = try ServerOrigin(text)
    #expect(origin.text == normal)
    #expect(origin.host == host)
    #expect(origin.port == port)
    #expect(origin.isSecure == text.hasPrefix("https"))
    #expect(try ServerOrigin(normal) == origin)
  }

  @Test(arguments: [
    "", "https://", "https:///", "https://a b", "https://a/b", "https://a?b", "https://a#b",
    "https://user@a", "https://user:pass@a.example", "https://a:", "https://a:0",
    "https://a:65536", "https://a:99999", "https://a:123456", "https://a:+1", "https://a:１",
    "https://-a", "https://a..b", "https://a.", "https://.a", "https://[", "https://[]",
    "https://[::1", "https://[::1]x", "https://[x]", "https://ünicode.example", "https://a\n",
    "https://a//", "https://" + String(repeating: "a.", count: 300) + "a",
  ])
  func `is nothing else`(_ text: String) {
    #expect(throws: ServerOriginError.self) { try ServerOrigin(text) }
  }

  @Test(arguments: [
    "http://127.1", "http://127.0.0.256", "http://127.01.0.1", "https://0177.0.0.1",
    "https://127.0.0.010", "https://0x7f.0.0.1", "https://0x7f000001", "https://2130706433",
    "https://1.2.3.4.5", "https://pds.example.0x1",
  ])
  func `is no address in a spelling of which there are several`(_ text: String) {
    #expect(throws: ServerOriginError.notAnOrigin) { try ServerOrigin(text) }
  }

  @Test(arguments: ["ftp://a.example", "a.example", "//a.example", "did:web:a.example", "file:///"])
  func `is one of HTTP`(_ text: String) {
    #expect(throws: ServerOriginError.notHTTP) { try ServerOrigin(text) }
  }

  @Test(arguments: [
    "http://pds.example.com", "http://127.0.0.1.example.com", "http://10.0.0.1",
    "http://localhost.example.com", "http://[::2]",
    "http://0.0.0.0",
  ])
  func `is encrypted unless it is on this machine`(_ text: String) {
    #expect(throws: ServerOriginError.notSecure) { try ServerOrigin(text) }
  }
}
