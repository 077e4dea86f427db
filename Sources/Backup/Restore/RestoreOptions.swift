public import ATProtocol
public import XRPC

/// How an account is put back.
public struct RestoreOptions: Sendable {
  /// The new server's URL.
  public var target: String
  /// The password of the account on the new server.
  public var password: Secret
  /// The password of the account on the old server, which is the account's own; nil to do without
  /// that server.
  public var oldPassword: Secret?
  /// The code that the old server has sent by mail for logging in, if it wants one.
  public var authFactorToken: Secret?
  /// The mail address of the new account; nil for the old one's.
  public var email: String?
  /// The handle on the new server; nil for the present one, or its first label under the new
  /// server's domain.
  public var handle: Handle?
  /// The invite code.
  public var inviteCode: Secret?
  /// A rotation key of the owner's own.
  public var recoveryKey: PrivateKey?
  /// The passphrase of that key's file, which a key that is made goes by as well.
  public var passphrase: Secret?
  /// The key that signs the account's repository now.
  public var signingKey: PrivateKey?
  /// The code that the old server has sent by mail for signing an operation.
  public var mailCode: Secret?
  /// Whether the old server is done without though it answers.
  public var abandonsOld = false
  /// Whether the archive's records go into a new account, with a DID of its own.
  public var asNew = false
  /// Whether records that refer to others of the account are rewritten for the new one.
  public var rewritesReferences = false
  /// Whether blobs may be missing on the new server.
  public var acceptsMissing = false
  /// Whether an older state than the old server's is meant.
  public var acceptsOlder = false
  /// Whether the account is deactivated on the old server in the end.
  public var deactivatesOld = false
  /// From when on the old server may delete the account, in RFC 3339; nil for never.
  public var deleteOldAfter: String?
  /// Whether it ends with the comparison, before the identity is touched.
  public var isRehearsal = false
  /// Whether blobs are read back and compared.
  public var comparesBlobs = true
  /// Is given an operation instead of the directory; nothing is sent then that changes the identity.
  public var dryRun: (@Sendable (PLCSuccessor) throws -> Void)?
  /// How many transfers are under way at a time.
  public var connections = 16
  /// The time, in RFC 3339 and UTC.
  public var now: @Sendable () -> String
  /// Asks whether something may be done.
  public var agrees: @Sendable (RestoreQuestion) -> Bool
  /// Asks for a code that was sent by mail: by which server, and what for; nil if that is
  /// not possible.
  public var asksForCode: @Sendable (_ server: String, _ purpose: String) -> Secret?

  /// Restores to a server.
  public init(
    target: String, password: Secret, now: @escaping @Sendable () -> String,
    agrees: @escaping @Sendable (RestoreQuestion) -> Bool,
    asksForCode: @escaping @Sendable (_ server: String, _ purpose: String) -> Secret?
  ) {
    self.target = target
    self.password = password
    self.now = now
    self.agrees = agrees
    self.asksForCode = asksForCode
  }
}
