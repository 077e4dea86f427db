internal import ATProtocol
internal import HTTP
internal import IPLD

/// What a token says of itself (RFC 7519); only the server can say whether that is true.
enum JSONWebToken {
  /// When the token ends, in seconds since 1970; nil if it does not say, or is not such a token.
  static func expiry(_ token: Secret) -> Double? {
    let parts = token.text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, parts[1].utf8.count < maximumLength else { return nil }
    // Base 64 with two other characters, and no padding.
    let standard = parts[1].map { $0 == "-" ? "+" : $0 == "_" ? "/" : $0 }
    guard let bytes = Base64.decode(String(standard)) else { return nil }
    return Answer(bytes)?.json["exp"]?.integer.map { Double($0) }
  }

  private static let maximumLength = 16 << 10
}
