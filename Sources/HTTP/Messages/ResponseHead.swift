internal import IPLD

/// The head of an answer while it arrives, line by line.
///
/// Invariants:
/// 1. No more than ``maximumBytes`` of lines are taken, trailers and informational answers (1xx)
///    among them.
/// 2. ``isComplete`` stays true once it is; what comes then are trailers, which nobody asked for.
struct ResponseHead {
  /// How long all lines together may be.
  static let maximumBytes = 64 << 10

  /// What is said of a head that is longer.
  static let isTooLong = "its head is longer than \(maximumBytes) bytes"

  private(set) var status = 0
  private(set) var fields: [(name: String, value: String)] = []
  private(set) var isComplete = false
  private var byteCount = 0

  /// What is wrong with a head.
  struct Fault: Error {
    let what: String
  }

  /// Takes the next line, its end included.
  ///
  /// - Throws: ``Fault`` if there are too many, or the server switches protocols.
  mutating func append(_ line: Span<UInt8>) throws(Fault) {
    byteCount += line.count
    guard byteCount <= Self.maximumBytes else {
      throw Fault(what: Self.isTooLong)
    }
    guard !isComplete, !line.isEmpty else { return }
    let bytes = Self.trimmed(line, 0..<line.count)
    if line[0] == 0x20 || line[0] == 0x09 {
      // A value that goes on (RFC 9112, section 5.2).
      guard !fields.isEmpty else { return }
      fields[fields.count - 1].value += " " + String(decoding: bytes, as: UTF8.self)
    } else if bytes.isEmpty {
      // What a server says on the way (103 Early Hints) is not its answer.
      if status >= 200 { isComplete = true }
    } else if bytes.starts(with: Self.protocolName) {
      fields.removeAll()
      let text = String(decoding: bytes, as: UTF8.self)
      status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      guard 100..<1000 ~= status else { throw Fault(what: "it begins with \(shown(text))") }
      // What follows is another protocol, which nobody asked for, and has no end.
      guard status != 101 else { throw Fault(what: "it switches to another protocol (101)") }
    } else if let colon = bytes.firstIndex(of: UInt8(ascii: ":")) {
      let name = Self.trimmed(bytes.span, 0..<colon).map { byte in
        UInt8(ascii: "A")...UInt8(ascii: "Z") ~= byte ? byte | 0x20 : byte
      }
      let value = Self.trimmed(bytes.span, colon + 1..<bytes.count)
      fields.append(
        (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self)))
    }
  }

  private static let protocolName = Array("HTTP/".utf8)

  /// These bytes of a line, without the white space around them.
  private static func trimmed(_ line: Span<UInt8>, _ range: Range<Int>) -> [UInt8] {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, line[start] <= 0x20 { start += 1 }
    while start < end, line[end - 1] <= 0x20 { end -= 1 }
    return line.array(start..<end)
  }

  private func shown(_ text: String) -> String { "'\(Excerpt.of(text))'" }
}
