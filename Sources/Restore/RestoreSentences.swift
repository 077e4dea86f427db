internal import ATProtocol

// The results of a restore, in words.

extension RestoreStep {
  /// The sentence for people.
  package var sentence: String {
    switch self {
    case .server: "both servers and the directory were asked, and nothing stands in the way"
    case .signingKey: "the DID names a signing key of your own"
    case .account: "the account is on the new server"
    case .repository: "the repository is on the new server"
    case .blobs: "every blob that could be sent was sent"
    case .comparison: "what the new server returns was compared with the archive"
    case .preferences: "the preferences are on the new server"
    case .identity: "the DID names the new server"
    case .activation: "the account is active on the new server"
    case .deactivation: "the account is deactivated on the old server"
    case .proof: "what the new server gives out is signed by the account"
    }
  }
}

extension RestoreError: CustomStringConvertible {
  /// What prevents the restore from continuing; if the user can do something, the command says
  /// what.
  package var description: String {
    switch self {
    case .busy(let path): "another restore from this archive is running: it has locked \(path)"
    case .livesThere(let server): "the account is on \(server) already"
    case .newerThere(let rev):
      "the account has changed since this snapshot: its server is at revision \(rev)"
    case .otherPassword(let server): "the account on \(server) has another password"
    case .cannotVouch: "nothing proves to the new server that you may move the account"
    case .needsHandle(let server):
      "a handle for the \(server.map { "account on \($0)" } ?? "new account") is needed"
    case .needsEmail(let isNew): "a mail address for the \(isNew ? "new " : "")account is needed"
    case .needsInvite(let server): "an invite code of \(server) is needed"
    case .needsSigner: "a login at the old server or your own rotation key is needed"
    case .handle(let handle, let why): "the handle \(handle) cannot be used: \(why)"
    case .importRefused(let answer, let oddities):
      "the new server refused the repository: \(answer)"
        + (oddities.isEmpty ? "" : " (\(oddities.joined(separator: "; ")))")
    case .otherRepository(let why):
      "the new server does not return the repository of the archive: \(why)"
    case .notWrittenAgain(let path, _, let file):
      "the new server does not return the repository of the archive: \(path) was deleted and not written again; it is named in \(file)"
    case .missingBlobs(let count):
      "blobs would be missing on the new server (\(count)), and you did not accept that"
    case .codeSent(let server): "\(server) sent a code by mail for signing the operation"
    case .identityUnchanged(let why): "the directory did not apply the operation: \(why)"
    case .strangeKey: "the signing key given is not the one that the DID names"
    case .otherServer(let named, let asked, let why):
      "\(asked) calls itself \(named), and the DID has to use that name (\(why))"
    case .unpublished(let url): "the document at \(url) is not up to date yet"
    case .accountRefused(let server, let why, _): "\(server) refused to create the account: \(why)"
    case .halfMade(let server):
      "\(server) was stopped while it created the account, and has no login for it"
    case .unknownOldKeys(let keys):
      "--drop-old-keys: nothing shows which keys are the old server's: \(keys.joined(separator: ", ")) would stay, and could still change the account"
    case .lacks(let server, let methods): "\(server) has no \(methods.joined(separator: ", "))"
    case .silent(let server, let why): "\(server) does not say whether it has the account: \(why)"
    case .unsigned(let why): "what the new server publishes is not signed by the account: \(why)"
    case .notSaved(let rev):
      "this would replace or delete records that no snapshot in the archive has: the server is at revision \(rev)"
    case .writtenMeanwhile: "the account was written to in the meantime"
    case .notActivated(let why): "the account cannot be activated yet: \(why)"
    }
  }
}
