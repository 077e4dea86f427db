internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import IPLD
internal import Terminal
internal import XRPC

/// Asking as the account's owner.
struct LoginOptions: ParsableArguments {
  private static let input = SecretInput(
    name: "app password", variable: "CARPACK_APP_PASSWORD", option: "--password-file")

  @Flag(
    help:
      "Log in as the account, for data that its server gives only to the owner, such as a deactivated account. The app password is read from --password-file or CARPACK_APP_PASSWORD, or asked for. It is sent only if the account claims the given handle, or to a server that --pds names."
  )
  var login = false

  @OptionGroup var given: LoginSecrets

  func validate() throws { try given.check(login) }

  /// What begins a session, if one is wanted; a session asks for nothing before it is used.
  ///
  /// - Throws: ``Failure`` if there is no password.
  func session() throws -> (@Sendable (DID, String, Network) async throws -> Session)? {
    guard login else { return nil }
    let password = try Self.input.need(given.passwordFile)
    let code = given.code
    return { did, server, network in
      Session(
        service: server, network: network, identifier: did.text, of: did, password: password,
        authFactorToken: code, allowTakendown: true)
    }
  }
}

/// What a login takes.
struct LoginSecrets: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "With --login: the file whose first line is the password.", valueName: "file"),
    completion: .file())
  var passwordFile: String?

  @Option(
    help: ArgumentHelp(
      "With --login: the code that the server sent by mail, if it asks for one.",
      valueName: "code"))
  var authFactorToken: String?

  var code: Secret? { authFactorToken.map { Secret($0) } }

  /// Refuses them without a login.
  func check(_ isLogin: Bool) throws {
    guard isLogin || (passwordFile == nil && authFactorToken == nil) else {
      throw ValidationError("--password-file and --auth-factor-token go with --login")
    }
  }
}
