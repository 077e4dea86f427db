import TestSupport
import Testing
import XRPC

@Suite struct `An answer of DNS` {
  /// A message with a question and these answers, each a type, a class and data.
  private static func message(
    _ answers: [(type: UInt16, kind: UInt16, data: [UInt8])], code: UInt8 = 0,
    questions: Int = 1, name: [UInt8] = [0xc0, 12]
  ) -> [UInt8] {
    func two(_ number: Int) -> [UInt8] { [UInt8(number >> 8 & 255), UInt8(number & 255)] }
    var bytes: [UInt8] = [0x12, 0x34, 0x81, 0x80 | code]
    bytes += two(questions) + two(answers.count) + two(0) + two(0)
    for _ in 0..<questions {
      bytes += [8] + Array("_atproto".utf8) + [5] + Array("alice".utf8) + [3] + Array("bar".utf8)
      bytes += [0] + two(16) + two(1)
    }
    for answer in answers {
      bytes += name + two(Int(answer.type)) + two(Int(answer.kind)) + [0, 0, 1, 44]
      bytes += two(answer.data.count) + answer.data
    }
    return bytes
  }

  private static func string(_ text: String) -> [UInt8] {
    [UInt8(text.utf8.count)] + Array(text.utf8)
  }

  private func read(_ message: [UInt8]) throws -> [String] {
    try DNSMessage.txtRecords(in: message.span)
  }

  @Test func `is read for its TXT records`() throws {
    let message = Self.message([
      (16, 1, Self.string("did=did:plc:abc")), (16, 1, Self.string("v=spf1 -all")),
    ])
    #expect(try read(message) == ["did=did:plc:abc", "v=spf1 -all"])
    #expect(try read(Self.message([])) == [])
    #expect(try read(Self.message([(16, 1, [])])) == [""])
  }

  @Test func `puts the strings of a record together`() throws {
    let data = Self.string("did=did:") + Self.string("") + Self.string("plc:abc")
    #expect(try read(Self.message([(16, 1, data)])) == ["did=did:plc:abc"])
  }

  @Test func `may lead over an alias, and hold other records`() throws {
    let message = Self.message([
      (5, 1, [3, 0x66, 0x6f, 0x6f, 0]), (1, 1, [127, 0, 0, 1]), (16, 3, Self.string("chaos")),
      (16, 1, Self.string("did=x")), (46, 1, [UInt8](repeating: 7, count: 80)),
    ])
    #expect(try read(message) == ["did=x"])
  }

  @Test(arguments: [[0], [3, 0x66, 0x6f, 0x6f, 0], [3, 0x66, 0x6f, 0x6f, 0xc0, 12], [0xc0, 255]])
  func `has names of every form`(_ name: [UInt8]) throws {
    #expect(try read(Self.message([(16, 1, Self.string("did=x"))], name: name)) == ["did=x"])
  }

  @Test func `of a name that does not exist has none`() throws {
    #expect(try read(Self.message([], code: 3)) == [])
  }

