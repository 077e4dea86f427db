internal import IPLD

/// The head of an answer while it arrives, line by line.
///
/// Invariants:
/// 1. No more than ``maximumBytes`` of lines are taken, trailers and informational answers (1xx) among them.
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
    guard !isComplete else { return }
    let bytes = [UInt8](capacity: line.count) { output in
      for index in line.indices { output.append(line[index]) }
    }
    let text = String(decoding: bytes, as: UTF8.self)
    if text.utf8.allSatisfy({ $0 == 0x0d || $0 == 0x0a }) {
      // What a server says on the way (103 Early Hints) is not its answer.
      if status >= 200 { isComplete = true }
    } else if text.hasPrefix("HTTP/") {
      fields.removeAll()
      status = text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      guard 100..<1000 ~= status else { throw Fault(what: "it begins with \(shown(text))") }
      // What follows is another protocol, which nobody asked for, and has no end.
      guard status != 101 else { throw Fault(what: "it switches to another protocol (101)") }
    } else {
      appendField(text)
    }
  }

  private mutating func appendField(_ line: String) {
    if let first = line.utf8.first, first == 0x20 || first == 0x09 {
      // A value that goes on (RFC 9112, section 5.2).
      if !fields.isEmpty { fields[fields.count - 1].value += " " + trimmed(line[...]) }
      return
    }
    guard let colon = line.utf8.firstIndex(of: UInt8(ascii: ":")) else { return }
    let name = trimmed(line[..<colon]).lowercased()
    fields.append((name, trimmed(line[line.utf8.index(after: colon)...])))
  }

  private func trimmed(_ text: Substring) -> String {
    let bytes = text.utf8
    guard let first = bytes.firstIndex(where: { $0 > 0x20 }),
      let last = bytes.lastIndex(where: { $0 > 0x20 })
    else { return "" }
    return String(text[first...last])
  }

  private func shown(_ text: String) -> String { "'\(Excerpt.of(text))'" }
}
