internal import IPLD

/// The receiving of one answer: its head, line by line, and whether its body is whole.
///
/// Invariants:
/// 1. No more than ``maximumHead`` bytes of lines are taken, trailers and informational answers
///    (1xx) among them.
/// 2. ``isComplete`` stays true once it is; lines that come later are trailers, and are ignored.
struct Reception {
  /// How long all lines of a head may be together.
  static let maximumHead = 64 << 10

  /// The message about a longer head.
  static let isTooLong = "its head is longer than \(maximumHead) bytes"

  private let url: HTTPURL
  /// Whether the answer has a body: to HEAD none is sent, however long the head says it is.
  private let hasBody: Bool
  /// The head, as far as it has arrived.
  private(set) var response: HTTPResponse
  /// Whether all of the head is there.
  private(set) var isComplete = false
  private var headCount = 0
  private var expected: UInt64?
  private var received: UInt64 = 0

  init(of url: HTTPURL, hasBody: Bool = true) {
    (self.url, self.hasBody) = (url, hasBody)
    response = HTTPResponse(status: 0, url: url.text)
  }

  /// Takes a line of the head, its end included, and returns the head with the line that ends it.
  ///
  /// - Throws: ``TransportError`` if there are too many, or the server switches protocols.
  mutating func takeLine(_ line: Span<UInt8>) throws(TransportError) -> HTTPResponse? {
    headCount += line.count
    guard headCount <= Self.maximumHead else { throw malformed(Self.isTooLong) }
    guard !isComplete, !line.isEmpty else { return nil }
    let bytes = Self.trimmed(line, 0..<line.count)
    if line[0] == 0x20 || line[0] == 0x09 {
      // A folded field value (RFC 9112, section 5.2).
      guard !response.fields.isEmpty else { return nil }
      response.fields[response.fields.count - 1].value +=
        " " + String(decoding: bytes, as: UTF8.self)
    } else if bytes.isEmpty {
      // What a server says on the way (103 Early Hints) is not its answer.
      guard response.status >= 200 else { return nil }
      isComplete = true
      expected = hasBody ? response.contentLength : 0
      return response
    } else if bytes.starts(with: Self.protocolName) {
      let text = String(decoding: bytes, as: UTF8.self)
      response.fields.removeAll()
      response.status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      guard 100..<1000 ~= response.status else {
        throw malformed("it begins with '\(Excerpt.of(text))'")
      }
      // Another protocol was not asked for, and what follows has no end.
      guard response.status != 101 else {
        throw malformed("it switches to another protocol (101)")
      }
    } else if let colon = bytes.firstIndex(of: UInt8(ascii: ":")) {
      let name = Self.trimmed(bytes.span, 0..<colon).map { byte in
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
      }
      let value = Self.trimmed(bytes.span, colon + 1..<bytes.count)
      response.fields.append(
        (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
    }
    return nil
  }

  private static let protocolName = Array("HTTP/".utf8)

  /// These bytes of a line, without the white space around them.
  private static func trimmed(_ line: Span<UInt8>, _ range: Range<Int>) -> [UInt8] {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, line[start] <= 0x20 { start += 1 }
    while start < end, line[end - 1] <= 0x20 { end -= 1 }
    return line.array(start..<end)
  }

  private func malformed(_ what: String) -> TransportError {
    TransportError(.malformedAnswer(what), url: "\(url)")
  }

  /// Notes that bytes of the body have arrived.
  mutating func takeBody(_ count: Int) { received += UInt64(count) }

  /// How much of the body has arrived, in words; nil before the head is there.
  var progress: String? {
    guard isComplete else { return nil }
    return Self.grouped(received) + (expected.map { " of " + Self.grouped($0) } ?? "") + " bytes"
  }

  /// A number with its thousands apart: "12,345".
  private static func grouped(_ number: UInt64) -> String {
    guard number >= 1000 else { return "\(number)" }
    return grouped(number / 1000) + "," + "\(1000 + number % 1000)".dropFirst()
  }

  /// How much is still to come, if the server has said so.
  var remaining: UInt64? { expected.map { $0 - min($0, received) } }

  /// Checks that nothing is missing, when no more is to come.
  ///
  /// - Throws: ``TransportError`` if the head never ended, or the body is shorter than the head
  ///   says.
  func finish() throws(TransportError) {
    guard isComplete else { throw TransportError(.cutOff("it has no head"), url: "\(url)") }
    if let expected, received < expected {
      throw TransportError(.cutOff("\(received) of \(expected) bytes came"), url: "\(url)")
    }
  }
}
