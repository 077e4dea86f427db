import StandIn
import Testing

@testable import HTTP

@Suite struct `the proxy of the environment` {
  private func proxy(_ url: String, _ environment: [String: String]) throws -> String? {
    ProxySettings(environment: environment).proxy(for: try HTTPURL(url))
  }

  @Test(arguments: ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"])
  func `is used for https`(name: String) throws {
    let environment = [name: "http://proxy.test:3128"]
    #expect(try proxy("https://pds.test/", environment) == "http://proxy.test:3128")
    #expect(try proxy("http://pds.test/", environment) == nil)
  }

  @Test(arguments: [
    "https://localhost/", "https://127.0.0.1:99/", "https://[::1]/", "https://pds.localhost/",
  ])
  func `is not used for this machine`(url: String) throws {
    #expect(try proxy(url, ["https_proxy": "http://proxy.test:3128"]) == nil)
  }

  @Test(arguments: [
    ("*", true), ("pds.test", true), (".test", true), ("test", true), ("PDS.TEST", true),
    ("other, pds.test", true),
    ("ds.test", false), ("pds", false), ("", false), ("10.0.0.1", false), ("pds.test.", true),
  ])
  func `has exceptions`(exceptions: String, isExcepted: Bool) throws {
    let environment = ["https_proxy": "http://proxy.test", "no_proxy": exceptions]
    #expect(try (proxy("https://pds.test/", environment) == nil) == isExcepted)
  }

  @Test func `is not used for a host that is pinned to an address`() throws {
    let settings = ProxySettings(
      environment: ["https_proxy": "http://proxy.test"],
      pinned: [Authority(host: "pds.test", port: 443)])
    #expect(settings.proxy(for: try HTTPURL("https://pds.test/")) == nil)
    #expect(settings.proxy(for: try HTTPURL("https://pds.test:8443/")) == "http://proxy.test")
  }

  @Test func `is told of once, without its password`() throws {
    let events = ScriptedNetwork.EventLog()
    let settings = ProxySettings(
      environment: ["https_proxy": "http://me:secret@proxy.test:3128"],
      observer: { events.append($0) })
    _ = settings.proxy(for: try HTTPURL("https://localhost/"))
    #expect(events.all.isEmpty, "it is not used")
    for _ in 0..<3 {
      #expect(settings.proxy(for: try HTTPURL("https://pds.test/"))?.contains("secret") == true)
    }
    #expect(events.all.count == 1)
    guard case .proxy("proxy.test:3128")? = events.all.first else {
      Issue.record("it is \(events.all)")
      return
    }
  }

  @Test func `is none if it is empty`() throws {
    #expect(try proxy("https://pds.test/", ["https_proxy": "", "HTTPS_PROXY": ""]) == nil)
  }
}
