import HTTP
import Testing

@Suite struct `an address` {
  @Test(arguments: [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255",
    "172.32.0.0", "192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0",
    "223.255.255.255", "2606:4700:4700::1111", "2a00::1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
    "2002:808:808::1", "2001:200::1", "2001:db7::1",
  ])
  func `leads out into the internet`(text: String) throws {
    #expect(try #require(IPAddress(text)).scope == .global)
  }

  @Test(arguments: [
    ("127.0.0.1", IPAddress.Scope.loopback), ("127.255.255.254", .loopback), ("::1", .loopback),
    ("::ffff:127.0.0.1", .loopback), ("0.0.0.0", .unspecified), ("::", .unspecified),
    ("::ffff:0.0.0.0", .unspecified), ("0.1.2.3", .reserved), ("10.0.0.0", .privateUse),
    ("10.255.255.255", .privateUse), ("172.16.0.0", .privateUse), ("172.31.255.255", .privateUse),
    ("192.168.0.0", .privateUse), ("192.168.255.255", .privateUse), ("fc00::1", .privateUse),
    ("fd12:3456::1", .privateUse), ("fec0::1", .privateUse), ("::ffff:192.168.1.1", .privateUse),
    ("100.64.0.0", .shared), ("100.127.255.255", .shared), ("169.254.0.1", .linkLocal),
    ("169.254.169.254", .linkLocal), ("fe80::1", .linkLocal), ("febf::1", .linkLocal),
    ("224.0.0.1", .multicast), ("239.255.255.255", .multicast), ("ff02::1", .multicast),
    ("192.0.0.1", .reserved), ("192.0.2.1", .reserved), ("192.88.99.1", .reserved),
    ("198.18.0.1", .reserved), ("198.19.255.255", .reserved), ("198.51.100.1", .reserved),
    ("203.0.113.1", .reserved), ("240.0.0.1", .reserved), ("255.255.255.255", .reserved),
    ("::127.0.0.1", .reserved), ("::8.8.8.8", .reserved), ("64:ff9b::127.0.0.1", .reserved),
    ("64:ff9b::10.0.0.1", .reserved), ("64:ff9b:1::1", .reserved), ("2002:7f00:1::", .reserved),
    ("2002:a00:1::", .reserved), ("2002:c0a8:101::1", .reserved), ("2001::1", .reserved),
    ("2001:2::1", .reserved), ("2001:db8::1", .reserved), ("3fff::1", .reserved),
    ("100::1", .reserved), ("4000::1", .reserved),
  ])
  func `leads elsewhere`(text: String, scope: IPAddress.Scope) throws {
    #expect(try #require(IPAddress(text)).scope == scope)
  }

  @Test(arguments: [
    "", "localhost", "1.2.3", "1.2.3.4.5", "256.1.1.1", "0x7f.1", "[::1]", "fe80::1%eth0",
    "1.2.3.4 ",
  ])
  func `is nothing else`(text: String) { #expect(IPAddress(text) == nil) }

  @Test(arguments: ["127.0.0.1", "255.0.1.20", "::1", "2001:db8::ff:0", "::"])
  func `is written as it was read`(text: String) throws {
    #expect(try #require(IPAddress(text)).description == text)
  }
}

@Suite struct `the policy of addresses` {
  struct Case: Sendable, CustomTestStringConvertible {
    let url: String
    let address: String
    var isRedirected = false
    let isPermitted: Bool
    var testDescription: String {
      "\(url) at \(address)\(isRedirected ? ", redirected" : ""): \(isPermitted)"
    }
  }

  private func permits(_ policy: AddressPolicy, _ one: Case) throws -> Bool {
    policy.permits(
      try #require(IPAddress(one.address)), for: try HTTPURL(one.url),
      isRedirected: one.isRedirected)
  }

  @Test(arguments: [
    Case(url: "https://pds.test/", address: "8.8.8.8", isPermitted: true),
    Case(url: "https://pds.test/", address: "8.8.8.8", isRedirected: true, isPermitted: true),
    Case(url: "http://pds.test/", address: "8.8.8.8", isPermitted: false),
    Case(url: "https://pds.test/", address: "127.0.0.1", isPermitted: false),
    Case(url: "https://localhost/", address: "127.0.0.1", isPermitted: false),
    Case(url: "http://localhost/", address: "::1", isPermitted: false),
    Case(url: "https://pds.test/", address: "10.0.0.1", isPermitted: false),
    Case(url: "https://pds.test/", address: "169.254.169.254", isPermitted: false),
    Case(url: "https://pds.test/", address: "fd00::1", isPermitted: false),
    Case(url: "https://pds.test/", address: "::ffff:10.0.0.1", isPermitted: false),
    Case(url: "https://pds.test/", address: "0.0.0.0", isPermitted: false),
  ])
  func `allows the internet alone by itself`(one: Case) throws {
    #expect(try permits(AddressPolicy(), one) == one.isPermitted)
  }

  @Test(arguments: [
    Case(url: "http://other.test/", address: "127.0.0.1", isPermitted: true),
    Case(url: "http://other.test/", address: "::1", isRedirected: true, isPermitted: true),
    Case(url: "http://other.test/", address: "10.0.0.1", isPermitted: false),
    Case(url: "https://other.test/", address: "10.0.0.1", isPermitted: false),
    Case(url: "https://other.test/", address: "0.0.0.0", isPermitted: false),
    Case(url: "http://other.test/", address: "8.8.8.8", isPermitted: false),
  ])
  func `allows this machine once a server on it was named`(one: Case) throws {
    var options = NetworkOptions(userAgent: "test")
    options.plcDirectory = "http://127.0.0.1:2582"
    #expect(try permits(AddressPolicy(options), one) == one.isPermitted)
  }

