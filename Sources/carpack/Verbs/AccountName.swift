internal import ATProtocol

extension ATIdentifier {
  /// Reads what a person calls an account: a handle, with or without `@`, a DID, or any at:// URI into it.
  ///
  /// - Throws: ``Failure``.
  init(account text: String) throws {
    do throws(IdentifierError) {
      if text.hasPrefix("at://") {
        self = try ATURI(text).authority
      } else {
        try self.init(text.hasPrefix("@") ? String(text.dropFirst()) : text)
      }
    } catch {
      throw Failure(
        "\"\(text)\" names no account: \(error)",
        hint: "an account goes by a handle (alice.example.com), a DID (did:plc:…) or an at:// URI",
        status: .usage)
    }
  }
}
