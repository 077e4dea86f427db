/// An element of a store's answer: its name, and the text and elements in it.
///
/// Read is what stores send (XML 1.0 without a document type): elements, text, the five entities
/// and numbers for characters. Attributes and prefixes are passed over.
struct XMLElement: Sendable {
  /// Its name, without a prefix.
  let name: String
  /// The text in it, outside of elements.
  fileprivate(set) var text = ""
  /// The elements in it.
  fileprivate(set) var children: [XMLElement] = []

  /// Elements may lie this deep in one another; those of stores lie four deep.
  private static let maximumDepth = 16

  /// The first element of this name in it.
  subscript(name: String) -> XMLElement? { children.first { $0.name == name } }

  /// All elements of this name in it.
  func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

  /// Reads an answer; nil if it is not of that form.
  init?(_ bytes: [UInt8]) {
    var rest = Substring(String(decoding: bytes, as: UTF8.self))
    var open: [XMLElement] = []
    while let start = rest.firstIndex(of: "<") {
      if !open.isEmpty {
        guard let text = Self.unescaped(rest[..<start]) else { return nil }
        open[open.count - 1].text += text
      }
      rest = rest[rest.index(after: start)...]
      if rest.hasPrefix("?") || rest.hasPrefix("!--") {
        let mark = rest.hasPrefix("?") ? "?>" : "-->"
        guard let end = rest.firstRange(of: mark) else { return nil }
        rest = rest[end.upperBound...]
        continue
      }
      guard !rest.hasPrefix("!"), let end = rest.firstIndex(of: ">") else { return nil }
      let tag = rest[..<end]
      rest = rest[rest.index(after: end)...]
      let (isEnd, isEmpty) = (tag.hasPrefix("/"), tag.hasSuffix("/"))
      let name = Self.name(tag.dropFirst(isEnd ? 1 : 0).dropLast(isEmpty ? 1 : 0))
      if !isEnd {
        guard open.count < Self.maximumDepth else { return nil }
        open.append(XMLElement(named: name))
      }
      guard isEnd || isEmpty else { continue }
      guard let closed = open.popLast(), name == closed.name else { return nil }
      guard !open.isEmpty else {
        self = closed
        return
      }
      open[open.count - 1].children.append(closed)
    }
    return nil
  }

  private init(named name: String) { self.name = name }

  private static func name(_ tag: Substring) -> String {
    let name = tag.prefix { !$0.isWhitespace }
    return String(name.split(separator: ":").last ?? name)
  }

  private static let entities = ["amp": "&", "lt": "<", "gt": ">", "quot": "\"", "apos": "'"]

  private static func unescaped(_ text: Substring) -> String? {
    guard text.contains("&") else { return String(text) }
    var result = ""
    var rest = text
    while let start = rest.firstIndex(of: "&") {
      result += rest[..<start]
      guard let end = rest[start...].firstIndex(of: ";") else { return nil }
      let entity = String(rest[rest.index(after: start)..<end])
      if let character = entities[entity] {
        result += character
      } else if entity.hasPrefix("#") {
        let digits = entity.dropFirst()
        let number =
          digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        guard let number, let scalar = Unicode.Scalar(number) else { return nil }
        result.unicodeScalars.append(scalar)
      } else {
        return nil
      }
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  /// Text as it may stand in an element.
  static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .replacing("\"", with: "&quot;")
  }
}
