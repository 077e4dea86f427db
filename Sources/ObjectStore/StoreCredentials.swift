package import ATProtocol
package import HTTP

/// Whose requests a store takes: a key, its secret, and the token of a session that ends.
package struct StoreCredentials: Equatable, Sendable {
  /// The name of the key, which is not secret.
  package let key: String
  /// The secret that requests are signed with.
  package let secret: Secret
  /// What proves that the key is lent; nil for one that is the user's own.
  package let sessionToken: Secret?
  /// When they end; nil if they do not.
  package let end: UnixTime?

  /// Credentials.
  package init(key: String, secret: Secret, sessionToken: Secret? = nil, end: UnixTime? = nil) {
    (self.key, self.secret) = (key, secret)
    (self.sessionToken, self.end) = (sessionToken, end)
  }
}
