internal import ATProtocol
internal import Restore
internal import Terminal

extension RestoreError: Explained {
  var explanation: Explanation {
    let status: ExitStatus =
      switch self {
      case .otherJournal, .busy: .cannotCreate
      case .livesThere, .newerThere, .strangeKey, .otherServer, .importRefused: .refused
      case .cannotVouch, .otherPassword: .loginRefused
      case .needsHandle, .needsEmail, .needsInvite, .needsSigner, .handle: .usage
      case .otherRepository, .notWrittenAgain: .damaged
      case .missingBlobs, .codeSent: .incomplete
      case .identityUnchanged, .notActivated: .temporary
      }
    return (status, hint)
  }
}

extension PLCSuccessor.Fault: Explained {
  var explanation: Explanation { (.refused, nil) }
}
