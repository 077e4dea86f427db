internal import ATProtocol
internal import Terminal

extension ATIdentifier {
  /// Reads the name of an account, in every form that people paste.
  ///
  /// - Throws: ``Failure``.
  init(account given: String) throws {
    do throws(IdentifierError) {
      try self.init(pasted: given)
    } catch {
      let name = Self.withoutMargins(given)
      let isLabel = name.utf8.allSatisfy { letter in
        letter < 128
          && (Character(Unicode.Scalar(letter)).isLetter
            || Character(Unicode.Scalar(letter)).isNumber || letter == UInt8(ascii: "-"))
      }
      throw Failure(
        "\"\(name)\" names no account: \(error)",
        hint: isLabel && !name.isEmpty
          ? "did you mean \"\(name.lowercased()).bsky.social\"?"
          : "an account is named by a handle (alice.example.com), a DID (did:plc:…), an at:// URI or the address of its page",
        status: .usage)
    }
  }
}
