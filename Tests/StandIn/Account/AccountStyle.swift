/// What differs from server to server about the commits of their accounts.
package struct AccountStyle: Sendable, Hashable {
  /// The curve of the account's key.
  package var curve = SigningKey.Curve.k256
  /// Whether `prev` names the commit before.
  package var namesPreviousCommit = false
  /// Whether revisions are counted from 1, instead of being points in time.
  package var countsRevisions = false
  /// Whether the DID document is of the old kind: key types of 2019, not compressed and without a
  /// codec.
  package var hasLegacyDocument = false

  /// What the reference server does.
  package init() {}
}
