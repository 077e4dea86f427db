internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import Remote
internal import Restore
internal import Snapshots
internal import SystemPackage
internal import Terminal

/// Logging in with the account's own password.
struct OwnerLogin: ParsableArguments {
  static let input = SecretInput(
    name: "password of the account", variable: "CARPACK_PASSWORD", option: "--password-file")

  @Flag(
    help:
      "Log in on the account's server with the account's own password (app passwords may only send blobs and records). It is read from --password-file or CARPACK_PASSWORD, or asked for."
  )
  var login = false

  @OptionGroup var given: LoginSecrets

  func validate() throws { try given.check(login) }

  /// The password; nil without --login.
  func password() throws -> Secret? { login ? try Self.input.need(given.passwordFile) : nil }

  var code: Secret? { given.code }

  /// What is sent to a server; without --login there is nothing to send.
  func asOwner() throws -> OwnLogin { (try password() ?? Secret(""), code) }

  /// Asks on the terminal for a code that came by mail.
  @Sendable static func askForCode(_ server: String, _ purpose: String) -> Secret? {
    Console.ask("\(server) has sent a code by mail, for \(purpose). The code: ").map { Secret($0) }
  }
}

/// What a restore takes: the archive, the account on the new server, and what vouches for it.
struct RestoreArguments: ParsableArguments {
  private static let input = SecretInput(
    name: "password for the new server", variable: "CARPACK_NEW_PASSWORD",
    option: "--new-password-file")

  @OptionGroup var archive: ArchiveArgument

  @OptionGroup var choice: SnapshotOptions

  @Option(
    help: ArgumentHelp(
      "The file whose first line is the account's password on the new server (CARPACK_NEW_PASSWORD; otherwise carpack asks, or with --login uses the old one).",
      valueName: "file"),
    completion: .file())
  var newPasswordFile: String?

  @Option(help: ArgumentHelp("The invite code, if the new server requires one.", valueName: "code"))
  var invite: String?

  @Option(
    help: ArgumentHelp(
      "The account's mail address on the new server (default: the one on the old server).",
      valueName: "address"))
  var email: String?

  @Option(
    help: ArgumentHelp(
      "The handle on the new server (default: the present one, or its first part under the new server's domain).",
      valueName: "handle"))
  var handle: String?

  @Option(
    help: ArgumentHelp(
      "Your own rotation key, which signs the operation here: PEM or the format of goat, readable only by you. The passphrase of an encrypted key is read from CARPACK_KEY_PASSPHRASE, or asked for.",
      valueName: "keyfile"),
    completion: .file())
  var recoveryKey: String?

  @Option(
    help: ArgumentHelp(
      "The account's current signing key, if you have it: it vouches for the account if the old server does not.",
      valueName: "keyfile"),
    completion: .file())
  var signingKey: String?

  @OptionGroup var login: OwnerLogin

  @OptionGroup(title: "Network options")
  var network: NetworkCommandOptions

  func validate() throws {
    if let handle {
      do { _ = try Handle(handle) } catch { throw ValidationError("--handle: \(error)") }
    }
  }

  /// The archive's file, beside which the journal is; for an address, its last part, in the current
  /// folder.
  var path: FilePath {
    FilePath(
      RemoteArchive.isAddress(archive.file) ? Elsewhere.fileName(archive.file) : archive.file)
  }

  /// Opens the archive, and runs `body` with the selected snapshot.
  ///
  /// - Parameters:
  ///   - target: the new server; nil if only the account's own server is used.
  ///   - records: single records that the snapshot must have.
  ///   - body: what is done, over this network.
  /// - Throws: ``Failure`` for an archive that comes from standard input; what `body` throws.
  func read(
    to target: String?, naming records: [String] = [],
    _ body: (OpenedArchive, ArchivedSnapshot, NetworkOptions) throws -> Void
  ) throws {
    guard archive.file != "-" else {
      throw Failure(
        "the progress is recorded beside the archive, so it has to be a file", status: .usage)
    }
    try archive.read(over: network.options()) { opened in
      let snapshot = try opened.snapshot(choice, naming: records)
      var networkOptions = try network.options()
      if let target { networkOptions.namedServers.append(target) }
      try body(opened, snapshot, networkOptions)
    }
  }

  /// The options about the account on the new server, and about who moves it there.
  ///
  /// - Parameters:
  ///   - target: the new server; nil for the account's own, on which ``login`` logs in.
  ///   - isPlan: whether nothing will be changed, so that no password for the new server is needed.
  ///   - agrees: asks whether a step may be done.
  /// - Throws: ``Failure`` for a password or a key that cannot be read, or is needed.
  func options(
    to target: String?, isPlan: Bool = false,
    agrees: @escaping @Sendable (RestoreQuestion) -> Bool
  ) throws -> RestoreOptions {
    let own = try login.password()
    let target = target ?? ""
    var options = RestoreOptions(
      target: target,
      password: try target.isEmpty ? own ?? Secret("") : password(else: own, isPlan: isPlan),
      now: { Host.now }, agrees: agrees, asksForCode: OwnerLogin.askForCode)
    options.waitsForDocument = Console.canAsk
    (options.oldPassword, options.authFactorToken) = (own, login.code)
    (options.email, options.inviteCode) = (email, invite.map { Secret($0) })
    options.handle = try handle.map { text throws in try Handle(text) }
    if let recoveryKey {
      let file = try KeyFile(recoveryKey)
      (options.recoveryKey, options.passphrase) = (file.key, file.passphrase)
    }
    options.signingKey = try signingKey.map { path throws in try KeyFile(path).key }
    options.connections = network.connections
    return options
  }

  /// The password on the new server; an empty one for a plan that is not given it.
  private func password(else own: Secret?, isPlan: Bool) throws -> Secret {
    if let given = try Self.input.read(newPasswordFile, asks: own == nil && !isPlan) {
      return given
    }
    return try own ?? (isPlan ? Secret("") : Self.input.need(nil))
  }
}
