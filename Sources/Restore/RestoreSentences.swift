internal import ATProtocol

// What a restore comes to, in words.

extension RestoreStep {
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

extension RestoreReport {
  /// What state both servers are in, and what to do, in sentences.
  package var standing: [String] {
    let new = server?.url ?? "the new server"
    if let newDID {
      return ["\(newDID) on \(new) is a new account, active, which goes by what is in the archive"]
        + (has(.comparison) ? [] : ["run the same command again: it goes on from here"])
    }
    let old = oldServer ?? "the old server"
    if has(.activation) {
      return ["the account is active on \(new)"]
        + (has(.deactivation)
          ? ["on \(old) it is deactivated"]
          : isOldThere
            ? ["on \(old) nothing was changed: it goes on showing the account, and takes writes"]
            : [])
    }
    if has(.identity) {
      return [
        "the DID names \(new), where the account is not active yet"
          + (isOldThere
            ? "; \(old) is not its server any more, and takes writes all the same" : ""),
        "run the same command again: it goes on with the activation",
      ]
    }
    if has(.account) {
      return [
        "\(new) has the account, deactivated; on \(old), and in the DID but for what is said above, nothing was changed",
        "run the same command again: it goes on from here",
      ]
    }
    if has(.signingKey) {
      return [
        "the DID names the signing key in the file beside the archive: keep that file; \(new) has no account yet",
        "run the same command again: it goes on from here",
      ]
    }
    return [
      "nothing was changed on either server: the same command begins anew once what is wrong is put right"
    ]
  }
}

extension RestoreError: CustomStringConvertible {
  /// What keeps it from going on; where that is up to the user, the command says more.
  package var description: String {
    switch self {
    case .busy(let path): "another restore from this archive is running: it has locked \(path)"
    case .otherJournal(let path, let to): "\(path) is the journal of another restore, to \(to)"
    case .livesThere(let server): "the account is on \(server) already"
    case .newerThere(let rev):
      "the account has gone on since this snapshot: its server is at the revision \(rev)"
    case .otherPassword(let server): "the account on \(server) has another password"
    case .cannotVouch: "the new server wants a word for the account, and nothing vouches for it"
    case .needsHandle(let server):
      "a handle for the \(server.map { "account on \($0)" } ?? "new account") is needed"
    case .needsEmail(let isNew): "a mail address for the \(isNew ? "new " : "")account is needed"
    case .needsInvite(let server): "an invite code of \(server) is needed"
    case .needsSigner: "a login of the old server, or a rotation key of your own is needed"
    case .handle(let handle, let why): "the handle \(handle) cannot be used: \(why)"
    case .importRefused(let answer, let oddities):
      "the new server does not take the repository: \(answer)"
        + (oddities.isEmpty ? "" : " (\(oddities.joined(separator: "; ")))")
    case .otherRepository(let why):
      "what the new server gives back is not the repository of the archive: \(why)"
    case .notWrittenAgain(let path, _, let file):
      "what the new server gives back is not the repository of the archive: \(path) was deleted and not written again; it is named in \(file)"
    case .missingBlobs(let count):
      "blobs would be missing on the new server (\(count)), and that was not agreed to"
    case .codeSent(let server): "\(server) has sent a code by mail, which signs the operation"
    case .identityUnchanged(let why): "the directory does not say what it was told: \(why)"
    case .strangeKey: "the signing key given is not the one that the DID names"
    case .otherServer(let named, let asked): "\(asked) wants the DID to name \(named) as its server"
    case .notActivated(let why): "the account cannot be activated yet: \(why)"
    }
  }
}

extension SourceServer.Standing {
  /// What a person reads.
  package var sentence: String {
    switch self {
    case .active(let rev, _): "active, revision \(rev)"
    case .inactive(let why): why
    case .gone(let why): "it does not have the account: \(why)"
    case .silent(let why): "it does not answer: \(why)"
    }
  }
}
