package import ATProtocol
package import HTTP
internal import SystemPackage
internal import XRPC

/// How an account is restored.
package struct RestoreOptions: Sendable {
  /// The new server's URL.
  package var target: String
  /// The password of the account on the new server; empty for a plan that is not given it.
  package var password: Secret
  /// The password of the account on the old server, which is the account's own; nil to do without
  /// that server.
  package var oldPassword: Secret?
  /// The code that the old server has sent by mail for logging in, if it wants one.
  package var authFactorToken: Secret?
  /// The mail address of the new account; nil for the old one's.
  package var email: String?
  /// The handle on the new server; nil for the present one, or its first label under the new
  /// server's domain.
  package var handle: Handle?
  /// The invite code.
  package var inviteCode: Secret?
  /// A rotation key of the owner's own.
  package var recoveryKey: PrivateKey?
  /// The passphrase of that key's file, which also protects a key that is made.
  package var passphrase: Secret?
  /// The file with the signing key that vouches for many accounts, which have no journals then; nil
  /// for a key and a journal of the account's own, beside its archive.
  var sharedKeyFile: FilePath?
  /// The key that signs the account's repository now.
  package var signingKey: PrivateKey?
  /// Whether somebody is there to publish the document of a `did:web` while it is waited for.
  package var waitsForDocument = false
  /// The code that the old server has sent by mail for signing an operation.
  package var mailCode: Secret?
  /// The server that is gone, if archives were made under another address of it.
  ///
  /// Only ``ServerRestore`` asks for it.
  package var oldServer: String?
  /// Whether to do without the old server although it answers.
  package var abandonsOld = false
  /// Whether the archive's records go into a new account, with a DID of its own.
  package var asNew = false
  /// Whether records that refer to others of the account are rewritten for the new one.
  package var rewritesReferences = false
  /// Whether blobs may be missing on the new server.
  package var acceptsMissing = false
  /// Whether the restore of an older state than the old server's is intended.
  package var acceptsOlder = false
  /// Whether the rotation keys that are shown to be the old server's are taken out of the DID.
  package var dropsOldKeys = false
  /// Whether the account is deactivated on the old server in the end.
  package var deactivatesOld = false
  /// From when on the old server may delete the account, in RFC 3339; nil for never.
  package var deleteOldAfter: String?
  /// Whether the restore ends with the comparison, before the identity is changed.
  package var isRehearsal = false
  /// Whether the directory is one for rehearsals, in which the DID may be changed.
  var hasScratchDirectory = false
  /// Whether the account's own server is sent the blobs that it lacks, and nothing else is done;
  /// ``password`` and ``authFactorToken`` are those of this server then.
  package var sendsBlobsOnly = false
  /// Whether records may then be deleted and written again, if that is agreed to.
  package var rewritesRecords = false
  /// Whether blobs are read back and compared.
  package var comparesBlobs = true
  /// Receives the first operation instead of the directory; the restore ends with it, and nothing is
  /// sent that changes the identity.
  package var dryRun: (@Sendable (PLCSuccessor) throws -> Void)?
  /// How many transfers run at a time.
  package var connections = 16
  /// The time, in RFC 3339 and UTC.
  package var now: @Sendable () -> String
  /// Asks whether something may be done.
  package var agrees: @Sendable (RestoreQuestion) -> Bool
  /// Asks for a code that was sent by mail: by which server, and what for; nil if that is
  /// not possible.
  package var asksForCode: @Sendable (_ server: String, _ purpose: String) -> Secret?

  /// The steps of what is requested, in their order.
  ///
  /// ``RestoreStep/signingKey`` is a part of ``RestoreStep/account``, where nothing else vouches.
  var steps: [RestoreStep] {
    if sendsBlobsOnly { return [.server, .blobs, .comparison] }
    let undoable: [RestoreStep] = [.server, .account, .repository, .blobs, .comparison]
    if isRehearsal { return undoable }
    return undoable + [.preferences]
      + (asNew ? [.proof] : [.identity, .activation, .deactivation, .proof])
  }

  /// Restores to a server.
  package init(
    target: String, password: Secret, now: @escaping @Sendable () -> String,
    agrees: @escaping @Sendable (RestoreQuestion) -> Bool,
    asksForCode: @escaping @Sendable (_ server: String, _ purpose: String) -> Secret?
  ) {
    self.target = target.hasSuffix("/") ? String(target.dropLast()) : target
    (self.password, self.now) = (password, now)
    (self.agrees, self.asksForCode) = (agrees, asksForCode)
  }
}
