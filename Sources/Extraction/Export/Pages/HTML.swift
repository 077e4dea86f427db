internal import ATProtocol
internal import IPLD

/// HTML: what a literal spells is markup, and what is put into one is text, escaped, unless it is
/// HTML itself.
///
/// ```swift
/// html += #"<p class="soft">\#(post.text)</p>"#
/// ```
/// So records' text only ever becomes text, and values of attributes.
struct HTML: ExpressibleByStringInterpolation {
  /// The bytes so far.
  private(set) var bytes: [UInt8]

  /// Markup, which is the program's own.
  init(stringLiteral markup: StaticString) {
    bytes = Interpolation(markup).bytes
  }

  init(stringInterpolation parts: Interpolation) { bytes = parts.bytes }

  static func += (html: inout HTML, more: HTML) { html.bytes += more.bytes }

  /// Returns the bytes so far, and begins again.
  mutating func move(to sink: (Span<UInt8>) throws -> Void) rethrows {
    let pending = bytes
    try sink(pending.span)
    bytes.removeAll(keepingCapacity: true)
  }

  /// Markup with text and other HTML in it.
  struct Interpolation: StringInterpolationProtocol {
    fileprivate var bytes: [UInt8] = []

    fileprivate init(_ markup: StaticString) { appendLiteral(markup) }

    init(literalCapacity: Int, interpolationCount: Int) { bytes.reserveCapacity(literalCapacity) }

    mutating func appendLiteral(_ markup: StaticString) {
      unsafe bytes.append(
        contentsOf: UnsafeBufferPointer(start: markup.utf8Start, count: markup.utf8CodeUnitCount))
    }

    mutating func appendInterpolation(_ html: HTML) { bytes += html.bytes }

    /// Appends text.
    mutating func appendInterpolation(_ text: some CustomStringConvertible) {
      for byte in text.description.utf8 {
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
  }

  // MARK: Links

  /// A link that a record names, or only its text if the address is not allowed.
  static func link(to address: String?, _ text: String) -> HTML {
    guard let address, isWebAddress(address) else { return "\(text)" }
    return
      #"<a href="\#(address)" rel="noopener noreferrer nofollow" title="\#(address)">\#(text)</a>"#
  }

  /// Whether a text is an address on the web, and nothing else, such as `javascript:`.
  private static func isWebAddress(_ text: String) -> Bool {
    let scheme = text.prefix { $0 != ":" }.lowercased()
    return (scheme == "http" || scheme == "https") && text.utf8.count <= 4096
      && text.utf8.allSatisfy { $0 > 32 && $0 != 127 }
  }

  /// The page of Bluesky that shows an account or a record; nil for what has none.
  static func page(of uri: String) -> String? {
    guard let uri = try? ATURI(uri) else { return nil }
    let profile = "https://bsky.app/profile/\(uri.authority)"
    guard let path = uri.path else { return uri.collection == nil ? profile : nil }
    let kind = Selector.pages.first { $0.value == path.collection }?.key
    return kind.map { "\(profile)/\($0)/\(path.recordKey)" }
  }

  /// The attribute that marks an element with the first of the languages that a record names.
  static func language(_ value: IPLDValue?) -> HTML {
    guard let text = value?.array?.first?.string, text.utf8.count <= 35,
      text.utf8.allSatisfy({
        (0x61...0x7a).contains($0 | 0x20) || (0x30...0x39).contains($0) || $0 == 0x2d
      })
    else { return "" }
    return #" lang="\#(text)""#
  }
}
