internal import ATProtocol
package import Restore
package import Terminal

extension RestoreError: Explained {
  package var explanation: Explanation {
    let status: ExitStatus =
      switch self {
      case .busy: .cannotCreate
      case .livesThere, .newerThere, .strangeKey, .otherServer, .importRefused, .accountRefused,
        .halfMade, .lacks, .notSaved, .unknownOldKeys:
        .refused
      case .cannotVouch, .otherPassword: .loginRefused
      case .needsHandle, .needsEmail, .needsInvite, .needsSigner, .handle: .usage
      case .otherRepository, .notWrittenAgain: .damaged
      case .missingBlobs, .codeSent, .unsigned, .unpublished: .incomplete
      case .identityUnchanged, .notActivated, .silent, .writtenMeanwhile: .temporary
      }
    return (status, hint)
  }

  /// The message: in the library's words, except where it names options.
  package var sentence: String {
    switch self {
    case .cannotVouch(let obstacle):
      "nothing proves to the new server that you may move the account: \(obstacle.sentence)"
    case .notWrittenAgain(let path, let outcome, let file):
      "the new server does not return the repository of the archive: \(path) was deleted and is \(outcome.said.sentence); it is named in \(file), and --record puts it back"
    default: "\(self)"
    }
  }

  /// What to do about it; nil where that is obvious.
  private var hint: String? {
    switch self {
    case .busy: "wait until the other run ends; then run the same command to continue"
    case .livesThere:
      "--in-place puts the snapshot's records back into it; --blobs-only sends the blobs that the server lacks"
    case .newerThere:
      "run \"carpack backup\" first, or choose a snapshot with --at and lose all later records"
    case .otherPassword: "give it with --new-password-file"
    case .cannotVouch(let obstacle): obstacle.hint
    case .needsHandle: "give it with --handle"
    case .needsEmail: "give it with --email"
    case .needsInvite: "give it with --invite"
    case .needsSigner: "use --login or --recovery-key"
    case .handle: "choose another with --handle"
    case .importRefused:
      "servers may limit the size of repositories, may refuse all, and may answer 500 to a repository that they cannot read"
    case .otherRepository, .notWrittenAgain: nil
    case .missingBlobs:
      "--accept missing continues without them; \"carpack fill\" may still find them"
    case .codeSent: "run the same command again with --mail-code CODE"
    case .identityUnchanged, .notActivated, .silent, .writtenMeanwhile: nil
    case .notSaved: "run \"carpack backup\" first, so that nothing is lost"
    case .otherServer:
      "if that is the same server, use that name with --to; if it does not resolve yet, add it to /etc/hosts"
    case .unpublished: "publish the document, and run the same command again"
    case .accountRefused(_, _, let option): "choose another with \(option)"
    case .halfMade: "ask its operator to remove that account, or choose another server with --to"
    case .lacks: "another server is needed; Docs/RESTORE.md says what each kind of restore takes"
    case .unknownOldKeys:
      "with --login the old server says which are its own; without --drop-old-keys all of them stay"
    case .unsigned: "the server signs at the account's next write"
    case .strangeKey: "\"carpack recovery-key list\" shows the keys that may change the account"
    }
  }
}

extension RestoreError.Obstacle {
  /// What a person reads.
  fileprivate var sentence: String {
    switch self {
    case .otherAccountMade(let did): "the server made an account of \(did) instead"
    case .noLogin: "you gave no login for the old server"
    case .oldServerGone: "the old server is gone, and you gave no key"
    case .rehearsal:
      "a rehearsal does not change the DID, so only the old server can prove it"
    case .oldServerAnswers(let url): "\(url) still has the account, and was not asked"
    case .oldServerSilent: "the old server does not answer"
    }
  }

  /// What to do about it.
  fileprivate var hint: String {
    switch self {
    case .otherAccountMade: "choose another server with --to"
    case .noLogin: "with --login the old server proves it"
    case .oldServerGone:
      "--recovery-key FILE proves it with your own key; without one, --as-new makes a new account from the archive"
    case .rehearsal: "use --login while the old server is there"
    case .oldServerAnswers: "with --login it proves it; with --abandon-old a key of your own does"
    case .oldServerSilent: "try again later, or use a key of your own with --abandon-old"
    }
  }
}

extension RestoreQuestion: Explained {
  package var explanation: Explanation { (.incomplete, nil) }
  package var sentence: String { "waiting for your confirmation" }
}

extension PLCSuccessor.Fault: Explained {
  package var explanation: Explanation { (.refused, nil) }
}

extension RecordRestore.Outcome {
  /// A word for scripts, and the message.
  package var said: (word: String, sentence: String) {
    switch self {
    case .written: ("written", "written")
    case .there: ("there", "there already")
    case .occupied(let cid):
      ("occupied", "a different record is there (\(cid)); --overwrite replaces it")
    case .refused(let why): ("refused", "not written: \(why)")
    }
  }
}
