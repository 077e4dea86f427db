/// Secret text that no message shows: a password, a token.
///
/// It does not show in messages, logs or dumps; ``text`` has to be asked for by name.
package struct Secret: Hashable, Sendable, CustomStringConvertible, CustomReflectable {
  /// What is secret.
  package let text: String

  /// Takes it in.
  package init(_ text: String) { self.text = text }

  /// Nothing of it.
  package var description: String { "…" }
  /// Nothing of it.
  package var customMirror: Mirror { Mirror(self, children: [:]) }

  /// A text in which it does not occur any more, nor does it with an accent put on its last letter.
  package func removed(from text: String) -> String {
    guard !self.text.isEmpty else { return text }
    return String(
      text.unicodeScalars.replacing(self.text.unicodeScalars, with: description.unicodeScalars))
  }
}
