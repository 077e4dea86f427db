internal import ATProtocol
internal import ArgumentParser
internal import HTTP
internal import IPLD
internal import XRPC

/// Asking as the account's owner.
struct LoginOptions: ParsableArguments {
  private static let input = SecretInput(
    name: "app password", variable: "CARPACK_APP_PASSWORD", option: "--password-file")

  @Flag(
    help:
      "Log in as the account, for what its server gives to the owner only, such as an account that is deactivated. The app password is read from --password-file or CARPACK_APP_PASSWORD, or asked for. It is sent only to the server of an account that claims the handle given, or to one that --pds names."
  )
  var login = false

  @Option(
    help: ArgumentHelp("The file whose first line is the app password.", valueName: "file"),
    completion: .file())
  var passwordFile: String?

  @Option(
    help: ArgumentHelp(
      "The code that the server has sent by mail, if the account asks for one.",
      valueName: "code"))
  var authFactorToken: String?

  func validate() throws {
    try require(
      login || (passwordFile == nil && authFactorToken == nil),
      "--password-file and --auth-factor-token go with --login")
  }

  /// What begins a session, if one is wanted; a session asks for nothing before it is used.
  ///
  /// - Throws: ``Failure`` if there is no password.
  func session() throws -> (@Sendable (DID, String, Network) async throws -> Session)? {
    guard login else { return nil }
    let password = try Self.input.need(passwordFile)
    let code = authFactorToken.map { Secret($0) }
    return { did, server, network in
      Session(
        service: server, network: network, identifier: did.text, password: password,
        authFactorToken: code, allowTakendown: true)
    }
  }
}
