/// The public half of an ``AgeIdentity``, for which files are sealed: a point of X25519, written
/// `age1…` in Bech32 (c2sp.org/age, "The X25519 recipient type").
package struct AgeRecipient: Hashable, Sendable, CustomStringConvertible {
  /// The point, 32 bytes.
  let point: [UInt8]

  /// The recipient with a point.
  init(point: [UInt8]) {
    precondition(point.count == X25519.length)
    self.point = point
  }

  /// Reads a recipient from its text, in lower case and with nothing around it.
  ///
  /// - Throws: ``AgeError/malformedRecipient(_:)``.
  package init(parsing text: String) throws(AgeError) {
    var point = [UInt8](repeating: 0, count: Bech32.byteCount)
    let text = Array(text.utf8)
    do throws(Bech32.Fault) {
      var target = point.mutableSpan
      try unsafe target.withUnsafeMutableBytes { (target) throws(Bech32.Fault) in
        try unsafe Bech32.decode(text.span, form: .recipient, into: target)
      }
    } catch {
      throw .malformedRecipient(Self.explain(error, of: text))
    }
    self.point = point
  }

  /// The text: 62 characters, `age1…`.
  package var text: String {
    var text = [UInt8](repeating: 0, count: Bech32.Form.recipient.length)
    unsafe text.withUnsafeMutableBytes {
      unsafe Bech32.encode(point.span, form: .recipient, into: $0)
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// The text.
  package var description: String { text }

  private static func explain(_ fault: Bech32.Fault, of text: [UInt8]) -> String {
    switch fault {
    case .otherBeginning where text.starts(with: "AGE-SECRET-KEY-".utf8):
      "it is an identity (secret key), which only its owner may have"
    case .otherBeginning where text.starts(with: "ssh-".utf8): "it is an SSH key"
    case .otherBeginning: "it does not begin with age1"
    case .length where text.starts(with: "age1pq1".utf8):
      "it is a post-quantum recipient, which is not supported"
    case .length: "it has \(text.count) characters, not \(Bech32.Form.recipient.length)"
    case .character: "a character is not lower-case Bech32"
    case .padding: "its last bits are not zero"
    case .checksum: "its checksum does not match: a character is wrong"
    }
  }
}
