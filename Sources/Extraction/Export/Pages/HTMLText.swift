internal import ATProtocol
internal import IPLD

/// HTML that is being written: records' text only ever becomes text, and values of attributes.
struct HTMLText {
  /// What is there so far.
  private(set) var bytes: [UInt8] = []

  /// Hands over what is there, and begins anew.
  mutating func move(to sink: (Span<UInt8>) throws -> Void) rethrows {
    let pending = bytes
    try sink(pending.span)
    bytes.removeAll(keepingCapacity: true)
  }

  /// Appends markup, which is the program's own.
  mutating func markup(_ text: StaticString) {
    unsafe bytes.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends text.
  mutating func text(_ text: String) {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: "&"): bytes += Array("&amp;".utf8)
      case UInt8(ascii: "<"): bytes += Array("&lt;".utf8)
      case UInt8(ascii: ">"): bytes += Array("&gt;".utf8)
      case UInt8(ascii: "\""): bytes += Array("&quot;".utf8)
      case UInt8(ascii: "'"): bytes += Array("&#39;".utf8)
      // Nothing that a page may hold.
      case 0..<9, 11, 12, 14..<32, 127: bytes.append(UInt8(ascii: " "))
      default: bytes.append(byte)
      }
    }
  }

  /// Appends a start tag, the values of its attributes escaped.
  mutating func open(_ tag: StaticString, _ attributes: KeyValuePairs<StaticString, String?> = [:])
  {
    markup("<")
    markup(tag)
    for (name, value) in attributes {
      guard let value else { continue }
      markup(" ")
      markup(name)
      markup("=\"")
      text(value)
      markup("\"")
    }
    markup(">")
  }

  /// Appends an end tag.
  mutating func close(_ tag: StaticString) {
    markup("</")
    markup(tag)
    markup(">")
  }

  /// Appends an element with text in it.
  mutating func element(
    _ tag: StaticString, _ attributes: KeyValuePairs<StaticString, String?> = [:], _ text: String
  ) {
    open(tag, attributes)
    self.text(text)
    close(tag)
  }

  /// Appends an item of a list of pages: a link, and how many records are on the page.
  mutating func item(_ file: String, _ name: String, _ count: Int) {
    markup("<li>")
    element("a", ["href": file], name)
    element("span", ["class": "soft"], " \(count)")
    markup("</li>")
  }

  /// Appends a link that a record names, or, if it leads where none may lead, its text alone.
  mutating func link(to address: String?, _ text: String) {
    guard let address, let safe = Self.webAddress(address) else { return self.text(text) }
    element(
      "a", ["href": safe, "rel": "noopener noreferrer nofollow", "title": safe], text)
  }

  /// An address on the web; nil for anything else, such as `javascript:`.
  static func webAddress(_ text: String) -> String? {
    let scheme = text.prefix { $0 != ":" }.lowercased()
    guard scheme == "http" || scheme == "https", text.utf8.count <= 4096,
      text.utf8.allSatisfy({ $0 > 32 && $0 != 127 })
    else { return nil }
    return text
  }

  /// The page of Bluesky that shows an account or a record; nil for what has none.
  static func page(of uri: String) -> String? {
    let parts = uri.dropFirst(5).split(separator: "/", omittingEmptySubsequences: false)
    guard uri.hasPrefix("at://"), let account = parts.first,
      (try? ATIdentifier(String(account))) != nil
    else { return nil }
    let profile = "https://bsky.app/profile/\(account)"
    guard parts.count == 3 else { return parts.count == 1 ? profile : nil }
    let kinds = [
      "app.bsky.feed.post": "post", "app.bsky.graph.list": "lists",
      "app.bsky.feed.generator": "feed",
    ]
    guard let kind = kinds[String(parts[1])], (try? RecordKey(String(parts[2]))) != nil else {
      return nil
    }
    return "\(profile)/\(kind)/\(parts[2])"
  }

  /// A language that an element may be marked with; nil for none.
  static func language(_ value: IPLDValue?) -> String? {
    guard let text = value?.array?.first?.string, text.utf8.count <= 35,
      text.utf8.allSatisfy({
        (0x61...0x7a).contains($0 | 0x20) || (0x30...0x39).contains($0) || $0 == 0x2d
      })
    else { return nil }
    return text
  }
}
