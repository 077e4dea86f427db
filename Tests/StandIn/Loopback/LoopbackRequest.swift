/// A request that arrived at a ``LoopbackServer``.
package struct LoopbackRequest: Sendable {
  /// The method, `GET` for one.
  package let method: String
  /// What was requested, as it came: path and query.
  package let target: String
  /// The path, decoded.
  package let path: String
  /// The parameters of the query in their order, decoded.
  package let query: [(name: String, value: String)]
  /// The header fields in their order, names in lower case.
  package let fields: [(name: String, value: String)]
  /// What was sent along.
  package let body: [UInt8]
  /// Which of the server's connections it came on, counted from 1.
  package let connection: Int

  /// The first header field of this name, in lower case.
  package subscript(_ name: String) -> String? { fields.first { $0.name == name }?.value }

  /// The first parameter of this name.
  package func parameter(_ name: String) -> String? { query.first { $0.name == name }?.value }

  /// All parameters of this name.
  package func parameters(_ name: String) -> [String] {
    query.filter { $0.name == name }.map(\.value)
  }

  /// The token of an `Authorization: Bearer` field.
  package var bearer: String? {
    guard let value = self["authorization"], value.lowercased().hasPrefix("bearer ") else {
      return nil
    }
    return String(value.dropFirst("bearer ".count))
  }

  /// Reads the head of a request: everything before the empty line.
  ///
  /// - Returns: nil if it is not HTTP/1.
  init?(head: some Collection<UInt8>, body: [UInt8], connection: Int) {
    let lines = String(decoding: head, as: UTF8.self).split(
      separator: "\r\n", omittingEmptySubsequences: true)
    guard let first = lines.first else { return nil }
    let words = first.split(separator: " ")
    guard words.count == 3, words[2].hasPrefix("HTTP/1.") else { return nil }
    method = String(words[0])
    target = String(words[1])
    let halves = words[1].split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    path = Self.decode(halves[0], plusIsSpace: false)
    query =
      halves.count < 2
      ? []
      : halves[1].split(separator: "&").map { pair in
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        return (
          Self.decode(parts[0], plusIsSpace: true),
          parts.count < 2 ? "" : Self.decode(parts[1], plusIsSpace: true)
        )
      }
    fields = lines.dropFirst().compactMap { line in
      guard let colon = line.firstIndex(of: ":") else { return nil }
      var value = line[line.index(after: colon)...]
      while value.first == " " || value.first == "\t" { value.removeFirst() }
      while value.last == " " || value.last == "\t" { value.removeLast() }
      return (line[..<colon].lowercased(), String(value))
    }
    self.body = body
    self.connection = connection
  }

  /// Undoes percent encoding; anything else stays as it is.
  private static func decode(_ text: Substring, plusIsSpace: Bool) -> String {
    var bytes: [UInt8] = []
    let source = Array(text.utf8)
    var index = 0
    while index < source.count {
      let byte = source[index]
      if byte == UInt8(ascii: "%"), index + 2 < source.count,
        let value = UInt8(
          String(decoding: source[index + 1...index + 2], as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        index += 3
      } else {
        bytes.append(plusIsSpace && byte == UInt8(ascii: "+") ? UInt8(ascii: " ") : byte)
        index += 1
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
