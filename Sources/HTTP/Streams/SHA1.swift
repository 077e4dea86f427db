internal import CCrypto
internal import IPLD

/// SHA-1 of a few bytes (RFC 3174), as libcrypto has it, for the one place where a protocol wants
/// it and nothing depends on it: the opening of a WebSocket.
enum SHA1 {
  private static let library: carpack_sha1_functions = unsafe CryptoLibrary.find {
    var functions = carpack_sha1_functions()
    return unsafe carpack_find_sha1_functions($0, &functions) != 0 ? functions : nil
  }

  static func digest(of bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 20)
    _ = unsafe library.SHA1(bytes, bytes.count, &digest)
    return digest
  }
}
