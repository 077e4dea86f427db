internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import IPLD
internal import Restore
internal import SystemPackage
internal import Terminal
internal import XRPC

/// Logging in with the account's own password.
struct OwnerLogin: ParsableArguments {
  static let input = SecretInput(
    name: "password of the account", variable: "CARPACK_PASSWORD", option: "--password-file")

  @Flag(
    help:
      "Log in on the account's server with the account's own password: app passwords may send blobs and records, and nothing else. It is read from --password-file or CARPACK_PASSWORD, or asked for."
  )
  var login = false

  @OptionGroup var given: LoginSecrets

  func validate() throws { try given.check(login) }

  /// The password; nil without --login.
  func password() throws -> Secret? { login ? try Self.input.need(given.passwordFile) : nil }

  var code: Secret? { given.code }
}

/// The account on the new server.
struct NewAccountOptions: ParsableArguments {
  private static let input = SecretInput(
    name: "password for the new server", variable: "CARPACK_NEW_PASSWORD",
    option: "--new-password-file")

  @Option(
    help: ArgumentHelp(
      "The file whose first line is the password that the account gets on the new server (CARPACK_NEW_PASSWORD, or asked for; with --login the same as on the old one if nothing is said).",
      valueName: "file"),
    completion: .file())
  var newPasswordFile: String?

  @Option(help: ArgumentHelp("The invite code, if the new server wants one.", valueName: "code"))
  var invite: String?

  @Option(
    help: ArgumentHelp(
      "The mail address of the account on the new server, instead of the old one's.",
      valueName: "address"))
  var email: String?

  @Option(
    help: ArgumentHelp(
      "The handle on the new server, instead of the present one, or of its first part under the new server's domain.",
      valueName: "handle"))
  var handle: String?

  func validate() throws {
    if let handle {
      do { _ = try Handle(handle) } catch { throw ValidationError("--handle: \(error)") }
    }
  }

  /// The password on the new server.
  func password(else old: Secret?) throws -> Secret {
    if let given = try Self.input.read(newPasswordFile, asks: old == nil) { return given }
    if let old { return old }
    return try Self.input.need(nil)
  }
}

/// What may be done without being asked about.
struct AgreementOptions: ParsableArguments {
  /// A step that is asked about.
  enum Step: String, CaseIterable, ExpressibleByArgument {
    case identity, activate
    case deactivateOld = "deactivate-old"
    case deleteOld = "delete-old"
    case rewrite
  }

  @Option(
    help: ArgumentHelp(
      "Do a step without asking: send the operation that decides where the account lives; activate the account on the new server; deactivate it on the old one (with --deactivate-old); let that delete it (with --delete-old-after); delete records and write them again (with --rewrite-records). May be repeated.",
      valueName: "step"))
  var yes: [Step] = []

  /// Whether something may be done: said beforehand, or on the terminal.
  func agrees(_ question: RestoreQuestion) -> Bool {
    yes.contains(question.step) || Console.agrees(question.sentence)
  }
}

/// The keys of the owner's own.
struct OwnerKeys: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "A rotation key of your own, which signs the operation here: PEM, or the form that goat prints, readable by you alone. The passphrase of an encrypted key is read from CARPACK_KEY_PASSPHRASE, or asked for.",
      valueName: "keyfile"),
    completion: .file())
  var recoveryKey: String?

  @Option(
    help: ArgumentHelp(
      "The key that signs the account's repository now, if you have it: it vouches for the account where the old server does not.",
      valueName: "keyfile"),
    completion: .file())
  var signingKey: String?
}

extension RestoreOptions {
  /// What was said about the new account, and about who moves it.
  ///
  /// - Throws: ``Failure`` for a password or a key that cannot be read, or is needed.
  init(
    to target: String, _ login: OwnerLogin, _ account: NewAccountOptions, _ keys: OwnerKeys,
    connections: Int, agrees: @escaping @Sendable (RestoreQuestion) -> Bool
  ) throws {
    let oldPassword = try login.password()
    self.init(
      target: target.hasSuffix("/") ? String(target.dropLast()) : target,
      password: try account.password(else: oldPassword), now: { Host.now }, agrees: agrees,
      asksForCode: MailCode.ask)
    (self.oldPassword, authFactorToken) = (oldPassword, login.code)
    (email, inviteCode) = (account.email, account.invite.map { Secret($0) })
    handle = try account.handle.map { text throws in try Handle(text) }
    if let path = keys.recoveryKey {
      let file = try KeyFile(path)
      (recoveryKey, passphrase) = (file.key, file.passphrase)
    }
    signingKey = try keys.signingKey.map { path throws in try KeyFile(path).key }
    self.connections = connections
  }
}

/// Asks on the terminal for a code that came by mail.
enum MailCode {
  @Sendable static func ask(_ server: String, _ purpose: String) -> Secret? {
    Console.ask("\(server) has sent a code by mail, for \(purpose). The code: ").map { Secret($0) }
  }
}
