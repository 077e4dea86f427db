/// Which part of a body an answer brings (RFC 9110, section 14.4): `bytes 100-199/200`.
package struct ContentRange: Equatable, Sendable {
  /// The offset of the first byte.
  package let first: UInt64
  /// The offset of the last byte.
  package let last: UInt64
  /// How long the whole body is; nil if the server does not say.
  package let total: UInt64?

  /// Parses a field; nil if it is not of that form.
  package init?(_ text: String) {
    let words = text.split(separator: " ")
    guard words.count == 2, words[0].lowercased() == "bytes" else { return nil }
    let halves = words[1].split(separator: "/", omittingEmptySubsequences: false)
    guard halves.count == 2 else { return nil }
    let ends = halves[0].split(separator: "-", omittingEmptySubsequences: false)
    let total = UInt64(halves[1])
    guard ends.count == 2, let first = UInt64(ends[0]), let last = UInt64(ends[1]), first <= last,
      total.map({ last < $0 }) ?? (halves[1] == "*")
    else { return nil }
    (self.first, self.last, self.total) = (first, last, total)
  }
}
