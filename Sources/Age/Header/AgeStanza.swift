/// One stanza of a header, of any kind: a file key wrapped for one recipient (c2sp.org/age,
/// "Recipient stanza").
///
/// ```
/// "-> " argument { " " argument } "\n"    1 or more, of 1 or more characters from "!" to "~"
/// { 64 characters "\n" }                  the body in Base64 without padding
/// 0 to 63 characters "\n"                 its last line, always there
/// ```
struct AgeStanza: Equatable, Sendable {
  /// How many characters a full line of a body has: 48 bytes.
  static let columns = 64

  /// What kind it is.
  let kind: [UInt8]
  /// What follows the kind in the first line.
  let arguments: [[UInt8]]
  /// The body.
  let body: [UInt8]
  /// At which byte of the header it begins.
  let offset: Int

  /// An error about this stanza.
  func malformed(_ what: String) -> AgeError { .malformedHeader(what, offset: offset) }

  /// Appends the stanza of a kind.
  static func write(
    _ kind: String, _ arguments: [[UInt8]], body: [UInt8], to header: inout [UInt8]
  ) {
    header += "-> \(kind)".utf8
    for argument in arguments { header += [UInt8(ascii: " ")] + argument }
    header.append(UInt8(ascii: "\n"))
    var text: [UInt8] = []
    StrictBase64.encode(body.span, to: &text)
    // A body that fills its lines has an empty one after them.
    for start in stride(from: 0, through: text.count, by: columns) {
      header += text[start..<min(start + columns, text.count)]
      header.append(UInt8(ascii: "\n"))
    }
  }

  /// The bytes of an argument in Base64 without padding; nil if it is not that.
  func decoded(_ argument: Int) -> [UInt8]? {
    let text = arguments[argument]
    return StrictBase64.decode(text.span)
  }
}
