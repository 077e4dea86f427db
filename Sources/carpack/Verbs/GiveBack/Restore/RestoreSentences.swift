internal import ATProtocol
internal import Restore

extension RestoreQuestion {
  /// What is going to happen, as a question.
  var sentence: String {
    switch self {
    case .identity: "Send this operation? It decides where the account lives, and cannot be unsent"
    case .rewriting(let count):
      "Delete \(count) records, whose blobs the server lost, and write them again?"
    case .activation: "Activate the account on the new server?"
    case .deactivation: "Deactivate the account on the old server?"
    case .deletion(let time): "Let the old server delete the account after \(time)?"
    }
  }

  /// The option that answers it beforehand.
  var option: String {
    (step == .rewrite ? "--rewrite-records " : "") + "--yes \(step.rawValue)"
  }

  /// The step that it is about.
  var step: AgreementOptions.Step {
    switch self {
    case .identity: .identity
    case .rewriting: .rewrite
    case .activation: .activate
    case .deactivation: .deactivateOld
    case .deletion: .deleteOld
    }
  }
}

extension RestoreStep {
  /// What a person reads.
  var sentence: String {
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
  var standing: [String] {
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

extension RestoreError {
  /// What a person reads.
  var sentence: String {
    switch self {
    case .busy(let path): "another restore from this archive is running: it has locked \(path)"
    case .otherJournal(let path, let to): "\(path) is the journal of another restore, to \(to)"
    case .livesThere(let server): "the account is on \(server) already"
    case .newerThere(let rev):
      "the account has gone on since this snapshot: its server is at the revision \(rev)"
    case .otherPassword(let server): "the account on \(server) has another password"
    case .cannotVouch(let obstacle):
      "the new server wants a word for the account: \(obstacle.sentence)"
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
    case .notWrittenAgain(let path, let outcome, let file):
      "what the new server gives back is not the repository of the archive: \(path) was deleted and is \(outcome.sentence); it is named in \(file), and --record puts it back"
    case .missingBlobs(let count):
      "blobs would be missing on the new server (\(count)), and that was not agreed to"
    case .codeSent(let server): "\(server) has sent a code by mail, which signs the operation"
    case .identityUnchanged(let why): "the directory does not say what it was told: \(why)"
    case .strangeKey: "the signing key given is not the one that the DID names"
    case .otherServer(let named, let asked): "\(asked) wants the DID to name \(named) as its server"
    case .notActivated(let why): "the account cannot be activated yet: \(why)"
    }
  }

  /// What to do about it; nil where that is plain.
  var hint: String? {
    switch self {
    case .busy: "wait for it to end; then the same command goes on where it stopped"
    case .otherJournal: "move that file away to begin another restore"
    case .livesThere: "--blobs-only sends what the server lacks; --record puts single records back"
    case .newerThere:
      "run \"carpack backup\" first, or choose a snapshot with --at: what came later is then left behind"
    case .otherPassword: "give it with --new-password-file"
    case .cannotVouch:
      "--login vouches through the old server, --recovery-key by yourself; with neither, --as-new makes a new account of the archive"
    case .needsHandle: "give it with --handle"
    case .needsEmail: "give it with --email"
    case .needsInvite: "give it with --invite"
    case .needsSigner: "give it with --login or --recovery-key"
    case .handle: "choose another with --handle"
    case .importRefused:
      "a server may have a limit for repositories, may take none, and may answer 500 to one that it cannot read"
    case .otherRepository, .notWrittenAgain: nil
    case .missingBlobs:
      "--accept missing goes on without them; \"carpack fill\" may find them first"
    case .codeSent: "run the same command again with --mail-code CODE"
    case .identityUnchanged, .notActivated: nil
    case .otherServer: "if that is the same server, name it like that with --to"
    case .strangeKey: "\"carpack recovery-key list\" shows the keys that may change the account"
    }
  }
}

extension RestoreError.Obstacle {
  /// What a person reads.
  fileprivate var sentence: String {
    switch self {
    case .otherAccountMade(let did): "the server made an account of \(did) instead"
    case .accountUnknown: "the new server does not know the account that it made"
    case .noKeyInDocument:
      "put a key of your own into the DID document as #atproto, and give it with --signing-key"
    case .noLogin: "there is no login for the old server"
    case .oldServerGone: "the old server is gone, and there is no key"
    case .rehearsal:
      "where the old server does not, only a change of the DID could, which a rehearsal leaves alone"
    case .oldServerAnswers(let url):
      "\(url) answers for the account: it vouches with --login, and is done without with --abandon-old"
    case .oldServerSilent:
      "the old server, which --login is for, does not answer: try again later, or do without it with --abandon-old"
    }
  }
}

extension SourceServer.Standing {
  /// What a person reads.
  var sentence: String {
    switch self {
    case .active(let rev, _): "active, revision \(rev)"
    case .inactive(let why): why
    case .gone(let why): "it does not have the account: \(why)"
    case .silent(let why): "it does not answer: \(why)"
    }
  }
}

extension RecordRestore.Outcome {
  /// What a person reads.
  var sentence: String {
    switch self {
    case .written: "written"
    case .there: "there already"
    case .occupied(let cid): "another record is there (\(cid)); --overwrite replaces it"
    case .refused(let why): "not written: \(why)"
    }
  }

  /// A word for a script.
  var word: String {
    switch self {
    case .written: "written"
    case .there: "there"
    case .occupied: "occupied"
    case .refused: "refused"
    }
  }
}

extension PLCState {
  /// What is different in another state, a line for each change.
  func changes(to other: PLCState) -> [String] {
    var lines: [String] = []
    func compare(_ what: String, _ old: [String], _ new: [String]) {
      for item in old where !new.contains(item) { lines.append("- \(what) \(item)") }
      for item in new where !old.contains(item) { lines.append("+ \(what) \(item)") }
      if old != new, Set(old) == Set(new) { lines.append("~ \(what) in another order") }
    }
    compare("rotation key", rotationKeys, other.rotationKeys)
    compare("name", alsoKnownAs, other.alsoKnownAs)
    func list(_ keys: [String: String]) -> [String] {
      keys.map { "\($0.key) \($0.value)" }.sorted()
    }
    compare("key", list(verificationMethods), list(other.verificationMethods))
    compare(
      "server", list(services.mapValues(\.endpoint)), list(other.services.mapValues(\.endpoint)))
    return lines
  }
}
