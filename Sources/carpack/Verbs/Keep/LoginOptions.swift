internal import ATProtocol
internal import ArgumentParser
internal import Backup
internal import IPLD
internal import XRPC

/// Asking as the account's owner.
struct LoginOptions: ParsableArguments {
  /// The variable that holds the app password.
  private static let variable = "CARPACK_APP_PASSWORD"
  /// The longest file that is taken for one with a password.
  private static let maximumFile = 4096

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
    guard login || (passwordFile == nil && authFactorToken == nil) else {
      throw ValidationError("--password-file and --auth-factor-token go with --login")
    }
  }

  /// What begins a session, if one is wanted; a session asks for nothing before it is used.
  ///
  /// - Throws: ``Failure`` if there is no password.
  func session() throws -> (@Sendable (DID, String, Network) async throws -> Session)? {
    guard login else { return nil }
    let password = try password()
    let code = authFactorToken.map { Secret($0) }
    return { did, server, network in
      Session(
        service: server, network: network, identifier: did.text, password: password,
        authFactorToken: code, allowTakendown: true)
    }
  }

  private func password() throws -> Secret {
    if let passwordFile {
      let file = try InputFile(passwordFile)
      guard file.count <= Self.maximumFile else {
        throw Failure("\(passwordFile) is too long to be a password", status: .usage)
      }
      let text = file.withBytes { String(decoding: $0.array, as: UTF8.self) }
      return try secret(text.prefix { !$0.isNewline }, from: passwordFile)
    }
    if let variable = Host.environment(Self.variable) {
      return try secret(variable.value[...], from: variable.name)
    }
    guard let text = Console.askSecret("app password: ") else {
      throw Failure(
        "there is no app password",
        hint: "set \(Self.variable), name a file with --password-file, or answer on a terminal",
        status: .usage)
    }
    return try secret(text[...], from: "the answer")
  }

  private func secret(_ text: Substring, from source: String) throws -> Secret {
    guard !text.isEmpty else {
      throw Failure("\(source) holds no app password", status: .usage)
    }
    return Secret(String(text))
  }
}
