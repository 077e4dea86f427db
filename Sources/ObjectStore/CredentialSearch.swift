internal import ATProtocol
internal import HTTP
internal import SystemPackage

/// Looks for credentials where Amazon's tools do: the environment, the files of profiles, the
/// container, the instance.
///
/// No program is started for them (`credential_process`), and no role is taken on: such profiles
/// are refused with the reason.
struct CredentialSearch: Sendable {
  let options: StoreOptions
  /// The user agent of requests to the container's or the instance's service.
  let userAgent: String

  /// How much of a file is read.
  private static let longestFile = 1 << 20

  /// What was found.
  ///
  /// - Returns: The credentials; nil if there are none anywhere.
  /// - Throws: ``StoreError`` if what was found cannot be used.
  func credentials() async throws -> StoreCredentials? {
    // A profile that was named goes before the environment, as with Amazon's tools.
    if options.profile == nil, let found = try fromEnvironment() { return found }
    if let found = try fromProfile() { return found }
    if let found = try await fromContainer() { return found }
    return try await fromInstance()
  }

  /// A setting of the profile, from either file.
  ///
  /// - Throws: ``StoreError`` if an existing file cannot be read.
  func setting(_ name: String) throws(StoreError) -> String? { try profile()?[name] }

  private func fromEnvironment() throws(StoreError) -> StoreCredentials? {
    let key = options.environment("AWS_ACCESS_KEY_ID")
    let secret = options.environment("AWS_SECRET_ACCESS_KEY")
    guard key != nil || secret != nil else { return nil }
    guard let key, let secret else {
      throw StoreError(
        .noCredentials,
        "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set")
    }
    return StoreCredentials(
      key: key, secret: Secret(secret),
      sessionToken: options.environment("AWS_SESSION_TOKEN").map(Secret.init))
  }

  private var profileName: String {
    options.profile ?? options.environment("AWS_PROFILE") ?? options.environment(
      "AWS_DEFAULT_PROFILE")
      ?? "default"
  }

  private func fromProfile() throws(StoreError) -> StoreCredentials? {
    let isNamed = options.profile != nil || options.environment("AWS_PROFILE") != nil
    guard let profile = try profile() else {
      guard !isNamed else {
        throw StoreError(.noCredentials, "there is no profile \"\(profileName)\" in Amazon's files")
      }
      return nil
    }
    if let key = profile["aws_access_key_id"], let secret = profile["aws_secret_access_key"] {
      return StoreCredentials(
        key: key, secret: Secret(secret),
        sessionToken: profile["aws_session_token"].map(Secret.init))
    }
    let unusable = ["credential_process", "role_arn", "sso_session", "sso_start_url"]
    if let found = unusable.first(where: { profile[$0] != nil }) {
      throw StoreError(
        .noCredentials,
        "the profile \"\(profileName)\" gets its keys by \(found), which carpack does not support: give them in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
      )
    }
    guard !isNamed else {
      throw StoreError(.noCredentials, "the profile \"\(profileName)\" has no keys")
    }
    return nil
  }

  /// The settings of the profile in both files; those of the file of credentials count more.
  private func profile() throws(StoreError) -> [String: String]? {
    let home = options.environment("HOME") ?? ""
    let config = try settings(
      in: options.environment("AWS_CONFIG_FILE") ?? "\(home)/.aws/config")
    let credentials = try settings(
      in: options.environment("AWS_SHARED_CREDENTIALS_FILE") ?? "\(home)/.aws/credentials")
    guard config != nil || credentials != nil else { return nil }
    return (config ?? [:]).merging(credentials ?? [:]) { $1 }
  }

  private func settings(in path: String) throws(StoreError) -> [String: String]? {
    do {
      return ProfileFile(try Self.text(of: path))[profileName]
    } catch Errno.noSuchFileOrDirectory {
      return nil
    } catch {
      throw StoreError(.noCredentials, "could not read \(path): \(error)")
    }
  }

  /// The text of a file, as far as it is read.
  static func text(of path: String) throws -> String {
    let file = try FileDescriptor.open(FilePath(path), .readOnly, options: [.closeOnExec])
    return try file.closeAfter {
      try unsafe String(unsafeUninitializedCapacity: longestFile) { buffer in
        try unsafe file.read(into: UnsafeMutableRawBufferPointer(buffer))
      }
    }
  }
}
