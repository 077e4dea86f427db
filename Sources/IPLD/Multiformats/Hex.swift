/// Base 16, lower case: for digests in messages and reports.
package enum Hex {
  private static let alphabet = Array("0123456789abcdef".utf8)

  /// Two digits a byte.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    for byte in bytes {
      text.append(alphabet[Int(byte >> 4)])
      text.append(alphabet[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }
}
