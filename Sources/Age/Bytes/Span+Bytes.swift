extension Span<UInt8> {
  /// The bytes on the heap; not for secrets.
  var array: [UInt8] { unsafe withUnsafeBufferPointer { unsafe Array($0) } }

  /// Whether the first bytes are those of a text.
  func begins(with text: StaticString) -> Bool {
    guard count >= text.utf8CodeUnitCount else { return false }
    return text.withUTF8Buffer { text in text.indices.allSatisfy { unsafe self[$0] == text[$0] } }
  }

  /// Whether all bytes are equal.
  ///
  /// The time it takes depends on the lengths alone.
  func equalsInConstantTime(_ other: Span<UInt8>) -> Bool {
    guard count == other.count else { return false }
    var difference: UInt8 = 0
    for index in indices { difference |= self[index] ^ other[index] }
    return difference == 0
  }
}
