internal import ATProtocol
internal import ArgumentParser
internal import Backup
internal import XRPC

/// Asking as the account's owner.
struct LoginOptions: ParsableArguments {
  @Flag(
    help:
      "Log in as the account, for what its server gives to the owner only, such as an account that is deactivated. The app password is asked for, or read from --password-file or CARPACK_APP_PASSWORD."
  )
  var login = false

  @Option(
    help: ArgumentHelp("The file whose first line is the app password.", valueName: "file"),
    completion: .file())
  var passwordFile: String?
}

extension LoginOptions {
  /// What begins a session, if one is wanted.
  func session() throws -> (@Sendable (DID, String, Network) async throws -> Session)? {
    nil
  }
}
