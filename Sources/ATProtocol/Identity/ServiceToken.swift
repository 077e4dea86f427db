internal import IPLD

/// A token with which an account's key vouches for its owner to a service: a JSON web token.
///
/// ```
/// base64url(header) . base64url(claims) . base64url(r ‖ s)      no padding
/// header  {"alg":"ES256K" or "ES256","typ":"JWT"}
/// claims  {"aud","exp","iat","iss","jti","lxm"}
/// ```
/// Source: [XRPC](https://atproto.com/specs/xrpc), "Inter-Service Authentication (JWT)".
package enum ServiceToken {
  /// How long a token is valid, in seconds.
  private static let lifetime = 60

  /// Makes a token.
  ///
  /// - Parameters:
  ///   - account: who vouches.
  ///   - audience: the service that it is for.
  ///   - method: the method that it is for.
  ///   - now: the time, in seconds since 1970.
  ///   - key: the account's signing key.
  /// - Throws: ``PrivateKey/Fault``.
  package static func make(
    account: DID, audience: DID, method: String, now: Int, key: PrivateKey
  ) throws(PrivateKey.Fault) -> String {
    let header: IPLDMap = [
      "typ": .string("JWT"),
      "alg": .string(key.verificationKey.curve == .k256 ? "ES256K" : "ES256"),
    ]
    var random = SystemRandomNumberGenerator()
    let nonce = [random.next(), random.next()].flatMap { word in
      (0..<8).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
    }
    let claims: IPLDMap = [
      "iss": .string(account.text), "aud": .string(audience.text), "lxm": .string(method),
      "iat": .integer(Int128(now)), "exp": .integer(Int128(now + lifetime)),
      "jti": .string(Hex.encode(nonce)),
    ]
    let signed = [header, claims].map { Base64.encodeURL(DataModelJSON.encode(.map($0))) }
      .joined(separator: ".")
    let bytes = Array(signed.utf8)
    return signed + "." + Base64.encodeURL(try key.sign(bytes.span))
  }
}
