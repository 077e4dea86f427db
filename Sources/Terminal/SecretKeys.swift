/// Secret keys in what is said: one that was given by mistake, in the place of a recipient or a
/// file, would otherwise end up in journals and mails.
extension String {
  private static let beginning = "AGE-SECRET-KEY-"

  /// The text with what follows the beginning of an age identity left out.
  package var withoutSecretKeys: String {
    // Hardly any text has one.
    guard uppercased().contains(Self.beginning) else { return self }
    var (shown, rest) = ("", self[...])
    while !rest.isEmpty {
      guard rest.prefix(Self.beginning.count).uppercased() == Self.beginning else {
        shown.append(rest.removeFirst())
        continue
      }
      shown += Self.beginning + "…"
      rest = rest.dropFirst(Self.beginning.count)
        .drop { $0 == "…" || $0.isASCII && ($0.isLetter || $0.isNumber) }
    }
    return shown
  }
}
