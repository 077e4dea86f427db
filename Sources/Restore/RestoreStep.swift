/// The steps of a restore, in their order.
///
/// Each is done by what servers and directory say: a step that has been done is found to be done,
/// whether that was noted or not. The first changes nothing, and is not noted.
package enum RestoreStep: String, CaseIterable, Sendable {
  /// The new server says what it wants and allows.
  case server
  /// Where the old server is gone: the DID names a key of the owner's own, to vouch with.
  case signingKey = "signing-key"
  /// There is an account on the new server, deactivated if it is to be moved.
  case account
  /// The repository is there.
  case repository
  /// All blobs are there that can be.
  case blobs
  /// What the server gives back was read and compared.
  case comparison
  /// The settings of the app are there.
  case preferences
  /// The DID names the new server.
  case identity
  /// The new server speaks for the account.
  case activation
  /// The old server does no more.
  case deactivation

  /// What a person reads.
  package var sentence: String {
    switch self {
    case .server: "the new server was asked what it wants"
    case .signingKey: "the DID names a signing key of your own"
    case .account: "the account is on the new server"
    case .repository: "the repository is on the new server"
    case .blobs: "every blob that could be sent was sent"
    case .comparison: "what the new server gives back was compared with the archive"
    case .preferences: "the preferences are on the new server"
    case .identity: "the DID names the new server"
    case .activation: "the account is active on the new server"
    case .deactivation: "the account is deactivated on the old server"
    }
  }
}
