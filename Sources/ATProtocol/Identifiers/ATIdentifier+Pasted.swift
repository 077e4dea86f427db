extension ATIdentifier {
  /// Reads what a person calls an account, in every spelling that people paste.
  ///
  /// A handle, with or without `@` in front or a dot at the end, or as the address of a website
  /// (`https://alice.example/`); a DID in any case; an at:// URI into the account; the address of
  /// its page (`https://bsky.app/profile/…`). White space and
  /// invisible marks around it, which browsers copy along, do not count.
  ///
  /// - Throws: `IdentifierError` for what names no account.
  package init(pasted given: String) throws(IdentifierError) {
    let text = Self.withoutMargins(given)
    if text.hasPrefix("at://") {
      self = try ATURI(text).authority
    } else {
      try self.init(Self.name(in: text))
    }
  }

  /// A text without white space and invisible marks around it.
  package static func withoutMargins(_ text: String) -> String {
    String(text.trimming(while: isInvisible))
  }

  /// The handle or DID in another spelling of it.
  private static func name(in text: String) -> String {
    if let profile = profile(text) { return name(in: profile) }
    if text.lowercased().hasPrefix("did:plc:") || text.lowercased().hasPrefix("did:web:") {
      // In percent-encoded bytes, the digits are capitals (RFC 3986, section 2.1).
      return text.lowercased().replacing("%3a", with: "%3A")
    }
    var name = withoutScheme(text)
    if name.hasPrefix("@") { name.removeFirst() }
    if name.hasSuffix("/") { name.removeLast() }
    if name.hasSuffix("."), !name.hasPrefix("did:") { name.removeLast() }
    return String(name)
  }

  /// The account whose page has this address, `https://HOST/profile/ACCOUNT…`; nil if it is no such
  /// address.
  private static func profile(_ text: String) -> String? {
    let parts = withoutScheme(text).split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count >= 3, parts[1] == "profile", parts[0].contains(".") else { return nil }
    return String(parts[2].prefix { $0 != "?" && $0 != "#" })
  }

  private static func withoutScheme(_ text: String) -> Substring {
    let scheme = ["https://", "http://"].first { text.lowercased().hasPrefix($0) }
    return text.dropFirst(scheme?.count ?? 0)
  }

  private static func isInvisible(_ character: Character) -> Bool {
    character.isWhitespace
      || character.unicodeScalars.allSatisfy {
        $0.properties.isDefaultIgnorableCodePoint || $0.isTerminalControl
      }
  }
}

extension String {
  /// The text without the characters at both ends that are meant.
  fileprivate func trimming(while isMeant: (Character) -> Bool) -> Substring {
    var text = self[...]
    while let first = text.first, isMeant(first) { text.removeFirst() }
    while let last = text.last, isMeant(last) { text.removeLast() }
    return text
  }
}
