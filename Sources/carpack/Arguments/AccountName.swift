internal import ATProtocol
internal import Terminal

extension ATIdentifier {
  /// Reads what a person calls an account, in every spelling that people paste.
  ///
  /// - Throws: ``Failure``.
  init(account given: String) throws {
    do throws(IdentifierError) {
      try self.init(pasted: given)
    } catch {
      throw Failure(
        "\"\(Self.withoutMargins(given))\" names no account: \(error)",
        hint:
          "an account goes by a handle (alice.example.com), a DID (did:plc:…), an at:// URI or the address of its page",
        status: .usage)
    }
  }
}
