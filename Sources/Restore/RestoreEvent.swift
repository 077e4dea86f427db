package import ATProtocol
package import Files
package import HTTP
internal import Snapshots
package import XRPC

/// Something that happens while an account is restored.
package enum RestoreEvent: Sendable {
  /// It is known what is to be restored.
  case source(RestoreSource)
  /// It is known what the new server says of itself.
  case server(RestoreServer)
  /// A step is done; what was answered, and whether it had been done before.
  case step(RestoreStep, String, wasDone: Bool)
  /// Progress was made.
  case progress(Progress)
  /// Something is waited for, this many seconds.
  case waiting(seconds: Double, why: String)
  /// This operation is going to be sent to the directory: what the account is, and what it is to
  /// be.
  case operation(PLCSuccessor, from: PLCState, to: PLCState)
  /// An operation is going to be signed: what the account is, and what it is to be.
  case changes(from: PLCState, to: PLCState)
  /// A document is to be published, for an account whose DID is no `did:plc`.
  case document(JSON: String, url: String)
  /// The server lacks this many blobs without knowing it: it would take them again if this many
  /// records were deleted and written again, which was not agreed to.
  case rewritable(blobs: Int, records: Int)
  /// Something that a person should know.
  case warning(String)
}

/// A server's URL, and what it says of itself.
package typealias RestoreServer = (url: String, facts: ServerDescription)

/// Something that is not done until it is agreed to; thrown if it is not.
package enum RestoreQuestion: Error {
  /// May this operation be sent, which changes the account's identity for good?
  case identity
  /// May the new server speak for the account?
  case activation
  /// May this many records be written, and this many deleted, to put an older state back?
  case writing(Int, deleting: Int)
  /// May this many records be deleted and written again?
  case rewriting(records: Int)
  /// May a record be written and deleted again, so that the new server signs the repository?
  case signing
  /// May the account be deactivated on the old server?
  case deactivation
  /// May the old server delete the account from this time on?
  case deletion(after: String)
}

/// The result of a restore.
package struct RestoreReport: Sendable {
  /// What was to be restored; nil if the restore ended before that was known.
  package internal(set) var source: RestoreSource?
  /// The new server.
  package var server: RestoreServer?
  /// The old server; nil if none is known.
  package var oldServer: String?
  /// The state of both servers at the end; nil if a signal ended the restore, so that they were not
  /// asked.
  package internal(set) var situation: RestoreSituation?
  /// What the account lacks, or is going to lack, in sentences.
  package internal(set) var losses: [String] = []
  /// The handle on the new server.
  package var handle: Handle?
  /// The new account, where one was made of the archive.
  package var newDID: DID?
  /// The steps that are done, whether in this run or before.
  package var steps: [RestoreStep] = []
  /// How many blobs were sent in this run.
  package var sentBlobs = 0
  /// How many bytes these have.
  package var sentBytes: UInt64 = 0
  /// How many blobs were read back and found to be as in the archive.
  package var equalBlobs = 0
  /// The blobs that are missing, or not as they should be.
  package var unrestored = UnrestoredBlobs()
  /// Why the new server's list of the blobs that it misses broke off; nil if it came to its end.
  package internal(set) var brokenList: BrokenList?
  /// Whether the new server has the preferences that the archive has.
  package internal(set) var hasAllPreferences = true
  /// Whether all records were found to be as in the archive.
  package var areRecordsEqual: Bool?
  /// Whether what the new server serves is signed with a former key of the account's, until something
  /// is written.
  package var hasFormerSignature = false
  /// What stopped it before its end: a question that was not agreed to.
  package var stoppedBefore: RestoreQuestion?

  /// An empty report.
  package init() {}

  /// Whether nothing is missing that the archive has, and nothing hid that.
  package var isWhole: Bool {
    stoppedBefore == nil && unrestored.areAccepted && hasAllPreferences && brokenList == nil
  }

  /// Whether a step is done.
  package func has(_ step: RestoreStep) -> Bool { steps.contains(step) }
}

/// What prevents a restore from continuing, besides errors of servers and archives.
package enum RestoreError: Error {
  /// Another run restores the account to the server: the path of its journal.
  case busy(String)
  /// The account is on this server already.
  case livesThere(String)
  /// Something was written to the account since the snapshot was made: the revision there.
  case newerThere(String)
  /// The account is on this server, with another password.
  case otherPassword(String)
  /// There is no way to vouch for the account.
  case cannotVouch(Obstacle)
  /// The account has to be given a handle: on which server; nil for a new account.
  case needsHandle(on: String?)
  /// The account has to be given a mail address.
  case needsEmail(isNew: Bool)
  /// This server wants an invite code.
  case needsInvite(String)
  /// An operation has to be signed by the old server, or by a rotation key of the owner's own.
  case needsSigner
  /// The handle cannot be used on the new server: the handle, and why.
  case handle(String, String)
  /// The new server does not take the repository: what it says, and what in it servers are known to
  /// refuse.
  case importRefused(String, [String])
  /// The repository on the new server is not the one in the archive.
  case otherRepository(String)
  /// A record was deleted to be written again, and was not written: the file that names all of
  /// these.
  case notWrittenAgain(RecordPath, RecordRestore.Outcome, file: String)
  /// Blobs are missing, which was not agreed to: how many.
  case missingBlobs(Int)
  /// A code was sent by mail, and has to be given.
  case codeSent(String)
  /// The directory did not apply the operation.
  case identityUnchanged(String)
  /// The signing key given is not the one that the DID names.
  case strangeKey
  /// The old server's keys are to be dropped, and nothing shows that one of these is its.
  case unknownOldKeys([String])
  /// The new server has another name than the one that was given: which, and why that is believed.
  case otherServer(String, asked: String, why: String)
  /// The document of the `did:web`, at this URL, does not say what it has to.
  case unpublished(String)
  /// The new server refuses to create the account: why, and which option helps.
  case accountRefused(String, why: String, option: String)
  /// The new server was stopped while it created the account, and neither has it nor creates it
  /// again.
  case halfMade(String)
  /// The new server lacks methods that are needed.
  case lacks(String, [String])
  /// The new server does not say whether it has the account: why.
  case silent(String, String)
  /// The new server serves a commit that is not signed with the account's key.
  case unsigned(String)
  /// The archive lacks what the account's server has, which would be lost: the revision there.
  case notSaved(String)
  /// The account was written to while an older state was put back.
  case writtenMeanwhile
  /// The new server does not accept the DID document.
  case notActivated(String)

  /// Why nothing vouches for an account.
  package enum Obstacle: Sendable {
    /// The server has made another account instead.
    case otherAccountMade(DID)
    /// The old server has the account, and there is no login for it.
    case noLogin
    /// The old server is gone, and there is no key.
    case oldServerGone
    /// The DID would have to be changed, and this is a rehearsal.
    case rehearsal
    /// The old server, at this URL, answers and was not asked to vouch.
    case oldServerAnswers(String)
    /// The old server was to vouch, and does not answer.
    case oldServerSilent
  }
}

/// The steps of a restore, in their order.
///
/// The answers of servers and directory decide whether a step is done, not the journal. The first
/// changes nothing, and is not noted.
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
  /// The account is active on the new server.
  case activation
  /// The account is deactivated on the old server.
  case deactivation
  /// What the new server serves was checked as a backup would check it.
  case proof
}
