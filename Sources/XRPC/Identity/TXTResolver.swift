/// What answers for the TXT records of DNS.
///
/// ``SystemDNS`` and ``DNSOverHTTPS`` are the real ones.
package protocol TXTResolver: Sendable {
  /// The TXT records of a name, the strings of each put together; none if the name or the records
  /// do not exist.
  ///
  /// - Throws: ``DNSError`` if there was no readable answer; `CancellationError`.
  func records(of name: String) async throws -> [String]
}

/// Why DNS gave no answer.
package enum DNSError: Error, Hashable, Sendable, CustomStringConvertible {
  /// No server answered in time.
  case noAnswer
  /// A server answered with an error: its response code.
  case failed(code: Int)
  /// The answer is malformed by RFC 1035.
  case malformed
  /// The server of DNS over HTTPS could not be asked, or answered something else.
  case unusableServer(String)
  /// The server of DNS over HTTPS has an invalid certificate.
  case untrustedServer(String)

  /// The sentence for people.
  package var description: String {
    switch self {
    case .noAnswer: "DNS did not answer"
    case .failed(let code): "DNS answered with the error \(code)"
    case .malformed: "DNS gave a malformed answer"
    case .unusableServer(let why), .untrustedServer(let why): "DNS over HTTPS failed: \(why)"
    }
  }
}
