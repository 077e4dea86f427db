internal import ATProtocol
package import Restore
internal import XRPC

/// The options that continue a stopped restore.
///
/// Each is an alternative. Words in capitals stand for values that the user has to give.
package struct RestoreContinuation: Sendable {
  /// The options to set, each with its value.
  package let options: [(name: String, value: String?)]
  /// Whether the options of a move are removed, because the account stays where it is.
  package let staysAtHome: Bool

  private init(_ options: (String, String?)..., staysAtHome: Bool = false) {
    (self.options, self.staysAtHome) = (options, staysAtHome)
  }

  /// The same command, which asks servers and directory for the current state.
  private static let again = RestoreContinuation()
  private static func with(_ option: String, _ value: String? = nil) -> RestoreContinuation {
    RestoreContinuation((option, value))
  }
  private static let elsewhere = with("--to", "URL")
  private static let ownKey = with("--recovery-key", "KEYFILE")
  private static let login = with("--login")

  /// The same command with all of these options.
  package static func all(_ options: [(name: String, value: String?)]) -> RestoreContinuation {
    RestoreContinuation(options: options)
  }

  private init(options: [(name: String, value: String?)]) {
    (self.options, staysAtHome) = (options, false)
  }

  /// The ways to continue after a question.
  package static func after(_ question: RestoreQuestion) -> [RestoreContinuation] {
    switch question {
    case .identity: [with("--yes", "identity")]
    case .activation: [with("--yes", "activate")]
    case .signing: [with("--yes", "sign")]
    case .deactivation: [with("--yes", "deactivate-old")]
    case .deletion: [with("--yes", "delete-old")]
    case .rewriting: [RestoreContinuation(("--rewrite-records", nil), ("--yes", "rewrite"))]
    case .writing: [with("--yes", "write")]
    }
  }

  /// The ways to continue after an error; none where no command helps.
  package static func after(_ error: any Error) -> [RestoreContinuation] {
    switch error {
    case let question as RestoreQuestion: after(question)
    case let error as RestoreError: after(error)
    case PLCSuccessor.Fault.strangeKey: [ownKey]
    case PLCSuccessor.Fault.ended, PLCSuccessor.Fault.noRotationKey: []
    case PLCSuccessor.Fault.tooMany: [with("--drop-old-keys")]
    case let error as XRPCError where error.name == "AuthFactorTokenRequired":
      [with("--auth-factor-token", "CODE")]
    case let error as XRPCError where error.isLoginRefused: [with("--password-file", "FILE")]
    case let error as XRPCError where error.isAccountRefused:
      [again, with("--handle", "HANDLE"), with("--email", "ADDRESS"), elsewhere]
    default: [again]
    }
  }

  private static func after(_ error: RestoreError) -> [RestoreContinuation] {
    switch error {
    case .busy, .identityUnchanged, .notActivated, .silent, .unsigned, .unpublished, .notSaved,
      .writtenMeanwhile:
      [again]
    case .livesThere:
      [
        RestoreContinuation(("--in-place", nil), ("--login", nil), staysAtHome: true),
        RestoreContinuation(("--blobs-only", nil), ("--login", nil), staysAtHome: true),
      ]
    case .unknownOldKeys: [with("--login")]
    case .newerThere: [with("--at", "latest")]
    case .otherPassword: [with("--new-password-file", "FILE")]
    case .cannotVouch(let obstacle): after(obstacle)
    case .needsHandle, .handle: [with("--handle", "HANDLE")]
    case .needsEmail: [with("--email", "ADDRESS")]
    case .needsInvite: [with("--invite", "CODE")]
    case .accountRefused(_, _, let option):
      [with(option, ["--invite": "CODE", "--email": "ADDRESS"][option] ?? "HANDLE")]
    case .needsSigner: [login, ownKey]
    case .importRefused: [elsewhere, again]
    case .otherRepository, .halfMade, .lacks: [elsewhere]
    case .notWrittenAgain: [again]
    case .missingBlobs: [with("--accept", "missing")]
    case .codeSent: [with("--mail-code", "CODE")]
    case .strangeKey: [with("--signing-key", "KEYFILE")]
    case .otherServer(let named, _, _): [with("--to", named)]
    }
  }

  private static func after(_ obstacle: RestoreError.Obstacle) -> [RestoreContinuation] {
    switch obstacle {
    case .otherAccountMade: [elsewhere]
    case .noLogin, .rehearsal: [login]
    case .oldServerGone:
      [
        ownKey,
        RestoreContinuation(("--as-new", nil), ("--handle", "HANDLE"), ("--email", "ADDRESS")),
      ]
    case .oldServerAnswers: [login, with("--abandon-old")]
    case .oldServerSilent: [again, with("--abandon-old")]
    }
  }
}

extension XRPCError {
  /// Whether the password, or a session of it, was refused.
  fileprivate var isLoginRefused: Bool {
    status == 401 || name == "InvalidToken" && endpoint != "com.atproto.identity.signPlcOperation"
  }

  /// Whether an account was not made, for a reason that the server does not give: the reference
  /// server answers 500 where a deactivated account has the handle or the mail address.
  fileprivate var isAccountRefused: Bool {
    status == 500 && endpoint == "com.atproto.server.createAccount"
  }
}
