import ATProtocol
import IPLD

/// The tokens that a server has given out.
struct Sessions {
  struct Access {
    let did: String
    /// Whether the account's own password was given, and not one for apps.
    let isFull: Bool
    var requests = 0
    let expires: Double
  }

  private(set) var access: [String: Access] = [:]
  private var refresh: [String: (did: String, isFull: Bool, isUsed: Bool)] = [:]
  private var count = 0

  /// A pair of tokens for an account: JSON web tokens to look at, whose signature is none.
  mutating func open(_ did: String, isFull: Bool = true, now: Double, lifetime: Double) -> (
    access: String, refresh: String
  ) {
    count += 1
    let tokens = ["access", "refresh"].map { kind -> String in
      let header: IPLDMap = ["alg": .string("none"), "typ": .string("\(kind)+jwt")]
      let expires = kind == "access" ? lifetime : 90 * 86_400
      let claims: IPLDMap = [
        "sub": .string(did), "scope": .string("com.atproto.\(kind)"),
        "iat": .integer(Int128(now)), "exp": .integer(Int128(now + expires)),
        "jti": .string("secret-\(kind)-\(count)"),
      ]
      return [header, claims].map { Base64URL.encode(Array(IPLDValue.map($0).json().utf8)) }
        .joined(separator: ".") + "." + Base64URL.encode(Array("not signed \(count)".utf8))
    }
    access[tokens[0]] = Access(did: did, isFull: isFull, expires: now + lifetime)
    refresh[tokens[1]] = (did, isFull, false)
    return (tokens[0], tokens[1])
  }

  /// Counts a request with an access token; returns whose it is, and whether it has expired.
  ///
  /// Nil for a token that is none.
  mutating func use(_ token: String, now: Double, requests: Int?) -> (did: String, isExpired: Bool)?
  {
    guard var entry = access[token] else { return nil }
    entry.requests += 1
    access[token] = entry
    return (entry.did, now >= entry.expires || entry.requests > requests ?? .max)
  }

  /// Uses a refresh token; returns whose it is, and whether it had been used.
  ///
  /// Nil for a token that is none.
  mutating func use(refresh token: String) -> (did: String, isFull: Bool, wasUsed: Bool)? {
    guard let entry = refresh[token] else { return nil }
    refresh[token] = (entry.did, entry.isFull, true)
    return (entry.did, entry.isFull, entry.isUsed)
  }
}
