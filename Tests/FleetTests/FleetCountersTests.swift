import HTTP
import Testing

@testable import Fleet

@Suite struct `The counters of a worker` {
  @Test func `name servers, and count all websites of handles and DIDs as one`() throws {
    let counters = FleetCounters()
    for number in 0..<1000 {
      for path in [".well-known/atproto-did", ".well-known/did.json"] {
        counters.note(
          .request(
            method: "GET", url: "https://handle-\(number).example.com/\(path)",
            outcome: "status 200", seconds: 0.5))
      }
    }
    for path in ["xrpc/com.atproto.sync.getRepo?did=x", "", ".well-known/other"] {
      counters.note(
        .request(
          method: "GET", url: "https://pds.example.com/\(path)", outcome: "status 500", seconds: 1))
    }
    let requests = counters.values.requests
    #expect(requests.keys.sorted() == ["https://pds.example.com", "identities"])
    #expect(try #require(requests["identities"]) == (2000, 0, 1000))
    #expect(try #require(requests["https://pds.example.com"]) == (3, 3, 3))
    let text = try #require(counters.answer("/metrics")).text
    #expect(text.contains("carpack_fleet_requests_total{host=\"identities\"} 2000\n"))
  }
}