  @Test(arguments: [
    Case(url: "https://pds.test/x", address: "10.0.0.1", isPermitted: true),
    Case(url: "https://PDS.test.:443/x", address: "10.0.0.1", isPermitted: true),
    Case(url: "https://pds.test/x", address: "127.0.0.1", isPermitted: true),
    Case(url: "https://pds.test/x", address: "10.0.0.1", isRedirected: true, isPermitted: false),
    Case(url: "https://pds.test:8443/x", address: "10.0.0.1", isPermitted: false),
    Case(url: "https://other.test/x", address: "10.0.0.1", isPermitted: false),
    Case(url: "http://pds.test/x", address: "10.0.0.1", isPermitted: false),
    Case(url: "http://pinned.test:8080/", address: "127.0.0.1", isPermitted: true),
    Case(
      url: "http://pinned.test:8080/", address: "127.0.0.1", isRedirected: true, isPermitted: false),
  ])
  func `allows a server that was named to be anywhere, and that one only`(one: Case) throws {
    var options = NetworkOptions(userAgent: "test")
    options.pds = "https://pds.test"
    options.hostPins = ["pinned.test:8080:127.0.0.1"]
    #expect(try permits(AddressPolicy(options), one) == one.isPermitted)
  }

  @Test(arguments: [
    Case(url: "https://check.test/x", address: "10.0.0.1", isPermitted: true),
    Case(url: "https://check.test/x", address: "10.0.0.1", isRedirected: true, isPermitted: false),
    Case(url: "http://check.test/x", address: "10.0.0.1", isPermitted: false),
    Case(url: "http://check.test/x", address: "93.184.216.34", isPermitted: false),
    Case(url: "https://other.test/x", address: "10.0.0.1", isPermitted: false),
    Case(url: "https://other.test/x", address: "127.0.0.1", isPermitted: false),
  ])
  func `allows other servers that were named, too`(one: Case) throws {
    var options = NetworkOptions(userAgent: "test")
    options.namedServers = ["https://check.test/a/secret?b"]
    #expect(try permits(AddressPolicy(options), one) == one.isPermitted)
  }

  @Test(arguments: [
    "localhost:1", "http://localhost", "https://LOCALHOST:444/", "http://127.9.9.9:80",
    "http://[::1]:2583", "https://pds.localhost",
  ])
  func `knows a server on this machine by its name`(url: String) throws {
    var options = NetworkOptions(userAgent: "test")
    options.pds = url.contains("://") ? url : "http://\(url)"
    #expect(try AddressPolicy(options).allowsLoopback)
  }

  @Test(arguments: ["https://pds.test", "https://127.0.0.1.nip.io", "https://localhost.test"])
  func `knows no other for one`(url: String) throws {
    var options = NetworkOptions(userAgent: "test")
    options.pds = url
    #expect(try !AddressPolicy(options).allowsLoopback)
  }
}

@Suite struct `a pin` {
  @Test func `names host, port and addresses`() throws {
    let pin = try HostPin("PDS.test:443:10.0.0.1,[fd00::1],::1")
    #expect(pin.authority == Authority(host: "pds.test", port: 443))
    #expect(pin.addresses.map(\.description) == ["10.0.0.1", "fd00::1", "::1"])
  }

  @Test(arguments: [
    "", "host", "host:443", ":443:1.2.3.4", "host:0:1.2.3.4", "host:99999:1.2.3.4",
    "host:x:1.2.3.4",
    "host:443:", "host:443:name", "host:443:1.2.3.4,",
  ])
  func `is nothing else`(text: String) {
    #expect(throws: TransportError(.unusablePin, url: text)) { try HostPin(text) }
  }
}

@Suite struct `a URL` {
  @Test(arguments: [
    ("https://pds.test", "https://pds.test/"),
    ("HTTPS://PDS.test:443/a?b=c#d", "https://PDS.test:443/a?b=c"),
    ("http://[::1]:80/", "http://[::1]:80/"), ("https://pds.test/a b", "https://pds.test/a%20b"),
  ])
  func `is read`(text: String, whole: String) throws { #expect(try HTTPURL(text).text == whole) }

  @Test(arguments: [
    "", "pds.test", "/path", "ftp://pds.test/", "file:///etc/passwd", "https://",
    "https://user@pds.test/",
    "https://user:secret@pds.test/", "https://pds.test:0x50/", "https://pds.test:99999/",
    "gopher://x/",
    "https://a b/", "javascript:alert(1)",
  ])
  func `is of http or https, and has no user`(text: String) {
    let error = #expect(throws: TransportError.self) { try HTTPURL(text) }
    #expect(error?.reason == .unusableURL)
  }

  @Test(arguments: [
    "http://2130706433/", "http://0x7f000001/", "http://0177.0.0.1/", "http://127.1/",
  ])
  func `has the address that a number is`(text: String) throws {
    #expect(try HTTPURL(text).authority.isLoopback)
  }

  @Test(arguments: [
    ("/b?c", "https://pds.test/b?c"), ("b", "https://pds.test/x/b"),
    ("//other.test/b", "https://other.test/b"),
    ("http://other.test", "http://other.test/"), ("?q", "https://pds.test/x/y?q"),
  ])
  func `leads on`(reference: String, whole: String) throws {
    let base = try HTTPURL("https://pds.test/x/y?z=1")
    #expect(try HTTPURL(reference, relativeTo: base).text == whole)
  }

  @Test func `is shown without its query`() throws {
    #expect("\(try HTTPURL("https://pds.test:443/a/b?secret=1"))" == "https://pds.test/a/b")
    #expect("\(try HTTPURL("http://pds.test:443/a/b?secret=1"))" == "http://pds.test:443/a/b")
  }
}
