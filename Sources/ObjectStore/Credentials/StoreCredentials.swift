public import ATProtocol
public import XRPC

/// Whose requests a store takes: a key, its secret, and the token of a session that ends.
public struct StoreCredentials: Equatable, Sendable {
  /// The name of the key, which is no secret.
  public let key: String
  /// The secret that requests are signed with.
  public let secret: Secret
  /// What proves that the key is lent; nil for one that is the user's own.
  public let sessionToken: Secret?
  /// When they end; nil if they do not.
  public let end: UnixTime?

  /// Credentials.
  public init(key: String, secret: Secret, sessionToken: Secret? = nil, end: UnixTime? = nil) {
    (self.key, self.secret) = (key, secret)
    (self.sessionToken, self.end) = (sessionToken, end)
  }
}
