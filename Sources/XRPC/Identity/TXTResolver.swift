/// What answers for the TXT records of DNS.
///
/// ``SystemDNS`` and ``DNSOverHTTPS`` are the real ones.
package protocol TXTResolver: Sendable {
  /// The TXT records of a name, the strings of each put together; none if the name or the records
  /// do not exist.
  ///
  /// - Throws: ``DNSError`` if there was no answer, or none that can be read; `CancellationError`.
  func records(of name: String) async throws -> [String]
}

/// Why DNS gave no answer.
package enum DNSError: Error, Hashable, Sendable, CustomStringConvertible {
  /// No server answered in time.
  case noAnswer
  /// A server answered that it cannot say: its response code.
  case failed(code: Int)
  /// The answer is not one by RFC 1035.
  case malformed
  /// The server of DNS over HTTPS could not be asked, or answered something else.
  case unusableServer(String)
  /// The server of DNS over HTTPS has a certificate that does not hold.
  case untrustedServer(String)

  /// What a person reads.
  package var description: String {
    switch self {
    case .noAnswer: "DNS did not answer"
    case .failed(let code): "DNS answered with the error \(code)"
    case .malformed: "DNS gave a malformed answer"
    case .unusableServer(let why), .untrustedServer(let why): "DNS over HTTPS failed: \(why)"
    }
  }
}