  @Test(arguments: [1, 2, 4, 5, 15])
  func `that is an error says which`(_ code: UInt8) {
    #expect(throws: DNSError.failed(code: Int(code))) {
      try read(Self.message([], code: code))
    }
  }

  @Test func `that ends early is malformed, wherever`() throws {
    let message = Self.message([(16, 1, Self.string("did=did:plc:abc"))])
    for length in 0..<message.count {
      #expect(throws: DNSError.malformed) { try read(Array(message[..<length])) }
    }
    #expect(try read(message + [1, 2, 3]).count == 1)
  }

  @Test func `that promises more than it has is malformed`() throws {
    var counts = Self.message([])
    counts[7] = 255
    #expect(throws: DNSError.malformed) { try read(counts) }
    counts[4] = 255
    #expect(throws: DNSError.malformed) { try read(counts) }
    // A string that is longer than its record.
    #expect(throws: DNSError.malformed) { try read(Self.message([(16, 1, [9, 1, 2])])) }
    // Labels of the two lengths that are reserved.
    for first: UInt8 in [0x40, 0x80, 0xbf] {
      let message = Self.message([(16, 1, Self.string("did=x"))], name: [first, 0])
      #expect(throws: DNSError.malformed) { try read(message) }
    }
  }

  @Test func `is an answer and no question`() {
    var question = Self.message([])
    question[2] = 1
    #expect(throws: DNSError.malformed) { try read(question) }
  }

  @Test func `of any bytes is read to its end or refused`() {
    var generator = SeededGenerator(seed: 11)
    for _ in 0..<20_000 {
      var message = Self.message([(16, 1, Self.string("did=did:plc:abc"))])
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        message[Int.random(in: 2..<message.count, using: &generator)] = .random(
          in: 0...255, using: &generator)
      }
      do {
        let records = try read(message)
        #expect(records.allSatisfy { $0.utf8.count <= 3 * message.count })
      } catch {
        #expect(error is DNSError)
      }
    }
  }
}

@Suite struct `DNS over HTTPS` {
  private static let url = "https://dns.bar/dns-query?name=_atproto.alice.bar&type=TXT"

  private func records(_ body: String, status: Int = 200) async throws -> [String] {
    let fetcher = FakeFetcher([Self.url: .body(body, status: status)])
    return try await DNSOverHTTPS("https://dns.bar", fetcher: fetcher)
      .records(of: "_atproto.alice.bar")
  }

  @Test func `gives the text of TXT records`() async throws {
    let body = #"""
      {"Status": 0, "TC": false, "Question": [{"name": "_atproto.alice.bar", "type": 16}],
       "Answer": [{"name": "x", "type": 5, "data": "y."}, {"name": "x", "type": 16, "TTL": 300, "data": "\"did=did:plc:abc\""},
                  {"name": "x", "type": 16, "data": "did=bare"}, {"type": 16}, 7]}
      """#
    #expect(try await records(body) == ["did=did:plc:abc", "did=bare"])
    #expect(try await records(#"{"Status": 0}"#) == [])
    #expect(try await records(#"{"Status": 3}"#) == [])
  }

  @Test func `that fails says how`() async {
    await #expect(throws: DNSError.failed(code: 2)) { try await records(#"{"Status": 2}"#) }
    for (body, status) in [("{}", 200), ("<html>", 200), ("{}", 404), (#"{"Status": 0}"#, 500)] {
      let error = await #expect(throws: DNSError.self) { try await records(body, status: status) }
      guard case .unusableServer? = error else {
        Issue.record("\(String(describing: error))")
        continue
      }
    }
    await #expect(throws: DNSError.self) {
      try await DNSOverHTTPS("https://dns.bar", fetcher: FakeFetcher()).records(of: "x")
    }
  }

  @Test(
    arguments: [
      ("https://dns.bar", "https://dns.bar/dns-query?name=n&type=TXT"),
      ("https://dns.bar/resolve", "https://dns.bar/resolve?name=n&type=TXT"),
      ("https://dns.bar/dns?a=b", "https://dns.bar/dns?a=b&name=n&type=TXT"),
    ])
  func `is asked where it is`(_ base: String, _ url: String) async throws {
    let fetcher = FakeFetcher([url: .body(#"{"Status": 0}"#)])
    _ = try await DNSOverHTTPS(base, fetcher: fetcher).records(of: "n")
    #expect(fetcher.asked == [url])
  }

  @Test(
    arguments: [
      ("plain", "plain"), (#""quoted""#, "quoted"), (#""a" "b""#, "ab"), (#""a\"b\\c""#, #"a"b\c"#),
      (#""\100id=x""#, "did=x"), (#""open"#, "open"), (#""a\"#, "a"), ("", ""), (#""\999""#, "999"),
    ])
  func `writes text as zone files do, or bare`(_ data: String, _ text: String) {
    #expect(DNSOverHTTPS.text(of: data) == text)
  }
}
