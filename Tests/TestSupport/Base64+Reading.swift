import Foundation

/// A text that a vector gives as base 64, and that is not.
package struct NotBase64: Error, CustomStringConvertible {
  /// The text.
  package let text: String

  /// What a person reads.
  package var description: String { "not base 64: \(text)" }
}

extension [UInt8] {
  /// The bytes of a text in base 64, with or without padding.
  package init(base64 text: String) throws {
    let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
    guard let data = Data(base64Encoded: text + padding) else { throw NotBase64(text: text) }
    self.init(data)
  }
}
