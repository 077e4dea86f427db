internal import IPLD

/// HMAC with SHA-256 (RFC 2104).
enum HMAC {
  /// How many bytes SHA-256 takes in at a time.
  private static let blockLength = 64

  /// The code of a message under a key.
  static func code(of message: [UInt8], key: [UInt8]) -> [UInt8] {
    let key = key.count > blockLength ? SHA256.digest(of: key.span).bytes : key
    func padded(with pad: UInt8) -> [UInt8] {
      (0..<blockLength).map { ($0 < key.count ? key[$0] : 0) ^ pad }
    }
    let inner = padded(with: 0x36) + message
    let outer = padded(with: 0x5c) + SHA256.digest(of: inner.span).bytes
    return SHA256.digest(of: outer.span).bytes
  }
}
