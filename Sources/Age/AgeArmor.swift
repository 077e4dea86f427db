/// An age file as text (c2sp.org/age, "ASCII armor"): a strict subset of PEM (RFC 7468).
///
/// ```
/// "-----BEGIN AGE ENCRYPTED FILE-----" end
/// { 64 characters end }                      48 bytes each, in Base64
/// 4 to 64 characters end                     the last line, padded
/// "-----END AGE ENCRYPTED FILE-----"
/// ```
///
/// A line ends with LF or CR LF. White space is allowed before and after it all.
package enum AgeArmor {
  private static let begin: StaticString = "-----BEGIN AGE ENCRYPTED FILE-----"
  private static let end: StaticString = "-----END AGE ENCRYPTED FILE-----"
  /// How many characters a full line has, and how many bytes those are.
  private static let columns = 64
  private static let bytesInLine = 48
  /// The most white space that is skipped on either side.
  private static let maximumSpace = 1024

  /// Whether bytes begin as armor does.
  package static func isArmor(_ bytes: Span<UInt8>) -> Bool {
    let start = space(in: bytes, from: 0)
    return bytes.extracting(start..<bytes.count).begins(with: begin)
  }

  /// The armored text of a file, which ends with LF.
  package static func encode(_ bytes: Span<UInt8>) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count / bytesInLine * (columns + 1) + 3 * (columns + 1))
    text += Array("\(begin)\n".utf8)
    for start in stride(from: 0, to: bytes.count, by: bytesInLine) {
      let line = bytes.extracting(start..<min(start + bytesInLine, bytes.count))
      StrictBase64.encode(line, isPadded: true, to: &text)
      text.append(UInt8(ascii: "\n"))
    }
    text += Array("\(end)\n".utf8)
    return text
  }

  /// The file in an armored text.
  ///
  /// - Throws: ``AgeError/malformedArmor(_:line:)``.
  package static func decode(_ text: Span<UInt8>) throws(AgeError) -> [UInt8] {
    let start = space(in: text, from: 0)
    var number = 1 + text.extracting(0..<start).count(of: UInt8(ascii: "\n"))
    guard text.extracting(start..<text.count).begins(with: begin) else {
      throw .malformedArmor("it does not begin with \(begin)", line: number)
    }
    var position = start + begin.utf8CodeUnitCount
    guard skipEnd(of: text, &position) else {
      throw .malformedArmor("text follows the marker in its first line", line: number)
    }
    var bytes: [UInt8] = []
    bytes.reserveCapacity((text.count - position) / (columns + 1) * bytesInLine + bytesInLine)
    var isAtEnd = false
    while !text.extracting(position..<text.count).begins(with: end) {
      number += 1
      let lineStart = position
      while position < text.count, text[position] != UInt8(ascii: "\n") { position += 1 }
      let hasReturn = position > lineStart && text[position - 1] == UInt8(ascii: "\r")
      let line = text.extracting(lineStart..<(hasReturn ? position - 1 : position))
      guard position < text.count else {
        throw .malformedArmor("it does not end with \(end)", line: number)
      }
      position += 1
      guard !isAtEnd else { throw .malformedArmor("an earlier line is too short", line: number) }
      guard !line.isEmpty, line.count <= columns,
        let decoded = StrictBase64.decode(line, isPadded: true)
      else { throw .malformedArmor("it is not 4 to 64 characters of Base64", line: number) }
      isAtEnd = decoded.count < bytesInLine
      bytes += decoded
    }
    position += end.utf8CodeUnitCount
    // What follows the last line without its end is not white space around the armor.
    guard position == text.count || skipEnd(of: text, &position),
      space(in: text, from: position) == text.count
    else { throw .malformedArmor("text follows its last line", line: number + 1) }
    return bytes
  }

  /// Moves a position past the end of a line, if there is one.
  private static func skipEnd(of text: Span<UInt8>, _ position: inout Int) -> Bool {
    var next = position
    if next < text.count, text[next] == UInt8(ascii: "\r") { next += 1 }
    guard next < text.count, text[next] == UInt8(ascii: "\n") else { return false }
    position = next + 1
    return true
  }

  /// Where the white space ends that begins at a position: space, tab, LF, CR.
  private static func space(in text: Span<UInt8>, from start: Int) -> Int {
    var position = start
    let limit = min(text.count, start + maximumSpace)
    while position < limit, [0x20, 0x09, 0x0a, 0x0d].contains(text[position]) { position += 1 }
    return position
  }
}

extension Span<UInt8> {
  /// How many bytes have a value.
  fileprivate func count(of value: UInt8) -> Int {
    indices.reduce(0) { $0 + (self[$1] == value ? 1 : 0) }
  }
}
