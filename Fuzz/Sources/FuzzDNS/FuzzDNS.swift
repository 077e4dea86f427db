import FuzzSupport

@testable import XRPC

/// Answers of DNS: the same whatever follows them, cut short never another one, and with the
/// records that were put in.
///
/// The same bytes are read as an answer of DNS over HTTPS, too.
enum FuzzDNS: Fuzzer {
  static func run(_ bytes: Span<UInt8>) {
    check(bytes)
    build(bytes)
    overHTTPS(bytes.copy)
  }

  private static func read(_ message: Span<UInt8>) -> Result<[String], DNSError> {
    Result { () throws(DNSError) in try DNSMessage.txtRecords(in: message) }
  }

  private static func check(_ bytes: Span<UInt8>) {
    let whole = read(bytes)
    switch whole {
    case .success(let records):
      require(
        records.reduce(0) { $0 + $1.utf8.count } <= 3 * bytes.count, "more comes out than went in")
      let longer = bytes.copy + [0xc0, 0x0c, 0xff]
      require(read(longer.span) == whole, "what follows the answers changes them")
    case .failure(let error): requireLegible("\(error)")
    }
    // One place to cut is as good as another, and they take turns.
    let end = bytes.count / 2
    switch (read(bytes.extracting(first: end)), whole) {
    case (.failure(.malformed), _): break
    case (let short, let whole): require(short == whole, "cut short it says \(short)")
    }
  }

  /// Makes a message of the bytes, a record of each line, and reads it.
  private static func build(_ bytes: Span<UInt8>) {
    let texts = lines(of: bytes).prefix(200)
    var message: [UInt8] = [0, 0, 0x81, 0x80, 0, 1, 0, UInt8(texts.count), 0, 0, 0, 0]
    message += [1, 0x61, 0, 0, 16, 0, 1]
    for text in texts {
      let text = text.prefix(0x4000)
      var data: [UInt8] = []
      var place = 0
      while place < text.count {
        let end = min(text.count, place + 1 + Int(text[place]) % 255)
        data += [UInt8(end - place)] + text[place..<end]
        place = end
      }
      message += [
        0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60, UInt8(data.count >> 8), UInt8(data.count & 255),
      ]
      message += data
    }
    require(
      read(message.span)
        == .success(texts.map { String(decoding: $0.prefix(0x4000), as: UTF8.self) }),
      "a record changes")
  }

  private static func overHTTPS(_ bytes: [UInt8]) {
    do throws(DNSError) {
      let records = try DNSOverHTTPS.records(in: bytes)
      require(
        records.reduce(0) { $0 + $1.utf8.count } <= 3 * bytes.count, "more comes out than went in")
    } catch {
      requireLegible("\(error)")
    }
    let text = String(decoding: bytes, as: UTF8.self)
    require(
      DNSOverHTTPS.text(of: text).utf8.count <= 3 * text.utf8.count, "a text grows")
    guard !text.utf8.contains(UInt8(ascii: "\"")), !text.utf8.contains(UInt8(ascii: "\\")) else {
      return
    }
    require(DNSOverHTTPS.text(of: "\"\(text)\"") == text, "a text in quotation marks changes")
  }

  static func seeds(_ corpus: SeedCorpus?) throws -> [[UInt8]] {
    let did = Array("did=did:plc:ewvi7nxzyoun6zhxrhs64oiz".utf8)
    let name = [8] + Array("_atproto".utf8) + [3] + Array("bar".utf8) + [0] as [UInt8]
    func record(_ type: UInt8, _ name: [UInt8], _ data: [UInt8]) -> [UInt8] {
      name + [0, type, 0, 1, 0, 0, 1, 44, 0, UInt8(data.count)] + data
    }
    func message(_ code: UInt8, _ answers: [[UInt8]]) -> [UInt8] {
      [0x12, 0x34, 0x81, 0x80 | code, 0, 1, 0, UInt8(answers.count), 0, 0, 0, 0]
        + name + [0, 16, 0, 1] + answers.flatMap { $0 }
    }
    let text = [UInt8(did.count)] + did
    let halves = [9] + did.prefix(9) + [UInt8(did.count - 9)] + did.dropFirst(9)
    return [
      message(0, []), message(3, []), message(2, []),
      message(0, [record(16, [0xc0, 12], text)]),
      message(0, [record(5, [0xc0, 12], name), record(16, name, halves)]),
      message(0, [record(1, [0], [127, 0, 0, 1]), record(16, [0xc0, 12], text + [0] + text)]),
      did, did + Array("\nv=spf1 -all\n".utf8),
      Array(
        #"{"Status":0,"Answer":[{"name":"a","type":16,"TTL":1,"data":"\"did=did:web:a.b\""}]}"#.utf8
      ),
      Array(#"{"Status":0,"Answer":[{"type":16,"data":"\"a\\\"b\\065\" \"c\""},{"type":5}]}"#.utf8),
      Array(#"{"Status":3}"#.utf8), Array(#"{"Status":2,"Comment":"no"}"#.utf8),
    ]
  }
}
