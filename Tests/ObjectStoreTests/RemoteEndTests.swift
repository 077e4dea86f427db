import Archive
import HTTP
import StandIn
import Synchronization
import TestSupport
import Testing

@testable import ObjectStore
@testable import Remote

/// Objects of which only the end is asked for, on servers with ways of their own.
struct `The end of a remote file` {
  private static let size = 3 << 20
  private static let bytes = {
    var random = SeededGenerator(seed: 57)
    return random.bytes(size)
  }()

  /// How a server answers a range.
  enum Server: Sendable, CaseIterable {
    case knowsAll, ignoresSuffixes, ignoresSuffixesAndLengths, refusesSuffixes, lacksSuffixes
    case findsSuffixesMalformed, knowsNone, knowsNoneAndNoLengths
  }

  private static func answer(_ request: HTTPRequest, _ server: Server)
    -> (status: Int, fields: [(name: String, value: String)], body: [UInt8])
  {
    let range = request.fields.first { $0.name == "Range" }?.value ?? ""
    let isSuffix = range.hasPrefix("bytes=-")
    let whole = (
      200,
      [.ignoresSuffixesAndLengths, .knowsNoneAndNoLengths].contains(server)
        ? [] : [(name: "content-length", value: "\(size)")], bytes
    )
    switch server {
    case .ignoresSuffixes where isSuffix, .ignoresSuffixesAndLengths where isSuffix, .knowsNone,
      .knowsNoneAndNoLengths:
      return whole
    case .refusesSuffixes where isSuffix: return (416, [], [])
    case .lacksSuffixes where isSuffix: return (501, [], [])
    case .findsSuffixesMalformed where isSuffix: return (400, [], [])
    default:
      guard let part = StandInStore.part(range, of: size) else { return whole }
      let field = "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(size)"
      return (206, [("content-range", field)], Array(bytes[part]))
    }
  }

  @Test(arguments: Server.allCases)
  func `comes in few requests, of which none brings more where the server can help it`(
    server: Server
  ) async throws {
    let sent = Mutex(0)
    let transport = ScriptedTransport { request, _ in
      let answer = Self.answer(request, server)
      // The whole of a file is no cost if it is not read.
      sent.withLock { $0 += answer.status == 206 ? answer.body.count : 0 }
      return answer
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: VirtualClock())
    let file = WebFile(network: network, url: try HTTPURL("https://example.com/a.car.zst"))
    let object = try #require(try await RemoteObject.find(file))
    #expect(object.count == UInt64(Self.size))
    #expect(object.received == Self.bytes.suffix(RemoteObject.endingLength))
    #expect(sent.withLock { $0 } <= RemoteObject.endingLength + 1)
    let requests: ClosedRange =
      switch server {
      case .knowsAll: 1...1
      case .ignoresSuffixes, .knowsNone: 2...2
      default: 3...3
      }
    #expect(requests.contains(transport.count))
  }

  @Test(arguments: ["W/\"1\"", "\"1\""])
  func `is followed by other parts where a tag is weak now and then`(first: String) async throws {
    let transport = ScriptedTransport { request, number in
      var answer = Self.answer(request, .knowsAll)
      answer.fields += [
        ("etag", number == 1 ? first : "W/\"1\""), ("last-modified", "yesterday"),
      ]
      return answer
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: VirtualClock())
    let file = WebFile(network: network, url: try HTTPURL("https://example.com/a.car.zst"))
    let object = try #require(try await RemoteObject.find(file))
    #expect(try await object.beginning(100) == Array(Self.bytes[..<100]))
    // A weak tag fulfils no condition.
    let conditions = transport.log.last?.fields.filter { $0.name == "If-Match" }.map(\.value)
    #expect(conditions == (first.hasPrefix("W/") ? [] : [first]))
    if first.hasPrefix("W/") {
      #expect(throws: FetchFailure.self) { try object.requireTag() }
    } else {
      #expect(try object.requireTag() == first)
    }
  }

  @Test(arguments: [("W/\"2\"", "yesterday"), ("W/\"1\"", "today")])
  func `is not mixed with another content of a weak tag`(tag: String, date: String) async throws {
    let transport = ScriptedTransport { request, number in
      var answer = Self.answer(request, .knowsAll)
      answer.fields += [
        ("etag", number == 1 ? "W/\"1\"" : tag),
        ("last-modified", number == 1 ? "yesterday" : date),
      ]
      return answer
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: VirtualClock())
    let file = WebFile(network: network, url: try HTTPURL("https://example.com/a.car.zst"))
    let object = try #require(try await RemoteObject.find(file))
    let failure = await #expect(throws: FetchFailure.self) { try await object.beginning(100) }
    #expect(failure?.kind == .replaced)
  }

  @Test(arguments: [
    ("zstd", true), ("identity", true), ("aws-chunked, zstd", true), ("gzip", false),
  ])
  func `is taken as it is if its own compression is named`(coding: String, isTaken: Bool)
    async throws
  {
    let transport = ScriptedTransport { request, _ in
      var answer = Self.answer(request, .knowsAll)
      answer.fields.append(("content-encoding", coding))
      return answer
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: VirtualClock())
    let file = WebFile(network: network, url: try HTTPURL("https://example.com/a.car.zst"))
    if isTaken {
      #expect(try await RemoteObject.find(file)?.count == UInt64(Self.size))
    } else {
      let failure = await #expect(throws: FetchFailure.self) { try await RemoteObject.find(file) }
      #expect(failure?.kind == .refused)
    }
  }

  @Test(
    arguments: [
      (200, "<!DOCTYPE html><p>Log in", FetchFailure.Kind.temporary),
      (403, "<html><script>check()</script>", .temporary),
      (503, "<html><script>check()</script>", .temporary),
      // The page of a web server that denies access.
      (403, "<html><head><title>403 Forbidden</title></head></html>", .forbidden),
      (404, "<html>Not found</html>", .absent), (425, "", .temporary), (429, "", .temporary),
      (500, "", .temporary), (501, "", .unavailable), (505, "", .unavailable),
    ])
  func `is not taken from a page for a browser or a refusal`(
    status: Int, page: String, kind: FetchFailure.Kind
  ) async throws {
    let transport = ScriptedTransport { _, _ in
      (status, [("content-type", "text/html")], Array(page.utf8))
    }
    let network = Network(
      NetworkOptions(userAgent: "test"), transport: transport, clock: VirtualClock())
    let file = WebFile(network: network, url: try HTTPURL("https://example.com/a.car.zst"))
    if kind == .absent {
      let found = try await RemoteObject.find(file)
      #expect(found?.count == nil)
    } else {
      let failure = await #expect(throws: FetchFailure.self) { try await RemoteObject.find(file) }
      #expect(failure?.kind == kind, "\(String(describing: failure))")
    }
  }
}
