/// Ends the process if a message could disturb a terminal, spans lines, or is longer than a few
/// lines of one.
package func requireLegible(_ message: String, limit: Int = 1000) {
  require(!message.isEmpty, "an error without words")
  require(message.unicodeScalars.count <= limit, "a message of too many words")
  for scalar in message.unicodeScalars {
    switch scalar.properties.generalCategory {
    case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
      .paragraphSeparator:
      fatalError("a message with U+\(String(scalar.value, radix: 16)) in it")
    default: break
    }
  }
}

/// Splits bytes at each line feed, which stays with neither.
package func lines(of bytes: Span<UInt8>) -> [[UInt8]] {
  bytes.copy.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
}
